"""A clone of two lessons and one exercise, to try commands on."""

NOTEBOOK = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}\n'
STEMS = ("00_start_here", "04_head_splitting")
ALL = ["exercises/04_head_splitting.ipynb"] + [f"notebooks/{stem}.ipynb" for stem in STEMS]


def put(root, name, text):
    path = root / f"{name}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def contents(root):
    files = (path for path in (root / "work").rglob("*") if path.is_file())
    return {path.relative_to(root / "work").as_posix(): text(path) for path in files}


def text(path):
    return path.read_text("utf-8", errors="replace")


def notebooks(root):
    return sorted(name for name in contents(root) if name.endswith(".ipynb"))
