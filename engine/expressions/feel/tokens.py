"""Text of FEEL -> tokens (DMN 1.3, 10.3.1.2). Names of several words are joined by the parser, which knows what is a name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from engine.expressions import limits
from engine.expressions.errors import ExpressionSyntaxError, LimitExceeded
from engine.expressions.tokens import end_of_name
from engine.expressions.values import storable

SIGNS = ("**", "..", "->", "<=", ">=", "!=", "<", ">", "=", "+", "-", "*", "/", "(", ")", "[", "]", "{", "}", ",", ":", ".", "?", "@", "'")
# Not the beginning of a name (rule 30), and the end of one that is not known otherwise.
RESERVED = frozenset(
    {"and", "or", "in", "between", "if", "then", "else", "for", "return", "some", "every", "satisfies", "true", "false", "null"}
)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}

_BLANK = re.compile(r"(?:\s+|//[^\n\r]*|/\*.*?\*/)+", re.DOTALL)
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?!\w)|\.\d+(?:[eE][+-]?\d+)?(?!\w)|\d+", re.ASCII)
_WORD = re.compile(r"[^\W\d][\w$]*|\$[\w$]*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{6})|(.))", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Token:
    """`kind`: word, quoted (a name in backticks), number, string, sign, end. `text` is as written, `value` what it stands for."""

    kind: str
    text: str
    value: Any
    position: int
    end: int

    def is_sign(self, *signs: str) -> bool:
        return self.kind == "sign" and self.text in signs

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text in words


def tokenise(text: str) -> list[Token]:
    """All tokens, of which the last is the end. Raises ExpressionSyntaxError."""
    tokens: list[Token] = []
    at = 0
    while True:
        if blank := _BLANK.match(text, at):
            at = blank.end()
        if at >= len(text):
            tokens.append(Token("end", "", None, at, at))
            return tokens
        token = _one(text, at)
        tokens.append(token)
        at = token.end


def _one(text: str, at: int) -> Token:
    if text[at] == '"':
        return _string(text, at)
    if text[at] == "`":
        return _quoted(text, at)
    if number := _NUMBER.match(text, at):
        return Token("number", number[0], _number(number[0], at), at, number.end())
    if word := _WORD.match(text, at):
        end = end_of_name(text, word.end())
        return Token("word", text[at:end], text[at:end], at, end)
    for sign in SIGNS:
        if text.startswith(sign, at):
            if text.startswith("/*", at):
                raise ExpressionSyntaxError("expected */ to end the comment, found the end of the text", position=at)
            return Token("sign", sign, sign, at, at + len(sign))
    raise ExpressionSyntaxError(f"expected a value or an operator, found {text[at]!r}{_hint(text, at)}", position=at)


def _hint(text: str, at: int) -> str:
    if text[at] == "&":
        return "; FEEL writes and; XML entities are resolved before"
    if text[at] in "|!":
        return "; FEEL writes or, not(…) and !="
    return ""


def _string(text: str, at: int) -> Token:
    found = _STRING.match(text, at)
    if not found:
        raise ExpressionSyntaxError('expected a closing ", found the end of the text', position=at)
    value = storable(_ESCAPE.sub(_unescaped, found[0][1:-1]))  # two escapes may be the halves of one sign
    if value is None:
        raise ExpressionSyntaxError("expected a text without NUL and halves of surrogate pairs, found one", position=at)
    return Token("string", found[0], value, at, found.end())


def _unescaped(found: re.Match[str]) -> str:
    """An escape that FEEL does not know stands for itself, so that patterns such as "\\d+" need no second backslash."""
    code = found[1] or found[2]
    if code is None:
        return ESCAPES.get(found[3], found[0])
    number = int(code, 16)
    return chr(number) if number <= 0x10FFFF else found[0]


def _quoted(text: str, at: int) -> Token:
    end = text.find("`", at + 1)
    name = text[at + 1 : end] if end >= 0 else ""
    if not name.strip():
        raise ExpressionSyntaxError("expected a name and a closing `, found none", position=at)
    return Token("quoted", text[at : end + 1], name, at, end + 1)


def _number(text: str, at: int) -> int | Decimal:
    """Whole numbers stay whole. Raises LimitExceeded beyond 34 digits."""
    if len(text) > limits.DIGITS + 10:
        raise LimitExceeded(f"expected a number of at most {limits.DIGITS} digits, found {len(text)} characters (character {at + 1})")
    try:
        number = int(text) if text.isdigit() else Decimal(text)
    except InvalidOperation as error:
        raise ExpressionSyntaxError(f"expected a number, found {text}", position=at) from error
    digits = len(str(number)) if isinstance(number, int) else len(number.as_tuple().digits)
    exponent = 0 if isinstance(number, int) or not number else abs(number.adjusted())
    if digits > limits.DIGITS or exponent > limits.EXPONENT:
        wanted = f"at most {limits.DIGITS} digits and an exponent up to {limits.EXPONENT}"
        raise LimitExceeded(f"expected a number of {wanted}, found {text} (character {at + 1})")
    return number
