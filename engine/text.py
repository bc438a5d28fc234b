"""Text as people sort and find it. Keys are computed here, so that the order is the same on every server."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

KEY_LENGTH = 200  # characters: long enough to tell names apart, short enough for an index


@lru_cache(maxsize=1_000)
def sort_key(text: str) -> str:
    """Casefolded, accents folded, blanks collapsed: "  Prüfung  B" and "PRUFUNG b" sort side by side."""
    apart = unicodedata.normalize("NFKD", text.casefold())
    letters = "".join(char for char in apart if not unicodedata.combining(char))
    return " ".join(letters.casefold().split())[:KEY_LENGTH]


def forms(text: str) -> list[str]:
    """Both ways to write the same letters (NFC, NFD), for what is found by itself and not by a key."""
    return list(dict.fromkeys(unicodedata.normalize(form, text) for form in ("NFC", "NFD")))


def shortened(text: str, limit: int) -> str:
    """`text`, cut to `limit` characters with a mark where it was cut. NUL, which PostgreSQL cannot store, shows as a sign."""
    clean = text.replace("\x00", "\N{SYMBOL FOR NULL}")
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"
