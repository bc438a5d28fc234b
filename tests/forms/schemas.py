"""form-js schemas for tests."""

from __future__ import annotations

import json
from typing import Any


def component(kind: str, key: str = "", **more: Any) -> dict[str, Any]:
    """A component; its id is `Field_` and its key."""
    return {"type": kind, "id": f"Field_{key}", **({"key": key} if key else {}), **more}


def values(**labels: str) -> list[dict[str, str]]:
    return [{"label": label, "value": value} for value, label in labels.items()]


def schema(*components: dict[str, Any], key: str = "order", **more: Any) -> bytes:
    return json.dumps({"type": "default", "id": key, "schemaVersion": 16, "components": list(components), **more}, indent=1).encode()


ORDER = (
    component("text", text="# Order\nWhat shall we buy?"),
    component("textfield", "title", label="What", description="As the shop calls it", validate={"required": True, "maxLength": 40}),
    component("textarea", "why", label="Why"),
    component("number", "pieces", label="How many", decimalDigits=0, defaultValue=1, validate={"min": 1, "max": 99}),
    component("number", "price", label="Price", decimalDigits=2, appearance={"suffixAdorner": "EUR"}),
    component("separator"),
    component(
        "group",
        label="Delivery",
        components=[
            component("select", "place", label="Where", values=values(office="Office", home="Home")),
            component("datetime", "day", subtype="date", dateLabel="When"),
            component("textfield", "mail", label="Mail", validate={"validationType": "email"}),
        ],
    ),
    component("radio", "pays", label="Who pays", values=values(we="We", i="I"), defaultValue="we"),
    component("checkbox", "sure", label="I am sure", validate={"required": True}),
    component("button", action="submit", label="Send"),
)
