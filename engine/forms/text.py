"""JSON as its author wrote it: what cannot be read is a problem with its line, and a component is found again by its id."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from engine.expressions.values import storable

MAX_SIZE = 1_000_000  # bytes
MAX_DEPTH = 40


class Unreadable(ValueError):
    """No document that a form could stand in."""

    def __init__(self, what: str, why: str, line: int | None = None) -> None:
        super().__init__(what)
        self.what, self.why, self.line = what, why, line


def parse_json(content: bytes) -> dict[str, Any]:
    """The object that the file holds. Raises Unreadable, never anything else."""
    if len(content) > MAX_SIZE:
        raise Unreadable(f"the file has {len(content):,} bytes", f"at most {MAX_SIZE:,}")
    try:
        text = content.decode("utf-8-sig")
        document = json.loads(text, object_pairs_hook=_each_once, parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise Unreadable(f"byte {error.start} is no UTF-8", "JSON in UTF-8") from error
    except json.JSONDecodeError as error:
        raise Unreadable(f"the file is not JSON: {error.msg}", "a form-js schema as JSON", error.lineno) from error
    except RecursionError as error:
        raise Unreadable("the file is nested too deeply", f"at most {MAX_DEPTH} levels") from error
    except Unreadable:
        raise
    except ValueError as error:
        raise Unreadable(f"the file is not JSON: {error}", "a form-js schema as JSON") from error
    if not isinstance(document, dict):
        raise Unreadable("the file holds no object", "a form-js schema: an object with id and components")
    _texts_are_storable(document)
    return document


def content_hash(document: dict[str, Any]) -> bytes:
    """The same for the same content, whatever its formatting and the order of its names."""
    return hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).digest()


def line_of(content: bytes, component_id: str) -> int | None:
    """The line on which something has this id."""
    found = re.search(rb'"id"\s*:\s*' + re.escape(json.dumps(component_id, ensure_ascii=False).encode()), content)
    return content.count(b"\n", 0, found.start()) + 1 if found else None


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Unreadable(f"an object has the name {twice[:80]!r} twice", "each name once")
    return found


def _no_number(text: str) -> Any:
    raise Unreadable(f"the file holds {text}, which is no number of JSON", "finite numbers")


def _texts_are_storable(document: Any) -> None:
    waiting = [(document, 1)]
    while waiting:
        part, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise Unreadable("the file is nested too deeply", f"at most {MAX_DEPTH} levels")
        if isinstance(part, dict):
            waiting += [(each, depth + 1) for pair in part.items() for each in pair]
        elif isinstance(part, list):
            waiting += [(each, depth + 1) for each in part]
        elif isinstance(part, str) and storable(part) is None:
            raise Unreadable("a text holds U+0000 or half of a surrogate pair", "text that can be stored")
