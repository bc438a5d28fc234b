"""bpmn-js imports our models without an error; `make corpus ACCOUNT=1 ARGS=--import` asks it about a folder of them."""

from __future__ import annotations

from playwright.sync_api import Browser

from tests.accounting.imports import NO_DRAWING, import_all, text_of
from tests.accounting.test_accounting import OURS
from tests.bpmn.models import around


def test_bpmn_js_imports_each_of_our_models(chromium: Browser) -> None:
    said = import_all(chromium, {path.name: text_of(path.read_bytes()) for path in OURS})
    errors = {name: each.error for name, each in said.items() if each.error}
    assert set(errors.values()) <= {NO_DRAWING}
    drawn = {path.name for path in OURS if b"BPMNShape" in path.read_bytes()}
    assert drawn and not drawn & set(errors), "what has a drawing is shown"


def test_what_bpmn_js_cannot_import_is_told(chromium: Browser) -> None:
    said = import_all(chromium, {"none": around('<task id="x"/>').decode(), "broken": "<definitions"})
    assert said["none"].error == NO_DRAWING
    assert said["broken"].error not in (None, NO_DRAWING)
