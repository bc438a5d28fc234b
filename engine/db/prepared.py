"""The statements of commands: prepared on the server, executed by libpq in one call.

The driver's cursor sends, polls and receives in steps of its own, so that signals are looked at while the server works; that is
two thirds of what a short statement costs the client. A command's statements are short and always the same. So the first time a
connection executes a statement it goes the driver's way, and from then on this one: what goes in and what comes out is adapted
by the driver's own `Transformer`, errors are the driver's, and the lock of the interpreter is free meanwhile. Only a signal waits
for the answer; the command line, where somebody may press Ctrl-C, executes few statements twice.

Behind a pooler of transactions (`prepare_threshold` None) nothing is prepared: the next transaction may be on another session.
A statement is then sent whole, in one call as before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Protocol

import psycopg
from psycopg import errors
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult

Parameters = Sequence[Any] | Mapping[str, Any]

KEPT = 500  # prepared statements of a connection

_PLACEHOLDER = re.compile(r"%(?:\((?P<name>\w+)\)s|s|%)")
_SUCCEEDED = frozenset({ExecStatus.TUPLES_OK.value, ExecStatus.COMMAND_OK.value})


class Rows(Protocol):
    """What a statement answered, as tuples. Read it before the same statement is executed again."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Statements:
    """What one connection, in autocommit, has executed; only one thread at a time may ask it to.

    `executed`: how many calls a command has made since it began; BEGIN and the like (`control`) are none.
    """

    __slots__ = ("_known", "_named", "_prepared", "connection", "executed")

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self.executed = 0
        self._known: dict[str, Prepared] = {}
        self._prepared = 0  # on the server; one statement may be so for several types of its parameters
        self._named = 0  # names given so far: none twice, for what was prepared after the driver let go of all is still there

    def execute(self, statement: str, parameters: Parameters | None = None) -> Rows:
        """Execute it; raises what psycopg raises."""
        self.executed += 1
        known = self._known.get(statement)
        if known is not None and self.connection.autocommit:
            try:
                return known.execute(parameters)
            except errors.InvalidSqlStatementName:
                # The driver lets go of everything prepared, ours too, when it sees a ROLLBACK.
                self._forget()
                if self.connection.pgconn.transaction_status != TransactionStatus.IDLE:
                    raise  # the command is run again
                return known.execute(parameters)
        cursor = psycopg.Cursor(self.connection).execute(statement, parameters)
        keeps = self.connection.prepare_threshold is not None
        self._known[statement] = Prepared(self.connection, statement, self._name if keeps else None)
        return cursor

    def execute_together(self, statements: str, parameters: Mapping[str, Any]) -> Rows:
        """Several statements in one call, each with a snapshot of its own; the rows are those of the first.

        Planned anew each time, values and all: for what is rare.
        """
        self.executed += 1
        return psycopg.ClientCursor(self.connection).execute(statements, parameters)

    def control(self, word: str) -> None:
        """BEGIN, COMMIT or ROLLBACK, past the driver, which would let go of everything prepared."""
        with self.connection.lock:
            result = self.connection.pgconn.exec_(word.encode())
        if result.status != ExecStatus.COMMAND_OK:
            raise error_of(self.connection, result)

    def _name(self) -> bytes:
        """A name for one more; when there are too many, all begin anew."""
        if self._prepared >= KEPT:
            psycopg.Cursor(self.connection).execute("DEALLOCATE ALL")  # the driver forgets its own by this, too
            self._forget()
        self._prepared += 1
        self._named += 1
        return b"baton_%d" % self._named

    def _forget(self) -> None:
        """The server knows none of them any more."""
        self._prepared = 0
        for known in self._known.values():
            known.forget()


class Prepared:
    """One statement on one connection. `name`: makes one for each thing prepared; None: nothing is."""

    __slots__ = ("_at", "_count", "_formats", "_name", "_names", "_order", "_pgconn", "_query", "_transformer", "connection", "text")

    def __init__(self, connection: psycopg.Connection[Any], text: str, name: Callable[[], bytes] | None) -> None:
        self.connection, self.text = connection, text
        self._name = name
        self._names: dict[tuple[int, ...], bytes] = {}  # by the types of the parameters, which may depend on their values
        self._pgconn = connection.pgconn
        self._transformer = Transformer(connection)
        self._query: bytes | None = None
        self._order: Callable[[Any], Any] | None = None  # of named parameters
        self._formats: list[PyFormat] = []
        self._at = self._count = 0

    def execute(self, parameters: Parameters | None) -> Prepared:
        """Execute it, and be the rows of its answer."""
        if self._query is None:
            self._read(parameters is not None)
        transformer = self._transformer
        ordered: Any = () if not self._formats else parameters if self._order is None else self._order(parameters)
        values: Any = transformer.dump_sequence(ordered, self._formats)  # None is NULL, whatever the signature below says
        types = transformer.types or ()
        result = self._send(values, types)
        if result.status not in _SUCCEEDED:
            raise error_of(self.connection, result)
        transformer.set_pgresult(result)
        self._at, self._count = 0, result.ntuples
        return self

    def fetchone(self) -> Any:
        """The next row, or None."""
        if self._at >= self._count:
            return None
        row = self._transformer.load_row(self._at, tuple)
        self._at += 1
        return row

    def fetchall(self) -> list[Any]:
        """The rows that were not fetched yet."""
        rows = self._transformer.load_rows(self._at, self._count, tuple)
        self._at = self._count
        return rows

    def forget(self) -> None:
        """The server does not know it any more."""
        self._names.clear()

    def _send(self, values: Any, types: tuple[int, ...]) -> PGresult:
        formats = self._transformer.formats
        if self._name is None:
            assert self._query is not None, "it was read before"
            with self.connection.lock:
                return self._pgconn.exec_params(self._query, values, types, formats)
        name = self._names.get(types) or self._prepare(types, self._name)
        with self.connection.lock:
            return self._pgconn.exec_prepared(name, values, formats)

    def _read(self, takes_parameters: bool) -> None:
        """Placeholders as the server numbers them; a name that comes twice is one parameter."""
        names: dict[str, int] = {}
        positional = 0

        def numbered(found: re.Match[str]) -> str:
            nonlocal positional
            if found[0] == "%%":
                return "%"
            if found["name"] is None:
                positional += 1
                return f"${positional}"
            return f"${names.setdefault(found['name'], len(names) + 1)}"

        text = _PLACEHOLDER.sub(numbered, self.text) if takes_parameters else self.text
        if len(names) == 1:
            only = next(iter(names))
            self._order = lambda parameters: (parameters[only],)
        elif names:
            self._order = itemgetter(*names)
        self._formats = [PyFormat.AUTO] * (len(names) or positional)
        self._query = text.encode()

    def _prepare(self, types: tuple[int, ...], new_name: Callable[[], bytes]) -> bytes:
        assert self._query is not None, "it was read before"
        name = new_name()
        with self.connection.lock:
            result = self._pgconn.prepare(name, self._query, types)
        if result.status not in _SUCCEEDED:
            raise error_of(self.connection, result)
        self._names[types] = name
        return name


def error_of(connection: psycopg.Connection[Any], result: PGresult) -> psycopg.Error:
    """What psycopg raises for a result that is no success."""
    error = errors.error_from_result(result, encoding=connection.info.encoding)
    if connection.pgconn.status != ConnStatus.OK and not isinstance(error, psycopg.OperationalError):
        return psycopg.OperationalError(str(error))  # the connection broke: there is no SQLSTATE to tell it by
    return error
