"""Talk to Baton from Python: `Client` and `AsyncClient` for its API, `Worker` and `AsyncWorker` for external tasks."""

from baton_client.aio import AsyncClient
from baton_client.aio_worker import AsyncWorker
from baton_client.client import Client
from baton_client.errors import (
    BatonError,
    BpmnError,
    Conflict,
    Invalid,
    LeaseLost,
    NotAllowed,
    NotFound,
    NotSignedIn,
    Refused,
    RetryLater,
    Unreachable,
)
from baton_client.running import Running
from baton_client.worker import Worker

__all__ = [
    "AsyncClient",
    "AsyncWorker",
    "BatonError",
    "BpmnError",
    "Client",
    "Conflict",
    "Invalid",
    "LeaseLost",
    "NotAllowed",
    "NotFound",
    "NotSignedIn",
    "Refused",
    "RetryLater",
    "Running",
    "Unreachable",
    "Worker",
]
