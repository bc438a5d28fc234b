"""Where the files lie that are not Python: `templates`, `static`, `migrations`.

In a checkout they are folders at the top. The wheel carries them inside the package, under engine/shipped, so that
nothing called `templates` or `static` lands in an environment that other packages share.
"""

from __future__ import annotations

from pathlib import Path

_ENGINE = Path(__file__).parent


def shipped(name: str) -> Path:
    """The folder `name`, in a checkout and in an installed wheel alike. Raises FileNotFoundError if it is in neither."""
    candidates = (_ENGINE / "shipped" / name, _ENGINE.parent / name)
    for folder in candidates:
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"expected a folder {name} at {candidates[0]} (installed) or {candidates[1]} (checkout), found neither")
