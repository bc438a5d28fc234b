"""docs/from-camunda-7.md, done as a newcomer would: its blocks run, its tables are so, its links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.main import baton
from engine.expressions import ExpressionError, parse

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "from-camunda-7.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
BANK = "def charge(amount, key):\n    return None if amount > 9000 else 'R-7'\n"
CALLED = """
from types import SimpleNamespace
from decimal import Decimal
from worker.handlers import BpmnError, load_handlers
handlers = load_handlers(("shop_handlers",))
def call(name, **variables):
    return handlers[name].function(SimpleNamespace(variables=variables, idempotency_key="1", element_id="x", business_key="o-1"))
print(sorted(set(handlers) - {"http.call"}))
print(call("chargeCard", amount=5), call("com.shop.AuditListener"), call("discount", amount=Decimal("5000.50")))
try:
    call("chargeCard", amount=9001)
except BpmnError as error:
    print(error.code)
"""


def block(language: str, holding: str) -> str:
    """The one block of the page that is in this language and holds this text."""
    (found,) = [text for spoken, text in BLOCKS if spoken == language and holding in text]
    return found


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of the page, in a folder of their own, which is the current one."""
    (tmp_path / "order.bpmn").write_text(block("xml", "chargeCard"))
    (tmp_path / "order.script").write_text(block("", "expect completed"))
    (tmp_path / "shop_handlers.py").write_text(block("python", "@handler"))
    (tmp_path / "test_order.py").write_text(block("python", "def test_"))
    (tmp_path / "bank.py").write_text(BANK)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def python_in(folder: Path, *arguments: str) -> str:
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT}:{folder}"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_inventory_of_the_model_is_what_the_page_shows(project: Path) -> None:
    told = CliRunner().invoke(baton, ["check", "order.bpmn", "--needs"])
    assert (told.exit_code, told.output) == (0, block("", "needs handler"))
    rest = CliRunner().invoke(baton, ["check", "order.bpmn"])
    assert rest.stdout == "order: may be deployed\n"
    for sentence in (
        "is not run; expected a handler of the name 'discount'",
        "is not read; expected nothing of it: the history of a case is kept",
    ):
        assert sentence in rest.stderr


def test_the_handlers_are_those_that_the_model_needs_and_do_what_the_page_says(project: Path) -> None:
    names, values, code = python_in(project, "-c", CALLED).splitlines()
    assert names == str(re.findall(r"^needs handler (\S+):", block("", "needs handler"), re.MULTILINE))
    assert values == "{'receipt': 'R-7'} None {'discount': Decimal('500.05')}"
    assert code == "DECLINED"


def test_the_script_plays_and_the_test_passes(project: Path) -> None:
    played = CliRunner().invoke(baton, ["simulate", "order.bpmn", "--script", "order.script"])
    assert played.exit_code == 0, played.output
    assert "1 passed" in python_in(
        project, "-m", "pytest", "-q", "-p", "engine.simulation.plugin", "-p", "no:cacheprovider", "test_order.py"
    )


def expressions() -> list[tuple[str, str]]:
    rows = PAGE.partition("| expression | here |\n|---|---|\n")[2].partition("\n\n")[0].splitlines()
    return [(found[1], found[2]) for row in rows if (found := re.match(r"\| `(.*?)` \| (the same|refused)", row))]


@pytest.mark.parametrize(("text", "verdict"), expressions())
def test_an_expression_is_read_or_refused_as_the_table_says(text: str, verdict: str) -> None:
    if verdict == "the same":
        assert parse(text).text == text
    else:
        with pytest.raises(ExpressionError):
            parse(text)


def test_the_table_of_expressions_has_both_kinds() -> None:
    assert {verdict for _, verdict in expressions()} == {"the same", "refused"}
    assert len(expressions()) >= 10


def test_every_page_that_it_names_is_there() -> None:
    for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", PAGE):
        assert (ROOT / "docs" / link).exists(), link
