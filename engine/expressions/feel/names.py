"""Names of several words and with signs in them, as FEEL allows (DMN 1.3, 10.3.1.2 rules 25 to 31, and 10.3.1.4).

A text does not show where such a name ends: `a-b` may be one name or a difference. What is known decides, the longest name
first: built-in functions, the names that the caller gives, and every key, parameter and iterator that the text itself declares.
A name that nobody knows is as many words and numbers as follow each other: two values side by side mean nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from engine.expressions.errors import ExpressionError
from engine.expressions.feel.tokens import RESERVED, Token, tokenise

SIGNS_IN_NAMES = (".", "/", "-", "'", "+", "*", "**", "?")


class KnownNames:
    """Names by their first word, each as the texts of its tokens."""

    def __init__(self, names: Iterable[str], others: KnownNames | None = None) -> None:
        self._others = others
        self._by_first: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        for name in names:
            self.add(name)

    def add(self, name: str) -> None:
        """Remember a name. One that is a single word needs no remembering, and one that no text could spell gets none."""
        parts = _parts(name)
        if len(parts) < 2:
            return
        longest_first = self._by_first.setdefault(parts[0], [])
        if (parts, name) not in longest_first:
            longest_first.append((parts, name))
            longest_first.sort(key=lambda each: -len(each[0]))

    def longest(self, tokens: Sequence[Token], at: int) -> tuple[str, int] | None:
        """The longest known name that begins at a token, and how many tokens it takes."""
        own, other = self._longest(tokens, at), self._others.longest(tokens, at) if self._others else None
        return own if own and (not other or own[1] >= other[1]) else other

    def _longest(self, tokens: Sequence[Token], at: int) -> tuple[str, int] | None:
        for parts, name in self._by_first.get(tokens[at].text, ()):
            if parts == tuple(token.text for token in tokens[at : at + len(parts)]):
                return name, len(parts)
        return None


def joined(tokens: Sequence[Token], at: int) -> tuple[str, int]:
    """The words and numbers that follow each other from a word on, as one name, and how many tokens it takes."""
    end = at + 1
    while (tokens[end].kind == "word" and not _ends_name(tokens, end)) or (tokens[end].kind == "number" and tokens[end].text.isdigit()):
        end += 1
    return " ".join(token.text for token in tokens[at:end]), end - at


def declared(tokens: Sequence[Token], at: int, text: str) -> tuple[str, int] | None:
    """The name that stands before a colon, signs and reserved words in it or not, and how many tokens it takes; None if none does."""
    end = at
    while tokens[end].kind in ("word", "number") or (tokens[end].is_sign(*SIGNS_IN_NAMES) and end > at):
        end += 1
    if end == at or tokens[at].kind == "number" or not tokens[end].is_sign(":"):
        return None
    return " ".join(text[tokens[at].position : tokens[end - 1].end].split()), end - at


def _ends_name(tokens: Sequence[Token], at: int) -> bool:
    if tokens[at].is_word("instance"):
        return tokens[at + 1].is_word("of")
    return tokens[at].text in RESERVED


@lru_cache(maxsize=4096)
def _parts(name: str) -> tuple[str, ...]:
    try:
        tokens = tokenise(name)[:-1]
    except ExpressionError:
        return ()
    spelled = all(token.kind in ("word", "number") or token.is_sign(*SIGNS_IN_NAMES) for token in tokens)
    return tuple(token.text for token in tokens) if spelled and tokens and tokens[0].kind == "word" else ()
