"""The sources that some functions need, and nothing else of their package. Nothing is executed."""

import ast
import builtins
import functools
import symtable
import tokenize
from pathlib import Path
from typing import NamedTuple

__all__ = ["IMPORTS", "SCOPES", "names_bound", "slice_modules"]

IMPORTS = (ast.Import, ast.ImportFrom)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def slice_modules(roots, files=None):
    """Return {module name: source}, cut down to the top-level definitions that the roots reach.

    roots: dotted names of modules ("mha_course.attention": all of it) or of what a module defines
        at top level ("mha_course.bert.BertConfig").
    files: {name of a top-level module or package: its source file}, for others than the course's.
    Properties: in those packages imports are followed, also the ones inside functions; other
        libraries are imported as they are. Parent packages become empty modules. Static: names
        made at run time (getattr, importlib) are not seen. Nothing is imported or executed.
    Raises: ValueError naming a root, or a name that is imported, which is not there.
    """
    around = Path(__file__).resolve().parents[3]
    own = {name: around / name / "__init__.py" for name in ("mha_course", "mha_classroom")}
    slicer = _Slicer(own | {name: Path(path) for name, path in (files or {}).items()})
    for root in roots:
        slicer.add_root(root)
    return slicer.sources()


class _Slicer:
    """Which statements of which modules are kept, grown from the roots."""

    def __init__(self, files):
        self.files = files
        self.modules = {}  # name: _Module, or None where there is no such file
        self.kept = {}  # module name: {_Binding that is kept}
        self.done = set()
        self.waiting = []  # (module name, a name of it, or None for all, "" for the bare module)

    def module(self, name):
        if name not in self.modules:
            path = _source_path(name, self.files)
            self.modules[name] = path and _read_module(name, path)
        return self.modules[name]

    def add_root(self, root):
        """Ask for what a dotted name means: a module, or what one defines at top level."""
        parts = root.split(".")
        for length in range(len(parts), 0, -1):
            name, rest = ".".join(parts[:length]), parts[length:]
            if self.module(name):
                if rest and rest[0] not in self.module(name).bindings:
                    raise ValueError(f"{root}: {name} defines no {rest[0]!r} at top level")
                self.waiting.append((name, rest[0] if rest else None))
                return self._grow()
        raise ValueError(f"{root}: there is no module {parts[0]!r} that is to be cut out")

    def _grow(self):
        while self.waiting:
            wanted = self.waiting.pop()
            if wanted not in self.done:
                self.done.add(wanted)
                self._take(*wanted)

    def _take(self, module, name):
        parts = module.split(".")
        for length in range(1, len(parts) + 1):
            self.kept.setdefault(".".join(parts[:length]), set())
        here = self.module(module)
        for binding in here.all_bindings() if name is None else here.bindings.get(name, ()):
            if binding not in self.kept[module]:
                self.kept[module].add(binding)
                if binding.alias is None:
                    self._follow(here, binding.node)
                else:
                    self._imported(here, binding.node, binding.alias)

    def _follow(self, here, statement):
        """Ask for what a top-level statement imports inside and for the global names it reads."""
        inside = {}  # names that stand for a module of ours
        for node, alias in _imports_in(statement):
            inside[_bound_by(alias)] = self._imported(here, node, alias)
        read = _global_names(statement)
        for name, attributes in _names_used(statement):
            if inside.get(name):
                self._use_module(inside[name], attributes)
            elif name in read:
                self._use(here, name, attributes)

    def _imported(self, here, node, alias):
        """Follow what an import statement brings; returns the module that its name stands for."""
        source = alias.name if isinstance(node, ast.Import) else here.absolute(node)
        if source.split(".")[0] not in self.files:
            return None
        if not self.module(source):
            raise ValueError(f"{here.name} imports {source}, which is not there")
        self.waiting.append((source, ""))
        if isinstance(node, ast.Import):
            return source if alias.asname else source.split(".")[0]
        return self._imported_name(here, source, alias.name)

    def _imported_name(self, here, source, name):
        module, below = self.module(source), f"{source}.{name}"
        if name == "*":
            self.waiting.append((source, None))
        elif name in module.bindings:
            self.waiting.append((source, name))
            return self._stands_for(module, name)
        elif self.module(below):
            self.waiting.append((below, ""))
            return below
        elif not self._made_otherwise(module):
            raise ValueError(f"{here.name} imports {name} from {source}: it is not there")
        return None

    def _stands_for(self, module, name):
        """The module that a name of a module stands for because of an import there, or None."""
        ways = module.imports.get(name, ())
        found = [self._imported(module, node, alias) for node, alias in ways]
        return next((name for name in found if name), None)

    def _made_otherwise(self, module):
        """Keep the ways in which a module may have a name that it does not write down."""
        ways = [way for way in ("*", "__getattr__") if way in module.bindings]
        self.waiting += [(module.name, way) for way in ways]
        return bool(ways)

    def _use(self, here, name, attributes):
        """A statement of `here` reads a global name, perhaps with attributes: `name.a.b`."""
        if name in here.bindings:
            self.waiting.append((here.name, name))
            module = self._stands_for(here, name)
            if module:
                self._use_module(module, attributes)
        elif not hasattr(builtins, name):
            self._made_otherwise(here)

    def _use_module(self, module, attributes):
        """A module is used as `module.a.b`; alone, or passed on, all of it is needed."""
        if not attributes:
            self.waiting.append((module, None))
            return
        (first, *rest), here = attributes, self.module(module)
        if first in here.bindings:
            self._use(here, first, rest)
        elif self.module(f"{module}.{first}"):
            self.waiting.append((f"{module}.{first}", ""))
            self._use_module(f"{module}.{first}", rest)
        elif not first.startswith("__"):
            self._made_otherwise(here)

    def sources(self):
        """{module name: source} of what is kept."""
        modules = {name: self.module(name) for name in sorted(self.kept)}
        return {name: here.text(self.kept[name]) if here else "" for name, here in modules.items()}


