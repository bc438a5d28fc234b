"""Durable work: three tables, one life cycle (R1)."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    DateTime,
    ForeignKeyConstraint,
    Index,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from engine.db.models.base import Base, status_check

# Leased if and only if all lease columns are set.
LEASED = "num_nonnulls(lease_owner, lease_expires_at, leased_at) = CASE status WHEN 'leased' THEN 3 ELSE 0 END"
# Exclusive work of a case (baton_take_turn): the one that may be done now, at most one of a case and table; and those that wait for it.
HAS_ITS_TURN = "exclusive AND status <> 'failed' AND NOT held @> '{exclusive}'"
OTHERWISE_HELD = "(held <> '{exclusive}'::text[])"
WAITS_ITS_TURN = "exclusive AND held @> '{exclusive}'"
# What needs no version; what needs no case; what belongs to a case of a version.
KINDS = (
    "kind = ANY (CASE WHEN definition_id IS NULL THEN '{throw,hold}'::text[]"
    " WHEN instance_id IS NULL THEN '{start_timer,message,throw,signal,hold}'::text[]"
    " ELSE '{service,timer,message,cancel,continue,throw,signal,hold}'::text[] END)"
)
# Deliveries of one line (baton_next_in_line): the one that comes first, sent, failed or not; and those behind it.
FIRST_IN_LINE = "line IS NOT NULL AND ended_at IS NULL AND NOT held @> '{ordered}'"
WAITS_IN_LINE = "line IS NOT NULL AND ended_at IS NULL AND held @> '{ordered}'"
NUMBERS = "priority BETWEEN 0 AND 9 AND level BETWEEN 0 AND 10 AND attempts BETWEEN 0 AND max_attempts"


class Job(Base):
    __tablename__ = "job"
    __table_args__ = (
        CheckConstraint(KINDS, name="ck_job_kind"),
        CheckConstraint(LEASED, name="ck_job_lease_if_leased"),
        CheckConstraint(NUMBERS, name="ck_job_numbers"),
        CheckConstraint(status_check("available,leased,failed", "completed,cancelled"), name="ck_job_status"),
        ForeignKeyConstraint(["token_id"], ["token.id"], name="fk_job_token", ondelete="CASCADE"),
        PrimaryKeyConstraint("id", name="pk_job"),
        Index("ix_job_due", "kind", "topic", "level", "available_at", "id", postgresql_where=text("status = 'available' AND held = '{}'")),
        Index("ix_job_failed", "tenant_id", "id", postgresql_where=text("status = 'failed'")),
        Index("ix_job_held", "id", postgresql_where=text("held <> '{}'")),
        Index("ix_job_instance", "instance_id"),
        Index(
            "ix_job_waiting_turn",
            "root_id",
            text(OTHERWISE_HELD),
            "created_at",
            "id",
            postgresql_where=text(WAITS_ITS_TURN),
        ),
        Index("uq_job_turn", "root_id", unique=True, postgresql_where=text(HAS_ITS_TURN)),
        Index("ix_job_lease", "lease_expires_at", "id", postgresql_where=text("status = 'leased'")),
        Index("ix_job_starting", "definition_id", postgresql_where=text("instance_id IS NULL")),
        Index("ix_job_token", "token_id", postgresql_where=text("token_id IS NOT NULL")),
        Index("uq_job_start_timer", "definition_id", "element_id", "due_at", unique=True, postgresql_where=text("kind = 'start_timer'")),
        {"postgresql_with": {"fillfactor": 90, "autovacuum_vacuum_scale_factor": 0.01, "autovacuum_vacuum_cost_delay": 0}},
    )
    id: Mapped[UUID] = mapped_column(Uuid)
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    kind: Mapped[str] = mapped_column(Text)
    topic: Mapped[str] = mapped_column(Text, server_default=text("''"))
    instance_id: Mapped[UUID | None] = mapped_column(Uuid)
    root_id: Mapped[UUID | None] = mapped_column(Uuid)
    definition_id: Mapped[UUID | None] = mapped_column(Uuid)
    token_id: Mapped[UUID | None] = mapped_column(Uuid)
    subscription_id: Mapped[UUID | None] = mapped_column(Uuid)
    element_id: Mapped[str] = mapped_column(Text)
    status: Mapped[str] = mapped_column(Text, server_default=text("'available'"))
    due_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    available_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    priority: Mapped[int] = mapped_column(SmallInteger, server_default=text("5"))
    level: Mapped[int] = mapped_column(SmallInteger, server_default=text("5"))
    held: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=text("'{}'"))
    lease_owner: Mapped[str | None] = mapped_column(Text)
    lease_expires_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    leased_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    lease_number: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    lease_seconds: Mapped[int | None] = mapped_column(Integer)
    attempts: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    max_attempts: Mapped[int] = mapped_column(Integer, server_default=text("3"))
    retry: Mapped[str | None] = mapped_column(Text)
    lock_first: Mapped[bool] = mapped_column(Boolean, server_default=text("false"))
    last_error: Mapped[str | None] = mapped_column(Text)
    payload: Mapped[Any] = mapped_column(JSONB, server_default=text("'{}'"))
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    ended_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    exclusive: Mapped[bool] = mapped_column(Boolean, server_default=text("false"))


class ExternalTask(Base):
    __tablename__ = "external_task"
    __table_args__ = (
        CheckConstraint(LEASED, name="ck_external_task_lease_if_leased"),
        CheckConstraint(NUMBERS, name="ck_external_task_numbers"),
        CheckConstraint(status_check("available,leased,failed", "completed,cancelled"), name="ck_external_task_status"),
        ForeignKeyConstraint(["token_id"], ["token.id"], name="fk_external_task_token", ondelete="CASCADE"),
        PrimaryKeyConstraint("id", name="pk_external_task"),
        Index(
            "ix_external_task_due",
            "tenant_id",
            "topic",
            "level",
            "available_at",
            "id",
            postgresql_where=text("status = 'available' AND held = '{}'"),
        ),
        Index("ix_external_task_failed", "tenant_id", "id", postgresql_where=text("status = 'failed'")),
        Index("ix_external_task_held", "id", postgresql_where=text("held <> '{}'")),
        Index("ix_external_task_instance", "instance_id"),
        Index(
            "ix_external_task_waiting_turn",
            "root_id",
            text(OTHERWISE_HELD),
            "created_at",
            "id",
            postgresql_where=text(WAITS_ITS_TURN),
        ),
        Index("uq_external_task_turn", "root_id", unique=True, postgresql_where=text(HAS_ITS_TURN)),
        Index("ix_external_task_lease", "lease_expires_at", "id", postgresql_where=text("status = 'leased'")),
        Index("ix_external_task_token", "token_id"),
        {"postgresql_with": {"fillfactor": 90, "autovacuum_vacuum_scale_factor": 0.01, "autovacuum_vacuum_cost_delay": 0}},
    )
    id: Mapped[UUID] = mapped_column(Uuid)
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    topic: Mapped[str] = mapped_column(Text)
    instance_id: Mapped[UUID] = mapped_column(Uuid)
    root_id: Mapped[UUID] = mapped_column(Uuid)
    definition_id: Mapped[UUID] = mapped_column(Uuid)
    token_id: Mapped[UUID] = mapped_column(Uuid)
    element_id: Mapped[str] = mapped_column(Text)
    status: Mapped[str] = mapped_column(Text, server_default=text("'available'"))
    due_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    available_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    priority: Mapped[int] = mapped_column(SmallInteger, server_default=text("5"))
    level: Mapped[int] = mapped_column(SmallInteger, server_default=text("5"))
    held: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=text("'{}'"))
    lease_owner: Mapped[str | None] = mapped_column(Text)
    lease_expires_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    leased_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    lease_number: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    attempts: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    max_attempts: Mapped[int] = mapped_column(Integer, server_default=text("3"))
    retry: Mapped[str | None] = mapped_column(Text)
    lock_first: Mapped[bool] = mapped_column(Boolean, server_default=text("false"))
    last_error: Mapped[str | None] = mapped_column(Text)
    payload: Mapped[Any] = mapped_column(JSONB, server_default=text("'{}'"))
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    ended_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    exclusive: Mapped[bool] = mapped_column(Boolean, server_default=text("false"))
    error_detail: Mapped[str | None] = mapped_column(Text)
    retries_set: Mapped[bool] = mapped_column(Boolean, server_default=text("false"))


class Delivery(Base):
    __tablename__ = "delivery"
    __table_args__ = (
        CheckConstraint("kind IN ('http', 'mail')", name="ck_delivery_kind"),
        CheckConstraint(LEASED, name="ck_delivery_lease_if_leased"),
        CheckConstraint(NUMBERS, name="ck_delivery_numbers"),
        CheckConstraint(status_check("available,leased,failed", "completed,cancelled,skipped"), name="ck_delivery_status"),
        ForeignKeyConstraint(["instance_id"], ["process_instance.id"], name="fk_delivery_instance", ondelete="CASCADE"),
        PrimaryKeyConstraint("id", name="pk_delivery"),
        Index("ix_delivery_due", "kind", "level", "available_at", "id", postgresql_where=text("status = 'available' AND held = '{}'")),
        Index("ix_delivery_failed", "tenant_id", "id", postgresql_where=text("status = 'failed'")),
        Index("ix_delivery_held", "id", postgresql_where=text("held <> '{}' AND ended_at IS NULL")),
        Index("ix_delivery_instance", "instance_id"),
        Index("ix_delivery_lease", "lease_expires_at", "id", postgresql_where=text("status = 'leased'")),
        Index(
            "ix_delivery_route",
            "kind",
            "route",
            "level",
            "available_at",
            "id",
            postgresql_where=text("status = 'available' AND held = '{}'"),
        ),
        Index("ix_delivery_sending", "route", postgresql_where=text("status = 'leased' AND route <> ''")),
        Index("ix_delivery_waiting_in_line", "tenant_id", "route", "line", "created_at", "id", postgresql_where=text(WAITS_IN_LINE)),
        Index("uq_delivery_first_in_line", "tenant_id", "route", "line", unique=True, postgresql_where=text(FIRST_IN_LINE)),
        {"postgresql_with": {"fillfactor": 90, "autovacuum_vacuum_scale_factor": 0.01, "autovacuum_vacuum_cost_delay": 0}},
    )
    id: Mapped[UUID] = mapped_column(Uuid)
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    kind: Mapped[str] = mapped_column(Text)
    destination: Mapped[str] = mapped_column(Text)
    instance_id: Mapped[UUID | None] = mapped_column(Uuid)
    root_id: Mapped[UUID | None] = mapped_column(Uuid)
    definition_id: Mapped[UUID | None] = mapped_column(Uuid)
    element_id: Mapped[str | None] = mapped_column(Text)
    status: Mapped[str] = mapped_column(Text, server_default=text("'available'"))
    due_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    available_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    priority: Mapped[int] = mapped_column(SmallInteger, server_default=text("5"))
    level: Mapped[int] = mapped_column(SmallInteger, server_default=text("5"))
    held: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=text("'{}'"))
    lease_owner: Mapped[str | None] = mapped_column(Text)
    lease_expires_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    leased_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    lease_number: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    attempts: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    max_attempts: Mapped[int] = mapped_column(Integer, server_default=text("8"))
    retry: Mapped[str | None] = mapped_column(Text)
    last_error: Mapped[str | None] = mapped_column(Text)
    request: Mapped[Any] = mapped_column(JSONB)
    response: Mapped[Any | None] = mapped_column(JSONB)
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    ended_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    route: Mapped[str] = mapped_column(Text, server_default=text("''"))  # the id of its destination, if it is registered
    line: Mapped[str | None] = mapped_column(Text)  # those of one line go out one after the other
    address: Mapped[str] = mapped_column(Text, server_default=text("''"))  # as engine.destinations writes it


class TimerFiring(Base):
    """An occurrence of a schedule that fired. `missed`: how many passed after it until it fired."""

    __tablename__ = "timer_firing"
    __table_args__ = (
        PrimaryKeyConstraint("tenant_id", "schedule_id", "due_at", name="pk_timer_firing"),
        Index("ix_timer_firing_fired", "fired_at"),
    )
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    schedule_id: Mapped[UUID] = mapped_column(Uuid)
    due_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    fired_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    instance_id: Mapped[UUID] = mapped_column(Uuid)
    missed: Mapped[int] = mapped_column(Integer, server_default=text("0"))
