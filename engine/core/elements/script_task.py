"""Script task (10.3.3.6, 13.3.3): an expression whose value becomes a variable, at once; or bound as a service task is."""

from engine.core.elements.service_task import ServiceTask
from engine.core.registry import register

register("script_task", ServiceTask())
