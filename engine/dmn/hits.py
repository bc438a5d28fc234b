"""What becomes of the rules of a table that match: hit policies (8.2.8) and aggregation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, DecimalException
from typing import Any

from engine.dmn.definition import ORDERED, DecisionTable, Output, Rule
from engine.dmn.errors import DecisionError
from engine.dmn.types import Meter, told
from engine.expressions import LimitExceeded
from engine.expressions.feel.operators import equal
from engine.expressions.limits import EXPONENT, STEPS
from engine.expressions.values import NUMBERS, Scope

Values = Mapping[str, Any]  # by the name of the output


@dataclass(frozen=True, slots=True)
class Hit:
    """A rule that matches, with its outputs as their types have them."""

    rule: Rule
    outputs: Values


@dataclass(frozen=True, slots=True)
class Chosen:
    """The outcome of a table. `value`: that of FEEL; `rows`: output name -> value, one row a hit that counts."""

    value: Any
    rows: tuple[Values, ...]
    hits: tuple[Hit, ...]


def choose(table: DecisionTable, hits: Sequence[Hit], orders: Sequence[Sequence[Any] | None], where: str, meter: Meter) -> Chosen:
    """Raises DecisionError where the hit policy is violated, naming the rules. `orders`: the outputValues of each output."""
    match table.hit_policy:
        case "UNIQUE" if len(hits) > 1:
            raise DecisionError("hit_policy", f"{where}: expected at most one rule that matches (UNIQUE), found {_rules(hits)}")
        case "ANY":
            _check_any(hits, where, meter)
        case policy if policy in ORDERED:
            hits = sorted(hits, key=lambda hit: _place(hit, table.outputs, orders, where, meter))
    if table.single:
        hits = hits[:1]
        rows = tuple(hit.outputs for hit in hits)
        return Chosen(_value(rows[0]) if rows else None, rows, tuple(hits))
    rows = tuple(hit.outputs for hit in hits)
    if table.aggregation is not None:
        return _aggregate(table, rows, tuple(hits), where)
    return Chosen([_value(row) for row in rows], rows, tuple(hits))


def by_default(table: DecisionTable, values: Values) -> Chosen:
    """No rule matches, and there are default outputs (8.3.3)."""
    value = _value(values)
    return Chosen(value if table.single else [value], (values,), ())


def _value(row: Values) -> Any:
    """One output is a value, several are a context."""
    return next(iter(row.values())) if len(row) == 1 else dict(row)


def _rules(hits: Sequence[Hit]) -> str:
    named = [f"rule {hit.rule.number}" for hit in hits[:20]]
    rest = f" and {len(hits) - 20} more" if len(hits) > 20 else ""
    return ", ".join(named[:-1]) + (" and " if len(named) > 1 and not rest else ", " if len(named) > 1 else "") + named[-1] + rest


# ---- ANY


def _check_any(hits: Sequence[Hit], where: str, meter: Meter) -> None:
    for hit in hits[1:]:
        for name, value in hit.outputs.items():
            first = hits[0].outputs[name]
            if not _same(first, value, where, meter):
                what = f"{told(first)} from rule {hits[0].rule.number} and {told(value)} from rule {hit.rule.number}"
                of = f" for {name}" if name else ""
                raise DecisionError("hit_policy", f"{where}: expected the same outputs of all rules that match (ANY), found {what}{of}")


def _same(left: Any, right: Any, where: str, meter: Meter) -> bool:
    """Equal as FEEL has it, and paid for item by item: 1 is not true, and 1.0 is 1."""
    scope = Scope({})
    try:
        found = equal(left, right, scope) is True
    except LimitExceeded as error:
        raise DecisionError("expression", f"{where}: {error}") from error
    meter.pay(1 + STEPS - scope.steps, where)
    return found


# ---- PRIORITY, OUTPUT ORDER


def _place(hit: Hit, outputs: Sequence[Output], orders: Sequence[Sequence[Any] | None], where: str, meter: Meter) -> tuple[int, ...]:
    """Where the outputs stand in the order of their values; the first output counts most (8.2.8.1)."""
    places = []
    for output, order in zip(outputs, orders, strict=True):
        if order is None:
            continue
        value = hit.outputs[output.name]
        place = next((at for at, each in enumerate(order) if _same(each, value, where, meter)), None)
        if place is None:
            what = f"{told(value)} from rule {hit.rule.number}"
            raise DecisionError("hit_policy", f"{where}: expected one of the output values {output.allowed_text}, found {what}")
        places.append(place)
    return tuple(places)


# ---- COLLECT with aggregation


def _aggregate(table: DecisionTable, rows: tuple[Values, ...], hits: tuple[Hit, ...], where: str) -> Chosen:
    """One number over all hits. Nulls count for nothing; of nothing the count is 0, and there is no sum, least or greatest."""
    if table.aggregation == "COUNT":
        return _one(table, len(rows), hits)
    values = [value for row in rows for value in row.values() if value is not None]
    if not values:
        return Chosen(None, (), hits)
    _alike(values, table, hits, where)
    match table.aggregation:
        case "MIN":
            return _one(table, min(values), hits)
        case "MAX":
            return _one(table, max(values), hits)
    return _one(table, _sum(values, where), hits)


def _sum(values: Sequence[int | Decimal], where: str) -> int | Decimal:
    total: int | Decimal = 0
    for value in values:
        try:
            total = total + value if isinstance(total, int) and isinstance(value, int) else NUMBERS.add(Decimal(total), Decimal(value))
        except DecimalException as error:
            raise DecisionError("type", f"{where}: expected a SUM with an exponent up to {EXPONENT}, found a larger one") from error
    return total


def _one(table: DecisionTable, value: Any, hits: tuple[Hit, ...]) -> Chosen:
    name = table.outputs[0].name if len(table.outputs) == 1 else ""
    return Chosen(value, ({name: value},), hits)


def _alike(values: Sequence[Any], table: DecisionTable, hits: Sequence[Hit], where: str) -> None:
    kinds = {_kind(value) for value in values}
    allowed = {"number"} if table.aggregation == "SUM" else {"number", "string", "date", "date and time", "date and time in a zone"}
    if len(kinds) > 1 or not kinds <= allowed:
        wrong = next(value for value in values if _kind(value) != "number" or len(kinds) == 1)
        but = "numbers" if table.aggregation == "SUM" else "numbers, strings or dates, all of one kind"
        raise DecisionError(
            "type", f"{where}: expected {but} for {table.aggregation}, found {told(wrong)} among the outputs of {_rules(hits)}"
        )


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case int() | Decimal():
            return "number"
        case str():
            return "string"
        case datetime(tzinfo=zone):
            return "date and time" if zone is None else "date and time in a zone"
        case date():
            return "date"
    return type(value).__name__
