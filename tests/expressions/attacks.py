"""Expressions that mean harm, and the process of its own in which they are tried: the kernel ends it if it takes too long or too much.

`python -m tests.expressions.attacks` prints one JSON object: what each attack came to.
"""

from __future__ import annotations

import json
import resource
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from engine.expressions import ExpressionError, UnknownCall, limits, parse
from engine.expressions.values import Scope
from tests.expressions.feel_attacks import FEEL

CPU_SECONDS = 60  # for all attacks together, traced
MEMORY = 1_500_000_000  # of address space

LONG = "9" * 34
SYNTAX, MISSING, LIMIT, VALUE = "ExpressionSyntaxError", "MissingName", "LimitExceeded", "ExpressionError"

# name, expression without `${` and `}`, the error that it must be
JUEL: list[tuple[str, str, str]] = [
    # out of the value
    ("the class of a string", "''.getClass()", SYNTAX),
    ("a class by its name", "''.getClass().forName('java.lang.Runtime').getRuntime().exec('id')", SYNTAX),
    ("dunder class", "''.__class__", VALUE),
    ("dunder class of an object", "object.__class__", MISSING),
    ("dunder class by index", "object['__class__']['__mro__']", MISSING),
    ("dunder init globals", "object.get.__globals__", MISSING),
    ("globals of a method", "object.get('__init__').__globals__", VALUE),
    ("dunder call", "object.__getattribute__('x')", SYNTAX),
    ("a private method", "object._abc_impl()", SYNTAX),
    ("a method of Python", "text.format(object)", SYNTAX),
    ("an encoding", "text.encode('idna')", SYNTAX),
    ("a variable dunder", "__builtins__", MISSING),
    ("an import", "__import__('os')", SYNTAX),
    ("an import statement", "import os", SYNTAX),
    ("eval", "eval('1')", SYNTAX),
    ("open", "open('/etc/passwd')", SYNTAX),
    ("a lambda", "lambda: 1", SYNTAX),
    ("a comprehension", "[x for x in list]", SYNTAX),
    ("a type", "T(java.lang.System).exit(0)", SYNTAX),
    ("an assignment", "a = 1", SYNTAX),
    ("a statement", "1; 2", SYNTAX),
    ("an expression in an expression", "${1}", SYNTAX),
    ("writing a variable", "execution.setVariable('a', 1)", SYNTAX),
    ("the services of the engine", "execution.getProcessEngineServices().getRuntimeService()", SYNTAX),
    ("the keys of the execution", "execution.__class__", SYNTAX),
    ("a variable by a computed name", "execution.getVariable(text)", SYNTAX),
    # numbers
    ("a power", "9**9**9", SYNTAX),
    ("a product of products", "9" + " * 999999999999" * 60, LIMIT),
    ("a product of long numbers", f"{LONG} * {LONG}", LIMIT),
    ("a sum beyond the digits", f"{LONG} + 1", LIMIT),
    ("a long literal", "9" * 5_000, LIMIT),
    ("a long fraction", "0." + "0" * 60 + "1", LIMIT),
    ("a giant exponent", "1e999999999", LIMIT),
    ("a giant negative exponent", "1e-999999999", LIMIT),
    ("an exponent that grows", "1e308 * 10", LIMIT),
    ("powers by multiply", "1e300" + ".multiply(1e300)" * 50, LIMIT),
    ("a variable with a giant exponent", "vast + 1", LIMIT),
    ("a comparison of a giant exponent", "vast < 1", LIMIT),
    ("a whole number of a giant exponent", "vast.intValue()", LIMIT),
    ("the text of a giant exponent", "vast.toString()", LIMIT),
    ("a variable of many digits", "digits + 1", LIMIT),
    ("the text of many digits", "digits.toString()", LIMIT),
    ("an amount of days beyond the calendar", f"day.plusDays({LONG})", VALUE),
    ("an amount of months beyond the calendar", f"day.plusMonths({LONG})", VALUE),
    ("seconds beyond the calendar", f"time.minusSeconds({LONG})", VALUE),
    # texts
    ("a text times a number", "'a' * 1000000000", VALUE),
    ("a text doubled", "big + big", LIMIT),
    ("a text doubled by concat", "big.concat(big)", LIMIT),
    ("a text joined", "big += big", LIMIT),
    ("a text that grows by replace", "big.replace('x', big)", LIMIT),
    ("a text that grows between letters", "big.replace('', '0123456789')", LIMIT),
    ("texts again and again", " == ".join(["big.trim()"] * 300), LIMIT),
    ("capitals again and again", " == ".join(["big.toUpperCase()"] * 300), LIMIT),
    ("searching again and again", " || ".join(["big.contains('y')"] * 300), LIMIT),
    ("splitting a long text", "commas.split(',')", LIMIT),
    ("splitting by a regular expression that runs away", "text.split('(a+)+$')", VALUE),
    ("a regular expression that runs away", "text.matches('(a+)+$')", SYNTAX),
    # lists and objects
    ("laughs that multiply in a text", "laughs.toString()", LIMIT),
    ("laughs that multiply in a comparison", "laughs == laughs", LIMIT),
    ("laughs that are looked for", "laughs.contains(laughs[1])", LIMIT),
    ("every item in every item", "keys.values().containsAll(keys.values())", LIMIT),
    ("a large list again and again", " || ".join(["many.contains(1)"] * 3), LIMIT),
    ("keys again and again", " || ".join(["keys.keySet().isEmpty()"] * 100), LIMIT),
    ("parts of a list again and again", " || ".join(["many.subList(0, 40000).isEmpty()"] * 100), LIMIT),
    ("a comparison of what is deep", "deep == deep", LIMIT),
    ("the text of what is deep", "deep.toString()", LIMIT),
    ("JSON that is deep", "JSON(brackets)", LIMIT),
    ("JSON that is long", "JSON(long_json)", LIMIT),
    ("JSON with a long number", "JSON(digits_json)", LIMIT),
    ("JSON with half of a surrogate pair", "JSON('[\"\\\\ud800\"]')", VALUE),
    ("JSON with NUL", "JSON('{\"\\\\u0000\": 1}')", VALUE),
    # trees
    ("brackets", "(" * 5_000 + "1" + ")" * 4_000, LIMIT),
    ("signs", "-" * 5_000 + "1", LIMIT),
    ("nots", "!" * 5_000 + "true", LIMIT),
    ("indexes in indexes", "a[" * 2_000 + "0" + "]" * 2_000, LIMIT),
    ("calls in calls", "now(" * 2_000 + ")" * 2_000, LIMIT),
    ("arguments in arguments", "S(" * 2_000 + "1" + ")" * 2_000, LIMIT),
    ("a long sum", "1+" * 4_000 + "1", LIMIT),
    ("a long choice", "true?" * 1_500 + "1" + ":1" * 1_500, LIMIT),
    ("a long path", "a" + ".a" * 4_000, LIMIT),
    ("a long chain of calls", "text" + ".trim()" * 1_400, LIMIT),
    ("many arguments", "text.concat(" + ",".join(["1"] * 4_000) + ")", LIMIT),
    ("a long source", "1" + " " * 10_000, LIMIT),
    # signs
    ("a null byte", "a\x00b", SYNTAX),
    ("a null byte as a name", "`a\x00b`", MISSING),
    ("a name from right to left", "\u202ea", SYNTAX),
    ("a zero width space in a name", "a\u200bb", SYNTAX),
    ("a word in wide letters", "ｅｘｅｃｕｔｉｏｎ.setVariable('a', 1)", SYNTAX),
    ("a letter of another alphabet", "оbject", MISSING),  # the first letter is Cyrillic
    ("half of a surrogate pair", "\ud800", SYNTAX),
    ("digits of another script", "٣٣", SYNTAX),
    ("a million names that are nearly right", "nearly" + "x" * 90, MISSING),
]


