"""What the reader of decisions takes, and what it says of everything else: by element, line and reason."""

from __future__ import annotations

import pytest

from engine.dmn.names import DMN
from engine.dmn.reader import is_decision_file, read_decisions
from tests.dmn.models import decision, file, graph, literal, outcome, problems, table, value

ANYTHING = decision("d", literal("1"))


def whats(content: bytes) -> list[str]:
    return [each.what for each in problems(content)]


def warnings(content: bytes) -> list[str]:
    return [each.what for each in graph(content).warnings]


@pytest.mark.parametrize("namespace", DMN)
def test_every_version_of_the_standard_is_read(namespace: str) -> None:
    text = table(["x: number"], ["y: string"], ("> 1", '"a"'))
    assert value(file(decision("d", text), namespace=namespace), x=2) == "a"


@pytest.mark.parametrize(
    ("name", "expected"), [("a.dmn", True), ("A.DMN", True), ("a.dmn11.xml", True), ("a.bpmn", False), ("dmn.xml", False)]
)
def test_a_file_of_decisions_is_known_by_its_name(name: str, *, expected: bool) -> None:
    assert is_decision_file(name) is expected


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "the file is empty"),
        (b"<a", "not well-formed XML"),
        (b"<definitions/>", "the root element is definitions"),
        (b"<!DOCTYPE a><a/>", "the file has a DOCTYPE"),
        (file(), "the file has no decision"),
        (file("<decision name='x'/>"), "decision 'x' has no id"),
        (file('<decision id="d" name="x"/>'), "decision 'x' says nowhere how it is decided"),
        (file(decision("d", literal("1") + literal("2"))), "decision 'd' has 2 expressions"),
        (file(decision("d", literal(""))), "a literalExpression without id is empty"),
        (file(decision("d", literal("1 +"))), "a literalExpression without id is not an expression"),
        (file(decision("d", table([], ["x"], ("1",), hit="MOST"))), "decisionTable 'table' has the hit policy 'MOST'"),
        (file(decision("d", table([], ["x"], ("1",), hit="COLLECT", aggregation="AVERAGE"))), "has the aggregation 'AVERAGE'"),
        (
            file(decision("d", table([], ["x"], ("1",), hit="UNIQUE", aggregation="SUM"))),
            "has the aggregation SUM with the hit policy UNIQUE",
        ),
        (
            file(decision("d", table([], ["x", "y"], ("1", "2"), hit="COLLECT", aggregation="SUM"))),
            "has the aggregation SUM over 2 outputs",
        ),
        (file(decision("d", table(["x"], []))), "decisionTable 'table' has no output"),
        (file(decision("d", table([], ["x", "x"], ("1", "2")))), "has 2 outputs named 'x'"),
        (file(decision("d", table([], ["x", ""], ("1", "2")))), "has several outputs, and one without a name"),
        (file(decision("d", table([], ["x"], ("1",), hit="PRIORITY"))), "has the hit policy PRIORITY and no order of outputs"),
        (file(decision("d", table(["a", "b"], ["x"], ("1",)))), "rule 1 has 1 input entries, its table 2 inputs"),
        (file(decision("d", table(["a"], ["x", "y"], ("1", "2")))), "rule 1 has 1 output entries, its table 2 outputs"),
        (file(decision("d", table(["a"], ["x"], ("1 +", "2")))), "input entry 1 of rule 1 is not an expression"),
        (file(decision("d", table(["a"], ["x"], ("1", "2 +")))), "output entry 1 of rule 1 is not an expression"),
        (file(ANYTHING, "<import importType='dmn'/>"), "a import without id is not supported"),
        (file(ANYTHING, "<surprise/>"), "a surprise without id is not an element of DMN 1.3"),
        (file(decision("d", "<conditional/>")), "a conditional without id is not supported"),
        (file(decision("d", "<functionDefinition/>")), "is a function as a value"),
        (file(ANYTHING, decision("d", literal("2"))), "decision 'd' has the id 'd', which another element has"),
    ],
)
def test_what_is_wrong_is_said(content: bytes, what: str) -> None:
    assert any(what in each for each in whats(content)), whats(content)


def test_a_problem_names_element_line_and_file() -> None:
    (found,) = problems(file(decision("d", table(["a"], ["x"], ("1", "2"), ("1", "2 +")))))
    assert (found.element_id, found.line, found.file) == ("r2", 7, "decisions.dmn")


def test_two_files_with_one_key_are_refused() -> None:
    read = read_decisions([("a.dmn", file(ANYTHING)), ("b.dmn", file(ANYTHING))])
    assert [(each.file, each.what) for each in read.problems] == [
        ("a.dmn", "2 decisions have the id 'd'"),
        ("b.dmn", "2 decisions have the id 'd'"),
    ]


# ---- languages


@pytest.mark.parametrize(
    "language", ["feel", "FEEL", "https://www.omg.org/spec/DMN/20191111/FEEL/", "http://www.omg.org/spec/FEEL/20140401"]
)
def test_feel_has_many_names(language: str) -> None:
    assert value(file(decision("d", literal("1 + 1", f'expressionLanguage="{language}"')))) == 2


def test_juel_is_read_where_the_model_says_so_or_the_text_shows_it() -> None:
    assert value(literal("${x * 2}", 'expressionLanguage="juel"'), x=2) == 4
    assert value(literal("${x * 2}"), x=2) == 4
    assert value(file(decision("d", literal("${x * 2}")), attributes='expressionLanguage="juel"'), x=2) == 4


