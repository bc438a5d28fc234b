"""Where the engine could lose a lock, a guard or a re-check: every mutant, found in the text of the engine itself.

A mutant is one piece of text replaced by another in one file. Python files are searched inside their strings (docstrings
and comments apart), SQL files outside their comments. The rules are regular expressions that leave valid SQL behind; what
no expression can say stands in MEMBERS, word for word, and is an error when its text is no longer there.
A re-check is the statement below a comment that begins with "Re-check": an `if` never holds, an assignment gets None. In
SQL it is `IF NOT FOUND`, which never holds.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SEARCHED = ("engine/db", "engine/commands")
_ALIAS = r"(?:(?:\w+|\{\w+\})\.)?"
_VALUE = r"(?:%\(\w+\)s|%s|\w+\.\w+|\w+)"  # a parameter, a column, a parameter of a function
_STATUS = rf"{_ALIAS}status (?:COLLATE \\?\"C\\?\" )?(?:(?:=|<>) '\w+'|IN \('[^)]*'\))"
_GO = (
    "(SELECT %(tenant_id)s::text AS tenant_id, %(instance_id)s::uuid AS instance_id, %(root_id)s::uuid AS root_id,"
    " %(definition_id)s::uuid AS definition_id, baton_clock() AS at) go"
)

_STANDS = "s.object_id = mine.definition_id AND s.id = (told->>'suspension')::uuid"
_ANY_CAUSE = "cause AS (SELECT %(definition_id)s::uuid AS id)"

RULES: tuple[tuple[str, re.Pattern[str], str], ...] = tuple(
    (kind, re.compile(pattern), replacement)
    for kind, pattern, replacement in (
        ("SKIP LOCKED", r"\s*\bSKIP LOCKED", ""),
        ("FOR NO KEY UPDATE", r"\s*\bFOR NO KEY UPDATE(?: OF \w+)?(?: SKIP LOCKED)?", ""),
        ("FOR UPDATE", r"\s*\bFOR UPDATE(?: OF \w+)?(?: SKIP LOCKED)?", ""),
        ("FOR KEY SHARE", r"\s*\bFOR KEY SHARE(?: OF \w+)?", ""),
        ("advisory lock", r"PERFORM (?:pg_advisory_xact_lock(?:_shared)?|baton_lock_subscription_keys)\([\w.]+\);", "NULL;"),
        ("re-check", r"\bIF NOT FOUND THEN", "IF false THEN"),
        ("lease number", rf"\s*\bAND {_ALIAS}lease_number = {_VALUE}", ""),
        ("status", rf"\s*\bAND {_STATUS}", ""),
        ("status", rf"\bWHERE {_STATUS} AND\b", "WHERE"),
        ("status", rf"\bWHERE {_STATUS}(?! AND)", "WHERE true"),
        ("status", rf"(?<=\"){_STATUS} AND ", ""),  # a fragment of its own
        ("revision", r"\s*\bAND revision = %\(revision\)s", ""),
        ("mark", rf"\s*\bAND {_ALIAS}mark IS (?:NULL|(?:NOT )?DISTINCT FROM (?:%\(mark\)s|'\w+'))", ""),
        ("mark", r"\s*\bAND \{_FREE_CASE\}", ""),
        ("assignee", rf"\s*\bAND {_ALIAS}assignee (?:=|IS (?:NOT )?DISTINCT FROM) {_VALUE}", ""),
        ("assignee", rf"\s*\bAND \(%\(may_all\)s OR {_ALIAS}assignee = %\(may_user\)s\)", ""),
        ("expiry", rf"\s*\bAND {_ALIAS}(?:lease_)?expires_at [<>]=? baton_now\(\)", ""),
        ("expiry", rf"(?<=EXISTS \(SELECT FROM message m WHERE ){_ALIAS}expires_at [<>]=? baton_now\(\) AND ", ""),
        ("attempts", rf"\s*\bAND {_ALIAS}attempts < {_ALIAS}max_attempts", ""),
        ("guard member", r"\b(FROM|USING) go WHERE", rf"\1 {_GO} WHERE"),
        ("guard member", r"\bFROM go, (?=jsonb_|\()", f"FROM {_GO}, "),
        # The same for what hangs from a leaf alone: a member that runs though the guard returned no row.
        ("guard member", r"\bFROM (leaf|back)\b(?! WHERE)", r"FROM \1 RIGHT JOIN (SELECT 1) one ON true"),
        ("guard member", r"\b(FROM|USING) root WHERE", r"\1 (SELECT 1) root WHERE"),
    )
)

# (file, kind, what stands there once, what the mutant has instead)
MEMBERS: tuple[tuple[str, str, str, str], ...] = (
    ("engine/db/locks.py", "guard member", ' FROM token l, root"\n', ' FROM token l"\n'),
    ("engine/db/locks.py", "guard member", '.replace("USING root", "USING root, receiver")', ""),
    (
        "engine/db/locks.py",
        "guard member",
        "FROM definition d JOIN subscription l ON l.definition_id = d.id",
        "FROM subscription l, (SELECT %(definition_id)s::uuid AS id) d",
    ),
    (
        "engine/db/statements.py",
        "guard member",
        "cause AS (DELETE FROM job l USING definition d WHERE",
        "cause AS (DELETE FROM job l USING (SELECT %(definition_id)s::uuid AS id) d WHERE",
    ),
    *(
        ("engine/db/statements.py", "guard member", f'"{start}": ["cause AS (SELECT id FROM definition)"]', f'"{start}": ["{_ANY_CAUSE}"]')
        for start in ("start", "start_newest")
    ),
    (
        "engine/db/locks.py",
        "guard member",
        "USING root, receiver WHERE l.id = %(leaf_id)s",
        "USING root WHERE l.id = %(leaf_id)s",
    ),
    (
        "engine/db/locks.py",
        "guard member",
        "FROM subscription l JOIN definition d ON d.id = l.definition_id",
        "FROM subscription l JOIN (SELECT %(definition_id)s::uuid AS id) d ON d.id = l.definition_id",
    ),
    (
        "engine/db/statements.py",
        "guard member",
        "cause AS (DELETE FROM job l USING receiver WHERE",
        "cause AS (DELETE FROM job l USING (SELECT %(definition_id)s::uuid AS id) receiver WHERE",
    ),
    ("engine/db/locks.py", "newest version", "AND n.version > d.version", "AND false"),
    ("engine/db/locks.py", "newest version", "AND NOT (d.id = ANY (%(called_newest)s) AND {_NEWER})", ""),
    ("engine/db/locks.py", "guard member", "(SELECT count(*) FROM called) = cardinality(%(called)s)", "true"),
    ("engine/db/acquire.py", "status", "= %(tenant_id)s AND {_STILL_FREE} AND j.attempts", "= %(tenant_id)s AND j.attempts"),
    ("engine/commands/worker_tasks.py", "status", ' AND l.status COLLATE "C" IN ({statuses})', ""),
    ("engine/db/acquire.py", "repeat on the locked alias", '_AGAIN = f"{_STILL_FREE} AND ', '_AGAIN = f"'),
    ("engine/db/acquire.py", "turns", "WHERE d.turns = w.turns", "WHERE true"),
    ("engine/db/acquire.py", "room", "room IS NULL OR nth <= room", "true"),
    ("engine/db/acquire.py", "room", "AND coalesce(r.room, 1) > 0", ""),
    ("engine/commands/tasks.py", "assignee", "(t.assignee = %(may_user)s AND (%(assignee)s::text IS NULL", "((%(assignee)s::text IS NULL"),
    (
        "engine/db/sql/baton_open_subscriptions.sql",
        "mark",
        "CASE WHEN r.mark IS NULL THEN '{}' ELSE '{suspended}' END::text[]",
        "'{}'::text[]",
    ),
    # Re-checks of the functions that end in no IF NOT FOUND: what the root and the version have become meanwhile.
    *(
        (f"engine/db/sql/{name}.sql", "re-check", there, instead)
        for name, there, instead in (
            ("baton_hold_step", "IF root_mark = 'suspending' THEN", "IF true THEN"),
            ("baton_hold_step", "ELSIF root_mark IS NULL OR root_mark = 'cancelling' THEN", "ELSE"),
            ("baton_hold_step", "root_status <> 'running' OR root_mark IS NOT NULL", "false"),
            ("baton_hold_next_case", f"\n      AND EXISTS (SELECT FROM suspension s WHERE {_STANDS})", ""),
            ("baton_hold_next_case", "AND (r.mark IS NULL OR ", "AND (true OR "),
            ("baton_hold_next_case", "AND s.cause_id <> (told->>'suspension')::uuid", ""),
            ("baton_hold_next_case", "AND r.mark IN ('suspending', 'suspended') AND s.cause_id", "AND s.cause_id"),
            ("baton_hold_next_case", "'suspended') AND s.cause_id = (told->>'suspension')::uuid", "'suspended')"),
        )
    ),
    ("engine/commands/upkeep.py", "advisory lock", "pg_try_advisory_xact_lock(%s, %s)", "%s + %s > 0"),
    *(
        (f"engine/db/sql/{name}.sql", "advisory lock", f"  PERFORM {lock}(", "  PERFORM (")
        for name, lock in (
            ("baton_lock_deployment", "baton_lock_keys"),
            ("baton_lock_decisions", "baton_lock_keys"),
            ("baton_lock_forms", "baton_lock_keys"),
            ("baton_lock_deletion", "baton_lock_keys"),
            ("baton_lock_subscription_keys", "baton_lock_keys"),
            ("baton_take_throw", "baton_lock_keys"),
            ("baton_lock_gathering", "pg_advisory_xact_lock"),
        )
    ),
    (
        "engine/db/sql/baton_try_gathering.sql",
        "advisory lock",
        "IF NOT pg_try_advisory_xact_lock(baton_key_number(tenant, chr(29) || 'gathering' || chr(29) || gateway, with_key)) THEN",
        "IF false THEN",
    ),
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One piece of text replaced in one file. `name` stays the same while lines move."""

    name: str
    path: str
    line: int
    kind: str
    begin: int
    end: int
    replacement: str
    removed: str

    def applied(self, text: str) -> str:
        """The file's text with this mutant in it."""
        return text[: self.begin] + self.replacement + text[self.end :]


