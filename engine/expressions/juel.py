"""The front end for `${…}`: a Pratt parser from tokens to the syntax tree. docs/expressions.md states the language."""

from __future__ import annotations

from engine.expressions import limits, refusals
from engine.expressions.errors import ExpressionSyntaxError, LimitExceeded
from engine.expressions.methods import METHODS, counts
from engine.expressions.methods.method import worded
from engine.expressions.provided import EXECUTION, FUNCTIONS, GETTERS
from engine.expressions.tokens import Token, tokenise
from engine.expressions.tree import Asked, Binary, Call, Conditional, Index, Literal, Logical, Member, Name, Node, Provided, Unary

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
    "+=": 55,
    "+": 60,
    "-": 60,
    "*": 70,
    "/": 70,
    "%": 70,
    "[": 90,
    ".": 90,
}
PREFIX = 80
ASKING = {"getVariable": False, "hasVariable": True}  # methods of `execution` and `task` -> whether they ask for presence


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
                return self._counted(self._named(token, name))
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

    def _named(self, token: Token, name: str) -> Node:
        if self._skip("("):
            if name not in FUNCTIONS or token.word is None:
                raise refusals.unknown_function(name, token.position)
            function = FUNCTIONS[name]
            return Provided(name, self._arguments(name, function.least, function.most, token.position))
        if token.word == "execution" or (token.word == "task" and self._asks()):
            return self._execution(token)
        return Name(name)

    def _execution(self, token: Token) -> Node:
        """`execution.businessKey`, `execution.getVariable('x')`, `task.getVariable('x')`."""
        if not self._skip("."):
            raise refusals.execution_alone(token.position)
        key = self._key()
        if not self._skip("("):
            if key.word not in EXECUTION:
                raise refusals.unknown_of_execution(str(key.word), key.position)
            return Provided(f"execution.{key.word}")
        method = str(key.word)
        if method in GETTERS:
            return Provided(f"execution.{GETTERS[method]}", self._arguments(method, 0, 0, key.position))
        if method not in ASKING:
            raise refusals.unknown_method(Name(str(token.word)), method, key.position, given=None)
        (argument,) = self._arguments(method, 1, 1, key.position)
        if not isinstance(argument, Literal) or not isinstance(argument.value, str):
            raise refusals.no_variable_name(method, key.position)
        return Asked(argument.value, ASKING[method])

    def _asks(self) -> bool:
        """Whether a call of getVariable() and the like follows; `task.name` may be a key of a variable."""
        following = self.tokens[self.at : self.at + 3]
        return [token.value for token in following[::2]] == [".", "("] and following[1].word in ASKING

    def _member(self, target: Node) -> Node:
        token = self._key()
        key = str(token.word if token.word is not None else token.value)
        if not self._skip("("):
            return Member(target, key)
        if key not in METHODS:
            arguments = self._arguments(key, 0, limits.SOURCE_LENGTH, token.position)
            raise refusals.unknown_method(target, key, token.position, given=len(arguments))
        return Call(target, key, self._arguments(key, *counts(key), token.position))

    def _key(self) -> Token:
        token = self._take()
        if token.kind != "name" and token.word is None:  # a keyword is an ordinary key after a dot
            raise ExpressionSyntaxError(f"expected a key after the dot, found {_shown(token)}", position=token.position)
        return token

    def _arguments(self, name: str, least: int, most: int, position: int) -> tuple[Node, ...]:
        arguments: list[Node] = []
        if not self._skip(")"):
            arguments.append(self.expression(0))
            while self._skip(","):
                arguments.append(self.expression(0))
            self._expect(")")
        if not least <= len(arguments) <= most:
            raise ExpressionSyntaxError(f"expected {worded(least, most)} for {name}(), found {len(arguments)}", position=position)
        return tuple(arguments)

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
