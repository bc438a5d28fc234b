"""The front end for FEEL: a Pratt parser from tokens to the syntax tree (DMN 1.3, 10.3.1.2). docs/expressions.md states the language."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from engine.expressions import limits
from engine.expressions.errors import ExpressionError, ExpressionSyntaxError, LimitExceeded
from engine.expressions.feel.builtins import BUILTINS
from engine.expressions.feel.cursor import Cursor
from engine.expressions.feel.names import KnownNames, declared, joined
from engine.expressions.feel.temporal import parse_temporal
from engine.expressions.feel.tokens import RESERVED, Token
from engine.expressions.tree import (
    Between,
    Binary,
    Conditional,
    Equals,
    Filter,
    For,
    FunctionOf,
    In,
    InstanceOf,
    Invocation,
    Iteration,
    ListOf,
    Literal,
    Logical,
    Member,
    Name,
    Node,
    ObjectOf,
    Quantified,
    RangeOf,
    Type,
    Unary,
    UnaryTests,
)

# Larger binds tighter. Every binary operator groups to the left, ** too (rule 4 and its order).
COMPARISON = 40
POWER = {
    "or": 20,
    "and": 30,
    **dict.fromkeys(("=", "!=", "<", "<=", ">", ">=", "between", "in"), COMPARISON),
    **dict.fromkeys(("+", "-"), 50),
    **dict.fromkeys(("*", "/"), 60),
    "**": 70,
    "instance": 75,
    **dict.fromkeys((".", "[", "("), 90),
}
NEGATION = 80
_BUILT_IN = KnownNames(BUILTINS)
CONSTANTS = {"true": True, "false": False, "null": None}
_STARTS = ("(", "[", "]", "{", "-", "@", "?", "<", "<=", ">", ">=")  # signs that a value can begin with


def parse_feel(text: str, names: Iterable[str] = ()) -> Node:
    """One expression. `names` are variables of several words, or with signs in them, that it may mean. Raises ExpressionError."""
    parser = _Parser(text, names)
    node = parser.expression(0)
    parser.finish()
    return node


def parse_unary_tests(text: str, names: Iterable[str] = ()) -> Node:
    """What a cell of a decision table says about its input, `?` (rules 15 to 18). Raises ExpressionError."""
    parser = _Parser(text, names)
    node = parser.unary_tests()
    parser.finish()
    return node


class _Parser(Cursor):
    def __init__(self, text: str, names: Iterable[str]) -> None:
        super().__init__(text, names, _BUILT_IN)
        self.nodes = 0
        self.ends_range = False  # while the end of a range is read, after which [ may close it

    # ---- the loop

    def expression(self, power: int) -> Node:
        self.deeper()
        left = self._counted(self._prefix())
        while self._binds() > power and not (self.ends_range and self._closes_range()):
            left = self._counted(self._infix(left))
        self.nesting -= 1
        return left

    def _within(self, parse: Callable[[int], Node]) -> Node:
        """What stands within brackets."""
        before, self.ends_range = self.ends_range, False
        node = parse(0)
        self.ends_range = before
        return node

    def finish(self) -> None:
        if self.token.kind != "end":
            raise self.unexpected("an operator or the end")

    def _binds(self) -> int:
        token = self.token
        if token.kind not in ("sign", "word"):
            return -1
        if token.text == "instance" and not self.follows().is_word("of"):
            return -1
        return POWER.get(token.text, -1)

    def _closes_range(self) -> bool:
        """Whether a [ is the open end of a range: nothing that could be an index follows."""
        after = self.follows() if self.token.is_sign("[") else self.token
        begins = after.kind in ("number", "string", "quoted") or after.is_sign(*_STARTS)
        word = after.kind == "word" and not after.is_word("and", "or", "in", "between", "then", "else", "return", "satisfies", "instance")
        return self.token.is_sign("[") and (not (begins or word) or after.is_sign("]", "["))

    # ---- what a value begins with

    def _prefix(self) -> Node:
        token = self.token
        match token.kind:
            case "number" | "string":
                self.at += 1
                return Literal(token.value)
            case "word" | "quoted":
                return self._word()
        if token.is_sign("(", "[", "]", "{", "-", "@", "?"):
            self.at += 1
            return self._sign(token)
        if token.is_sign("<", "<=", ">", ">="):
            return self.comparison_test()
        raise self.unexpected("a value")

    def _sign(self, token: Token) -> Node:
        match token.text:
            case "(":
                return self._parenthesis()
            case "[":
                return self._bracket()
            case "]":
                return self._range(self.expression(0), low_closed=False)
            case "{":
                return self._context()
            case "-":
                return Unary("-", self.expression(NEGATION))
            case "?":
                return Name("?")
        return self._at_literal()

    def _word(self) -> Node:
        token = self.token
        if token.kind == "word":
            if token.text == "function" and self.follows().is_sign("("):
                return self._function()
            if token.text in ("and", "or") and self.follows().is_sign("("):  # the names of all() and any() in DMN 1.1
                self.at += 1
                return Name(token.text)
            if (known := self.known.longest(self.tokens, self.at)) is None and token.text in RESERVED:
                return self._keyword()
            if known is not None:
                self.at += known[1]
                return Name(known[0])
        return Name(self.name())

    def _keyword(self) -> Node:
        token = self.token
        self.at += 1
        match token.text:
            case "true" | "false" | "null":
                return Literal(CONSTANTS[token.text])
            case "if":
                return self._conditional()
            case "for":
                iterations = self._iterations()
                self.expect_word("return")
                return For(iterations, self.expression(0))
            case "some" | "every":
                iterations = self._iterations()
                self.expect_word("satisfies")
                return Quantified(token.text, iterations, self.expression(0))
        self.at -= 1
        raise self.unexpected("a value")

    def _conditional(self) -> Node:
        condition = self.expression(0)
        self.expect_word("then")
        then = self.expression(0)
        self.expect_word("else")
        return Conditional(condition, then, self.expression(0))

    def _iterations(self) -> tuple[Iteration, ...]:
        found: list[Iteration] = []
        while not found or self.skip(","):
            name = self.declared_until("in")
            self.expect_word("in")
            domain = self.expression(0)
            found.append(Iteration(name, domain, self.expression(0) if self.skip("..") else None))
        return tuple(found)

    def _at_literal(self) -> Node:
        token = self.take()
        if token.kind != "string":
            self.at -= 1
            raise self.unexpected('a text after @, such as @"2026-11-29"')
        try:
            return Literal(parse_temporal(token.value))
        except ExpressionError as error:
            raise ExpressionSyntaxError(str(error), position=token.position) from error

    # ---- brackets

    def _parenthesis(self) -> Node:
        inner = self._within(self.expression)
        if self.token.is_sign(".."):
            return self._range(inner, low_closed=False)
        self.expect(")")
        return inner

    def _bracket(self) -> Node:
        """A list, or a range that begins with [."""
        if self.skip("]"):
            return ListOf(())
        items = [self._within(self.expression)]
        if self.token.is_sign(".."):
            return self._range(items[0], low_closed=True)
        while self.skip(","):
            items.append(self._within(self.expression))
        self.expect("]")
        return ListOf(tuple(items))

    def _range(self, low: Node, *, low_closed: bool) -> Node:
        self.expect("..")
        before, self.ends_range = self.ends_range, True
        high = self.expression(0)
        self.ends_range = before
        if self.skip("]"):
            return RangeOf(low, high, low_closed, high_closed=True)
        if self.skip(")") or self.skip("["):
            return RangeOf(low, high, low_closed, high_closed=False)
        raise self.unexpected("], ) or [ to end the range")

    def _context(self) -> Node:
        entries: dict[str, Node] = {}
        while not entries or self.skip(","):
            if not entries and self.skip("}"):
                return ObjectOf(())
            key = self.key()
            self.expect(":")
            if key in entries:
                self.at -= 1
                raise ExpressionSyntaxError(f"expected each key once, found {key!r} again", position=self.token.position)
            self.known.add(key)
            entries[key] = self._within(self.expression)
        self.expect("}")
        return ObjectOf(tuple(entries.items()))

    # ---- functions

    def _function(self) -> Node:
        self.at += 2
        parameters: list[tuple[str, Type | None]] = []
        while not self.skip(")"):
            if parameters:
                self.expect(",")
            found = declared(self.tokens, self.at, self.text)
            name, count = found or joined(self.tokens, self.at) if self.token.kind == "word" else ("", 0)
            if not name:
                raise self.unexpected("the name of a parameter")
            self.at += count
            self.known.add(name)
            parameters.append((name, self.type() if self.skip(":") else None))
        if self.token.is_word("external"):
            raise ExpressionSyntaxError("expected an expression, found external: no foreign code is run", position=self.token.position)
        return FunctionOf(tuple(parameters), self.expression(0))

    def _invocation(self, callee: Node) -> Node:
        positional: list[Node] = []
        named: dict[str, Node] = {}
        while not self.skip(")"):
            if positional or named:
                self.expect(",")
            start = self.token
            found = declared(self.tokens, self.at, self.text)
            if found is None:
                positional.append(self._within(self.expression))
            else:
                self.at += found[1] + 1
                if found[0] in named:
                    raise ExpressionSyntaxError(f"expected each argument once, found {found[0]!r} again", position=start.position)
                named[found[0]] = self._within(self.expression)
            if positional and named:
                raise ExpressionSyntaxError("expected all arguments by name, or none", position=start.position)
        return Invocation(callee, tuple(positional), tuple(named.items()))

    # ---- what follows a value

    def _infix(self, left: Node) -> Node:
        token = self.take()
        match token.text:
            case ".":
                return Member(left, self._member())
            case "[":
                condition = self._within(self.expression)
                self.expect("]")
                return Filter(left, condition)
            case "(":
                return self._invocation(left)
            case "and" | "or":
                return Logical(token.text, left, self.expression(POWER[token.text]))
            case "between":
                low = self.expression(COMPARISON)
                self.expect_word("and")
                return Between(left, low, self.expression(COMPARISON))
            case "in":
                return In(left, self._tests_after_in())
            case "instance":
                self.at += 1
                return InstanceOf(left, self.type())
        return Binary(token.text, left, self.expression(POWER[token.text]))

    def _member(self) -> str:
        """After a dot a reserved word is a key as any other."""
        token = self.token
        if token.kind == "string":
            self.at += 1
            return str(token.value)
        return self.name()

    def _tests_after_in(self) -> tuple[Node, ...]:
        """One test, or several in parentheses, which may also be a range that begins with one."""
        if not self.token.is_sign("("):
            return (self._test(COMPARISON),)
        self.at += 1
        tests = self._several()
        if len(tests) == 1 and self.token.is_sign(".."):
            return (self._range(tests[0], low_closed=False),)
        self.expect(")")
        return tests

    # ---- unary tests

    def unary_tests(self) -> Node:
        if self.token.kind == "end" or (self.follows().kind == "end" and self.skip("-")):
            return UnaryTests((), negated=False)
        if self.token.is_word("not") and self.follows().is_sign("("):
            found = self._negated()
            if found is not None:
                return found
        return UnaryTests(self._several(), negated=False)

    def _several(self) -> tuple[Node, ...]:
        tests = [self._within(self._test)]
        while self.skip(","):
            tests.append(self._within(self._test))
        return tuple(tests)

    def _negated(self) -> Node | None:
        """`not(tests)` and nothing after it; None, back where it began, for an expression such as `not(a) or b`."""
        start, nodes, nesting = self.at, self.nodes, self.nesting
        self.at += 2
        try:
            tests = self._several()
            self.expect(")")
            if self.token.kind == "end":
                return UnaryTests(tests, negated=True)
        except ExpressionSyntaxError:
            self.nesting = nesting
        self.at, self.nodes = start, nodes
        return None

    def _test(self, power: int) -> Node:
        if self.token.is_sign("<", "<=", ">", ">="):
            return self.comparison_test()
        if self.token.is_sign("=", "!="):
            negated = self.take().text == "!="
            return self._counted(Equals(self.expression(COMPARISON), negated))
        return self.expression(power)

    def comparison_test(self) -> Node:
        """`< 5` and the like, which is a range without the other end (rule 7)."""
        sign = self.take().text
        if self.token.is_sign("<", "<=", ">", ">="):
            raise self.unexpected("a value")
        end = self.expression(COMPARISON)
        if sign in ("<", "<="):
            return self._counted(RangeOf(None, end, low_closed=False, high_closed=sign == "<="))
        return self._counted(RangeOf(end, None, low_closed=sign == ">=", high_closed=False))

    def _counted(self, node: Node) -> Node:
        self.nodes += 1
        if self.nodes > limits.NODES:
            raise LimitExceeded(f"expected an expression of at most {limits.NODES} parts, found more")
        return node
