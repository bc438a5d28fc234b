"""What pyproject.toml cannot say: three top-level folders travel inside the package, with every file that is not Python.

See engine/paths.py for how they are found again.
"""

from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
SHIPPED = {f"engine.shipped.{name}": name for name in ("templates", "static", "migrations")}


def files_of(folder: str) -> list[str]:
    """Every file below `folder`, relative to it, Python's own leavings aside."""
    top = ROOT / folder
    return sorted(str(path.relative_to(top)) for path in top.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


packages = find_packages(include=["engine*", "webapp*", "worker*", "cli*"])
setup(
    packages=[*packages, *SHIPPED],
    package_dir=SHIPPED,
    package_data={
        **{package: files_of(folder) for package, folder in SHIPPED.items()},
        **{package: ["*.sql", "*.bpmn", "*.json"] for package in packages},
        "engine.db": ["sql/*.sql"],
    },
)
