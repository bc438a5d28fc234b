"""How jobs end: a handler completed, failed or threw; a timer fired; a stored message was delivered.

Each is one transaction for one item. The fence, status `leased` and lease number, is checked in the statement that
changes the process (R4), so a lost lease rolls the process change back too. A completion that comes late asks the
history: if this very one had landed, it is told so (`repeated`); otherwise LEASE_LOST, and a row in `refusal`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from psycopg import errors

from engine.commands.failure import fail_item
from engine.commands.landed import ended_before, failed_before
from engine.commands.outcome import SYSTEM, ItemDone, ItemFailed, ItemReleased, Lease, Refusal, Rejected
from engine.commands.requests import Request, refuse
from engine.commands.step import Step, Taken, marked, take
from engine.commands.transaction import Connection, command
from engine.core.snapshot import CannotContinue, Completed, Continued, ErrorThrown, EventOccurred, NoHandlerForError, Trigger
from engine.core.values import accept
from engine.db.load import Loaded, moment
from engine.db.locks import END_DELIVERY
from engine.db.session import cursor_of

Outcome = ItemDone | ItemFailed | ItemReleased | Rejected

UNFIT = ("unsupported",)  # what any step may end as, without asking whoever holds the lease: kinds of its incident


@command
def complete_job(conn: Connection, lease: Lease, *, variables: Mapping[str, Any]) -> Outcome:
    """The handler returned: end the job and let its case go on. What cannot be stored is a failure of the handler.

    Locks: the root, the job; lock first where the case branches (`lock_first` in the lease's detail says so at once).
    Refuses: LEASE_LOST, INSTANCE_….
    """
    accepted, problems = accept(variables)
    if problems:
        told = "; ".join(f"{name or 'variables'}: {text}" for name, text in problems)
        return fail_or_lost(conn, "complete_job", lease, error=f"the handler returned what cannot be stored: {told}", kind="invalid_result")
    return end_item(
        conn,
        "complete_job",
        lease,
        lambda loaded: Completed(token_of(loaded), accepted, "job_completed", event_detail(loaded, lease)),
        landed=("job_completed",),
    )


@command
def throw_job_error(conn: Connection, lease: Lease, *, code: str, message: str, variables: Mapping[str, Any]) -> Outcome:
    """The handler threw a BPMN error. One that nothing catches fails the job for good, with an incident.

    Locks: the root, the job. Refuses: LEASE_LOST, INSTANCE_….
    """
    return throw_error(conn, "throw_job_error", lease, code=code, message=message, variables=variables)


@command
def fire_timer(conn: Connection, lease: Lease) -> Outcome:
    """The time has come for a timer event: catch event, boundary event, or one behind an event-based gateway.

    Locks: the root, the job; lock first where tasks are withdrawn or the case branches. Refuses: LEASE_LOST, INSTANCE_….
    """

    def trigger(loaded: Loaded) -> Trigger:
        row = loaded.leaf.detail
        return EventOccurred(
            token_of(loaded),
            loaded.leaf.element_id,
            "timer",
            detail=event_detail(loaded, lease),
            occurrence=row["payload"],
            due_at=moment(row["due_at"]),
        )

    try:
        return end_item(conn, "fire_timer", lease, trigger, landed=("timer_fired",))
    except errors.UniqueViolation as error:
        if not fired_before(error):
            raise
        return end_fired(conn, lease)


def fired_before(error: errors.UniqueViolation) -> bool:
    """Whether a write was rolled back because this occurrence of the schedule has fired."""
    return error.diag.constraint_name == "pk_timer_firing"


def end_fired(conn: Connection, lease: Lease, attempt: int = 0) -> ItemDone:
    """The job of an occurrence that had fired ends and does nothing: whoever fired it has written the next one."""
    values = {"item_id": lease.item_id, "lease_number": lease.number, "attempt": attempt, "why": "fired before"}
    cursor_of(conn).execute(END_DELIVERY, values)
    return ItemDone(lease.item_id, lease.number)


@command
def continue_loop(conn: Connection, lease: Lease) -> Outcome:
    """One more bounded step: further instances of a multi-instance activity begin, or an asynchronous element begins or has ended.

    A collection that was changed meanwhile fails the job for good, with an incident; a retry reads it again.

    Locks: the root, the job. Refuses: LEASE_LOST, INSTANCE_….
    """

    def trigger(loaded: Loaded) -> Trigger:
        return Continued(token_of(loaded), event_detail(loaded, lease))

    try:
        return end_item(conn, "continue_loop", lease, trigger, landed=("job_completed",), unfit=(*UNFIT, "expression"), lock_first=True)
    except CannotContinue as error:
        return fail_or_lost(conn, "continue_loop", lease, error=str(error), final=True, kind="expression")


@command
def fail_job(
    conn: Connection, lease: Lease, *, error: str, detail: str = "", retry_in: float | None = None, final: bool = False
) -> Outcome:
    """The handler failed. It is tried again after its retry policy's wait, or `retry_in` seconds, while attempts are left.

    `error`: one sentence; `detail`: a stack trace, kept beside the incident.

    Locks: the job. Refuses: LEASE_LOST.
    """
    return fail_or_lost(conn, "fail_job", lease, error=error, detail=detail, retry_in=retry_in, final=final)


# ---- shared with external tasks


def end_item(
    conn: Connection,
    name: str,
    lease: Lease,
    trigger: Callable[[Loaded], Trigger],
    *,
    landed: tuple[str, ...],
    unfit: tuple[str, ...] = UNFIT,
    actor: str = SYSTEM.username,
    whole: bool = False,
    lock_first: bool = False,
    tenant_id: str | None = None,
    request: Request | None = None,
) -> Outcome:
    """End a leased job or external task with what `trigger` says. `landed`: the events that prove that it ended so before,
    `unfit`: kinds of the incidents that prove that it was failed for this very reason.

    `tenant_id`: of whoever asks; an item of another tenant is not there.
    """
    step = Step(
        kind=lease.kind,
        leaf_id=lease.item_id,
        actor=actor,
        judge=lambda loaded: judge(loaded, lease, tenant_id),
        trigger=trigger,
        outcome=lambda loaded, _: ItemDone(lease.item_id, lease.number, loaded.snapshot.instance_id if loaded.snapshot else None),
        request=request,
        lock_first=lock_first or bool(lease.detail.get("lock_first")),
        ahead=lease.detail.get("ahead"),
        whole=whole,
    )
    match take(conn, step):
        case Taken() as taken:
            return ItemDone(lease.item_id, lease.number, taken.loaded.snapshot.instance_id if taken.loaded.snapshot else None)
        case Rejected(refusal=Refusal.LEASE_LOST):
            return landed_or_lost(conn, name, lease, landed, actor, request, unfit=unfit)
        case Rejected(refusal=Refusal.UNSUPPORTED) as rejected:
            return fail_or_lost(conn, name, lease, error=rejected.detail, final=True, kind="unsupported", actor=actor)
        case Rejected() as rejected:
            refused: Outcome = refuse(conn, name, actor, "", rejected, request)
            return refused
        case repeated:
            before: Outcome = repeated.outcome
            return before


def throw_error(
    conn: Connection,
    name: str,
    lease: Lease,
    *,
    code: str,
    message: str,
    variables: Mapping[str, Any],
    actor: str = SYSTEM.username,
    tenant_id: str | None = None,
    request: Request | None = None,
) -> Outcome:
    """End a leased job or external task with a BPMN error (10.5.6)."""
    accepted, problems = accept(variables)
    if problems:
        told = "; ".join(f"{key or 'variables'}: {text}" for key, text in problems)
        return fail_or_lost(
            conn, name, lease, error=f"error {code!r} came with what cannot be stored: {told}", kind="invalid_result", actor=actor
        )

    def trigger(loaded: Loaded) -> Trigger:
        return ErrorThrown(token_of(loaded), code, message, accepted, event_detail(loaded, lease))

    try:
        unfit = (*UNFIT, "uncaught_error")
        return end_item(
            conn, name, lease, trigger, landed=("error_caught",), unfit=unfit, actor=actor, tenant_id=tenant_id, request=request
        )
    except NoHandlerForError as error:
        return fail_or_lost(conn, name, lease, error=str(error), final=True, kind="uncaught_error", actor=actor)


def fail_or_lost(
    conn: Connection,
    name: str,
    lease: Lease,
    *,
    error: str,
    detail: str = "",
    retry_in: float | None = None,
    final: bool = False,
    kind: str = "failed",
    actor: str = SYSTEM.username,
    attempts_left: int | None = None,
) -> Outcome:
    """Fail the item, or say that its lease was lost."""
    failed = fail_item(
        conn, lease, error=error, detail=detail, retry_in=retry_in, final=final, kind=kind, actor=actor, attempts_left=attempts_left
    )
    return failed or failed_before(conn, lease) or landed_or_lost(conn, name, lease, (), actor)


def judge(loaded: Loaded | None, lease: Lease, tenant_id: str | None = None) -> Rejected | None:
    """The fence (R4): this item, leased, under this number. A lease that expired and that nobody took back still counts."""
    if loaded is not None and tenant_id is not None and loaded.leaf.detail["tenant_id"] != tenant_id:
        return Rejected(Refusal.NOT_FOUND)
    if loaded is None or loaded.leaf.status != "leased" or loaded.leaf.fence != lease.number:
        return Rejected(Refusal.LEASE_LOST, found(loaded, lease), item_id=lease.item_id)
    return marked(loaded)


def found(loaded: Loaded | None, lease: Lease) -> str:
    """Why the fence does not hold: expected, found, where."""
    state = "no such item any more" if loaded is None else f"{loaded.leaf.status} under number {loaded.leaf.fence}"
    return f"{lease.kind} {lease.item_id}: expected leased under number {lease.number}, found {state}"


def landed_or_lost(
    conn: Connection,
    name: str,
    lease: Lease,
    landed: tuple[str, ...],
    actor: str,
    request: Request | None = None,
    *,
    unfit: tuple[str, ...] = UNFIT,
) -> Outcome:
    """A late completion: it is answered by history, and what had not landed is counted as refused (R10)."""
    if (before := ended_before(conn, lease, landed, unfit)) is not None:
        return before
    text = f"{lease.kind} {lease.item_id}: expected leased under number {lease.number}, found it taken back, ended or given to another"
    refused: Outcome = refuse(conn, name, actor, "", Rejected(Refusal.LEASE_LOST, text, item_id=lease.item_id), request)
    return refused


def event_detail(loaded: Loaded, lease: Lease) -> dict[str, Any]:
    """What the history event of an ended item carries: replays and the timeline of attempts read it there."""
    return {
        "item_id": str(lease.item_id),
        "lease_number": lease.number,
        "attempt": loaded.leaf.detail["attempts"],
        "owner": lease.owner or loaded.leaf.detail.get("lease_owner", ""),
    }


def token_of(loaded: Loaded) -> Any:
    """The token that the item hangs from."""
    assert loaded.leaf.token_id is not None, "leased work of a case has a token"
    return loaded.leaf.token_id
