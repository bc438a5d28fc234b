"""`baton bench` and `baton explain`: what the product costs, measured on the server that it runs on."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from statistics import median
from typing import Any

import click

from cli.bench import plans
from cli.bench.queued import FULL, PARTS, QUICK
from cli.database import as_json as json_option
from cli.database import database, database_url
from engine.commands.outcome import Actor
from engine.config import Settings
from engine.db.explain import Plan
from engine.db.session import make_engine
from engine.queries.inbox import VIEWS, InboxFilter
from engine.queries.people import people


@click.group()
def bench() -> None:
    """Measure, as ratios to a yardstick in the same run."""


@bench.command("engine")
@click.option("--server", help="URL of a server on which a database may be made; else DATABASE_URL, else an embedded one.")
@click.option("--seconds", default=5.0, show_default=True)
@click.option("--processes", default=1, show_default=True)
@click.option("--threads", default=4, show_default=True)
@click.option("--rounds", default=3, show_default=True)
@json_option
def engine_bench(server: str | None, seconds: float, processes: int, threads: int, rounds: int, as_json: bool) -> None:
    """Durable engine commands a second, beside a plain psycopg loop with the same processes and threads."""
    from cli.bench.engine import bench_engine
    from cli.bench.server import a_server

    with a_server(server) as url:
        figures = bench_engine(url, seconds=seconds, processes=processes, threads=threads, rounds=rounds)
    if as_json:
        click.echo(json.dumps(asdict(figures)))
        return
    click.echo(
        f"PostgreSQL {figures.server}, {processes} process(es) x {threads} thread(s), {rounds} rounds of {seconds:g} s"
        f"{'' if figures.durable else ', NOT DURABLE: this server does not wait for the disk'}"
    )
    click.echo(f"Baton      {figures.commands_per_second:10,.1f} commands/s   client CPU {figures.client_cpu_us:,.0f} us a command")
    click.echo(f"yardstick  {figures.yardstick_per_second:10,.1f} commands/s")
    click.echo(f"ratio      {figures.ratio:10.3f}   each round: {', '.join(f'{a / b:.3f}' for a, b in figures.each)}")


@bench.command("queue")
@click.option("--server", help="URL of a server on which databases may be made; else DATABASE_URL, else an embedded one.")
@click.option("--part", "parts", type=click.Choice(PARTS), multiple=True, help="Only this; may be given several times. All of them else.")
@click.option("--jobs", default=FULL.jobs, show_default=True, help="drain: jobs of each round.")
@click.option("--length", default=FULL.length, show_default=True, help="drain: service tasks of a case, one after another.")
@click.option("--rounds", default=FULL.rounds, show_default=True, help="drain: rounds, each beside the yardstick.")
@click.option("--inline", is_flag=True, help="drain: the handler runs in a thread of the worker instead of a process.")
@click.option("--peer-jobs", default=FULL.peer_jobs, show_default=True, help="peers: jobs of procrastinate and DBOS.")
@click.option("--rows", default=FULL.rows, show_default=True, help="scale: rows that wait or stand in front.")
@click.option("--quick", is_flag=True, help="Seconds instead of minutes: shows that it works, says nothing about speed.")
@json_option
def queue_bench(server: str | None, parts: tuple[str, ...], inline: bool, quick: bool, as_json: bool, **size: Any) -> None:
    """Durable jobs a second, waits, and acquisition at scale; beside a plain psycopg loop, procrastinate and DBOS."""
    from cli.bench.queued import bench_queue, lines
    from cli.bench.server import a_server

    with a_server(server) as url:
        figures = bench_queue(url, QUICK if quick else replace(FULL, **size), parts=parts or PARTS, inline=inline)
    if as_json:
        click.echo(json.dumps(asdict(figures)))
        return
    for text in lines(figures):
        click.echo(text)


@bench.command("growth")
@click.option("--server", help="URL of a server on which a database may be made; else DATABASE_URL, else an embedded one.")
@json_option
def growth_bench(server: str | None, as_json: bool) -> None:
    """What grows with a case: 10,000 instances of one activity, 1,000 tokens in one scope, 2,000 elements in one model."""
    from cli.bench.growth import bench_growth
    from cli.bench.server import a_server

    with a_server(server) as url:
        figures = asdict(bench_growth(url))
    if as_json:
        click.echo(json.dumps(figures))
        return
    for name, value in figures.items():
        click.echo(f"{name.replace('_', ' '):40} {value}")


@bench.command("polls")
@click.option("--server", help="URL of a server on which a database may be made; else DATABASE_URL, else an embedded one.")
@click.option("--waiters", default=200, show_default=True, help="Programs that wait for external tasks.")
@click.option("--readers", default=2, show_default=True, help="People who look at pages meanwhile.")
@click.option("--seconds", default=10.0, show_default=True, help="Of each window.")
@click.option("--rounds", default=3, show_default=True, help="Windows alone and beside who waits, in turns.")
@json_option
def polls_bench(server: str | None, waiters: int, readers: int, seconds: float, rounds: int, as_json: bool) -> None:
    """What pages take of one web process, alone and beside programs that wait for external tasks."""
    from cli.bench.polls import bench_polls
    from cli.bench.server import a_server

    with a_server(server) as url:
        figures = bench_polls(url, waiters=waiters, seconds=seconds, rounds=rounds, readers=readers)
    if as_json:
        click.echo(json.dumps(asdict(figures)))
        return
    for window in figures.windows:
        click.echo(f"{window.waiting:4} wait  {window.pages:6,} pages   p50 {window.p50_ms:7.1f} ms   p95 {window.p95_ms:7.1f} ms")
    click.echo(
        f"ratio of the p95s {figures.ratio:.2f}; {figures.threads} threads and {figures.connections} connections with all waiting;"
        f" {figures.tasks_done} tasks done meanwhile"
    )


@bench.command("expressions")
@click.option("--seconds", default=0.5, show_default=True, help="CPU time for each side of each case, in all rounds together.")
@click.option("--rounds", default=5, show_default=True)
@json_option
def expressions_bench(seconds: float, rounds: int, as_json: bool) -> None:
    """Expressions in both languages, beside simpleeval over the same variables. Needs no server."""
    from cli.bench.expressions import bench_expressions

    figures = bench_expressions(seconds=seconds, rounds=rounds)
    if as_json:
        click.echo(json.dumps(asdict(figures)))
        return
    click.echo(f"{'evaluations a second':32}{'JUEL':>12}{'FEEL':>12}{'simpleeval':>12}{'JUEL':>9}{'FEEL':>7}   read as well: JUEL and FEEL")
    for case in figures.cases:
        juel, feel, other = median(case.juel), median(case.feel), median(case.simpleeval)
        read = f"{median(case.read_juel) / median(case.read_simpleeval):10.2f} {median(case.read_feel) / median(case.read_simpleeval):6.2f}"
        click.echo(f"{case.name:32}{juel:12,.0f}{feel:12,.0f}{other:12,.0f}{juel / other:9.2f}{feel / other:7.2f}{read}")
    means = f"{figures.juel_ratio:9.2f}{figures.feel_ratio:7.2f}{figures.read_juel_ratio:10.2f} {figures.read_feel_ratio:6.2f}"
    click.echo(f"{'geometric mean':68}{means}")


@click.command()
@click.argument("subject", type=click.Choice(plans.SUBJECTS))
@click.option("--as", "username", help="inbox: whose inbox (required).")
@click.option("--view", type=click.Choice(VIEWS), default="groups", show_default=True, help="inbox: which list.")
@json_option
def explain(subject: str, username: str | None, view: str, as_json: bool) -> None:
    """Show what the server does for acquisition, recovery or an inbox; nothing is changed."""
    found: list[Plan] = []
    with database() as conn:
        match subject:
            case "acquire":
                for table, sql in (
                    ("job", "SELECT DISTINCT kind, topic FROM job WHERE status = 'available'"),
                    ("external_task", "SELECT DISTINCT tenant_id, topic FROM external_task WHERE status = 'available'"),
                    ("delivery", "SELECT DISTINCT kind, '' FROM delivery WHERE status = 'available'"),
                ):
                    branches = conn.execute(sql).fetchall() or [("timer", "")]
                    found.append(plans.acquisition(conn, table, branches))
            case "recover":
                found = [plans.recovery(conn, table) for table in ("job", "external_task", "delivery")]
            case "inbox":
                if username is None:
                    raise click.UsageError("explain inbox: expected --as USERNAME")
                person = next((p for p in people(conn) if p.username == username), None)
                if person is None:
                    raise click.ClickException(f"expected the name of a person, found {username!r}")
                actor = Actor(person.username, person.role, frozenset(person.groups), person.display_name)
                engine = make_engine(database_url(), pool_size=1)
                found = plans.inbox(engine, actor, InboxFilter(view=view, zone=Settings.from_env().time_zone))
                engine.dispose()
    if as_json:
        click.echo(json.dumps([asdict(plan) for plan in found]))
        return
    for plan in found:
        click.echo(f"{plan.name:22} {plan.buffers:7} buffers {plan.rows:5} rows {plan.milliseconds:9.2f} ms  {', '.join(plan.indexes)}")
        if plan.seq_scans:
            click.echo(f"{'':22} sequential scans: {', '.join(plan.seq_scans)}")
