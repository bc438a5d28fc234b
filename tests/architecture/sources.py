"""The files of the repository as the architecture tests read them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("engine", "webapp", "worker", "cli", "migrations")
MADE = frozenset(
    {
        ".git",
        ".venv",
        ".clients",
        ".baton",
        ".cache",
        ".hypothesis",
        ".mypy_cache",
        ".ruff_cache",
        ".pytest_cache",
        ".import_linter_cache",
        "__pycache__",
        "build",
        "dist",
        "node_modules",
        "test-results",
    }
)


def every_file() -> Iterator[Path]:
    """Every file that belongs to the repository; what tools made is left out (git may not be there to ask)."""
    folders = [ROOT]
    while folders:
        for path in sorted(folders.pop().iterdir()):
            if path.name in MADE or path.name.endswith(".egg-info"):
                continue
            if path.is_dir():
                folders.append(path)
            elif path.suffix not in (".pyc", ".so"):
                yield path


def python_files(*folders: str) -> Iterator[Path]:
    for folder in folders or PACKAGES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not MADE.intersection(path.relative_to(ROOT).parts):
                yield path


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of every string in a Python file that is not a docstring: what may end up as SQL."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                docstrings.add(first.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            yield node.lineno, node.value