def _source_path(name, files):
    """The file of a module below one of `files` {top-level name: its file}, or None."""
    top, *rest = name.split(".")
    if top not in files or not rest:
        return files.get(top)
    if files[top].name != "__init__.py":
        return None
    place = files[top].parent.joinpath(*rest)
    ways = (place / "__init__.py", place.with_name(f"{place.name}.py"))
    return next((path for path in ways if path.is_file()), None)


def _read_module(name, path):
    """The _Module of a file, parsed again only when the file has changed."""
    try:
        status = path.stat()
        return _parsed(name, path, status.st_mtime_ns, status.st_size)
    except (SyntaxError, ValueError, OSError) as error:
        raise ValueError(f"the source of {name} cannot be read: {error}") from error


@functools.lru_cache(maxsize=256)
def _parsed(name, path, _saved, _size):
    return _Module(name, path)


class _Binding(NamedTuple):
    """A top-level statement, or one of the names that an import statement brings."""

    node: ast.stmt
    alias: ast.alias | None = None


class _Module:
    """One source file as a table: `bindings` has for each name what makes or changes it.

    imports: {name: [(import statement, alias)]}, also of those in try, if and with at top level.
    """

    def __init__(self, name, path):
        self.name, self.is_package = name, path.name == "__init__.py"
        with tokenize.open(path) as file:
            source = file.read()
        self.tree = ast.parse(source)
        self._lines = [line.encode() for line in source.split("\n")]
        self.bindings, self.imports = {}, {}
        for node in self.tree.body:
            self._bind(node)
        for node in self.tree.body:
            self._bind_change(node)

    def _bind(self, node):
        if not isinstance(node, SCOPES):
            for statement, alias in _imports_in(node):
                self.imports.setdefault(_bound_by(alias), []).append((statement, alias))
        if isinstance(node, IMPORTS):
            for alias in node.names:
                self._add(_bound_by(alias), _Binding(node, alias))
        elif not ast.unparse(node).startswith("if __name__ =="):
            for name in sorted(names_bound(ast.unparse(node))):
                self._add(name, _Binding(node))

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
                    self._add(root.id, _Binding(node))

    def _add(self, name, binding):
        self.bindings.setdefault(name, []).append(binding)

    def all_bindings(self):
        """Everything, for a module that is needed as a whole."""
        for node in self.tree.body:
            if isinstance(node, IMPORTS):
                yield from (_Binding(node, alias) for alias in node.names)
            else:
                yield _Binding(node)

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
                names = [a for a in node.names if _Binding(node, a) in kept or (future and kept)]
                pieces += [self._import(node, names)] if names else []
            elif _Binding(node) in kept:
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


def _imports_in(statement):
    """(import statement, alias) of every name that is imported in a statement, at any depth."""
    nodes = [node for node in ast.walk(statement) if isinstance(node, IMPORTS)]
    return [(node, alias) for node in nodes for alias in node.names]


def _bound_by(alias):
    """The name that an import binds."""
    return alias.asname or alias.name.split(".")[0]


def names_bound(source):
    """The names that a source binds at its top level. Raises: SyntaxError."""
    table = symtable.symtable(source, "<source>", "exec")
    return {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}


def _global_names(statement):
    """The global names that a top-level statement reads, as far as no local name hides them."""
    tables = [symtable.symtable(ast.unparse(statement), "<source>", "exec")]
    names = set()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        in_function = table.get_type() == "function"
        for symbol in table.get_symbols():
            if symbol.is_global() or (symbol.is_referenced() and not in_function):
                names.add(symbol.get_name())
    return names


def _names_used(statement):
    """(name, its attributes) of each name in a statement: "x.a.b" is ("x", ["a", "b"]).

    A name that is only set needs its statement, but not all of a module that it stands for.
    """
    found, inside = [], set()
    for part in ast.walk(statement):  # what is around comes before what is inside
        if part in inside:
            continue
        attributes = []
        while isinstance(part, ast.Attribute):
            attributes.insert(0, part.attr)
            part = part.value
            inside.add(part)
        if isinstance(part, ast.Name):
            is_read = isinstance(part.ctx, ast.Load)
            found.append((part.id, attributes if is_read else ["__set__"]))
    return found
