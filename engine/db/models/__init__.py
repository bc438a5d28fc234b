"""The tables as SQLAlchemy models (plain DeclarativeBase), equal to what the migrations make; a test compares them.

Commands and acquisition use psycopg directly; models serve migrations and screens.
"""

from engine.db.models.attempts import AttemptLine, AttemptReport
from engine.db.models.base import Base
from engine.db.models.cases import CompletedExecution, ProcessInstance, Scope, Token, Variable
from engine.db.models.definitions import DecisionDefinition, Deployment, Drawing, FormDefinition, ProcessDefinition
from engine.db.models.destinations import Destination
from engine.db.models.feeds import EventFeed
from engine.db.models.messages import Message, MessageExpired, MessageReceipt, Subscription
from engine.db.models.people import ApiKey, LoginAttempt, Person, PersonGroup, RequestCount, WebSession
from engine.db.models.records import Audit, History, Incident, Refusal, Request
from engine.db.models.tasks import InboxEntry, UserTask
from engine.db.models.work import Delivery, ExternalTask, Job, TimerFiring
from engine.db.models.workers import ExternalWorker, Pause, Suspension, Watermark, Worker

__all__ = [
    "ApiKey",
    "AttemptLine",
    "AttemptReport",
    "Audit",
    "Base",
    "CompletedExecution",
    "DecisionDefinition",
    "Delivery",
    "Deployment",
    "Destination",
    "Drawing",
    "EventFeed",
    "ExternalTask",
    "ExternalWorker",
    "FormDefinition",
    "History",
    "InboxEntry",
    "Incident",
    "Job",
    "LoginAttempt",
    "Message",
    "MessageExpired",
    "MessageReceipt",
    "Pause",
    "Person",
    "PersonGroup",
    "ProcessDefinition",
    "ProcessInstance",
    "Refusal",
    "Request",
    "RequestCount",
    "Scope",
    "Subscription",
    "Suspension",
    "TimerFiring",
    "Token",
    "UserTask",
    "Variable",
    "Watermark",
    "WebSession",
    "Worker",
]
