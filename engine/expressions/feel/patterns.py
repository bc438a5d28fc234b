"""Regular expressions of FEEL (DMN 1.3, 10.3.4.3, which points at XPath), matched by RE2 in time linear in the text.

Nothing backtracks, so no pattern can hang. What a search costs at most, the size of the pattern's automaton times the length of
the text, is paid in steps beforehand. docs/decisions/0071-regular-expressions-by-re2.md says why, and what XPath has and this lacks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import re2

from engine.expressions.errors import LimitExceeded
from engine.expressions.feel.builtins.define import NoResult
from engine.expressions.values import Scope

MAX_PATTERN = 1_000  # characters
MAX_MEMORY = 4 << 20  # bytes of one automaton
UNITS_PER_STEP = 4_096  # states times bytes; one costs up to 20 ns
MAX_COUNT = 1_000  # of a repetition
FLAGS = frozenset("smix")

_LITERAL = re.compile(r"[^\\.?*+{}()|\[\]^$]*")
_COUNT = re.compile(r"\{([0-9]{1,9})(?:,([0-9]{1,9})?)?\}")
# Escapes of XPath that RE2 has not, or has for ASCII alone. Inside a class the same without the brackets.
_CLASSES = {
    "d": r"\p{Nd}",
    "w": r"\p{L}\p{M}\p{N}_",
    "i": r"\p{L}_:",
    "c": r"\p{L}\p{M}\p{N}_:.\-",
}
_NEGATED = {
    "D": r"\P{Nd}",
    "W": r"\p{Pd}\p{Ps}\p{Pe}\p{Pi}\p{Pf}\p{Po}\p{S}\p{Z}\p{C}",
}
_OUTSIDE = {"D": r"\P{Nd}", "W": rf"[^{_CLASSES['w']}]", "I": rf"[^{_CLASSES['i']}]", "C": rf"[^{_CLASSES['c']}]"}
_ESCAPES = frozenset("nrtsSpPbB" + r"\|.-^?*+{}()[]$/" + "\"' ,:;=!<>@#%&~`_")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression, and what each byte of a text costs."""

    regexp: Any
    size: int
    matches_nothing: bool  # whether the empty text matches

    def found(self, text: str, scope: Scope) -> bool:
        """Whether it matches anywhere in the text."""
        return next(self.each(text, scope), None) is not None

    def each(self, text: str, scope: Scope) -> Iterator[Any]:
        """The matches from left to right, each paid before it is looked for."""
        found = self.regexp.finditer(text)
        at = 0
        while True:
            scope.spend(1 + (len(text) - at) * self.size // UNITS_PER_STEP)
            match = next(found, None)
            if match is None:
                return
            yield match
            at = match.end()


def compiled(pattern: str, flags: str, scope: Scope) -> Pattern:
    """The pattern as XPath reads it. Raises NoResult for one that is none, LimitExceeded for one that is too large."""
    if len(pattern) > MAX_PATTERN:
        raise LimitExceeded(f"expected a regular expression of at most {MAX_PATTERN} characters, found {len(pattern)}")
    found = _compiled(pattern, "".join(sorted(set(flags))))
    scope.spend(1 + found.size // 64)
    return found


def literal(pattern: str, flags: str) -> bool:
    """Whether the pattern stands for its own text."""
    return not flags and _LITERAL.fullmatch(pattern) is not None


@lru_cache(maxsize=32)
def _compiled(pattern: str, flags: str) -> Pattern:
    if unknown := set(flags) - FLAGS:
        raise NoResult(f"expected the flags s, m, i and x alone, found {sorted(unknown)[0]!r}")
    translated = _translated(_without_spaces(pattern) if "x" in flags else pattern)
    inline = "".join(flag for flag in flags if flag != "x")
    text = f"(?{inline}){translated}" if inline else translated
    try:
        regexp = re2.compile(text, _options(latin=False))
    except re2.error as error:
        raise NoResult(f"expected a regular expression, found {pattern[:60]!r}: {_message(error)}") from error
    return Pattern(regexp, _size(text, regexp), regexp.search("") is not None)


def _options(*, latin: bool) -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    if latin:
        options.encoding = re2.Options.Encoding.LATIN1
    return options


def _size(text: str, regexp: Any) -> int:
    """States of the automaton over characters. That over UTF-8 has far more where classes are large, and visits no more."""
    try:
        size: int = re2.compile(re.sub(r"[^\x00-\xff]", "ÿ", text).encode("latin-1"), _options(latin=True)).programsize
    except re2.error:
        size = regexp.programsize
    return size


def _message(error: Exception) -> str:
    (told,) = error.args or ("it cannot be read",)
    return told.decode(errors="replace") if isinstance(told, bytes) else str(told)


# ---- from XPath to RE2


def _without_spaces(pattern: str) -> str:
    """The flag x: white space outside classes does not count, behind a backslash neither."""
    kept: list[str] = []
    within = escaped = False
    for sign in pattern:
        if sign in " \t\n\r" and not within:
            continue
        if not escaped and sign in "[]":
            within = sign == "["
        escaped = sign == "\\" and not escaped
        kept.append(sign)
    return "".join(kept)


def _translated(pattern: str) -> str:
    parts: list[str] = []
    at = 0
    within = False  # a class
    while at < len(pattern):
        sign = pattern[at]
        if sign == "\\":
            parts.append(_escape(pattern[at + 1 : at + 2], within=within))
            at += 2
            if pattern[at - 1 : at] in ("p", "P"):
                end = pattern.find("}", at) + 1
                if not pattern.startswith("{", at) or not end:
                    raise NoResult(f"expected a property such as \\p{{L}}, found {pattern[at - 2 : at + 20]!r}")
                parts.append(pattern[at:end])
                at = end
            continue
        if within and sign == "[":
            raise NoResult(f"expected a class without another one in it, found {pattern[:60]!r}")
        if sign == "{" and not within:
            _check_count(pattern, at)
        if sign == "[":
            within = True
        elif sign == "]":
            within = False
        parts.append(sign)
        at += 1
    return "".join(parts)


def _check_count(pattern: str, at: int) -> None:
    """RE2 takes braces that it cannot read for letters."""
    found = _COUNT.match(pattern, at)
    if found is None or any(int(count) > MAX_COUNT for count in found.groups() if count):
        raise NoResult(f"expected a count up to {MAX_COUNT} such as {{2,3}}, found {pattern[at : at + 20]!r}")


def _escape(sign: str, *, within: bool) -> str:
    if sign in _CLASSES:
        return _CLASSES[sign] if within or sign == "d" else f"[{_CLASSES[sign]}]"
    table = _NEGATED if within else _OUTSIDE
    if sign in table:
        return table[sign]
    if sign.isdigit():
        raise NoResult(f"expected a regular expression without references to its own groups, found \\{sign}")
    if sign not in _ESCAPES or not sign:
        raise NoResult(f"expected an escape of XPath, found \\{sign}")
    return f"\\{sign}" if sign.isalpha() or not sign.isascii() else re.escape(sign)


# ---- replacements


def replacement(text: str, groups: int) -> list[str | int]:
    """A replacement as texts and numbers of groups: `$1` is a group, `$0` the whole, `\\$` a dollar (XPath fn:replace)."""
    parts: list[str | int] = []
    at = 0
    while at < len(text):
        sign = text[at]
        following = text[at + 1 : at + 2]
        if sign == "\\":
            if following not in ("\\", "$"):
                raise NoResult(f"expected \\\\ or \\$ in a replacement, found \\{following}")
            parts.append(following)
            at += 2
            continue
        if sign != "$":
            end = min((found for found in (text.find("$", at), text.find("\\", at)) if found >= 0), default=len(text))
            parts.append(text[at:end])
            at = end
            continue
        digits = re.compile(r"[0-9]*").match(text, at + 1)
        number = digits[0] if digits else ""
        if not number:
            raise NoResult("expected the number of a group after $ in a replacement, or \\$ for a dollar")
        while len(number) > 1 and (len(number) > 3 or int(number) > groups):
            number = number[:-1]
        parts.append(int(number))
        at += 1 + len(number)
    return parts


def expanded(parts: list[str | int], match: Any, groups: int) -> str:
    """A replacement for one match. A group that took no part, or does not exist, is empty."""
    return "".join(part if isinstance(part, str) else _group(match, part, groups) for part in parts)


def _group(match: Any, number: int, groups: int) -> str:
    return (match.group(number) or "") if number <= groups else ""
