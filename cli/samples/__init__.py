"""The sample processes of `baton up`, the people who work on them, and the traffic that drives them."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
SERVICE = "http://127.0.0.1:8071"
"""Where the models say that the sample service answers; `baton up` writes in where it really does."""


def sample_files(*, service: str = SERVICE) -> list[tuple[str, bytes]]:
    """(file name, content) of every sample model, calling the sample service at `service`."""
    return [(path.name, path.read_bytes().replace(SERVICE.encode(), service.encode())) for path in sorted(FOLDER.glob("*.bpmn"))]
