"""Every route of the API, on its one blueprint."""

from importlib import import_module

from webapp.api.blueprint import blueprint

PARTS = (
    "attempts",
    "decisions",
    "definitions",
    "deliveries",
    "events",
    "destinations",
    "external_tasks",
    "feeds",
    "inbox",
    "instances",
    "keys",
    "messages",
    "openapi",
    "operating",
    "overview",
    "people",
    "resting",
    "standing",
    "stored",
    "tasks",
    "versions",
    "work",
)
"""The modules that have routes: importing them registers them."""

for part in PARTS:
    import_module(f"webapp.api.{part}")

__all__ = ["PARTS", "blueprint"]
