"""`http.call`: the handler that Baton brings."""

from __future__ import annotations

import time
from decimal import Decimal
from typing import Any

import pytest

from engine.config import Settings
from tests.worker.test_outbox import SETTINGS, Shop, shop
from worker.calling import Call, Completed, Failed, Threw, call
from worker.cell import LeaseCell
from worker.handlers import load_handlers

__all__ = ["shop"]


def http_call(settings: Settings = SETTINGS, *, seconds_left: float = 30.0, **inputs: Any) -> Any:
    lease = LeaseCell()
    lease.deadline = time.monotonic() + seconds_left
    what = Call("http.call", "job-1", 1, 3, None, "task", "instance-1", {}, inputs)
    return call(load_handlers(())["http.call"], what, lease, settings, lambda said: None)


def test_R7_the_answer_becomes_a_variable_and_the_key_is_the_job(shop: Shop):
    outcome = http_call(url=shop.url, method="post", body={"amount": Decimal("10.10")}, headers={"X-Order": 7})
    assert isinstance(outcome, Completed)
    assert outcome.variables["response"].value["status"] == 200
    ((_, headers, body),) = shop.requests
    assert headers["Idempotency-Key"] == "job-1"
    assert headers["X-Order"] == "7"
    assert body == b'{"amount":10.1}'


@pytest.mark.parametrize("status", [408, 425, 429, 500, 503])
def test_what_may_pass_is_a_failure_that_waits_as_it_was_asked_to(shop: Shop, status: int):
    shop.status, shop.extra = status, {"Retry-After": "7"}
    outcome = http_call(url=shop.url, method="POST")
    assert outcome.retry_in == 7
    assert not outcome.final
    shop.extra = {}
    assert http_call(url=shop.url, method="POST").retry_in is None


@pytest.mark.parametrize("status", [302, 400, 404, 422])
def test_a_refusal_is_an_error_that_the_model_can_catch(shop: Shop, status: int):
    shop.status = status
    assert http_call(url=shop.url, method="POST") == Threw(f"HTTP_{status}", f"POST {shop.url} answered {status}")


def test_S68_a_refused_target_is_final(shop: Shop):
    outcome = http_call(Settings(), url=shop.url, method="POST")
    assert outcome.final
    assert "is not a public address" in outcome.error
    assert shop.requests == []


def test_F11_no_call_is_made_after_the_lease_ran_out(shop: Shop):
    outcome = http_call(url=shop.url, method="POST", seconds_left=-1)
    assert isinstance(outcome, Failed)
    assert outcome.error.startswith("the lease ran out")
    assert shop.requests == []


def test_a_missing_url_is_final(shop: Shop):
    assert http_call(method="POST") == Failed("http.call: expected an input `url`, found none", final=True)
