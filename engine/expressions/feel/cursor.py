"""A place in the tokens of a text, and what can be read there without knowing expressions: signs, names, types."""

from __future__ import annotations

from collections.abc import Iterable

from engine.expressions import limits
from engine.expressions.errors import ExpressionSyntaxError, LimitExceeded
from engine.expressions.feel.names import KnownNames, declared, joined
from engine.expressions.feel.tokens import RESERVED, Token, tokenise
from engine.expressions.feel.types import COMPOSED, SIMPLE
from engine.expressions.tree import Type

_TYPES = KnownNames(SIMPLE)


class Cursor:
    def __init__(self, text: str, names: Iterable[str], built_in: KnownNames) -> None:
        if len(text) > limits.SOURCE_LENGTH:
            raise LimitExceeded(f"expected an expression of at most {limits.SOURCE_LENGTH} characters, found {len(text)}")
        self.text = text
        self.tokens = tokenise(text)
        self.known = KnownNames(names, built_in)
        self.at = 0
        self.nesting = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def follows(self) -> Token:
        """The token after this one; the end again at the end."""
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)]

    def take(self) -> Token:
        token = self.token
        if token.kind == "end":
            raise self.unexpected("a value")
        self.at += 1
        return token

    def skip(self, sign: str) -> bool:
        found = self.token.is_sign(sign)
        self.at += found
        return found

    def expect(self, sign: str) -> None:
        if not self.skip(sign):
            raise self.unexpected(sign)

    def expect_word(self, word: str) -> None:
        if not self.token.is_word(word):
            raise self.unexpected(word)
        self.at += 1

    def unexpected(self, wanted: str) -> ExpressionSyntaxError:
        token = self.token
        found = "the end of the expression" if token.kind == "end" else repr(token.text[:60])
        return ExpressionSyntaxError(f"expected {wanted}, found {found}", position=token.position)

    # ---- names

    def name(self) -> str:
        """The longest name that begins here."""
        token = self.token
        if token.kind == "quoted":
            self.at += 1
            return str(token.value)
        if token.kind != "word":
            raise self.unexpected("a name")
        found, count = self.known.longest(self.tokens, self.at) or joined(self.tokens, self.at)
        self.at += count
        return found

    def declared_until(self, keyword: str) -> str:
        """A name that is new here: everything up to a keyword."""
        start = self.at
        while not self.token.is_word(keyword) and self.token.kind in ("word", "number", "quoted"):
            self.at += 1
        if start == self.at or self.tokens[start].kind == "number" or self.tokens[start].text in RESERVED:
            self.at = start
            raise self.unexpected("a name")
        name = " ".join(str(token.value) for token in self.tokens[start : self.at])
        self.known.add(name)
        return name

    def key(self) -> str:
        token = self.token
        if token.kind in ("string", "quoted"):
            self.at += 1
            return str(token.value)
        found = declared(self.tokens, self.at, self.text)
        if found is None:
            raise self.unexpected("a key and a colon")
        self.at += found[1]
        return found[0]

    # ---- types

    def deeper(self) -> None:
        """One thing more within another, until `nesting` is taken back."""
        self.nesting += 1
        if self.nesting > limits.NESTING:
            raise LimitExceeded(f"expected an expression nested at most {limits.NESTING} deep, found a deeper one")

    def type(self) -> Type:
        """Rule 58. The types of items, entries and parameters stand in angle brackets."""
        token = self.token
        found = _TYPES.longest(self.tokens, self.at)
        name, count = found or (token.text, 1)
        if name in SIMPLE:
            self.at += count
            return Type(SIMPLE[name])
        if token.kind != "word" or name not in COMPOSED:
            known = ", ".join((*sorted(set(SIMPLE.values())), *COMPOSED))
            raise self.unexpected(f"one of the types {known}")
        self.at += 1
        self.deeper()
        parts = self._type_parts(name) if self.skip("<") else ()
        result = self.type() if name == "function" and self.skip("->") else None
        self.nesting -= 1
        return Type(name, parts, result)

    def _type_parts(self, of: str) -> tuple[tuple[str, Type], ...]:
        parts: list[tuple[str, Type]] = []
        while not self.skip(">"):
            if parts:
                self.expect(",")
            name = ""
            if of == "context":
                name = self.key()
                self.expect(":")
            parts.append((name, self.type()))
            if len(parts) > 1 and of in ("list", "range"):
                raise ExpressionSyntaxError(f"expected one type in {of}<…>", position=self.token.position)
        return tuple(parts)
