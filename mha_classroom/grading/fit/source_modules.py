"""A module's source as a table: which top-level statements make which of its names."""

import ast
import functools
import tokenize
from typing import NamedTuple

__all__ = [
    "IMPORTS",
    "Binding",
    "SCOPES",
    "SourceModule",
    "locals_of",
    "read_module",
    "source_path",
]

IMPORTS = (ast.Import, ast.ImportFrom)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
COMPREHENSIONS = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Binding(NamedTuple):
    """A top-level statement, or one of the names that an import statement brings."""

    node: ast.stmt
    alias: ast.alias | None = None


def source_path(name, files):
    """The file of a module below one of `files` {top-level name: its file}, or None."""
    top, *rest = name.split(".")
    if top not in files:
        return None
    if not rest:
        return files[top]
    if files[top].name != "__init__.py":
        return None
    place = files[top].parent.joinpath(*rest)
    ways = (place / "__init__.py", place.with_name(f"{place.name}.py"))
    return next((path for path in ways if path.is_file()), None)


def read_module(name, path):
    """The SourceModule of a file, parsed again only when the file has changed."""
    try:
        status = path.stat()
    except OSError as error:
        raise ValueError(f"the source of {name} cannot be read: {error.strerror}") from error
    return _read(name, path, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=256)
def _read(name, path, _saved, _size):
    return SourceModule(name, path)


class SourceModule:
    """One source file: `bindings` has for each name the statements that make or change it."""

    def __init__(self, name, path):
        self.name, self.is_package = name, path.name == "__init__.py"
        try:
            with tokenize.open(path) as file:
                source = file.read()
            self.tree = ast.parse(source)
        except (SyntaxError, ValueError, OSError) as error:
            raise ValueError(f"the source of {name} cannot be read: {error}") from error
        self._lines = [line.encode() for line in source.split("\n")]
        self.bindings = {}
        self.hidden_imports = {}  # in try, if and with at top level
        for node in self.tree.body:
            self._bind(node)
        for node in self.tree.body:
            self._bind_change(node)

    def _bind(self, node):
        if isinstance(node, IMPORTS):
            for alias in node.names:
                self._add(alias.asname or alias.name.split(".")[0], Binding(node, alias))
        elif not _is_main_guard(node):
            names, imports = locals_of([node])
            for name in sorted(names):
                self._add(name, Binding(node))
            for statement in imports:
                for alias in statement.names:
                    name = alias.asname or alias.name.split(".")[0]
                    self.hidden_imports.setdefault(name, []).append((statement, alias))

    def _bind_change(self, node):
        """`X.append(1)`, `X["a"] = 1` and `X.a = 1` belong to a name X that is defined here."""
        parts = getattr(node, "targets", None) or [getattr(node, "target", None)]
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            parts = [node.value.func]
        for part in parts:
            root = part
            while isinstance(root, (ast.Attribute, ast.Subscript)):
                root = root.value
            if root is not part and isinstance(root, ast.Name):
                made = self.bindings.get(root.id, ())
                if any(binding.alias is None for binding in made):
                    self._add(root.id, Binding(node))

    def _add(self, name, binding):
        self.bindings.setdefault(name, []).append(binding)

    def all_bindings(self):
        """Everything, for a module that is needed as a whole."""
        for node in self.tree.body:
            if isinstance(node, IMPORTS):
                yield from (Binding(node, alias) for alias in node.names)
            else:
                yield Binding(node)

    def absolute(self, node):
        """The dotted name of the module that a `from ... import` names."""
        if not node.level:
            return node.module
        parts = self.name.split(".")
        parts = parts[: len(parts) - node.level + self.is_package]
        return ".".join([*parts, *([node.module] if node.module else [])])

    def text(self, kept):
        """The source of the kept bindings, in their order; "" if there is none."""
        pieces = []
        for node in self.tree.body:
            future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
            if isinstance(node, IMPORTS):
                names = [a for a in node.names if Binding(node, a) in kept or (future and kept)]
                pieces += [self._import(node, names)] if names else []
            elif Binding(node) in kept:
                pieces.append(self._segment(node))
        return "\n\n".join(pieces) + "\n" if pieces else ""

    def _import(self, node, names):
        if isinstance(node, ast.Import):
            return ast.unparse(ast.Import(names))
        return ast.unparse(ast.ImportFrom(self.absolute(node), names, 0))

    def _segment(self, node):
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(d.lineno for d in decorators)]) - 1
        lines = self._lines[first : node.end_lineno]
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0] if decorators else lines[0][node.col_offset :]
        return b"\n".join(lines).decode()


def locals_of(statements):
    """(The names that statements bind in the scope they stand in, the import statements there)."""
    bound, outer, imports, parts = set(), set(), [], list(statements)
    while parts:
        part = parts.pop()
        if isinstance(part, SCOPES):
            bound.add(part.name)
        elif isinstance(part, COMPREHENSIONS):
            bound |= {n.target.id for n in ast.walk(part) if isinstance(n, ast.NamedExpr)}
        else:
            parts += ast.iter_child_nodes(part)
        if isinstance(part, (ast.Global, ast.Nonlocal)):
            outer |= set(part.names)
        elif isinstance(part, IMPORTS):
            imports.append(part)
            bound |= {alias.asname or alias.name.split(".")[0] for alias in part.names}
        elif isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            bound.add(part.id)
        elif isinstance(part, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and part.name:
            bound.add(part.name)
        elif isinstance(part, ast.MatchMapping) and part.rest:
            bound.add(part.rest)
    return bound - outer, imports


def _is_main_guard(node):
    return isinstance(node, ast.If) and ast.unparse(node.test).startswith("__name__ ==")
