"""Incidents, and what was asked, refused and done. History, request, refusal and audit rows have no foreign keys."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    DateTime,
    ForeignKeyConstraint,
    Identity,
    Index,
    PrimaryKeyConstraint,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from engine.db.models.base import Base, Xid8


class Incident(Base):
    __tablename__ = "incident"
    __table_args__ = (
        CheckConstraint("num_nonnulls(job_id, external_task_id, delivery_id, token_id) = 1", name="ck_incident_one_leaf"),
        ForeignKeyConstraint(["delivery_id"], ["delivery.id"], name="fk_incident_delivery", ondelete="CASCADE"),
        ForeignKeyConstraint(["external_task_id"], ["external_task.id"], name="fk_incident_external_task", ondelete="CASCADE"),
        ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_incident_job", ondelete="CASCADE"),
        ForeignKeyConstraint(["token_id"], ["token.id"], name="fk_incident_token", ondelete="CASCADE"),
        PrimaryKeyConstraint("id", name="pk_incident"),
        UniqueConstraint("delivery_id", name="uq_incident_delivery"),
        UniqueConstraint("external_task_id", name="uq_incident_external_task"),
        UniqueConstraint("job_id", name="uq_incident_job"),
        UniqueConstraint("token_id", name="uq_incident_token"),
        Index("ix_incident_instance", "instance_id"),
        Index("ix_incident_list", "tenant_id", "created_at", "id"),
    )
    id: Mapped[UUID] = mapped_column(Uuid)
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    kind: Mapped[str] = mapped_column(Text)
    message: Mapped[str] = mapped_column(Text)
    detail: Mapped[str] = mapped_column(Text, server_default=text("''"))
    instance_id: Mapped[UUID | None] = mapped_column(Uuid)
    root_id: Mapped[UUID | None] = mapped_column(Uuid)
    definition_id: Mapped[UUID | None] = mapped_column(Uuid)
    element_id: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    job_id: Mapped[UUID | None] = mapped_column(Uuid)
    external_task_id: Mapped[UUID | None] = mapped_column(Uuid)
    delivery_id: Mapped[UUID | None] = mapped_column(Uuid)
    token_id: Mapped[UUID | None] = mapped_column(Uuid)


class Request(Base):
    __tablename__ = "request"
    __table_args__ = (
        PrimaryKeyConstraint("tenant_id", "actor", "id", "hash", name="pk_request"),
        Index("ix_request_created", "created_at"),
    )
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    actor: Mapped[str] = mapped_column(Text)
    id: Mapped[str] = mapped_column(Text)
    hash: Mapped[str] = mapped_column(Text)
    outcome: Mapped[Any] = mapped_column(JSONB)
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))


class Refusal(Base):
    __tablename__ = "refusal"
    __table_args__ = (
        PrimaryKeyConstraint("id", name="pk_refusal"),
        Index("ix_refusal_at", "tenant_id", "at"),
        Index("ix_refusal_item", "item_id"),
    )
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True))
    at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    actor: Mapped[str] = mapped_column(Text)
    command: Mapped[str] = mapped_column(Text)
    item_id: Mapped[UUID | None] = mapped_column(Uuid)
    reason: Mapped[str] = mapped_column(Text)
    detail: Mapped[Any] = mapped_column(JSONB, server_default=text("'{}'"))


class Audit(Base):
    __tablename__ = "audit"
    __table_args__ = (
        PrimaryKeyConstraint("id", name="pk_audit"),
        Index("ix_audit_at", "tenant_id", "at", "id"),
    )
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True))
    at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    actor: Mapped[str] = mapped_column(Text)
    action: Mapped[str] = mapped_column(Text)
    object_kind: Mapped[str] = mapped_column(Text)
    object_id: Mapped[str] = mapped_column(Text)
    reason: Mapped[str] = mapped_column(Text, server_default=text("''"))
    detail: Mapped[Any] = mapped_column(JSONB, server_default=text("'{}'"))
    via: Mapped[str] = mapped_column(Text, server_default=text("current_setting('application_name')"))


class History(Base):
    __tablename__ = "history"
    __table_args__ = (
        Index("ix_history_at", "at", postgresql_using="brin"),
        Index("ix_history_instance", "instance_id", "id"),
        Index("ix_history_item", "item_id", postgresql_where=text("item_id IS NOT NULL")),
        Index("ix_history_stream", "xid", "id"),
        Index("ix_history_decision", "item_id", "id", postgresql_where=text("kind = 'decision_evaluated'")),
        {"postgresql_partition_by": "RANGE (at)"},
    )
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True))
    at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    root_id: Mapped[UUID | None] = mapped_column(Uuid)
    instance_id: Mapped[UUID | None] = mapped_column(Uuid)
    definition_id: Mapped[UUID | None] = mapped_column(Uuid)
    kind: Mapped[str] = mapped_column(Text)
    element_id: Mapped[str | None] = mapped_column(Text)
    actor: Mapped[str] = mapped_column(Text)
    item_id: Mapped[UUID | None] = mapped_column(Uuid)
    data: Mapped[Any] = mapped_column(JSONB, server_default=text("'{}'"))
    xid: Mapped[int] = mapped_column(Xid8, server_default=text("pg_current_xact_id()"))
    via: Mapped[str] = mapped_column(Text, server_default=text("current_setting('application_name')"))
    __mapper_args__ = {"primary_key": [id, at]}
