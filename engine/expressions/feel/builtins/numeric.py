"""Functions over numbers (DMN 1.3, 10.3.4.5, table 71). All of them calculate with 34 digits."""

from __future__ import annotations

from datetime import timedelta
from decimal import (
    ROUND_CEILING,
    ROUND_DOWN,
    ROUND_FLOOR,
    ROUND_HALF_DOWN,
    ROUND_HALF_EVEN,
    ROUND_HALF_UP,
    ROUND_UP,
    Context,
    Decimal,
)
from typing import Any

from engine.expressions import limits
from engine.expressions.feel import timeline
from engine.expressions.feel.builtins.define import Group, NoResult, Written
from engine.expressions.feel.temporal import MonthsDuration
from engine.expressions.values import NUMBERS, Scope

NUMERIC = Group()
MIN_SCALE, MAX_SCALE = -6111, 6176  # what a scale may be
# Wide enough for the whole quotient of any two numbers, which the remainder needs.
_EXACT = Context(prec=5 * limits.EXPONENT, Emax=5 * limits.EXPONENT, Emin=-5 * limits.EXPONENT)


@NUMERIC.function("decimal", "n: number, scale: whole")
def _decimal(scope: Scope, n: Decimal, scale: int) -> Decimal:
    return rounded(n, scale, ROUND_HALF_EVEN)


def rounded(n: Decimal, scale: int, rounding: str) -> Decimal:
    """The number with at most so many decimals; with tens, hundreds and so on for a negative scale."""
    if not MIN_SCALE <= scale <= MAX_SCALE:
        raise NoResult(f"expected a scale from {MIN_SCALE} to {MAX_SCALE}, found {scale}")
    exponent = n.as_tuple().exponent
    if isinstance(exponent, int) and -exponent <= scale:
        return n
    return n.quantize(Decimal((0, (1,), -scale)), rounding=rounding, context=NUMBERS)


def _rounding(rounding: str) -> Written:
    def function(scope: Scope, n: Decimal, scale: int = 0) -> Decimal:
        return rounded(n, scale, rounding)

    return function


for _name, _way in {
    "floor": ROUND_FLOOR,
    "ceiling": ROUND_CEILING,
    "round up": ROUND_UP,
    "round down": ROUND_DOWN,
    "round half up": ROUND_HALF_UP,
    "round half down": ROUND_HALF_DOWN,
}.items():
    NUMERIC.function(_name, "n: number, scale?: whole")(_rounding(_way))


@NUMERIC.function("abs", "n: number|days|months")
def _abs(scope: Scope, n: Any) -> Any:
    match n:
        case Decimal():
            return NUMBERS.abs(n)
        case timedelta():
            return timeline.negative(n) if n < timedelta() else n
    return MonthsDuration(abs(n.months))


@NUMERIC.function("modulo", "dividend: number, divisor: number")
def _modulo(scope: Scope, dividend: Decimal, divisor: Decimal) -> Decimal:
    """dividend - divisor * floor(dividend / divisor): it has the sign of the divisor."""
    if not divisor:
        raise NoResult("expected a divisor other than 0")
    rest = _EXACT.remainder(dividend, divisor)
    if rest and (rest < 0) != (divisor < 0):
        rest = _EXACT.add(rest, divisor)
    return NUMBERS.plus(rest)


@NUMERIC.function("sqrt", "number: number")
def _sqrt(scope: Scope, n: Decimal) -> Decimal:
    if n < 0:
        raise NoResult("expected a number of at least 0, found a negative one")
    return NUMBERS.sqrt(n)


@NUMERIC.function("log", "number: number")
def _log(scope: Scope, n: Decimal) -> Decimal:
    if n <= 0:
        raise NoResult("expected a number above 0, found another")
    return NUMBERS.ln(n)


@NUMERIC.function("exp", "number: number")
def _exp(scope: Scope, n: Decimal) -> Decimal:
    return NUMBERS.exp(n)


@NUMERIC.function("odd", "number: number")
def _odd(scope: Scope, n: Decimal) -> bool:
    return abs(_EXACT.remainder(n, Decimal(2))) == 1


@NUMERIC.function("even", "number: number")
def _even(scope: Scope, n: Decimal) -> bool:
    return _EXACT.remainder(n, Decimal(2)) == 0
