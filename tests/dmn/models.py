"""Decision tables in few words, for tests: the XML of a file, and what it decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID
from xml.sax.saxutils import escape, quoteattr

from engine.bpmn.definition import Problem
from engine.core.known import Decidable, DecisionCall, NotDecidable
from engine.dmn.definition import DecisionGraph
from engine.dmn.evaluate import Outcome, evaluate
from engine.dmn.reader import read_decisions

DMN13 = "https://www.omg.org/spec/DMN/20191111/MODEL/"


def file(*elements: str, namespace: str = DMN13, attributes: str = "") -> bytes:
    """A file of these elements."""
    spaces = 'xmlns:camunda="http://camunda.org/schema/1.0/dmn" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0"'
    text = f'<definitions xmlns="{namespace}" {spaces} id="file" name="file" namespace="n" {attributes}>\n{"".join(elements)}</definitions>'
    return text.encode()


def decision(key: str, logic: str, *, name: str = "", needs: Sequence[str] = (), extra: str = "", attributes: str = "") -> str:
    """A decision; `needs`: ids of decisions, `#input` of input data, `!model` of business knowledge models."""
    return (
        f'<decision id="{key}" name={quoteattr(name or key)} {attributes}>\n{"".join(map(_requirement, needs))}{extra}{logic}</decision>\n'
    )


def _requirement(need: str) -> str:
    if need.startswith("!"):
        return f'<knowledgeRequirement><requiredKnowledge href="#{need[1:]}"/></knowledgeRequirement>'
    tag, key = ("requiredInput", need[1:]) if need.startswith("#") else ("requiredDecision", need)
    return f'<informationRequirement><{tag} href="#{key}"/></informationRequirement>'


def literal(text: str, attributes: str = "") -> str:
    return f"<literalExpression {attributes}>{_text(text)}</literalExpression>"


def table(
    inputs: Iterable[str],
    outputs: Iterable[str],
    *rules: Sequence[str],
    hit: str | None = None,
    aggregation: str | None = None,
) -> str:
    """`inputs`: "expression" or "expression: type"; `outputs`: "name", "name: type", "name: type = default", "name: type in values"."""
    ins, outs = list(inputs), list(outputs)
    policy = f' hitPolicy="{hit}"' if hit else ""
    how = f' aggregation="{aggregation}"' if aggregation else ""
    body = "".join(map(_input, ins)) + "".join(map(_output, outs))
    body += "".join(_rule(number, rule, len(ins)) for number, rule in enumerate(rules, start=1))
    return f'<decisionTable id="table"{policy}{how}>\n{body}</decisionTable>'


def _input(clause: str) -> str:
    expression, _, allowed = clause.partition(" in ")
    expression, _, kind = expression.partition(": ")
    values = f"<inputValues>{_text(allowed)}</inputValues>" if allowed else ""
    return f"<input label={quoteattr(expression)}><inputExpression{_type(kind)}>{_text(expression)}</inputExpression>{values}</input>\n"


def _output(clause: str) -> str:
    rest, _, default = clause.partition(" = ")
    rest, _, values = rest.partition(" in ")
    name, _, kind = rest.partition(": ")
    inner = f"<outputValues>{_text(values)}</outputValues>" if values else ""
    inner += f"<defaultOutputEntry>{_text(default)}</defaultOutputEntry>" if default else ""
    return f"<output{f' name={quoteattr(name)}' if name else ''}{_type(kind)}>{inner}</output>\n"


def _rule(number: int, cells: Sequence[str], inputs: int) -> str:
    entries = "".join(f"<inputEntry>{_text(cell)}</inputEntry>" for cell in cells[:inputs])
    made = "".join(f"<outputEntry>{_text(cell)}</outputEntry>" for cell in cells[inputs:])
    return f'<rule id="r{number}">{entries}{made}</rule>\n'


def _type(kind: str) -> str:
    return f" typeRef={quoteattr(kind)}" if kind else ""


def _text(text: str) -> str:
    return f"<text>{escape(text)}</text>"


# ---- reading and deciding


def graph(content: bytes) -> DecisionGraph:
    read = read_decisions([("decisions.dmn", content)])
    assert not read.problems, read.problems
    return read.graphs[0][1]


def problems(content: bytes) -> tuple[Problem, ...]:
    return read_decisions([("decisions.dmn", content)]).problems


def outcome(content: bytes | str, key: str = "d", /, **variables: Any) -> Outcome:
    """The outcome of a file, or of the one decision `d` with this logic."""
    whole = file(decision("d", content)) if isinstance(content, str) else content
    return evaluate(graph(whole), key, variables)


def value(content: bytes | str, key: str = "d", /, **variables: Any) -> Any:
    return outcome(content, key, **variables).value


def matched(content: bytes | str, key: str = "d", /, **variables: Any) -> list[int]:
    """The numbers of the rules that matched and counted."""
    return [rule.number for rule, _ in outcome(content, key, **variables).made[-1].rules]


def decidable(tables: Mapping[str, DecisionGraph], call: DecisionCall) -> Decidable | NotDecidable:
    """What a call means where these are deployed, each in its first version."""
    found = tables.get(call.key)
    if found is None:
        return NotDecidable(f"no decision {call.key}")
    return Decidable(call.key, found, {key: (UUID(int=2_000_000 + at), 1) for at, key in enumerate(found.decisions)})
