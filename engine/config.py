"""THE configuration: every environment variable that Baton reads, its default, its check, its sentence in the README.

`Settings.from_env()` reads and checks all of them at once and names every problem it found. Nothing else reads
`os.environ` for configuration. To add one: a field of `Settings` made by `variable(…)`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

from engine.zones import UnknownZone, zone_named

Network = IPv4Network | IPv6Network
POOLED = "baton_pooler=transaction"  # at the end of a database's URL: so engine.db.session learns how it is reached


class ConfigurationError(Exception):
    """One or more variables are not usable. The message has one line each: name, what was expected, what was found."""


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


# ---- parsers: text -> value; a ValueError says what was expected


def _text(text: str) -> str:
    return text


def _one_of(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in allowed:
            raise ValueError(f"one of {', '.join(allowed)}")
        return text.lower()

    return parse


def _whole(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        expected = f"a whole number from {low} to {high}"
        if not re.fullmatch(r"[0-9]{1,9}", text) or not low <= int(text) <= high:
            raise ValueError(expected)
        return int(text)

    return parse


def _seconds(low: float, high: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        expected = f"a number of seconds from {low:g} to {high:g}"
        if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", text) or not low <= float(text) <= high:
            raise ValueError(expected)
        return float(text)

    return parse


def _switch(text: str) -> bool:
    match text.lower():
        case "1" | "true" | "yes" | "on":
            return True
        case "0" | "false" | "no" | "off":
            return False
    raise ValueError("on or off")


def _address(text: str) -> Address:
    found = re.fullmatch(r"(?:\[(?P<v6>[0-9a-fA-F:.]+)\]|(?P<host>[^\[\]:\s]+)):(?P<port>[0-9]{1,5})", text)
    if not found or not 0 < int(found["port"]) < 65536:
        raise ValueError("host:port, an IPv6 address in brackets")
    return Address(found["v6"] or found["host"], int(found["port"]))


def _database(text: str) -> str:
    if not re.match(r"postgres(ql)?(\+psycopg)?://", text):
        raise ValueError("postgresql://user:password@host:port/database")
    return text


def _url(text: str) -> str:
    if not re.fullmatch(r"https?://[^\s/]+(/\S*)?", text):
        raise ValueError("a URL that begins with http:// or https://")
    return text.rstrip("/")


def _secret(text: str) -> str:
    if len(text) < 32:
        raise ValueError("at least 32 characters")
    return text


def _modules(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", name):
            raise ValueError("names of Python modules separated by commas")
    return names


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _by_name(text: str, value: Callable[[str], Any], expected: str) -> tuple[tuple[str, Any], ...]:
    found: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, given = (each.strip() for each in part.partition("="))
        if not equals or not re.fullmatch(r"[\w.-]+", name):
            raise ValueError(expected)
        if name in found:
            raise ValueError(f"each name once, not {name} twice")
        try:
            found[name] = value(given)
        except ValueError as wrong:
            raise ValueError(f"{expected} ({wrong} for {name})") from None
    return tuple(found.items())


def _slots_by_name(text: str) -> tuple[tuple[str, int], ...]:
    return _by_name(text, _whole(1, 64), "kinds of work, each with its slots, like report.build=1,timer=2")


def _seconds_by_name(text: str) -> tuple[tuple[str, float], ...]:
    return _by_name(text, _seconds(1, 86400), "handlers, each with its seconds, like report.build=3600")


def _networks(text: str) -> tuple[Network, ...]:
    try:
        return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())
    except ValueError as problem:
        raise ValueError(f"networks like 10.1.0.0/16 or fd00::/8 separated by commas ({problem})") from None


def _time_zone(text: str) -> str:
    try:
        zone_named(text)
    except UnknownZone:
        raise ValueError("a time zone like Europe/Berlin") from None
    return text


def _mailbox(text: str) -> str:
    if not re.fullmatch(r"[^\s@<>]+@[^\s@<>]+", text):
        raise ValueError("a mail address")
    return text


def variable(name: str, default: Any, parse: Callable[[str], Any], doc: str, *, shown: str = "", secret: bool = False) -> Any:
    """A field of Settings that comes from the variable `name`. `shown`: how its default reads in the README."""
    metadata = {"name": name, "parse": parse, "doc": doc, "shown": shown, "secret": secret}
    return field(default=default, repr=not secret, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What this process was told. Times are seconds."""

    # ---- everything
    environment: str = variable(
        "BATON_ENV",
        "development",
        _one_of("development", "production"),
        "`production` demands a secret key, sets Secure on cookies and refuses fail-points.",
    )
    database_url: str | None = variable(
        "DATABASE_URL",
        None,
        _database,
        "The PostgreSQL database (15 to 18). Without it only `baton up` works: it starts its own server.",
        secret=True,
    )
    pooler: str = variable(
        "BATON_POOLER",
        "none",
        _one_of("none", "transaction"),
        "`transaction`: DATABASE_URL leads to a PgBouncer in that mode; nothing is prepared or set for a session (deploy/README.md).",
    )
    log_level: str = variable("BATON_LOG_LEVEL", "info", _one_of("debug", "info", "warning", "error"), "What is logged.")

    # ---- web
    listen: Address = variable("BATON_LISTEN", Address("127.0.0.1", 8000), _address, "Where the web server listens.")  # noqa: RUF009 - it returns a field
    public_url: str | None = variable("BATON_PUBLIC_URL", None, _url, "How browsers reach it, for links in mails.")
    secret_key: str | None = variable(
        "BATON_SECRET_KEY",
        None,
        _secret,
        "Signs CSRF tokens and cookies; the same on every replica; at least 32 characters.",
        shown="one made at start, outside production",
        secret=True,
    )
    web_processes: int = variable("BATON_WEB_PROCESSES", 2, _whole(1, 64), "gunicorn processes of one `baton web`.")
    web_threads: int = variable("BATON_WEB_THREADS", 64, _whole(1, 512), "Threads of one gunicorn process; live streams use one each.")
    long_polls: int = variable(
        "BATON_LONG_POLLS",
        500,
        _whole(0, 10_000),
        "Programs that may wait for external tasks at one gunicorn process; one person has half of them at most. Who finds no room polls.",
    )
    pool_size: int = variable(
        "BATON_POOL_SIZE",
        8,
        _whole(1, 200),
        "Database connections of one web process. All processes together must stay below the server's `max_connections`.",
    )
    session_seconds: float = variable(
        "BATON_SESSION_SECONDS", 12 * 3600.0, _seconds(60, 90 * 86400), "A session ends so long after it was last used."
    )
    trusted_proxies: int = variable("BATON_TRUSTED_PROXIES", 0, _whole(0, 8), "Reverse proxies in front whose X-Forwarded headers count.")
    insecure_cookies: bool = variable(
        "BATON_INSECURE_COOKIES", False, _switch, "Production without TLS in front: leaves Secure off the cookies.", shown="off"
    )
    key_max_days: int = variable("BATON_KEY_MAX_DAYS", 0, _whole(0, 3650), "How many days an API key may hold; 0: for ever, if so asked.")
    api_limit: int = variable(
        "BATON_API_LIMIT",
        6000,
        _whole(0, 10_000_000),
        "Requests a minute of one API key, or of one person without one, to /api/v1 and /engine-rest, replicas together; 0: no limit.",
    )
    api_guest_limit: int = variable(
        "BATON_API_GUEST_LIMIT", 120, _whole(0, 10_000_000), "The same of one address that sends no valid key; 0: no limit."
    )
    time_zone: str = variable("BATON_TIME_ZONE", "UTC", _time_zone, "The zone in which pages show and read times.")
    metrics_token: str | None = variable(
        "BATON_METRICS_TOKEN",
        None,
        _secret,
        "A bearer of it may read /metrics; without one only the machine itself may.",
        secret=True,
    )

    # ---- worker
    worker_slots: int = variable(
        "BATON_WORKER_SLOTS",
        4,
        _whole(1, 200),
        "Timers, messages and inline handlers that one worker runs at a time; inline handlers half of them at most.",
    )
    handler_processes: int = variable(
        "BATON_HANDLER_PROCESSES", 4, _whole(1, 64), "Handlers that one worker runs at a time, each in a child process."
    )
    delivery_slots: int = variable(
        "BATON_DELIVERY_SLOTS",
        2,
        _whole(1, 64),
        "Outbox deliveries that one worker sends at a time. Its connections: these three, BATON_KIND_SLOTS, those of handlers again,"
        " and 5.",
    )
    kind_slots: tuple[tuple[str, int], ...] = variable(
        "BATON_KIND_SLOTS",
        (),
        _slots_by_name,
        "Slots of their own for kinds of work, e.g. `report.build=1,timer=2`: names of handlers, `timer`, `continue`, `message`, `http`,"
        " `mail` … A kind has no more than these, and no other kind waits for it. They come on top of the three above.",
        shown="none",
    )
    handlers: tuple[str, ...] = variable(
        "BATON_HANDLERS", (), _modules, "Modules with `@handler` functions, separated by commas.", shown="the shipped ones only"
    )
    lease_seconds: float = variable(
        "BATON_LEASE_SECONDS", 30.0, _seconds(1, 3600), "How long an item belongs to a worker that does not renew; renewed at a third."
    )
    minimum_lease_seconds: float = variable(
        "BATON_MINIMUM_LEASE_SECONDS",
        None,
        _seconds(0, 3600),
        "An item with less of its lease left is handed back instead of started.",
        shown="a fifth of the lease",
    )
    job_deadline_seconds: float = variable(
        "BATON_JOB_DEADLINE_SECONDS", 300.0, _seconds(1, 86400), "A handler that runs longer is killed; the attempt has failed."
    )
    kind_deadlines: tuple[tuple[str, float], ...] = variable(
        "BATON_KIND_DEADLINES",
        (),
        _seconds_by_name,
        "Deadlines of their own for handlers, in seconds, e.g. `report.build=3600`; they go before what a handler says itself.",
        shown="none",
    )
    poll_seconds: float = variable("BATON_POLL_SECONDS", 1.0, _seconds(0.02, 60), "Longest pause between looks at an empty queue.")
    recovery_seconds: float = variable("BATON_RECOVERY_SECONDS", 5.0, _seconds(0.1, 600), "How often each worker looks for expired leases.")
    forgiven_topics: tuple[str, ...] = variable(
        "BATON_FORGIVEN_TOPICS",
        (),
        _names,
        "Topics of external tasks, or `*` for all, whose expired locks spend no attempt, as in Camunda 7; the same for web and workers.",
        shown="none: an expired lock spends one",
    )
    heartbeat_seconds: float = variable("BATON_HEARTBEAT_SECONDS", 5.0, _seconds(0.2, 60), "How often a worker says that it lives.")
    upkeep_seconds: float = variable("BATON_UPKEEP_SECONDS", 60.0, _seconds(1, 86400), "How often expired rows are cleared away.")
    worker_listen: Address | None = variable(  # noqa: RUF009 - it returns a field
        "BATON_WORKER_LISTEN",
        None,
        _address,
        "Where a worker answers /health/live and /health/ready (an acquisition succeeded lately) to whoever asks; each its own.",
    )
    drain_seconds: float = variable(
        "BATON_DRAIN_SECONDS",
        20.0,
        _seconds(0, 3600),
        "After SIGTERM: time for what runs. What takes longer is stopped; its attempt has failed.",
    )
    request_seconds: float = variable(
        "BATON_REQUEST_SECONDS", 86400.0, _seconds(60, 90 * 86400), "How long the answer to a request id is remembered."
    )

    # ---- the outside
    allowed_networks: tuple[Network, ...] = variable(
        "BATON_ALLOWED_NETWORKS",
        (),
        _networks,
        "Private networks that HTTP calls and deliveries may reach, e.g. `10.1.0.0/16,127.0.0.1/32`.",
        shown="none: public addresses only",
    )
    allowed_ports: tuple[int, ...] = variable(
        "BATON_ALLOWED_PORTS",
        (80, 443, 8000, 8080, 8443),
        lambda text: tuple(_whole(1, 65535)(part.strip()) for part in text.split(",") if part.strip()),
        "Ports that HTTP calls and deliveries may reach on public addresses; allowed networks may be reached on any.",
        shown="80,443,8000,8080,8443",
    )
    http_seconds: float = variable("BATON_HTTP_SECONDS", 15.0, _seconds(0.1, 600), "Longest HTTP call or delivery, all of it.")
    http_max_bytes: int = variable("BATON_HTTP_MAX_BYTES", 1_000_000, _whole(1, 100_000_000), "Longest answer that is read.")
    mail_server: Address | None = variable("BATON_MAIL_SERVER", None, _address, "SMTP server for mail deliveries.")  # noqa: RUF009 - it returns a field
    mail_from: str = variable("BATON_MAIL_FROM", "baton@localhost.localdomain", _mailbox, "Sender of mails.")
    mail_tls: str = variable("BATON_MAIL_TLS", "none", _one_of("none", "starttls", "tls"), "How the SMTP connection is protected.")
    mail_username: str | None = variable("BATON_MAIL_USERNAME", None, _text, "SMTP login, if the server wants one.")
    mail_password: str | None = variable("BATON_MAIL_PASSWORD", None, _text, "Its password.", secret=True)

    # ---- `baton up`, for trying it out
    home: Path = variable("BATON_HOME", Path(".baton"), Path, "Folder of `baton up`: its database, its log files, its sample password.")  # noqa: RUF009 - it returns a field
    sample_password: str | None = variable(
        "BATON_SAMPLE_PASSWORD", None, _text, "Password of the sample people.", shown="one made and printed", secret=True
    )
    sample_service: str | None = variable(
        "BATON_SAMPLE_SERVICE", None, _url, "Where the sample service answers; `baton up` sets it for what it starts."
    )

    # ---- tests
    failpoints: str = variable(
        "BATON_FAILPOINTS", "", _text, "Faults for tests, `name=kill`, `stop`, `hold:/fifo` or `raise`. Refused in production."
    )

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """Read and check every variable; an empty one counts as not set. Raises ConfigurationError naming all problems."""
        environ = os.environ if environ is None else environ
        values: dict[str, Any] = {}
        problems: list[str] = []
        for each in fields(cls):
            text = environ.get(each.metadata["name"], "").strip()
            if not text:
                continue
            try:
                values[each.name] = each.metadata["parse"](text)
            except ValueError as expected:
                found = "another value" if each.metadata["secret"] else repr(text)
                problems.append(f"{each.metadata['name']}: expected {expected}, found {found}")
        settings = cls(**values)
        problems += settings._conflicts()
        if problems:
            raise ConfigurationError("\n".join(problems))
        return settings

    def __post_init__(self) -> None:
        if self.minimum_lease_seconds is None:
            object.__setattr__(self, "minimum_lease_seconds", self.lease_seconds / 5)
        if self.database_url is not None and self.pooler == "transaction" and POOLED not in self.database_url:
            object.__setattr__(self, "database_url", f"{self.database_url}{'&' if '?' in self.database_url else '?'}{POOLED}")

    def _conflicts(self) -> list[str]:
        """What no single variable shows."""
        problems = []
        if self.production and self.failpoints:
            problems.append("BATON_FAILPOINTS: expected nothing while BATON_ENV=production, found a fail-point")
        if self.production and self.secret_key is None:
            problems.append("BATON_SECRET_KEY: expected at least 32 characters while BATON_ENV=production, found nothing")
        if self.minimum_lease_seconds >= self.lease_seconds:
            problems.append(
                f"BATON_MINIMUM_LEASE_SECONDS: expected less than the lease of {self.lease_seconds:g} s, "
                f"found {self.minimum_lease_seconds:g}"
            )
        return problems

    @property
    def production(self) -> bool:
        return self.environment == "production"

    def need_database(self) -> str:
        """The database's URL, or a ConfigurationError that says how to give one."""
        if self.database_url is None:
            raise ConfigurationError("DATABASE_URL: expected postgresql://user:password@host:port/database, found nothing")
        return self.database_url


def markdown_table() -> str:
    """Every variable as a table for the README."""
    lines = ["| variable | default | meaning |", "|---|---|---|"]
    for each in fields(Settings):
        lines.append(f"| `{each.metadata['name']}` | {each.metadata['shown'] or _shown(each.default)} | {each.metadata['doc']} |")
    return "\n".join(lines) + "\n"


def _shown(default: Any) -> str:
    match default:
        case None | "" | ():
            return "–"
        case float():
            return f"{default:g}"
    return str(default)
