"""FEEL where models use it: which texts are FEEL, what is refused at deployment, what comes of a value."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from engine.bpmn.definition import ProcessDefinition
from engine.bpmn.languages import named_language
from engine.expressions import ExpressionError, MissingName, as_variable, parse
from tests.bpmn.models import around, definition, file_of, only_problem, read

FEEL = "https://www.omg.org/spec/DMN/20191111/FEEL/"


@pytest.mark.parametrize(
    "name",
    [
        "feel",
        "FEEL",
        "text/x-feel",
        "http://www.omg.org/spec/FEEL/20140401",
        "http://www.omg.org/spec/DMN/20151101/FEEL",
        "http://www.omg.org/spec/DMN/20180521/FEEL/",
        "https://www.omg.org/spec/DMN/20191111/FEEL/",
        "https://www.omg.org/spec/DMN/20211108/FEEL/",
        "https://www.omg.org/spec/DMN/20230324/FEEL/",
    ],
)
def test_every_name_of_feel_is_known(name: str) -> None:
    assert named_language(name) == "feel"


@pytest.mark.parametrize(
    "name", ["juel", "JUEL", "uel", "el", "text/x-juel", "http://java.sun.com/products/jsp/", "http://www.omg.org/juel"]
)
def test_every_name_of_juel_is_known(name: str) -> None:
    assert named_language(name) == "juel"


@pytest.mark.parametrize("name", ["", "groovy", "http://www.w3.org/1999/XPath", "feeling", "javascript"])
def test_other_languages_are_not_taken_for_one_that_is_read(name: str) -> None:
    assert named_language(name) is None


def _flow(text: str, *, language: str = "", of_the_file: str = "") -> bytes:
    given = f' language="{language}"' if language else ""
    flow = f'<sequenceFlow id="f" sourceRef="t" targetRef="e"><conditionExpression{given}>{text}</conditionExpression></sequenceFlow>'
    begin = '<startEvent id="s"/><userTask id="t"/><sequenceFlow id="g" sourceRef="s" targetRef="t"/>'
    data = file_of(f'{begin}<endEvent id="e"/>{flow}').decode()
    return data.replace("<definitions ", f'<definitions expressionLanguage="{of_the_file}" ' if of_the_file else "<definitions ").encode()


def _condition(found: ProcessDefinition) -> Any:
    return found.flows["f"].condition


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (_flow('= amount &gt; 10 and name = "Ada"'), True),
        (_flow('amount between 1 and 30 and name in ("Ada", "Bo")', language=FEEL), True),
        (_flow("= amount > 30", language="feel"), False),
        (_flow("amount = 20", of_the_file=FEEL), True),
        (_flow("${amount == 20}", of_the_file=FEEL), True),
        (_flow("${amount == 20}", of_the_file="http://www.w3.org/1999/XPath"), True),
        (_flow("${amount == 20}", language="http://java.sun.com/products/jsp/"), True),
    ],
)
def test_a_condition_is_read_in_the_language_that_it_or_its_text_or_the_file_says(data: bytes, expected: bool) -> None:
    assert _condition(definition(data)).evaluate({"amount": 20, "name": "Ada"}) is expected


def test_a_file_whose_language_is_feel_has_nothing_unread() -> None:
    assert definition(_flow("amount = 20", of_the_file=FEEL)).warnings == ()


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("= amount > ", "expected a value, found the end of the expression"),
        ("= amount = = 3", "character 12"),
        ("= day of wek(due) = 3", "expected a function of FEEL, found day of wek(); there is one called day of week()"),
        ("= launch(rocket)", "expected a function of FEEL, found launch()"),
        ('= due > @"2026-02-30"', "expected a date of the calendar, found 2026-02-30"),
        ("= 'text'", 'found "\'"'),
        ("= a && b", "FEEL writes and"),
        ("= function() external {java: 1}", "no foreign code is run"),
        ('= "text"', "is the text"),
    ],
)
def test_what_is_no_feel_is_refused_at_deployment_with_the_place(text: str, part: str) -> None:
    escaped = text.replace("&", "&amp;").replace(">", "&gt;")
    found = only_problem(_flow(escaped))
    assert part in found.what
    assert (found.element_id, found.line) == ("f", 3)


def test_an_explicit_language_that_is_not_read_is_warned_about_by_name() -> None:
    (warning,) = read(_flow("a", language="http://www.w3.org/1999/XPath")).warnings
    assert "is written in http://www.w3.org/1999/XPath, which is not run" in warning.what


@pytest.mark.parametrize(
    ("timer", "value"),
    [
        ('<timeDuration>= duration("PT5M")</timeDuration>', "PT5M"),
        ("<timeDuration>= wait</timeDuration>", "PT1H"),
        ('<timeDate>= date and time("2026-11-29T10:00:00Z")</timeDate>', datetime(2026, 11, 29, 10, tzinfo=UTC)),
        ('<timeDate>= date("2026-11-29") + duration("P1D")</timeDate>', date(2026, 11, 30)),
        ('<timeCycle>= "R3/PT10M"</timeCycle>', "R3/PT10M"),
        (f'<timeDuration language="{FEEL}">if true then "PT1M" else "PT2M"</timeDuration>', "PT1M"),
    ],
)
def test_a_timer_may_be_feel(timer: str, value: Any) -> None:
    data = around(f'<intermediateCatchEvent id="x"><timerEventDefinition>{timer}</timerEventDefinition></intermediateCatchEvent>')
    assert definition(data).nodes["x"].config.timer.expression.evaluate({"wait": "PT1H"}) == value


def test_a_timer_that_is_constant_in_feel_must_be_one() -> None:
    data = around(
        '<intermediateCatchEvent id="x"><timerEventDefinition><timeDuration>= "soon"</timeDuration></timerEventDefinition>'
        "</intermediateCatchEvent>"
    )
    assert "cannot be read" in only_problem(data).what


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2", 3),
        ("6 / 2", 3),
        ("7 / 2", Decimal("3.5")),
        ("1.5 + 1.5", Decimal("3.0")),
        ("0.1 + 0.2", Decimal("0.3")),
        ("abs(-3)", 3),
        ("10 ** 3", 1000),
        ('@"PT90M"', "PT1H30M"),
        ('@"P14M"', "P1Y2M"),
        ('@"10:30:00Z"', "10:30:00Z"),
        ('@"2026-11-29"', date(2026, 11, 29)),
        ('@"2026-11-29T10:00:00"', "2026-11-29T10:00:00"),
        ('@"2026-11-29T10:00:00Z"', datetime(2026, 11, 29, 10, tzinfo=UTC)),
        ('{a: @"P1D", b: [1, 4 / 2, null]}', {"a": "P1D", "b": [1, 2, None]}),
        ("null", None),
        ("price", Decimal("33.0")),
    ],
)
def test_S32_a_value_of_feel_becomes_a_variable_of_its_kind(text: str, expected: Any) -> None:
    found = as_variable(parse(text, language="feel")).evaluate({"price": Decimal("33.0")})
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("text", ["[1..3]", "function(x) x", "{a: [function() 1]}", "for i in 1..40 return partial"])
def test_a_value_that_no_variable_can_hold_is_an_error(text: str) -> None:
    with pytest.raises(ExpressionError):
        as_variable(parse(text, language="feel")).evaluate({})


# ---- what is missing


ORDER = {"order": {"id": 7, "paid": None, "lines": [{"sku": "a", "gift": True}, {"sku": "b"}]}}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("= order.vip", "vip"),
        ("= order.vip = true", "vip"),
        ("= order.customer.name = &quot;Ada&quot;", "customer"),
        ("= vip = true", "vip"),
        ("= not(order.vip)", "vip"),
        ("= order.total &gt; 5", "total"),
        ("= order.vip != true", "vip"),
        ("= not(order.customer in (1, 2))", "customer"),
        ("= order.vip = true or order.id = 7", "vip"),
        ("= orders[1].vip", "orders"),
        ("= order.lines[nosuch = 1] != []", "nosuch"),
    ],
)
def test_S36_a_condition_that_reads_what_is_not_there_names_it_and_never_is_merely_false(text: str, name: str) -> None:
    with pytest.raises(MissingName) as caught:
        _condition(definition(_flow(text))).evaluate(ORDER)
    assert caught.value.name == name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("= order.vip != null and order.vip", False),
        ("= is defined(order.vip) and order.vip", False),
        ("= is defined(order.paid)", True),
        ("= is defined(vip)", False),
        ("= vip = null", True),
        ("= get or else(order.vip, false)", False),
        ("= get or else(vip, true)", True),
        ("= order.vip = null or order.vip", True),
        ("= order.id = 7 or order.vip = true", True),
        ("= some line in order.lines satisfies line.gift = false", False),
        ("= order.lines[gift = false] = []", True),
    ],
)
def test_who_asks_whether_it_is_there_gets_an_answer(text: str, expected: bool) -> None:
    assert _condition(definition(_flow(text))).evaluate(ORDER) is expected


@pytest.mark.parametrize("text", ["= order.paid", "= order.paid &gt; 3", "= 1 &gt; &quot;a&quot;", "= order.id = &quot;7&quot;"])
def test_a_condition_that_is_null_is_not_true_and_not_false_but_an_error_that_says_why(text: str) -> None:
    with pytest.raises(ExpressionError, match="expected true or false, found null"):
        _condition(definition(_flow(text))).evaluate(ORDER)


# ---- scripts, names


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ('<scriptTask id="x" scriptFormat="feel" camunda:resultVariable="r"><script>sum + 1</script></scriptTask>', 4),
        ('<scriptTask id="x" scriptFormat="FEEL" camunda:resultVariable="r"><script>= "text"</script></scriptTask>', "text"),
        (
            f'<scriptTask id="x" scriptFormat="{FEEL}" camunda:resultVariable="r"><script>for i in 1..sum return i</script></scriptTask>',
            [1, 2, 3],
        ),
        ('<scriptTask id="x" scriptFormat="juel" camunda:resultVariable="r"><script>${sum + 1}</script></scriptTask>', 4),
        ('<scriptTask id="x" camunda:resultVariable="r"><script>= {total: sum * 2}</script></scriptTask>', {"total": 6}),
        (
            '<scriptTask id="x"><extensionElements><zeebe:script expression="=if sum &gt; 2 then sum / 2 else 0" resultVariable="r"/>'
            "</extensionElements></scriptTask>",
            Decimal("1.5"),
        ),
    ],
)
def test_a_script_in_feel_has_its_value(node: str, expected: Any) -> None:
    found = definition(around(node)).nodes["x"].config
    assert (found.expression.evaluate({"sum": 3}), found.result_variable) == (expected, "r")


def test_names_of_messages_and_correlation_keys_may_be_feel() -> None:
    root = (
        '<message id="m" name="= &quot;PAID-&quot; + region"><extensionElements>'
        '<zeebe:subscription correlationKey="= string(order.id)"/></extensionElements></message>'
    )
    data = around('<receiveTask id="x" messageRef="m"/>', root=root)
    message = definition(data).nodes["x"].config.message
    assert message.name.evaluate({"region": "EU"}) == "PAID-EU"
    assert message.key.evaluate(ORDER) == "7"
    assert message.key.names == {"order"}


def test_what_an_expression_asks_for_is_known_before_it_runs() -> None:
    def names(text: str) -> set[str]:
        return set(parse(text, language="feel").names)

    assert names("for x in xs return x + y") == {"xs", "y"}
    assert names("some a in b, c in a.d satisfies c = e") == {"b", "e"}
    assert names("{a: 1, b: a + c}.b") == {"c"}
    assert names("(function(n) n + m)(k)") == {"m", "k"}
    assert names("order.lines[price > limit]") == {"order", "price", "limit"}
    assert names("day of week(name) > 3 and now() > due") == {"name", "now", "due"}


def test_a_plain_text_in_a_zeebe_attribute_stays_text() -> None:
    data = around(
        '<userTask id="x"><extensionElements><zeebe:assignmentDefinition assignee="ada" candidateGroups="=groups"/>'
        "</extensionElements></userTask>"
    )
    found = definition(data).nodes["x"].config
    assert found.assignee.evaluate({}) == "ada"
    assert found.candidate_groups[0].evaluate({"groups": ["sales"]}) == ["sales"]
    assert read(data).problems == ()
