"""Texts about events: what they are about (the event definition) and where they stand (10.5)."""

from __future__ import annotations

from collections.abc import Sequence

from engine.bpmn.coverage.row import Row

START, EVENT_SUBPROCESS, BESIDE = "start of a process", "start of an event subprocess, interrupting", "– not interrupting"
CATCH, THROW, END = "intermediate catch", "intermediate throw", "end"
BOUNDARY, BOUNDARY_BESIDE = "boundary, interrupting", "boundary, not interrupting"
TAGS = {
    START: "startEvent",
    EVENT_SUBPROCESS: "startEvent",
    BESIDE: "startEvent",
    CATCH: "intermediateCatchEvent",
    BOUNDARY: "boundaryEvent",
    BOUNDARY_BESIDE: "boundaryEvent",
    THROW: "intermediateThrowEvent",
    END: "endEvent",
}
Elsewhere = tuple[str, str, str, str]
ALL: Elsewhere = ("yes", "yes", "yes", "yes")
NONE: Elsewhere = ("no", "no", "no", "no")


def _of(part: str, event: str | None, *rows: tuple[str, str, Elsewhere]) -> list[Row]:
    return [Row(part, where, TAGS[where], event, here, elsewhere) for where, here, elsewhere in rows]


EVENTS: Sequence[Row] = (
    *_of(
        "No event definition",
        None,
        (START, "started by a person, the API or a call; `camunda:formData`, `camunda:initiator`", ALL),
        (THROW, "the token goes on", ALL),
        (END, "the token ends; the last one ends its scope", ALL),
    ),
    *_of(
        "Message",
        "messageEventDefinition",
        (START, "a message starts an instance; its key becomes the business key", ALL),
        (EVENT_SUBPROCESS, "cancels the rest of its scope and begins", ALL),
        (BESIDE, "begins at each message", ("yes", "yes", "yes", "yes")),
        (CATCH, "waits for a message with its correlation key; a message that came before waits in store", ALL),
        (BOUNDARY, "cancels the activity", ALL),
        (BOUNDARY_BESIDE, "beside the activity, at each message", ALL),
        (
            THROW,
            "sends the message: to whoever waits for it here, or to its `baton:destination` as an outbox delivery",
            ("as a service task", "as a job", "no", "yes"),
        ),
        (END, "as a throw, then the token ends", ("as a service task", "as a job", "no", "yes")),
    ),
    *_of(
        "Timer",
        "timerEventDefinition",
        (START, "starts an instance at its date, after its duration, at each time of its cycle", ALL),
        (EVENT_SUBPROCESS, "cancels the rest of its scope and begins", ("yes", "yes", "yes", "?")),
        (BESIDE, "begins at each time of its cycle", ("yes", "yes", "yes", "?")),
        (
            CATCH,
            "date, duration; a cycle with a count sends a token at each time",
            ("date, duration", "date, duration", "date, duration", "yes"),
        ),
        (BOUNDARY, "cancels the activity", ALL),
        (BOUNDARY_BESIDE, "beside the activity, at each time of its cycle", ALL),
    ),
    *_of(
        "Error",
        "errorEventDefinition",
        (EVENT_SUBPROCESS, "catches errors of its scope, by code or every one", ("yes", "yes", "yes", "?")),
        (BOUNDARY, "catches errors of the activity and what it called, by code or every one; always interrupts", ALL),
        (
            END,
            "thrown outwards; caught by nothing, it is an incident at the end event",
            ("yes; not caught: the instance ends", "yes", "yes", "yes"),
        ),
    ),
    *_of(
        "Escalation",
        "escalationEventDefinition",
        (EVENT_SUBPROCESS, "catches escalations of its scope and cancels the rest of it", ("yes", "since 8.2", "yes", "?")),
        (BESIDE, "begins at each escalation", ("yes", "since 8.2", "yes", "?")),
        (BOUNDARY, "cancels the activity and whoever threw", ("yes", "since 8.2", "yes", "yes")),
        (BOUNDARY_BESIDE, "beside the activity, at each escalation", ("yes", "since 8.2", "yes", "yes")),
        (THROW, "thrown outwards; the token goes on unless it is interrupted", ("yes", "since 8.2", "yes", "yes")),
        (END, "as a throw, then the token ends", ("yes", "since 8.2", "yes", "yes")),
    ),
    *_of(
        "Signal",
        "signalEventDefinition",
        (START, "each signal of its name starts an instance", ("yes", "since 8.2", "yes", "yes")),
        (EVENT_SUBPROCESS, "cancels the rest of its scope and begins", ("yes", "since 8.3", "yes", "?")),
        (BESIDE, "begins at each signal", ("yes", "since 8.3", "yes", "?")),
        (CATCH, "waits for a signal of its name; signals are not stored", ("yes", "since 8.3", "yes", "yes")),
        (BOUNDARY, "cancels the activity", ("yes", "since 8.3", "yes", "yes")),
        (BOUNDARY_BESIDE, "beside the activity, at each signal", ("yes", "since 8.3", "yes", "yes")),
        (THROW, "to every subscriber; each other case in a job of its own", ("yes", "since 8.3", "yes", "yes")),
        (END, "as a throw, then the token ends", ("yes", "since 8.3", "no", "?")),
    ),
    *_of(
        "Conditional",
        "conditionalEventDefinition",
        (START, "**refused** at deployment: before a case starts there are no variables", ("yes", "since 8.9", "no", "no")),
        (EVENT_SUBPROCESS, "when its condition becomes true, or is so when the scope begins", ("yes", "since 8.9", "on request", "?")),
        (BESIDE, "each time that its condition becomes true", ("yes", "since 8.9", "on request", "?")),
        (
            CATCH,
            "goes on when its condition is true, now or after a change of a variable",
            ("yes", "since 8.9", "on request", "yes"),
        ),
        (BOUNDARY, "cancels the activity", ("yes", "since 8.9", "on request", "?")),
        (BOUNDARY_BESIDE, "beside the activity, each time that its condition becomes true", ("yes", "since 8.9", "on request", "?")),
    ),
    *_of(
        "Compensation",
        "compensateEventDefinition",
        (EVENT_SUBPROCESS, "compensates its completed subprocess, with the variables that it had", ("yes", "no", "no", "no")),
        (BOUNDARY, "leads by an association to the activity that undoes this one", ("yes", "since 8.5", "yes", "no")),
        (THROW, "undoes what was completed, one activity or all of the scope, in reverse order", ("yes", "since 8.5", "yes", "no")),
        (END, "as a throw, then the token ends", ("yes", "since 8.5", "no", "no")),
    ),
    *_of(
        "Cancel",
        "cancelEventDefinition",
        (BOUNDARY, "where a cancelled transaction goes on", ("yes", "no", "yes", "yes")),
        (END, "cancels its transaction: compensation first", ("yes", "no", "yes", "yes")),
    ),
    *_of(
        "Link",
        "linkEventDefinition",
        (CATCH, "where the throws of its name go on, in the same scope", ("yes", "since 8.2", "no", "no")),
        (THROW, "goes on at the catch of its name", ("yes", "since 8.2", "no", "no")),
    ),
    *_of(
        "Terminate",
        "terminateEventDefinition",
        (END, "cancels everything else in its scope, and ends it", ("yes", "since 8.1", "yes", "yes")),
    ),
    *_of(
        "Multiple: one of several event definitions",
        "multiple",
        (START, "the first of its events starts an instance", NONE),
        (EVENT_SUBPROCESS, "cancels the rest of its scope and begins", NONE),
        (BESIDE, "begins at each of its events", NONE),
        (CATCH, "the first of its events", ("no", "no", "no", "yes")),
        (BOUNDARY, "cancels the activity", ("no", "no", "no", "yes")),
        (BOUNDARY_BESIDE, "beside the activity, at each of its events", ("no", "no", "no", "yes")),
        (THROW, "throws them all", NONE),
        (END, "throws them all, then the token ends", NONE),
    ),
    *_of(
        "Parallel multiple: all of several event definitions",
        "parallelMultiple",
        (
            START,
            "**refused** at deployment: an event-based gateway of the type Parallel starts at the first and waits for the others",
            NONE,
        ),
        (EVENT_SUBPROCESS, "when all have occurred, whichever first: cancels the rest of its scope and begins", NONE),
        (BESIDE, "when all have occurred, each time", NONE),
        (CATCH, "when all have occurred", ("no", "no", "no", "yes")),
        (BOUNDARY, "when all have occurred: cancels the activity", ("no", "no", "no", "yes")),
        (BOUNDARY_BESIDE, "when all have occurred, beside the activity", ("no", "no", "no", "yes")),
    ),
)
