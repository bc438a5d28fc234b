"""`@operation`: what one route of `/api/v1` takes, answers and refuses, said once. It checks by it; the description is made of it.

    class NoteShape(TypedDict):                       # beside the function that makes it
        id: UUID
        text: str
        written_at: Moment

    @blueprint.post("/tasks/<uuid:task_id>/notes")
    @operation(
        scope="tasks",
        body={"text": Field(text(longest=4_000), about="What to say.", example="Called back.")},
        answers={201: NoteShape},
        refusals=(Refusal.INSTANCE_ENDED,),
    )
    def write_note(task_id: UUID, sent: Sent) -> Response:
        \"\"\"Write a note.

        It stands in the history of the instance.
        \"\"\"

- The docstring's first line is the summary, the rest the description.
- `body`, `query`: name -> Field; the view gets their checked values as `sent` and `asked`, and neither if it declared neither.
  What is not declared is refused (422), an empty body of a POST too. `**paged()` among the query's fields: cursor and limit.
  `body=Upload("file", {…})`: multipart; `sent["file"]` is a list of (name, content).
- `answers`: the type of a 200, or status -> type. `None` is an answer without a body, `Raw("text/xml")` one that is no JSON.
- `refusals`: those of the command, as its docstring names them (`shapes.CASE_OVER` are INSTANCE_…). These go without saying:
  who asks, what is sent, `not_found` where the path names something, `not_allowed`, and what the server itself refuses.
- `scope`: what an API key must be allowed, one of `SCOPES`. It stands as `view.operation.scope`.
- `needs=("see", "job")`: asked of engine.commands.may before anything is read; 403.
- `of="show_task"`: the operation that shows what this one changes, by the same path parameters. `If-Match` is compared with its
  ETag (412), and the answer, if it is the same thing, carries its new one.
- `once=False`: a change that takes no Idempotency-Key.

A route of `/api/v1` without a declaration fails tests/web/test_api_description.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Literal, TypeVar, cast, get_args

from flask import Response, abort, current_app, make_response, request

from engine.commands.may import may
from engine.commands.outcome import Refusal
from webapp.api.bodies import Field, json_body, multipart, query, text, whole
from webapp.auth.identity import current_actor
from webapp.errors import problem

View = TypeVar("View", bound=Callable[..., Any])
Sent = dict[str, Any]
"""What a declaration has checked."""

Scope = Literal["read", "tasks", "start", "messages", "external_tasks", "deploy", "operate", "administer"]
SCOPES: tuple[str, ...] = get_args(Scope)


@dataclass(frozen=True, slots=True)
class Upload:
    """A multipart body: one or more files under one name, and text fields."""

    files: str
    fields: Mapping[str, Field] = field(default_factory=dict)
    about: str = ""


@dataclass(frozen=True, slots=True)
class Raw:
    """An answer that is no JSON."""

    media_type: str


@dataclass(frozen=True, slots=True)
class Operation:
    """What a route declared. `answers`: status -> the type of its body; None: it has none."""

    scope: str
    summary: str
    description: str
    answers: Mapping[int, Any]
    body: Mapping[str, Field] | Upload | None = None
    query: Mapping[str, Field] | None = None
    refusals: tuple[Refusal, ...] = ()
    needs: tuple[str, str] | None = None
    once: bool = True
    of: str | None = None


def operation(
    *,
    scope: Scope,
    answers: Any,
    body: Mapping[str, Field] | Upload | None = None,
    query: Mapping[str, Field] | None = None,
    refusals: tuple[Refusal, ...] = (),
    needs: tuple[str, str] | None = None,
    once: bool = True,
    of: str | None = None,
) -> Callable[[View], View]:
    """Declare and check one route: above the view, below `@blueprint.get` or `.post`."""
    if scope not in SCOPES:
        raise ValueError(f"scope: expected one of {', '.join(SCOPES)}, found {scope!r}")

    def declare(view: View) -> View:
        summary, _, description = (inspect.getdoc(view) or "").partition("\n\n")
        by_status = answers if isinstance(answers, Mapping) else {200: answers}
        declared = Operation(scope, summary, description, by_status, body, query, refusals, needs, once, of)

        @wraps(view)
        def checked(**path: Any) -> Any:
            if needs is not None and not may(current_actor(), *needs):
                abort(403)
            read = _read(declared)
            if of is None:
                return view(**path, **read)
            _compare_state(of, path)
            return _named(view(**path, **read))

        checked.operation = declared  # type: ignore[attr-defined]  # a mark on the function: for keys, and for the description
        return cast(View, checked)

    return declare


def operation_of(view: Any) -> Operation | None:
    """What a view function declared."""
    found: Operation | None = getattr(view, "operation", None)
    return found


def paged(*, most: int = 200, usual: int = 50) -> dict[str, Field]:
    """The two query fields of a list that is read page by page."""
    return {
        "cursor": Field(text(longest=2_000), None, about="`next_cursor` of the page before, with the same filters."),
        "limit": Field(whole(least=1, most=most), usual, about="How many at most."),
    }


def _compare_state(of: str, path: Mapping[str, Any]) -> None:
    """412 unless what is to be changed is still as the caller saw it. Looked at just before the command, not under its locks."""
    if "If-Match" not in request.headers:
        return
    show = inspect.unwrap(current_app.view_functions[f"{request.blueprint}.{of}"])
    tag = _named(make_response(show(**path))).get_etag()[0] or ""
    if not request.if_match.contains(tag):
        refusal = problem(412, "precondition_failed", f'expected If-Match to name the state of now, "{tag}"')
        refusal.set_etag(tag)
        abort(refusal)


def _named(response: Response) -> Response:
    """With the ETag of its body, which is that of the same body shown."""
    if response.status_code == 200:
        response.add_etag()
    return response


def _read(declared: Operation) -> dict[str, Sent]:
    """The query string and the body, each checked; given to the view if it declared any."""
    given: dict[str, Sent] = {}
    asked = query(**declared.query or {})
    if declared.query is not None:
        given["asked"] = asked
    if isinstance(declared.body, Upload):
        given["sent"] = multipart(declared.body.files, declared.body.fields)
    elif request.method not in ("GET", "HEAD"):
        sent = json_body(**declared.body or {})
        if declared.body is not None:
            given["sent"] = sent
    return given
