"""Texts about activities, gateways, flows, markers, data and participants."""

from __future__ import annotations

from collections.abc import Sequence

from engine.bpmn.coverage.row import Row

Elsewhere = tuple[str, str, str, str]
ALL: Elsewhere = ("yes", "yes", "yes", "yes")
NONE: Elsewhere = ("no", "no", "no", "no")


def _of(part: str, *rows: tuple[str, str | None, str, Elsewhere]) -> list[Row]:
    return [Row(part, what, tag, None, here, elsewhere) for what, tag, here, elsewhere in rows]


ELEMENTS: Sequence[Row] = (
    *_of(
        "Tasks (10.3.3)",
        ("`userTask`", "userTask", "a task in the inbox; attributes below", ALL),
        (
            "`serviceTask`",
            "serviceTask",
            "a job for a handler, an external task, or an outbox delivery; without any of them for the handler of its id; below",
            ("yes", "yes", "yes", "by extension"),
        ),
        (
            "`sendTask`",
            "sendTask",
            "sends its `messageRef`, as a message throw event does; or is bound as a service task is (10.3.3.2)",
            ("as a service task", "as a service task", "as a service task", "yes"),
        ),
        (
            "`receiveTask`",
            "receiveTask",
            "waits for its `messageRef`, or the message of its id; with `instantiate` it starts the process (10.3.3.3)",
            ("not `instantiate`", "not `instantiate`", "a trigger by API", "yes"),
        ),
        (
            "`scriptTask`",
            "scriptTask",
            "one expression into a variable; or bound as a service task is; other languages: the handler of its id; below",
            ("script languages", "FEEL, or a job", "script languages", "Python"),
        ),
        (
            "`businessRuleTask`",
            "businessRuleTask",
            "calls a decision ([decision tables](decision-tables.md)), at once; or is bound as a service task is (10.3.3.4)",
            ("DMN", "DMN, or a job", "DMN", "DMN"),
        ),
        ("`manualTask`", "manualTask", "done outside the engine: the token goes on at once (10.3.3.5)", ("yes", "yes", "yes", "waits")),
        ("`task`", "task", "nothing to do: the token goes on at once (13.3.3)", ALL),
    ),
    *_of(
        "Subprocesses and calls (10.3.4, 10.3.5)",
        (
            "`subProcess`",
            "subProcess",
            "embedded, with variables of its own (`camunda:inputParameter`, data); with `triggeredByEvent` an event subprocess; below",
            ALL,
        ),
        (
            "`callActivity`",
            "callActivity",
            "a process or a global task, in the same case and transaction; below",
            ("yes; no global tasks", "yes; no global tasks", "yes; no global tasks", "yes; no global tasks"),
        ),
        (
            "`transaction`",
            "transaction",
            "a subprocess that a cancel end event undoes: compensation, then its cancel boundary event (10.3.5.5)",
            ("yes", "no", "yes", "without compensation"),
        ),
        (
            "`adHocSubProcess`",
            "adHocSubProcess",
            "activities in any order, or one after another; ends by `completionCondition`; below",
            ("no", "since 8.7", "yes", "no"),
        ),
    ),
    *_of(
        "Gateways (10.6)",
        ("`exclusiveGateway`", "exclusiveGateway", "the first flow whose condition holds, else `default`, else an incident", ALL),
        ("`parallelGateway`", "parallelGateway", "one token of every incoming flow, one for every outgoing flow", ALL),
        (
            "`inclusiveGateway`",
            "inclusiveGateway",
            "every flow whose condition holds; merges as the standard says; below",
            ("yes; merge approximate", "yes; merging since 8.8", "yes; merge approximate", "yes"),
        ),
        (
            "`eventBasedGateway`",
            "eventBasedGateway",
            "the first event takes the token; with `instantiate` it starts the process, in parallel it waits for the other messages; below",
            ("yes; not instantiating", "yes; not instantiating", "yes; not instantiating", "yes; not instantiating"),
        ),
        (
            "`complexGateway`",
            "complexGateway",
            "passes when `activationCondition` over `activationCount` holds, then waits for the rest and resets; below",
            ("no", "no", "passes without effect", "no"),
        ),
    ),
    *_of(
        "Flows and markers",
        (
            "conditional and default flows",
            None,
            "out of activities, exclusive, inclusive and complex gateways; the default flow is taken when no condition of the others holds",
            ("yes", "out of gateways only", "yes", "yes"),
        ),
        (
            "standard loop",
            None,
            "`loopCondition`, `testBefore`, `loopMaximum`; below",
            ("ignored", "no", "no", "yes"),
        ),
        (
            "multi-instance, sequential and parallel",
            None,
            "by number, collection or data, `completionCondition`, results, `behavior`; below",
            ALL,
        ),
        ("`startQuantity`, `completionQuantity`", None, "from 1 to 100", ("ignored", "no", "ignored", "no")),
        ("`gatewayDirection`", None, "refused where it contradicts the flows (10.6.1)", ("ignored", "ignored", "ignored", "ignored")),
    ),
    *_of(
        "Data, lanes, participants, notes",
        (
            "`dataObject`, `dataObjectReference`, `property`",
            None,
            "the variable of their name; those of a subprocess are its own; below",
            ("ignored", "ignored", "`dataObject` as a variable", "`dataObject`"),
        ),
        (
            "`ioSpecification`, data associations",
            None,
            "inputs of activities, and where parts of results go; transformation, assignment; below",
            ("ignored", "ignored", "`ioSpecification` for web services", "yes"),
        ),
        ("`dataStore`, `dataStoreReference`", None, "drawn only", ("ignored", "ignored", "ignored", "by extension")),
        (
            "`laneSet`, `lane`",
            None,
            'drawn; with `baton:assignment="lane"` the group that tasks are offered to',
            ("ignored", "ignored", "drawn", "the task knows its lane"),
        ),
        (
            "several processes, `collaboration`, `messageFlow`",
            None,
            "every executable process is deployed; participants and message flows are drawn, contradictory ones refused",
            ("yes", "yes", "yes", "yes"),
        ),
        ("`documentation`", None, "shown on the task and in the process in words", ("kept", "kept", "kept", "kept")),
        ("text annotations, associations, groups", None, "drawn only", ("ignored", "ignored", "ignored", "ignored")),
        ("choreographies, conversations", None, "not executable: passed over beside processes", NONE),
    ),
)
