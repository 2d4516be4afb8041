"""What a submission's code names that no answer needs, for a human to look at.

It is read from the text, so that nothing that the code does can hide it. It proves nothing.
"""

import ast

from mha_classroom.grading.fit.cell_sources import parsed

__all__ = ["odd_names"]

MODULES = {"mha_classroom", "ctypes", "threading", "_thread", "concurrent"}
BUILTINS = {"exec", "eval", "__import__"}  # as methods they are others: model.eval()
INSIDES = {
    # of Python
    *("_getframe", "_current_frames", "currentframe", "f_back", "f_locals", "f_globals"),
    *("tb_frame", "gi_frame", "settrace", "setprofile", "addaudithook", "__code__", "__closure__"),
    *("cell_contents", "__globals__", "__builtins__"),
    *("reload", "exec_module", "getsource"),
    *("get_objects", "get_referrers", "get_referents"),
    # of torch, which its watch over calls rests on
    *("_C", "_python_dispatch", "DisableTorchFunction", "_get_current_function_mode_stack"),
    *("_pop_mode", "_len_torch_function_stack"),
    # of the kernel
    *("get_parent", "user_ns", "display_pub"),
}


def odd_names(sources):
    """Return the names, sorted, of modules, functions and attributes that are used in cells to look
    into or to change what runs an answer."""
    return sorted(set().union(*(_odd(source) for source in sources)))


def _odd(source):
    for node in ast.walk(parsed(source) or ast.Module([], [])):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            parts = {part for alias in node.names for part in alias.name.split(".")}
            parts |= set((getattr(node, "module", None) or "").split("."))
            yield from parts & (MODULES | INSIDES)
        elif isinstance(node, ast.Attribute):
            yield from {node.attr} & INSIDES
        elif isinstance(node, ast.Name):
            yield from {node.id} & BUILTINS
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from {node.value} & INSIDES  # as of getattr