class NotThere(Exception):
    """A text of MEMBERS that its file does not have exactly once."""


def mutants(root: Path = ROOT) -> list[Mutant]:
    """All of them, file by file, top down."""
    found: list[Mutant] = []
    known = {path for path, *_ in MEMBERS}
    for path in sorted({*_files(root), *(root / each for each in known)}):
        found += _of_file(path, path.relative_to(root).as_posix())
    return found


def _files(root: Path) -> Iterator[Path]:
    for folder in SEARCHED:
        for path in (root / folder).rglob("*"):
            if path.suffix in (".py", ".sql") and "models" not in path.parts:
                yield path


def _of_file(path: Path, name: str) -> list[Mutant]:
    text = path.read_text(encoding="utf-8")
    source = _Python(text) if path.suffix == ".py" else _Sql(text, path.stem)
    changes = [
        (kind, match.start(), match.end(), match.expand(replacement))
        for kind, pattern, replacement in RULES
        for match in pattern.finditer(text)
        if source.is_sql(match.start(), match.end())
    ]
    changes += [(kind, *_once(text, name, there), instead) for of, kind, there, instead in MEMBERS if of == name]
    if isinstance(source, _Python):
        changes += source.rechecks()
    counts: Counter[str] = Counter()
    found = []
    for kind, begin, end, replacement in sorted(changes, key=lambda change: change[1:3]):
        place = f"{name}::{source.owner(begin)}::{kind}"
        counts[place] += 1
        numbered = place if counts[place] == 1 else f"{place} {counts[place]}"
        removed = " ".join(text[begin:end].split())
        found.append(Mutant(numbered, name, text.count("\n", 0, begin) + 1, kind, begin, end, replacement, removed))
    return found


