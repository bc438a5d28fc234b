"""Everything under `/engine-rest`: importing this module adds its routes. Whoever adds a file adds it here."""

from webapp.engine_rest import (
    definitions,
    external_task_lists,
    external_tasks,
    fetching,
    instances,
    jobs,
    messages,
    tasks,
    version,
    waiting,
)
from webapp.engine_rest.blueprint import blueprint

__all__ = [
    "blueprint",
    "definitions",
    "external_task_lists",
    "external_tasks",
    "fetching",
    "instances",
    "jobs",
    "messages",
    "tasks",
    "version",
    "waiting",
]
