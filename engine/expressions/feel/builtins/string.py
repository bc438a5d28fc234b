"""Functions over strings (DMN 1.3, 10.3.4.3, table 69; `trim`, `extract` and `is blank` as Camunda has them).

Characters are those of Unicode, whatever takes two of them in UTF-16. Positions count from 1, from the end where they are negative.
"""

from __future__ import annotations

from typing import Any

from engine.expressions import limits
from engine.expressions.errors import LimitExceeded
from engine.expressions.feel.builtins.define import Group, NoResult
from engine.expressions.feel.patterns import compiled, expanded, literal, replacement
from engine.expressions.values import Scope, bounded

STRING = Group()


@STRING.function("substring", "string: string, start position: whole, length?: whole")
def _substring(scope: Scope, string: str, start: int, length: int | None = None) -> str:
    if not 1 <= abs(start) <= len(string):
        raise NoResult(f"expected a position from 1 to {len(string)} or from -{len(string)} to -1, found {start}")
    if length is not None and length < 1:
        raise NoResult(f"expected a length of at least 1, found {length}")
    first = start - 1 if start > 0 else len(string) + start
    return bounded(string[first:] if length is None else string[first : first + length], scope)


@STRING.function("string length", "string: string")
def _string_length(scope: Scope, string: str) -> int:
    return len(string)


@STRING.function("upper case", "string: string")
def _upper_case(scope: Scope, string: str) -> str:
    return bounded(string.upper(), scope)


@STRING.function("lower case", "string: string")
def _lower_case(scope: Scope, string: str) -> str:
    return bounded(string.lower(), scope)


@STRING.function("substring before", "string: string, match: string")
def _substring_before(scope: Scope, string: str, match: str) -> str:
    at = _find(scope, string, match)
    return bounded(string[:at], scope) if at >= 0 else ""


@STRING.function("substring after", "string: string, match: string")
def _substring_after(scope: Scope, string: str, match: str) -> str:
    at = _find(scope, string, match)
    return bounded(string[at + len(match) :], scope) if at >= 0 else ""


def _find(scope: Scope, string: str, match: str) -> int:
    scope.spend(len(string) // 64)
    return string.find(match)


@STRING.function("contains", "string: string, match: string")
def _contains(scope: Scope, string: str, match: str) -> bool:
    return _find(scope, string, match) >= 0


@STRING.function("starts with", "string: string, match: string")
def _starts_with(scope: Scope, string: str, match: str) -> bool:
    return string.startswith(match)


@STRING.function("ends with", "string: string, match: string")
def _ends_with(scope: Scope, string: str, match: str) -> bool:
    return string.endswith(match)


@STRING.function("trim", "string: string")
def _trim(scope: Scope, string: str) -> str:
    return bounded(string.strip(), scope)


@STRING.function("is blank", "string: string")
def _is_blank(scope: Scope, string: str) -> bool:
    scope.spend(len(string) // 64)
    return not string.strip()


# ---- regular expressions


@STRING.function("matches", "input: string, pattern: string, flags?: string|null")
def _matches(scope: Scope, text: str, pattern: str, flags: str | None = None) -> bool:
    return compiled(pattern, flags or "", scope).found(text, scope)


@STRING.function("replace", "input: string, pattern: string, replacement: string, flags?: string|null")
def _replace(scope: Scope, text: str, pattern: str, written: str, flags: str | None = None) -> str:
    found = compiled(pattern, flags or "", scope)
    if found.matches_nothing:
        raise NoResult(f"expected a pattern that does not match the empty string, found {pattern[:60]!r}")
    groups = found.regexp.groups
    parts = replacement(written, groups)
    return _joined(scope, text, ((match.start(), match.end(), expanded(parts, match, groups)) for match in found.each(text, scope)))


def _joined(scope: Scope, text: str, replaced: Any) -> str:
    made: list[str] = []
    at = length = 0
    for start, end, instead in replaced:
        made += (text[at:start], instead)
        length += start - at + len(instead)
        if length > limits.TEXT_LENGTH:
            raise LimitExceeded(f"expected a text of at most {limits.TEXT_LENGTH} characters, found more")
        at = end
    made.append(text[at:])
    return bounded("".join(made), scope)


@STRING.function("split", "string: string, delimiter: string")
def _split(scope: Scope, string: str, delimiter: str) -> list[str]:
    if delimiter and literal(delimiter, ""):
        scope.spend(len(string) // 64 + string.count(delimiter))
        return string.split(delimiter)
    found = compiled(delimiter, "", scope)
    if found.matches_nothing:
        raise NoResult(f"expected a delimiter that does not match the empty string, found {delimiter[:60]!r}")
    pieces: list[str] = []
    at = 0
    for match in found.each(string, scope):
        pieces.append(string[at : match.start()])
        at = match.end()
    scope.spend(len(string) // 64)
    return [*pieces, string[at:]]


@STRING.function("extract", "input: string, pattern: string, flags?: string|null")
def _extract(scope: Scope, text: str, pattern: str, flags: str | None = None) -> list[str]:
    found = [match.group() for match in compiled(pattern, flags or "", scope).each(text, scope)]
    scope.spend(len(text) // 64)
    return found


@STRING.function("string join", "list: list, delimiter?: string|null, prefix?: string|null, suffix?: string|null")
def _string_join(scope: Scope, items: list[Any], delimiter: str | None = None, prefix: str | None = None, suffix: str | None = None) -> str:
    between = delimiter or ""
    texts: list[str] = []
    length = 0
    for item in items:
        if item is None:
            continue
        if not isinstance(item, str):
            raise NoResult("expected a list of strings, found another value in it")
        length += len(item) + len(between)
        if length > limits.TEXT_LENGTH + len(between):
            raise LimitExceeded(f"expected a text of at most {limits.TEXT_LENGTH} characters, found more")
        texts.append(item)
    scope.spend(len(items))
    return bounded((prefix or "") + between.join(texts) + (suffix or ""), scope)
