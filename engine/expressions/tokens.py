"""Text of one expression -> tokens. Stops at the closing brace that ends an embedded expression."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any
from unicodedata import category

from engine.expressions import limits
from engine.expressions.errors import ExpressionSyntaxError, LimitExceeded

WORDS = {
    "and": "&&",
    "or": "||",
    "not": "!",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "gt": ">",
    "le": "<=",
    "ge": ">=",
    "div": "/",
    "mod": "%",
    "empty": "empty",
}
CONSTANTS: dict[str, Any] = {"true": True, "false": False, "null": None}
SIGNS = ("&&", "||", "+=", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", "(", ")", "[", "]", ".", ",")
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "/": "/"}

_SPACE = re.compile(r"\s+")
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_REST = re.compile(r"[\w$]*")
_NAME = re.compile(r"[^\W\d][\w$]*|\$[\w$]+")


@dataclass(frozen=True, slots=True)
class Token:
    """`kind`: name, literal, sign, end. `word`: as it is spelled, of names without backticks and of operators that are words,
    which are names after a dot."""

    kind: str
    value: Any
    position: int
    word: str | None = None


def tokenise(text: str, start: int, *, embedded: bool) -> tuple[list[Token], int]:
    """The tokens from `start`, and the position after them: after the closing brace, or the end of the text."""
    tokens: list[Token] = []
    at = start
    while True:
        if space := _SPACE.match(text, at):
            at = space.end()
        if at >= len(text):
            if embedded:
                raise ExpressionSyntaxError("expected } to end the expression, found the end of the text", position=at)
            tokens.append(Token("end", None, at))
            return tokens, at
        if embedded and text[at] == "}":
            tokens.append(Token("end", None, at))
            return tokens, at + 1
        token, at = _one(text, at)
        tokens.append(token)


def _one(text: str, at: int) -> tuple[Token, int]:
    sign = text[at]
    if sign in "'\"`":
        value, end = _quoted(text, at)
        return Token("name" if sign == "`" else "literal", value, at), end
    if number := _NUMBER.match(text, at):
        return Token("literal", _number(number[0], at), at), number.end()
    if name := _NAME.match(text, at):
        end = end_of_name(text, name.end())
        word = text[at:end]
        if word in CONSTANTS:
            return Token("literal", CONSTANTS[word], at, word), end
        if word in WORDS:
            return Token("sign", WORDS[word], at, word), end
        return Token("name", word, at, word), end
    for sign in SIGNS:
        if text.startswith(sign, at):
            return Token("sign", sign, at), at + len(sign)
    raise ExpressionSyntaxError(f"expected a value or an operator, found {text[at]!r}{_hint(text, at)}", position=at)


def end_of_name(text: str, at: int) -> int:
    """Letters are followed by marks in many scripts, and in decomposed text (NFD); they are no letters to `re`."""
    while at < len(text) and text[at] > "\x7f" and category(text[at]) in ("Mn", "Mc"):
        at = _REST.match(text, at + 1).end()  # type: ignore[union-attr]  # it matches nothing, too
    return at


def _quoted(text: str, at: int) -> tuple[str, int]:
    quote, position = text[at], at + 1
    parts: list[str] = []
    while position < len(text):
        sign = text[position]
        if sign == quote:
            value = "".join(parts)
            if quote == "`" and not value:
                raise ExpressionSyntaxError("expected a name between backticks, found nothing", position=at)
            return value, position + 1
        if sign == "\\" and quote != "`":
            escaped = text[position + 1 : position + 2]
            if escaped not in ESCAPES:
                raise ExpressionSyntaxError(f"expected one of \\n \\t \\r \\\\ \\' \\\" \\/, found \\{escaped}", position=position)
            parts.append(ESCAPES[escaped])
            position += 2
            continue
        parts.append(sign)
        position += 1
    raise ExpressionSyntaxError(f"expected a closing {quote}, found the end of the text", position=at)


def _number(text: str, at: int) -> int | Decimal:
    if len(text) > limits.DIGITS + 10:
        raise LimitExceeded(f"expected a number of at most {limits.DIGITS} digits, found {len(text)} characters (character {at + 1})")
    if text.isdigit():
        number: int | Decimal = int(text)
    else:
        try:
            number = Decimal(text)
        except InvalidOperation as error:
            raise ExpressionSyntaxError(f"expected a number, found {text}", position=at) from error
    digits = len(str(number)) if isinstance(number, int) else len(number.as_tuple().digits)
    exponent = 0 if isinstance(number, int) or not number else abs(number.adjusted())
    if digits > limits.DIGITS or exponent > limits.EXPONENT:
        wanted = f"at most {limits.DIGITS} digits and an exponent up to {limits.EXPONENT}"
        raise LimitExceeded(f"expected a number of {wanted}, found {text} (character {at + 1})")
    return number


def _hint(text: str, at: int) -> str:
    following = text[at : at + 2]
    if text[at] == "=":
        return "; equality is written == or eq"
    if following in ("&a", "&l", "&g"):
        return "; XML entities are resolved before, so write && as &amp;&amp; in the file or use the word and"
    if text[at] in "{$#":
        return "; expressions are not nested in each other"
    return ""