def variables() -> dict[str, Any]:
    deep: Any = []
    for _ in range(5_000):
        deep = [deep]
    laughs: Any = ["lol"] * 10
    for _ in range(12):
        laughs = [laughs] * 10  # a trillion, of which each ten are one object
    return {
        "a": {},
        "object": {"x": 1},
        "text": "a" * 40 + "!",
        "list": [1, 2, 3],
        "big": "x" * limits.TEXT_LENGTH,
        "commas": "," * 900_000,
        "many": [0] * 45_000,
        "keys": {f"k{number}": number for number in range(5_000)},
        "deep": deep,
        "laughs": laughs,
        "vast": Decimal("1E+999999"),
        "digits": 10**100_000,
        "day": date(2026, 1, 1),
        "time": datetime(2026, 1, 1, tzinfo=UTC),
        "brackets": "[" * 100_000,
        "long_json": "[" + "1," * 600_000 + "1]",
        "digits_json": "1" * 10_000,
        **{f"nearly{'y' * 90}{number}": number for number in range(5_000)},
    }


def tried(attacks: list[tuple[str, str, str]], opening: str, closing: str, language: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """What each came to: the error, the most memory that was taken, and for how many steps there was room when it ended."""
    values = variables()
    for name, text, _ in attacks:
        scope = Scope(values)
        error, message, value = "none", "", ""
        tracemalloc.start()
        try:
            compiled = parse(f"{opening}{text}{closing}", language=language)
            with suppress(ExpressionError, RecursionError):
                compiled.closure(scope)
            value = str(compiled.evaluate(values))[:40]
        except ExpressionError as refused:
            error = SYNTAX if isinstance(refused, UnknownCall) else type(refused).__name__
            message = str(refused)
        outcome = {"error": error, "message": message, "value": value}
        yield name, outcome | {"peak": tracemalloc.get_traced_memory()[1], "steps": limits.STEPS - scope.steps}
        tracemalloc.stop()


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    json.dump({"juel": dict(tried(JUEL, "${", "}", "juel")), "feel": dict(tried(FEEL, "=", "", "feel"))}, sys.stdout)


if __name__ == "__main__":
    main()