def _once(text: str, name: str, there: str) -> tuple[int, int]:
    if text.count(there) != 1:
        raise NotThere(f"{name}: expected {there!r} once, found it {text.count(there)} times (tests/mutants/find.py, MEMBERS)")
    return text.index(there), text.index(there) + len(there)


# ---- what is SQL in a file, and whose


class _Sql:
    def __init__(self, text: str, stem: str) -> None:
        self.stem = stem
        self.comments = [match.span() for match in re.finditer(r"--[^\n]*", text)]

    def is_sql(self, begin: int, end: int) -> bool:
        return not any(first <= begin < last for first, last in self.comments)

    def owner(self, begin: int) -> str:
        return self.stem


class _Python:
    def __init__(self, text: str) -> None:
        self.text, self.tree = text, ast.parse(text)
        self.lines = [0]
        for line in text.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        docstrings = {id(_docstring(node)) for node in ast.walk(self.tree)}
        self.strings = [
            self._span(node)
            for node in ast.walk(self.tree)
            if (isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)))
            and id(node) not in docstrings
        ]
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        self.comments = [
            (self.lines[token.start[0] - 1] + token.start[1], token.string) for token in tokens if token.type == tokenize.COMMENT
        ]

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        # The tree counts columns in bytes.
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno or 0, node.end_col_offset or 0)

    def _offset(self, line: int, column: int) -> int:
        text = self.text[self.lines[line - 1] : self.lines[line]]
        return self.lines[line - 1] + len(text.encode()[:column].decode())

    def is_sql(self, begin: int, end: int) -> bool:
        commented = any(at <= begin < at + len(comment) for at, comment in self.comments)
        return not commented and any(first <= begin and end <= last for first, last in self.strings)

    def owner(self, begin: int) -> str:
        line = self.text.count("\n", 0, begin) + 1
        for node in self.tree.body:
            if node.lineno <= line <= (node.end_lineno or 0):
                match node:
                    case ast.FunctionDef() | ast.ClassDef():
                        return node.name
                    case ast.Assign():
                        return ast.unparse(node.targets[0])
                    case ast.AnnAssign():
                        return ast.unparse(node.target)
        return "module"

    def rechecks(self) -> Iterator[tuple[str, int, int, str]]:
        """What the statement below each `# Re-check …` comment becomes."""
        statements = [node for node in ast.walk(self.tree) if isinstance(node, ast.stmt)]
        for at, comment in self.comments:
            if not comment.startswith("# Re-check "):
                continue
            below = min((self._span(node) for node in statements if self._span(node)[0] > at), default=None)
            for node in statements:
                if self._span(node) != below:
                    continue
                match node:
                    case ast.If():
                        yield ("re-check", *self._span(node.test), "False")
                    case ast.Assign():
                        yield ("re-check", *self._span(node.value), "None")
                    case _:
                        raise NotThere(f"below {comment!r}: expected an `if` or an assignment, found {type(node).__name__}")


def _docstring(node: ast.AST) -> ast.Constant | None:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            return first.value
    return None
