"""Time zones: those of the tzdata package that this release is pinned to, whatever the system has, so that replicas count alike."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, tzinfo
from importlib.metadata import version

zoneinfo.reset_tzpath(to=())
zoneinfo.ZoneInfo.clear_cache()
RELEASE = version("tzdata")


class UnknownZone(Exception):
    """No zone has this name, or none any more."""

    def __init__(self, name: str) -> None:
        super().__init__(f"expected a time zone of tzdata {RELEASE} such as Europe/Berlin, found {name[:60]!r}")


def zone_named(name: str) -> tzinfo:
    """The zone of the IANA database. Raises UnknownZone."""
    if name == "UTC":
        return UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # also a path out of the database, a folder of it, a file that is no zone
        raise UnknownZone(name) from None
