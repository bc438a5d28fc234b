"""What a destination of deliveries covers: addresses in one form, so that a text comparison can tell.

An address is that of a web request without its query, `https://shop.example/orders`, or of mail, `mail:/shop.example`; `mail:` stands
for all mail. A destination covers its own address and what lies below it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
EXPECTED_NAME = "1 to 63 small letters, digits, dots, hyphens and underscores, the first a letter or digit"
ALL_MAIL = "mail:"
_PORTS = {"http": 80, "https": 443}
_DOMAIN = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


def address_of_url(url: str) -> str:
    """Scheme, host, port if it is not the usual one, and path of an absolute URL; "" for anything else."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return ""
    if parts.scheme not in _PORTS or not host:
        return ""
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}{f':{port}' if port not in (None, _PORTS[parts.scheme]) else ''}{parts.path.rstrip('/')}"


def address_of_mail(recipients: str | Sequence[str]) -> str:
    """`mail:/DOMAIN` if all recipients have one and the same domain, else `mail:`."""
    names = recipients.split(",") if isinstance(recipients, str) else list(recipients)
    domains = {str(name).rpartition("@")[2].strip(" >").lower() for name in names}
    found = domains.pop() if len(domains) == 1 else ""
    return f"{ALL_MAIL}/{found}" if _DOMAIN.fullmatch(found) else ALL_MAIL


def origin_of(address: str) -> str:
    """Scheme, host and port of an address: the name of a destination that nobody has registered."""
    return ALL_MAIL if address.startswith(ALL_MAIL) else "/".join(address.split("/", 3)[:3])


def covers(destination: str, address: str) -> bool:
    """Whether an address lies at, or below, that of a destination. As SQL in engine/db/statements.py."""
    return f"{address}/".startswith(f"{destination}/")


def resolved(destination: str, url: str) -> str:
    """The URL of a request to a destination: as given, or below the destination's address if it begins with a slash or a `?`."""
    return destination + url if url[:1] in ("/", "?", "") else url
