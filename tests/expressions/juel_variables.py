"""The variables over which the tables of cases are evaluated."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from engine.expressions import parse
from engine.expressions.clock import CLOCK

D = Decimal

VARIABLES: dict[str, Any] = {
    "guests": 33,
    "zero": 0,
    "debt": -12,
    "price": D("10.10"),
    "rate": D("0.1"),
    "one": D("1.0"),
    "beyond": 9007199254740993,  # more than a double can tell apart
    "vast": 10**33,
    "measured": 2.5,  # a float, as a form or a handler may bring it
    "name": "Zoë",
    "city": "Porto",
    "csv": "kiwi,fig,,plum,,",
    "void": "",
    "blank": " \t ",
    "cjk": "審批流程",
    "thumb": "👍🏽 ok",
    "yes": True,
    "no": False,
    "nothing": None,
    "colours": ["red", "green", "blue", "green"],
    "numbers": [3, 1, 2],
    "decimals": [D("1.0"), D("2.5")],
    "none": [],
    "mixed": [1, "1", True, None],
    "grid": [[1, 2], [3, [4, 5]]],
    "order": {
        "id": 7,
        "total": D("99.90"),
        "customer": {"name": "Ada", "vip": True},
        "lines": [{"sku": "a-1", "n": 2}, {"sku": "b-2", "n": 5}],
        "note": None,
        "response-x": "ok",
        "empty": "taken",
        "a b": "spaced",
    },
    "nobody": {},
    "leap": date(2024, 2, 29),
    "newyear": date(2026, 1, 1),
    "monthend": date(2026, 1, 31),
    "start": datetime(2026, 11, 29, 10, 30, 15, tzinfo=UTC),
    "noon": datetime(2026, 11, 29, 12, 0, tzinfo=timezone(timedelta(hours=1))),
    "payload": '{"who": {"tags": ["x", 2.5, 7]}, "ok": true, "gone": null}',
    "list_text": "[1, [2], {}]",
    "in1": 5,
    "not_x": False,
    "android": "robot",
    "emptyish": 1,
    "a": {"b": 1},
    "a.b": "dotted",
    "x-y": "hyphen",
    "größe": 3,
    "件数": 12,
}


class InACase(dict[str, Any]):
    """The variables as a case that runs has them."""

    about = {
        "businessKey": "K-17",
        "processInstanceId": "00000000-0000-0000-0000-000000000007",
        "processDefinitionKey": "shipping",
    }


def value(text: str) -> Any:
    """The value of `${text}` in a case."""
    return parse(f"${{{text}}}").evaluate(InACase(VARIABLES, **{CLOCK: datetime(2026, 11, 29, 9, 0, tzinfo=UTC)}))
