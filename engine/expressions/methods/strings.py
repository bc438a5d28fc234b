"""Methods of strings. Positions count characters from 0. What makes a text is bounded before it is made."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from engine.expressions import limits
from engine.expressions.errors import ExpressionError
from engine.expressions.methods.method import Method, place, string
from engine.expressions.values import Scope, bounded, shown, too_long

_PATTERN = re.compile(r"[\\^$.|?*+()\[\]{}]")  # what has a meaning in a regular expression of Java
_ESCAPED = re.compile(r"\\([\\^$.|?*+()\[\]{}])")


def _read(scope: Scope, text: str) -> None:
    scope.spend(len(text) // 64)


def _made(make: Callable[[str], str]) -> Callable[[Scope, str], str]:
    def apply(scope: Scope, target: str) -> str:
        if len(target) > limits.TEXT_LENGTH:
            too_long(len(target))
        _read(scope, target)
        return bounded(make(target), scope)

    return apply


def _contains(scope: Scope, target: str, part: Any) -> bool:
    _read(scope, target)
    return string(part, "contains") in target


def _starts(scope: Scope, target: str, part: Any) -> bool:
    return target.startswith(string(part, "startsWith"))


def _ends(scope: Scope, target: str, part: Any) -> bool:
    return target.endswith(string(part, "endsWith"))


def _index_of(scope: Scope, target: str, part: Any, start: Any = 0) -> int:
    _read(scope, target)
    return target.find(string(part, "indexOf"), place(start, len(target), "indexOf"))


def _last_index_of(scope: Scope, target: str, part: Any) -> int:
    _read(scope, target)
    return target.rfind(string(part, "lastIndexOf"))


def _char_at(scope: Scope, target: str, at: Any) -> str:
    if not target:
        raise ExpressionError("expected a string with characters before .charAt(), found the string ''")
    return target[place(at, len(target) - 1, "charAt")]


def _substring(scope: Scope, target: str, start: Any, end: Any = None) -> str:
    last = len(target) if end is None else place(end, len(target), "substring")
    first = place(start, len(target), "substring")
    if first > last:
        raise ExpressionError(f"expected a start not behind the end with .substring(), found {first} and {last}")
    return bounded(target[first:last], scope)


def _concat(scope: Scope, target: str, other: Any) -> str:
    length = len(target) + len(string(other, "concat"))
    return bounded(target + other, scope) if length <= limits.TEXT_LENGTH else too_long(length)


def _replace(scope: Scope, target: str, old: Any, new: Any) -> str:
    before, after = string(old, "replace"), string(new, "replace")
    _read(scope, target)
    length = len(target) + target.count(before) * (len(after) - len(before))
    return bounded(target.replace(before, after), scope) if length <= limits.TEXT_LENGTH else too_long(length)


def _split(scope: Scope, target: str, separator: Any) -> list[str]:
    """As in Java: empty parts at the end are left out. The separator is a plain text; `\\|` is how Java writes a |."""
    wanted = string(separator, "split")
    if not wanted or _PATTERN.search(_ESCAPED.sub("", wanted)):
        if len(wanted) != 1 or wanted not in ".|":
            raise ExpressionError(f"expected a plain text with .split(), found {shown(wanted)}: regular expressions are not run")
        raise ExpressionError(f"expected a plain text with .split(), found {shown(wanted)}: as a plain text it is written '\\\\{wanted}'")
    plain = _ESCAPED.sub(r"\1", wanted)
    scope.spend(target.count(plain) + 1)
    _read(scope, target)
    parts = target.split(plain)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return [] if parts == [""] and target else parts


def _equals_ignore_case(scope: Scope, target: str, other: Any) -> bool:
    _read(scope, target)
    return isinstance(other, str) and target.casefold() == other.casefold()


def _compare_to(scope: Scope, target: str, other: Any) -> int:
    """-1, 0 or 1, by code points."""
    right = string(other, "compareTo")
    return (target > right) - (target < right)


def _is_blank(scope: Scope, target: str) -> bool:
    _read(scope, target)
    return not target.strip()


METHODS: Mapping[str, Method] = {
    "charAt": Method(_char_at, 1, 1),
    "compareTo": Method(_compare_to, 1, 1),
    "concat": Method(_concat, 1, 1),
    "contains": Method(_contains, 1, 1),
    "endsWith": Method(_ends, 1, 1),
    "equalsIgnoreCase": Method(_equals_ignore_case, 1, 1),
    "indexOf": Method(_index_of, 1, 2),
    "isBlank": Method(_is_blank),
    "isEmpty": Method(lambda scope, target: not target),
    "lastIndexOf": Method(_last_index_of, 1, 1),
    "length": Method(lambda scope, target: len(target)),
    "replace": Method(_replace, 2, 2),
    "size": Method(lambda scope, target: len(target)),
    "split": Method(_split, 1, 1),
    "startsWith": Method(_starts, 1, 1),
    "stringValue": Method(lambda scope, target: target),  # of Camunda Spin
    "substring": Method(_substring, 1, 2),
    "toLowerCase": Method(_made(str.lower)),
    "toUpperCase": Method(_made(str.upper)),
    "trim": Method(_made(str.strip)),
}
