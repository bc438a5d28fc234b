"""The writing statements: short enough, and every member hanging from the guarded leaf."""

from __future__ import annotations

import re
from itertools import product

import pytest

from engine.commands.requests import WRITE_REQUEST
from engine.db.locks import LEAF
from engine.db.mix import Mix
from engine.db.statements import LIMIT_CHARACTERS, LIMIT_PARAMETERS, fitting, writing_statements

LEAVES = (*LEAF, "start", "start_newest", "start_by_job")
REQUEST = WRITE_REQUEST.format(outcome="%(outcome)s::jsonb || jsonb_build_object('at', go.at)", source="go")
FLAGS = (
    "gone_scopes", "variables", "tasks", "cancelled", "jobs", "external_tasks", "subscriptions", "deliveries", "incidents", "resolved",
)  # fmt: skip
GUARDS = {"root", "held", "called", "definition", "cause", "receiver"}


def mixes(leaf: str, *, several: bool = True) -> list[Mix]:
    """Every combination of what a step may write, at its longest otherwise. `several`: in several instances, which call."""
    longest = {
        **dict.fromkeys(("calls", "returns", "several"), several),
        "scopes": True,
        "tokens": True,
        "moved": 2,
        "gone_tokens": True,
        "request": REQUEST,
    }
    return [
        Mix(leaf, ended=ended, **longest, **dict(zip(FLAGS, chosen, strict=True)))
        for ended in (False, True)
        for chosen in product((False, True), repeat=len(FLAGS))
    ]


@pytest.mark.parametrize("several", [True, False])
@pytest.mark.parametrize("leaf", LEAVES)
def test_every_mix_fits_two_statements_below_the_limits(leaf: str, several: bool) -> None:
    for mix in mixes(leaf, several=several):
        statements = writing_statements.__wrapped__(fitting.__wrapped__(mix))
        assert len(statements) <= (3 if mix.several else 2)
        for text in statements:
            assert len(text) < LIMIT_CHARACTERS, mix
            assert len(set(re.findall(r"%\((\w+)\)s", text))) <= LIMIT_PARAMETERS, mix


@pytest.mark.parametrize("leaf", LEAVES)
def test_every_member_after_the_guards_reads_from_the_leaf(leaf: str) -> None:
    # A data-modifying member that does not join the guard runs even when the guard returned no row.
    everything = next(mix for mix in mixes(leaf) if all(getattr(mix, flag) for flag in FLAGS))
    for text in writing_statements(everything):
        members = re.split(r"(?:^WITH |,\n| )(\w+) AS (?:MATERIALIZED )?\((?=SELECT|INSERT|UPDATE|DELETE)", text)
        pairs = list(zip(members[1::2], members[2::2], strict=True))
        assert len(pairs) > 3
        for name, body in pairs:
            if name in GUARDS or name == "go":
                continue
            assert re.search(r"\b(FROM|USING) (go|tasks)\b", body), f"{name} does not read from the guarded leaf"


@pytest.mark.parametrize("leaf", LEAF)
def test_the_leaf_itself_hangs_from_the_compared_root(leaf: str) -> None:
    text = writing_statements(Mix(leaf))[0]
    assert text.startswith("WITH root AS MATERIALIZED (SELECT id FROM process_instance WHERE id = %(root_id)s AND revision = %(revision)s")
    go = text[text.index("go AS") :]
    assert re.search(r"\b(FROM|USING|,) (\w+ l, )?root\b", go[:400])


def test_a_usual_step_is_one_statement_with_its_rows_as_parameters() -> None:
    usual = Mix("user_task", tokens=1, moved=1, gone_tokens=True, variables=1, tasks=1, entries=True, request=REQUEST)
    assert fitting(usual) == usual
    (statement,) = writing_statements(usual)
    assert "%(task_candidate_groups)s::text[]" in statement and "%(tokens)s" not in statement


def test_rows_that_do_not_fit_as_parameters_are_a_document_before_the_write_takes_a_second_statement() -> None:
    both = Mix("user_task", tokens=1, moved=1, gone_tokens=True, variables=1, tasks=1, entries=True, jobs=1, request=REQUEST)
    assert len(writing_statements(both)) == 2
    tried, shorter = [both], both
    for name in ("jobs", "tasks", "scopes", "tokens", "variables"):
        shorter = shorter._replace(**{name: 2}) if getattr(both, name) else shorter  # type: ignore[arg-type]  # numbers, all of them
        tried.append(shorter)
    assert fitting(both) == next((mix for mix in tried if len(writing_statements(mix)) == 1), shorter)
    never = both._replace(request=REQUEST * 8)
    assert fitting(never) == never._replace(jobs=2, tasks=2, tokens=2, variables=2), "too long for one however it is written"
