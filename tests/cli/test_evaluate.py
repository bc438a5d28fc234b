"""`baton eval`: one expression, tried without a process."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from cli.main import baton


def evaluated(*arguments: str) -> Result:
    return CliRunner().invoke(baton, ["eval", *arguments])


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        (["${a > 1}", "--variables", '{"a": 2}'], True),
        (["Order ${id}, ${price}", "--variables", '{"id": 33.0, "price": 10.10}'], "Order 33, 10.1"),
        (["${0.1 + 0.2}"], 0.3),
        (["${lines[0]}", "--variables", '{"lines": [{"sku": "審批"}]}'], {"sku": "審批"}),
        (["${`a.b`}", "--variables", '{"a.b": null}'], None),
        (["= a.b + 1", "--variables", '{"a": {"b": 41}}'], 42),
        (["a + 1", "--language", "feel", "--variables", '{"a": 1}'], 2),
        (["= price net * 2", "--variables", '{"price net": 4}'], 8),
        (["${now().plusDays(1)}", "--now", "2026-11-29T09:00:00Z"], "2026-11-30T09:00:00+00:00"),
        (['= now() + duration("P1D")', "--now", "2026-11-29T09:00:00Z"], "2026-11-30T09:00:00+00:00"),
        (
            ["= [today(), now, now.year]", "--now", "2026-11-29T09:00:00Z", "--variables", '{"now": {"year": 3}}'],
            ["2026-11-29", {"year": 3}, 3],
        ),
        (["plain text"], "plain text"),
    ],
)
def test_the_value_is_printed_as_a_variable_would_hold_it(arguments: list[str], value: object):
    result = evaluated(*arguments)
    assert (result.exit_code, json.loads(result.stdout)) == (0, value)


def test_S32_json_names_the_kind_of_the_value():
    assert json.loads(evaluated("${a + 1}", "--variables", '{"a": 1}', "--json").stdout) == {"type": "integer", "value": 2}
    assert json.loads(evaluated("${a}", "--variables", '{"a": 1.0}', "--json").stdout) == {"type": "double", "value": 1.0}


def test_a_mistake_is_pointed_at():
    result = evaluated("${a > 1 &&\n   b.toUppercase() == 'X'}")
    assert result.exit_code == 1 and result.stdout == ""
    assert result.stderr == (
        "Error: expected a method that an expression may call, found toUppercase(): is toUpperCase() meant?; "
        "b is a variable here, never a bean; what a bean does, a handler does in a task before (character 17)\n"
        "     b.toUppercase() == 'X'}\n"
        "       ^\n"
    )


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (["${b}", "--variables", '{"bb": 1}'], 1, "expected a variable 'b', found none"),
        (["${a == '1'}", "--variables", '{"a": 1}'], 1, "the number 1 and the string '1'"),
        (["${now()}"], 1, "expected the time from whoever evaluates"),
        (["= now()"], 1, "expected the time from whoever evaluates"),
        (["${execution.businessKey}", "--now", "2026-11-29"], 1, "expected businessKey, which is known while a case runs"),
        (["${9999999999 * 9999999999}"], 1, "a whole number within 64 bits"),
        (["= if", "--variables", "{}"], 1, "character"),
        (["${a}", "--variables", "[1]"], 2, "--variables: expected a JSON object, found '[1]'"),
        (["${a}", "--variables", "{a: 1}"], 2, "--variables: expected a JSON object"),
        (["${a}", "--variables", '{"": 1}'], 2, "expected a name, found none"),
        (["${a}", "--variables", "[" * 5_000], 2, "--variables: expected a JSON object"),
        (["${a}", "--now", "soon"], 2, "--now: "),
    ],
)
def test_what_has_no_value_is_said_on_standard_error(arguments: list[str], code: int, part: str):
    result = evaluated(*arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert part in result.stderr
