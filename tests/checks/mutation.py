"""Small edits of a right answer's source, to find out whether a check lets one through.

The sources are the answers in the solution notebooks. Every single edit is tried: operators,
comparisons, constants, axes, booleans, names of methods, order of arguments, dropped calls,
negated conditions, dropped statements.
"""

import ast
from pathlib import Path

import nbformat

SWAPPED = {
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Div, ast.Add],
    ast.Div: [ast.Mult, ast.FloorDiv],
    ast.FloorDiv: [ast.Mult, ast.Div],
    ast.Pow: [ast.Mult],
    ast.MatMult: [ast.Mult],
    ast.Mod: [ast.FloorDiv],
    ast.Lt: [ast.LtE, ast.Gt],
    ast.LtE: [ast.Lt],
    ast.Gt: [ast.GtE, ast.Lt],
    ast.GtE: [ast.Gt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.And: [ast.Or],
    ast.Or: [ast.And],
    ast.USub: [ast.UAdd],
}
RENAMED = {
    "amax": ["amin", "mean"],
    "max": ["min"],
    "sum": ["mean"],
    "exp": ["exp2", "sigmoid"],
    "softmax": ["log_softmax"],
    "tril": ["triu"],
    "triu": ["tril"],
    "repeat_interleave": ["repeat"],
    "repeat": ["repeat_interleave"],
    "cat": ["stack"],
    "stack": ["cat"],
    "reshape": ["view"],
    "tanh": ["sigmoid", "sin"],
    "sqrt": ["exp"],
    "ones": ["zeros"],
    "zeros": ["ones"],
    "queries": ["keys"],
    "keys": ["queries", "values"],
    "values": ["keys"],
    "W_q": ["W_k"],
    "W_k": ["W_v"],
    "W_v": ["W_o"],
}


def solution_sources(root):
    """{task_id: source of its answer}, and the sources that it stands among, down to the last one.

    What comes after the last answer of a notebook uses them; it may run a real model.
    """
    answers, setting = {}, {}
    for path in sorted(Path(root, "solutions").glob("*.ipynb")):
        cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
        graded = [c.metadata.get("nbgrader", {}) for c in cells]
        last = max(i for i, grading in enumerate(graded) if grading.get("solution"))
        plain = [cells[i].source for i in range(last + 1) if not graded[i].get("grade")]
        for cell, grading in zip(cells, graded, strict=True):
            if grading.get("solution"):
                answers[grading.grade_id] = cell.source
                setting[grading.grade_id] = "\n".join(plain)
    return answers, setting


def mutants(source):
    """Yield (what was edited, new source) for every single edit."""
    tree = ast.parse(source)
    seen = {ast.unparse(tree)}
    for position, original in enumerate(ast.walk(tree)):
        for variant in range(len(list(_edits(original)))):
            changed = ast.parse(source)
            node, parent, field = _locate(changed, position)
            label = _edit(node, parent, field, variant)
            text = ast.unparse(ast.fix_missing_locations(changed))
            if label and text not in seen:
                seen.add(text)
                yield f"line {getattr(node, 'lineno', '?')}: {label}", text


def _locate(tree, position):
    parents = {}
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            for i, child in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(child, ast.AST):
                    parents[id(child)] = (node, (name, i if isinstance(value, list) else None))
    node = list(ast.walk(tree))[position]
    return node, *parents.get(id(node), (None, None))


def _edit(node, parent, field, variant):
    """Apply an edit to a node in place; return its label, "" if there is no place for it."""
    label, replace = list(_edits(node))[variant]
    new = replace()
    if new is node:
        return label
    if parent is None:
        return ""
    name, index = field
    if index is None:
        setattr(parent, name, new)
    else:
        getattr(parent, name)[index] = new
    return label


def _edits(node):
    for new in SWAPPED.get(type(node), []):
        yield f"{type(node).__name__} to {new.__name__}", new
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "boolean flipped", lambda: ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        for delta in (1, -1):
            yield f"{node.value} {delta:+}", lambda delta=delta: ast.Constant(node.value + delta)
        yield f"{node.value} negated", lambda: ast.Constant(-node.value)
    if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
        field = "id" if isinstance(node, ast.Name) else "attr"
        for new in RENAMED.get(getattr(node, field), []):
            yield f"{getattr(node, field)} to {new}", lambda new=new: _set(node, field, new)
    if isinstance(node, ast.Call):
        if len(node.args) >= 2 and not any(isinstance(a, ast.Starred) for a in node.args[:2]):
            swapped = [node.args[1], node.args[0], *node.args[2:]]
            yield "arguments swapped", lambda: _set(node, "args", swapped)
        if isinstance(node.func, ast.Attribute):
            yield f"call of {node.func.attr} dropped", lambda: node.func.value
        for i, keyword in enumerate(node.keywords):
            rest = node.keywords[:i] + node.keywords[i + 1 :]
            yield f"{keyword.arg} dropped", lambda rest=rest: _set(node, "keywords", rest)
    if isinstance(node, ast.BinOp):
        yield "operands swapped", lambda: _set(_set(node, "left", node.right), "right", node.left)
        yield "right operand dropped", lambda: node.left
    if isinstance(node, (ast.If, ast.IfExp)):
        yield "condition negated", lambda: _set(node, "test", ast.UnaryOp(ast.Not(), node.test))
    if isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr)):
        yield "statement dropped", ast.Pass


def _set(node, field, value):
    setattr(node, field, value)
    return node
