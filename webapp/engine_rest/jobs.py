"""Jobs: listed, shown, given new retries. For operators."""

from __future__ import annotations

from flask import Response, jsonify

from engine.commands.may import may
from engine.commands.retry import MOST_ATTEMPTS, retry_item
from engine.queries.rest.jobs import JOBS, RestJob, count_jobs, rest_job, rest_jobs
from engine.queries.rows import reading
from webapp.auth.identity import current_actor
from webapp.db import command_connection, reader
from webapp.engine_rest.blueprint import blueprint, done, known, missing, told
from webapp.engine_rest.listing import listed, wanted
from webapp.engine_rest.reading import Sent, body, query, uuid_of
from webapp.engine_rest.shapes import job_shape


@blueprint.get("/job")
def list_jobs() -> Response:
    return _list(query())


@blueprint.post("/job")
def query_jobs() -> Response:
    return _list(body(), query())


@blueprint.get("/job/count")
def count_all_jobs() -> Response:
    return _count(query())


@blueprint.post("/job/count")
def count_jobs_by_body() -> Response:
    return _count(body())


@blueprint.get("/job/<job_id>")
def show_job(job_id: str) -> Response:
    return jsonify(job_shape(_job(job_id)))


@blueprint.put("/job/<job_id>/retries")
def set_retries(job_id: str) -> Response:
    """New attempts for a job that failed for good. One that is still tried has its attempts, and is refused."""
    found, retries = _job(job_id), body().whole("retries", least=1, most=MOST_ATTEMPTS)
    if retries is None:
        raise told(400, f"retries: expected 1 to {MOST_ATTEMPTS}, found none")
    known(retry_item(command_connection(), "job", found.id, actor=current_actor(), attempts=retries), what=f"set retries of job {found.id}")
    return done()


def _list(sent: Sent, page: Sent | None = None) -> Response:
    _operators()
    asked = wanted(sent, JOBS, page=page)
    with listed(), reading(reader()) as conn:
        return jsonify([job_shape(each) for each in rest_jobs(conn, asked, tenant_id=current_actor().tenant_id)])


def _count(sent: Sent) -> Response:
    _operators()
    asked = wanted(sent, JOBS)
    with reading(reader()) as conn:
        return jsonify(count=count_jobs(conn, asked, tenant_id=current_actor().tenant_id))


def _job(job_id: str) -> RestJob:
    _operators()
    id = uuid_of(job_id)
    found = rest_job(reader(), id, tenant_id=current_actor().tenant_id) if id is not None else None
    if found is None:
        raise missing("Job", job_id)
    return found


def _operators() -> None:
    if not may(current_actor(), "see", "job"):
        raise told(403, "not allowed: jobs are for operators")
