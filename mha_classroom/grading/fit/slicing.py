"""The sources that some functions need, and nothing else of their package. Nothing is executed."""

import ast
import builtins
from pathlib import Path

from mha_classroom.grading.fit.names_read import NamesRead
from mha_classroom.grading.fit.source_modules import read_module, source_path

__all__ = ["slice_modules"]


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
        self.modules = {}  # name: SourceModule, or None where there is no such file
        self.kept = {}  # module name: {Binding that is kept}
        self.done = set()
        self.waiting = []  # (module name, a name of it, or None for all, "" for the bare module)

    def module(self, name):
        if name not in self.modules:
            path = source_path(name, self.files)
            self.modules[name] = path and read_module(name, path)
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
            self._keep(here, binding)

    def _keep(self, here, binding):
        kept = self.kept.setdefault(here.name, set())
        if binding in kept:
            return
        kept.add(binding)
        if binding.alias is not None:
            self.imported(here, binding.node, binding.alias)
        else:
            NamesRead(self, here).visit(binding.node)

    def imported(self, here, node, alias):
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
        ways = [(b.node, b.alias) for b in module.bindings.get(name, ()) if b.alias is not None]
        ways += module.hidden_imports.get(name, [])
        found = [self.imported(module, node, alias) for node, alias in ways]
        return next((name for name in found if name), None)

    def _made_otherwise(self, module):
        """Keep the ways in which a module may have a name that it does not write down."""
        ways = ("*", "__getattr__")
        self.waiting += [(module.name, way) for way in ways if way in module.bindings]
        return any(way in module.bindings for way in ways)

    def use(self, here, name, attributes):
        """A statement of `here` reads a global name, perhaps with attributes: `name.a.b`."""
        if name in here.bindings:
            self.waiting.append((here.name, name))
            module = self._stands_for(here, name)
            if module:
                self.use_module(module, attributes)
        elif not hasattr(builtins, name):
            self._made_otherwise(here)

    def use_module(self, module, attributes):
        """A module is used as `module.a.b`; alone, or passed on, all of it is needed."""
        if not attributes:
            self.waiting.append((module, None))
            return
        (first, *rest), here = attributes, self.module(module)
        if first in here.bindings:
            self.use(here, first, rest)
        elif self.module(f"{module}.{first}"):
            self.waiting.append((f"{module}.{first}", ""))
            self.use_module(f"{module}.{first}", rest)
        elif not first.startswith("__"):
            self._made_otherwise(here)

    def sources(self):
        """{module name: source} of what is kept."""
        modules = {name: self.module(name) for name in sorted(self.kept)}
        return {name: here.text(self.kept[name]) if here else "" for name, here in modules.items()}
