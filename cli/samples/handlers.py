"""The handlers of the sample processes. Each calls the sample service, which plays the systems around a company.

They show what a handler should do: check the lease right before the effect, hand on the idempotency key, tell a refusal
that the model knows (a BPMN error) from a failure that is worth another attempt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
import orjson

from cli.samples import SERVICE
from worker.handlers import BpmnError, Context, handler

SECONDS = 20.0
MOST_IN_STOCK = 100
MOST_IN_ONE_PARCEL = 20


@handler("samples.book_payment")
def book_payment(context: Context) -> Mapping[str, Any]:
    """Invoice approval: write the payment into the ledger."""
    return {"booking": _call(context, "ledger", {"vendor": context.variables["vendor"], "amount": context.variables["amount"]})}


@handler("samples.create_accounts")
def create_accounts(context: Context) -> Mapping[str, Any]:
    """Onboarding: an account for the new colleague."""
    return {"account": _call(context, "accounts", {"person": context.variables["person"], "role": context.variables["role"]})}


@handler("samples.reserve_stock")
def reserve_stock(context: Context) -> Mapping[str, Any]:
    """Order fulfilment: reserve the goods, or say that there are not enough."""
    quantity = context.variables["quantity"]
    if quantity > MOST_IN_STOCK:
        raise BpmnError("OUT_OF_STOCK", f"{quantity} wanted, {MOST_IN_STOCK} there")
    return {"reservation": _call(context, "warehouse", {"item": context.variables["item"], "quantity": quantity})}


@handler("samples.book_carrier")
def book_carrier(context: Context) -> Mapping[str, Any]:
    """Order fulfilment: book the carrier, who refuses what does not fit into one parcel."""
    quantity = context.variables["quantity"]
    if quantity > MOST_IN_ONE_PARCEL:
        raise BpmnError("CARRIER_REFUSED", f"{quantity} pieces do not fit into one parcel")
    return {"shipment": _call(context, "shipments", {"customer": context.variables["customer"], "quantity": quantity})}


@handler("samples.enter_leave")
def enter_leave(context: Context) -> Mapping[str, Any]:
    """Leave request: enter the days in the calendar."""
    days = {name: context.variables[name] for name in ("requester", "firstDay", "lastDay")}
    return {"calendarEntry": _call(context, "calendar", days)}


def _call(context: Context, system: str, body: Mapping[str, Any]) -> str:
    """Call one system of the sample service; its reference. Anything but 200 is a failure, and tried again."""
    url = f"{context.settings.sample_service or SERVICE}/{system}"
    headers = {"Content-Type": "application/json", "Idempotency-Key": context.idempotency_key}
    context.check()
    answer = httpx.post(url, content=orjson.dumps(body, default=_plain), headers=headers, timeout=SECONDS, trust_env=False)
    if answer.status_code != 200:
        raise RuntimeError(f"{system} answered {answer.status_code}: {answer.text[:200]}")
    return str(answer.json()["reference"])


def _plain(value: Any) -> Any:
    return float(value)  # a Decimal; orjson knows the dates
