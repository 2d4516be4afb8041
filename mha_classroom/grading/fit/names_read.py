"""The global names that a statement reads, as far as no local name hides them."""

import ast

from mha_classroom.grading.fit.source_modules import locals_of

__all__ = ["NamesRead"]


class NamesRead(ast.NodeVisitor):
    """Walks a top-level statement and reports to `slicer` what it reads and imports.

    slicer: has `use(module, name, attributes)` for a global name, `use_module(name, attributes)`
        for a module imported inside a function, and `imported(module, node, alias)`.
    """

    def __init__(self, slicer, here):
        self.slicer, self.here = slicer, here
        self.scopes = []  # for each function around: {its local name: a module, or None}

    def visit_Name(self, node):
        # A name that is only set needs its statement, but not all of a module that it stands for.
        self._use(node.id, [] if isinstance(node.ctx, ast.Load) else ["__set__"])

    def visit_Attribute(self, node):
        attributes, base = [], node
        while isinstance(base, ast.Attribute):
            attributes.insert(0, base.attr)
            base = base.value
        if isinstance(base, ast.Name):
            self._use(base.id, attributes)
        else:
            self.visit(base)

    def _use(self, name, attributes):
        for scope in reversed(self.scopes):
            if name in scope:
                if scope[name]:
                    self.slicer.use_module(scope[name], attributes)
                return
        self.slicer.use(self.here, name, attributes)

    def visit_Import(self, node):
        for alias in node.names:
            stands_for = self.slicer.imported(self.here, node, alias)
            if self.scopes and stands_for:
                self.scopes[-1][alias.asname or alias.name.split(".")[0]] = stands_for

    visit_ImportFrom = visit_Import

    def visit_FunctionDef(self, node):
        for outside in (*node.decorator_list, *_signature(node.args), node.returns):
            if outside is not None:
                self.visit(outside)
        self._inside(_arguments(node.args), node.body)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node):
        for outside in _signature(node.args):
            self.visit(outside)
        self._inside(_arguments(node.args), [node.body])

    def _comprehension(self, node):
        self.visit(node.generators[0].iter)  # is read outside
        hidden = locals_of([generator.target for generator in node.generators])[0]
        self._inside(hidden, list(ast.iter_child_nodes(node)), own_names=False)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def _inside(self, names, body, own_names=True):
        found, imports = locals_of(body) if own_names else (set(), [])
        self.scopes.append(dict.fromkeys(names | found))
        for statement in imports:  # first: a function inside may read a name above its import
            self.visit(statement)
        for part in body:
            self.visit(part)
        self.scopes.pop()


def _arguments(args):
    return {a.arg for a in _every(args)}


def _every(args):
    both = [a for a in (args.vararg, args.kwarg) if a is not None]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *both]


def _signature(args):
    """What a signature reads when the function is defined: annotations and defaults."""
    yield from (a.annotation for a in _every(args) if a.annotation is not None)
    yield from (default for default in (*args.defaults, *args.kw_defaults) if default is not None)
