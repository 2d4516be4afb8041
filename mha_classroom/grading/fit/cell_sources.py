"""What the source of a student's cell defines, read without running it."""

import ast
import functools
import re
import warnings

from mha_classroom.grading.fit.slicing import IMPORTS, SCOPES, names_bound

__all__ = ["defined", "defused", "is_setup", "parsed", "setup_lines", "tidy"]

# No pattern may match the same text in two ways: a student could make that take for ever.
LONG = 200_000  # characters: what is longer is not parsed
CELL_MAGIC = re.compile(r"\s*%%(?!(time|timeit|capture|prun)\b)")
MAGIC = re.compile(r"^([^\S\n]*)(?:[%!?].*|[\w.]+\?{1,2}[^\S\n]*)$", re.MULTILINE)
ASSIGNED = re.compile(r"^([^\S\n]*\w[\w, ]*=[^\S\n]*)[%!].*$", re.MULTILINE)
DEFINITION = re.compile(r"^(?:async[^\S\n]+def|def|class)[^\S\n]+(\w+)", re.MULTILINE)
NBVAL = re.compile(r"\s*#+\s*(?:NBVAL|PYTEST_VALIDATE)_[A-Z_]+\s*")


def tidy(source):
    """The source without what editors change by themselves: spaces at the ends, empty lines."""
    return "\n".join(line.rstrip() for line in source.strip().splitlines())


def defused(source):
    """The source with comments that nbval would obey made harmless; as many lines and characters.

    nbval knows `# NBVAL_SKIP` and others wherever str.splitlines begins a line.
    """
    lines = source.splitlines(keepends=True)
    return "".join(x.replace("_", "-") if NBVAL.fullmatch(x) else x for x in lines)


@functools.lru_cache(maxsize=128)
def defined(source):
    """({functions and classes}, {all names}) that a cell makes at top level.

    In a cell that is no Python, what stands at the left margin as a definition.
    """
    tree, names = _read(source)
    if tree is None:
        names = set() if CELL_MAGIC.match(source) else set(DEFINITION.findall(source))
        return frozenset(names), frozenset(names)
    functions = {node.name for node in tree.body if isinstance(node, SCOPES)}
    return frozenset(functions), frozenset(names)


def parsed(source):
    """The tree of a cell's source, None if it has none: see `_read`."""
    return _read(source)[0]


def is_setup(source):
    """Whether a cell imports or defines something, or has nothing but constants."""
    tree, _ = _read(source)
    if tree is None:
        return False
    makes = any(isinstance(node, (*SCOPES, *IMPORTS)) for node in tree.body)
    return makes or all(_is_constant(node) for node in tree.body)


def setup_lines(source):
    """Of a cell that tries things out only imports, definitions and constants, on their lines."""
    tree, _ = _read(source)
    if tree is None:
        return ""
    lines, kept = source.split("\n"), set()
    for node in tree.body:
        if isinstance(node, (*SCOPES, *IMPORTS)) or _is_constant(node):
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
            kept |= set(range(first - 1, node.end_lineno))
    return "\n".join(line if n in kept else "" for n, line in enumerate(lines)).rstrip()


def _is_constant(node):
    parts = (ast.Constant, ast.Tuple, ast.List, ast.Load, ast.UnaryOp, ast.USub)
    return isinstance(node, ast.Assign) and all(
        isinstance(part, parts) for part in ast.walk(node.value)
    )


def _read(source):
    """(The tree of a cell's source, the names that it binds at top level), (None, None) if it has
    none: it is no Python, also without its magics, or too long."""
    if len(source) > LONG or CELL_MAGIC.match(source):
        return None, None
    plain = ASSIGNED.sub(r"\1None", MAGIC.sub(r"\1pass", source))
    for text in (source, plain):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(text), names_bound(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None, None
