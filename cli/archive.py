"""`baton export`, `baton import`: definitions, decisions, forms and people from one Baton to another, without any secret.

An archive is a folder or a .zip: `baton.json` says what stands in it, `people.json` who, `deployments/` has the files. Of everything
the newest version. An import adds what is missing and leaves alone what is the
same; what differs is named and nothing at all is imported, unless it was asked for. Passwords, keys, instances and history stay.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
import psycopg

from cli.acting import actor_for, as_person
from cli.database import as_json, database, refused, show
from engine.commands.deploy import deploy
from engine.commands.outcome import Actor, Rejected
from engine.commands.people import add_person, change_person, disable_person
from engine.queries.archive import Standing, newest, newest_deployments
from engine.queries.people import PersonRow, people

FORMAT = 1
MAX_BYTES = 500_000_000  # of all files together
MANIFEST, PEOPLE = "baton.json", "people.json"
PERSON = ("username", "display_name", "role", "kind", "groups", "disabled")


@dataclass(frozen=True)
class Step:
    """What an import does about one thing. `action`: add | replace | unchanged | differs | refused."""

    what: str
    name: str
    action: str
    detail: str = ""
    run: Callable[[psycopg.Connection[Any], Actor], Any] | None = field(default=None, compare=False)


@click.command()
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--without-people", is_flag=True, help="Only definitions, decisions and forms.")
def export(target: Path, without_people: bool) -> None:
    """Write what this Baton knows to TARGET: a new .zip, or a folder that is new or empty."""
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise click.ClickException(f"{target}: expected a new name or an empty folder, found something that would be overwritten")
    with database() as conn:
        files = _archive(conn, with_people=not without_people)
    if target.suffix == ".zip" and not target.is_dir():
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        target.write_bytes(packed.getvalue())
    else:
        for name, content in files.items():
            place = target / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
    click.echo(f"{len(files)} files are in {target}")


def _archive(conn: psycopg.Connection[Any], *, with_people: bool) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    deployments = []
    for number, deployed in enumerate(newest_deployments(conn), start=1):
        names = {}
        for place, (name, content) in enumerate(deployed.files, start=1):
            # Not the name that it was deployed under: that may be any text, and this becomes a path.
            names[name] = f"deployments/{number:04}/{place:03}{Path(name).suffix if Path(name).suffix.isascii() else ''}"
            files[names[name]] = content
        stands_for = [{**asdict(each), "file": names[each.file]} for each in deployed.stands_for]
        deployments.append({"name": deployed.name, "files": {file: name for name, file in names.items()}, "stands_for": stands_for})
    files[MANIFEST] = _document({"format": FORMAT, "deployments": deployments})
    if with_people:
        files[PEOPLE] = _document([_told(person) for person in people(conn)])
    return files


@click.command("import")
@click.argument("source", type=click.Path(exists=True, path_type=Path))
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--replace", is_flag=True, help="What differs gets a new version; people become as the archive has them.")
@click.option("--without-people", is_flag=True, help="Only definitions, decisions and forms.")
@as_person
@as_json
def import_(source: Path, dry_run: bool, replace: bool, without_people: bool, username: str | None, as_json: bool) -> None:
    """Bring what `baton export` wrote to SOURCE into this database; twice is harmless.

    Nobody who is added has a password or a key: give them with `baton user set-password` and `baton key add`.
    """
    read = _reader(source)
    with database() as conn:
        actor = actor_for(conn, username)
        steps = _plan(conn, read, replace=replace, with_people=not without_people)
        stopped = [step for step in steps if step.action in ("differs", "refused")]
        if not dry_run and not stopped:
            for step in steps:
                _run(conn, step, actor)
    document = [{name: getattr(step, name) for name in ("what", "name", "action", "detail")} for step in steps]
    if as_json:
        click.echo(json.dumps(document, indent=2))
    else:
        show(steps, {"action": "action", "what": "what", "name": "name", "detail": "detail"}, as_json=False)
    if stopped:
        more = "" if any(step.action == "refused" for step in stopped) else "; --replace brings it in all the same"
        raise click.ClickException(f"{len(stopped)} of {len(steps)} differ from what is here, nothing was imported{more}")
    if not as_json:
        click.echo("Nothing was changed: this is a dry run." if dry_run else "Imported.", err=True)


def _run(conn: psycopg.Connection[Any], step: Step, actor: Actor) -> None:
    if step.run is None:
        return
    outcome = step.run(conn, actor)
    if isinstance(outcome, Rejected):
        click.echo(
            f"{step.what} {step.name} was refused; what stands above it is imported, and importing again goes on from here", err=True
        )
        refused(outcome)


# ---- what is to be done


def _plan(conn: psycopg.Connection[Any], read: Callable[[str], bytes], *, replace: bool, with_people: bool) -> list[Step]:
    manifest = _json(read, MANIFEST, dict)
    if manifest.get("format") != FORMAT:
        raise click.ClickException(f"{MANIFEST}: expected format {FORMAT}, found {manifest.get('format')!r}")
    here = newest(conn)
    try:
        steps = [_deployment(each, here, read, replace=replace) for each in manifest["deployments"]]
        if with_people and _has(read, PEOPLE):
            known = {person.username: _told(person) for person in people(conn)}
            steps += [_person(_checked(each), known, replace=replace) for each in _json(read, PEOPLE, list)]
    except (KeyError, TypeError, AttributeError, OSError) as error:
        raise click.ClickException(f"expected an archive that `baton export` wrote, found one that is not whole: {error}") from error
    return steps


def _deployment(told: dict[str, Any], here: dict[tuple[str, str], Standing], read: Callable[[str], bytes], *, replace: bool) -> Step:
    stands_for = [Standing(**each) for each in told["stands_for"]]
    name = ", ".join(f"{each.kind} {each.key}" for each in stands_for)
    files = [(str(deployed), read(file)) for file, deployed in told["files"].items()]
    found = [(each, here.get((each.kind, each.key))) for each in stands_for]
    others = [(each, mine) for each, mine in found if mine is not None and not _same(each, mine)]
    differing = [f"{each.kind} {each.key}: version {mine.version} here is another" for each, mine in others]
    if differing and not replace:
        return Step("deployment", name, "differs", "; ".join(differing))

    def run(conn: psycopg.Connection[Any], actor: Actor) -> Any:
        # Once more: what was brought in just before may hold an older version of something, for what is bound to its deployment.
        now = newest(conn)
        same = all(_same(each, now.get((each.kind, each.key))) for each in stands_for)
        return None if same else deploy(conn, files, actor=actor, name=told["name"])

    unchanged = all(_same(each, mine) for each, mine in found)
    return Step("deployment", name, "unchanged" if unchanged else "replace" if differing else "add", "; ".join(differing), run)


def _same(theirs: Standing, mine: Standing | None) -> bool:
    return mine is not None and (mine.hash == theirs.hash or mine.content_hash == theirs.content_hash)


def _person(told: dict[str, Any], known: dict[str, dict[str, Any]], *, replace: bool) -> Step:
    username = str(told["username"])
    mine = known.get(username)
    if mine == told:
        return Step("person", username, "unchanged")
    differing = (
        [] if mine is None else [f"{name}: {mine[name]!r} here, {told[name]!r} there" for name in PERSON if mine[name] != told[name]]
    )
    if mine is not None and mine["kind"] != told["kind"]:
        return Step("person", username, "refused", "; ".join(differing))
    if mine is not None and not replace:
        return Step("person", username, "differs", "; ".join(differing))

    def run(conn: psycopg.Connection[Any], actor: Actor) -> Any:
        values = {"display_name": told["display_name"], "role": told["role"], "groups": told["groups"]}
        if mine is None:
            outcome: Any = add_person(conn, username, actor=actor, kind=told["kind"], **values)
        else:
            outcome = change_person(conn, username, actor=actor, **values)
        if isinstance(outcome, Rejected) or bool(told["disabled"]) == (mine is not None and bool(mine["disabled"])):
            return outcome
        return disable_person(conn, username, actor=actor, disabled=bool(told["disabled"]))

    return Step("person", username, "add" if mine is None else "replace", "; ".join(differing), run)


def _checked(told: dict[str, Any]) -> dict[str, Any]:
    """A person of people.json. Raises KeyError and TypeError."""
    kinds = {**dict.fromkeys(PERSON, str), "groups": list, "disabled": bool}
    wrong = [name for name, kind in kinds.items() if not isinstance(told[name], kind)]
    if wrong or not all(isinstance(group, str) for group in told["groups"]):
        raise TypeError(f"{PEOPLE}: {told['username']!r} has another {', '.join(wrong) or 'groups'} than expected")
    return {name: told[name] for name in PERSON}


def _told(person: PersonRow) -> dict[str, Any]:
    """A person as archives have them: without a password, which no other database needs to know."""
    return {**{name: getattr(person, name) for name in PERSON if name != "disabled"}, "disabled": person.disabled_at is not None}


# ---- reading and writing


def _reader(source: Path) -> Callable[[str], bytes]:
    """name -> content, of a folder or a .zip; nothing is unpacked."""
    if source.is_dir():
        return lambda name: _within(source, name).read_bytes()
    try:
        archive = zipfile.ZipFile(source)
    except zipfile.BadZipFile as error:
        raise click.ClickException(f"{source}: expected a folder or a .zip that `baton export` wrote, found something else") from error
    size = sum(each.file_size for each in archive.infolist())
    if size > MAX_BYTES:
        raise click.ClickException(f"{source}: expected at most {MAX_BYTES:,} bytes in it, found {size:,}")
    return archive.read


def _within(folder: Path, name: str) -> Path:
    place = (folder / name).resolve()
    if not place.is_relative_to(folder.resolve()):
        raise click.ClickException(f"{MANIFEST}: expected files of the archive, found {name!r}, which lies outside")
    return place


def _has(read: Callable[[str], bytes], name: str) -> bool:
    try:
        read(name)
    except (OSError, KeyError):
        return False
    return True


def _json(read: Callable[[str], bytes], name: str, kind: type) -> Any:
    try:
        found = json.loads(read(name))
    except (OSError, KeyError) as error:
        raise click.ClickException(f"expected an archive that `baton export` wrote, found no {name} in it") from error
    except ValueError as error:
        raise click.ClickException(f"{name}: expected JSON ({error})") from error
    if not isinstance(found, kind):
        raise click.ClickException(f"{name}: expected a JSON {'object' if kind is dict else 'list'}")
    return found


def _document(value: Any) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()