def test_a_cell_in_juel_is_true_or_false_and_sees_its_input() -> None:
    text = table(["${amount}"], ["x"], ("${cellInput > 5}", "1"), ("${amount <= 5}", "2"))
    assert (value(text, amount=9), value(text, amount=5)) == (1, 2)


def test_a_cell_sees_its_input_under_the_name_that_the_column_gives() -> None:
    content = file(decision("d", table(["amount"], ["x"], ("${price > 5}", "1"), ("${price <= 5}", "2"))))
    named = content.replace(b'<input label="amount">', b'<input label="amount" camunda:inputVariable="price">')
    assert (value(named, amount=9), value(named, amount=5)) == (1, 2)
    assert warnings(named) == []


def test_the_cell_of_feel_sees_its_input_by_name_and_as_a_question_mark() -> None:
    text = table(["amount"], ["x"], ("? > 5 and cellInput < 20", "1"), ("-", "2"), hit="FIRST")
    assert (value(text, amount=9), value(text, amount=30)) == (1, 2)


@pytest.mark.parametrize("language", ["groovy", "javascript", "python"])
def test_another_language_is_refused_by_name(language: str) -> None:
    (found,) = whats(file(decision("d", literal("1", f'expressionLanguage="{language}"'))))
    assert found.endswith(f"is written in {language}")


def test_an_empty_cell_holds_for_everything_and_an_empty_output_is_null() -> None:
    assert value(table(["x"], ["y"], ("", "")), x=1) is None
    assert value(table(["x"], ["y"], ("-", '"a"')), x=None) == "a"


# ---- nothing is dropped in silence


@pytest.mark.parametrize(
    ("place", "what"),
    [
        ('<decision id="d" surprise="1"', "the attribute surprise of decision 'd' is not read"),
        ('<decision id="d" camunda:historyTimeToLive="P5D"', "the attribute camunda:historyTimeToLive of decision 'd' is not read"),
        ('<decision id="d" xmlns:q="urn:q" q:surprise="1"', "the attribute surprise (urn:q) of decision 'd' is not read"),
    ],
)
def test_an_attribute_that_is_not_understood_is_told(place: str, what: str) -> None:
    assert warnings(file(ANYTHING).replace(b'<decision id="d"', place.encode())) == [what]


def test_an_unknown_attribute_on_any_element_is_told_by_name() -> None:
    content = file(decision("d", table(["a: number in [1..9]"], ['x in "b"'], ("1", '"b"')), needs=("#i",)), '<inputData id="i" name="a"/>')
    for tag in (
        b"decision ",
        b"decisionTable",
        b"input ",
        b"inputExpression",
        b"inputValues",
        b"output ",
        b"rule",
        b"inputEntry",
        b"outputEntry",
        b"text",
    ):
        changed = content.replace(b"<" + tag.strip() + (b" " if tag.endswith(b" ") else b""), b"<" + tag.strip() + b' unheard="1" ', 1)
        assert changed != content
        assert any("unheard" in each for each in warnings(changed)), tag


def test_an_extension_element_is_told() -> None:
    extra = '<extensionElements><zeebe:surprise value="1"/></extensionElements>'
    assert warnings(file(decision("d", literal("1"), extra=extra))) == ["the extension element zeebe:surprise is not read"]


def test_what_describes_and_draws_needs_no_word() -> None:
    drawn = '<dmndi:DMNDI xmlns:dmndi="https://www.omg.org/spec/DMN/20191111/DMNDI/"><dmndi:DMNDiagram unheard="1"/></dmndi:DMNDI>'
    source = '<knowledgeSource id="k" name="a book"/><textAnnotation id="t"><text>x</text></textAnnotation>'
    extra = "<description>why</description><question>what?</question>"
    extra += '<authorityRequirement><requiredAuthority href="#k"/></authorityRequirement>'
    content = file(decision("d", literal("1"), extra=extra), source, drawn)
    assert warnings(content) == []
    assert (graph(content).decisions["d"].documentation, graph(content).decisions["d"].question) == ("why", "what?")


def test_a_decision_service_is_told() -> None:
    service = '<decisionService id="s" name="s"><outputDecision href="#d"/></decisionService>'
    assert warnings(file(ANYTHING, service)) == ["decisionService 's' is not called as a service"]


@pytest.mark.parametrize(
    "content",
    [
        file(decision("d", literal("1"), attributes='camunda:versionTag="v1"')),
        file(decision("d", literal("1"), extra='<extensionElements><zeebe:versionTag value="v1"/></extensionElements>')),
    ],
)
def test_a_version_tag_is_read(content: bytes) -> None:
    assert graph(content).decisions["d"].version_tag == "v1"
    assert warnings(content) == []


def test_annotations_of_a_rule_and_its_description_are_kept() -> None:
    text = (
        table([], ["x"], ("1",))
        .replace("<rule", '<annotation name="Why"/><rule')
        .replace("</rule>", "<annotationEntry><text>because</text></annotationEntry></rule>")
    )
    rule = outcome(text).made[-1].rules[0][0]
    assert rule.annotations == ("because",)
    old = table([], ["x"], ("1",)).replace('<rule id="r1">', '<rule id="r1"><description>as ever</description>')
    assert outcome(old).made[-1].rules[0][0].annotations == ("as ever",)
