"""The front end for `${…}`: a Pratt parser from tokens to the syntax tree. docs/expressions.md states the language."""

from __future__ import annotations

from engine.expressions import limits
from engine.expressions.errors import ExpressionSyntaxError, LimitExceeded
from engine.expressions.methods import METHODS
from engine.expressions.tokens import Token, tokenise
from engine.expressions.tree import Binary, Call, Conditional, Index, Literal, Logical, Member, Name, Node, Unary

# Larger binds tighter. All binary operators group to the left; the conditional groups to the right.
POWER = {
    "?": 10,
    "||": 20,
    "&&": 30,
    "==": 40,
    "!=": 40,
    "<": 50,
    "<=": 50,
    ">": 50,
    ">=": 50,
    "+": 60,
    "-": 60,
    "*": 70,
    "/": 70,
    "%": 70,
    "[": 90,
    ".": 90,
}
PREFIX = 80


def parse_expression(text: str, start: int = 0, *, embedded: bool = False) -> tuple[Node, int]:
    """One expression from `start`, and the position after it (after its closing brace, if it is embedded)."""
    tokens, end = tokenise(text, start, embedded=embedded)
    parser = _Parser(tokens)
    node = parser.expression(0)
    parser.finish()
    return node, end


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.nesting = 0
        self.nodes = 0

    def expression(self, power: int) -> Node:
        self.nesting += 1
        if self.nesting > limits.NESTING:
            raise LimitExceeded(f"expected an expression nested at most {limits.NESTING} deep, found a deeper one")
        left = self._prefix()
        while self._binds() > power:
            left = self._counted(self._infix(left))
        self.nesting -= 1
        return left

    def finish(self) -> None:
        token = self.tokens[self.at]
        if token.kind != "end":
            raise ExpressionSyntaxError(f"expected an operator or the end, found {_shown(token)}", position=token.position)

    def _prefix(self) -> Node:
        token = self._take()
        match token.kind, token.value:
            case "literal", value:
                return self._counted(Literal(value))
            case "name", name:
                following = self.tokens[self.at]
                if following.kind == "sign" and following.value == "(":
                    raise ExpressionSyntaxError(f"expected a variable, found a call of {name}()", position=token.position)
                return self._counted(Name(name))
            case "sign", "(":
                inner = self.expression(0)
                self._expect(")")
                return inner
            case "sign", ("-" | "!" | "empty") as operator:
                return self._counted(Unary(operator, self.expression(PREFIX)))
        raise ExpressionSyntaxError(f"expected a value, found {_shown(token)}", position=token.position)

    def _infix(self, left: Node) -> Node:
        token = self._take()
        match token.value:
            case "?":
                then = self.expression(0)
                self._expect(":")
                return Conditional(left, then, self.expression(POWER["?"] - 1))
            case "[":
                index = self.expression(0)
                self._expect("]")
                return Index(left, index)
            case ".":
                return self._member(left)
            case ("&&" | "||") as operator:
                return Logical(operator, left, self.expression(POWER[operator]))
        return Binary(token.value, left, self.expression(POWER[token.value]))

    def _member(self, target: Node) -> Node:
        token = self._take()
        key = token.value if token.kind == "name" else token.word  # a keyword is an ordinary key after a dot
        if key is None:
            raise ExpressionSyntaxError(f"expected a key after the dot, found {_shown(token)}", position=token.position)
        if not self._skip("("):
            return Member(target, key)
        if key not in METHODS:
            known = ", ".join(sorted(METHODS))
            raise ExpressionSyntaxError(f"expected one of the methods {known}, found {key}()", position=token.position)
        arguments: list[Node] = []
        if not self._skip(")"):
            arguments.append(self.expression(0))
            while self._skip(","):
                arguments.append(self.expression(0))
            self._expect(")")
        wanted = METHODS[key].arguments
        if len(arguments) != wanted:
            raise ExpressionSyntaxError(f"expected {wanted} arguments for {key}(), found {len(arguments)}", position=token.position)
        return Call(target, key, tuple(arguments))

    def _counted(self, node: Node) -> Node:
        self.nodes += 1
        if self.nodes > limits.NODES:
            raise LimitExceeded(f"expected an expression of at most {limits.NODES} parts, found more")
        return node

    def _binds(self) -> int:
        token = self.tokens[self.at]
        return POWER.get(token.value, -1) if token.kind == "sign" else -1

    def _take(self) -> Token:
        token = self.tokens[self.at]
        if token.kind == "end":
            raise ExpressionSyntaxError("expected a value, found the end of the expression", position=token.position)
        self.at += 1
        return token

    def _skip(self, sign: str) -> bool:
        token = self.tokens[self.at]
        found = token.kind == "sign" and token.value == sign
        self.at += found
        return found

    def _expect(self, sign: str) -> None:
        if not self._skip(sign):
            token = self.tokens[self.at]
            raise ExpressionSyntaxError(f"expected {sign}, found {_shown(token)}", position=token.position)


def _shown(token: Token) -> str:
    match token.kind:
        case "end":
            return "the end of the expression"
        case "literal":
            return repr(token.value)
    return str(token.word or token.value)
