"""Workers, pauses, suspensions, and how far acquisition and upkeep have come."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    DateTime,
    Double,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from engine.db.models.base import Base


class Worker(Base):
    __tablename__ = "worker"
    __table_args__ = (
        PrimaryKeyConstraint("id", name="pk_worker"),
        Index("ix_worker_heartbeat", "heartbeat_at", postgresql_where=text("stopped_at IS NULL")),
    )
    id: Mapped[UUID] = mapped_column(Uuid)
    host: Mapped[str] = mapped_column(Text)
    pid: Mapped[int] = mapped_column(Integer)
    version: Mapped[str] = mapped_column(Text, server_default=text("''"))
    started_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    heartbeat_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    last_acquired_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    slots: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    busy: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    kinds: Mapped[Any] = mapped_column(JSONB, server_default=text("'[]'"))
    draining: Mapped[bool] = mapped_column(Boolean, server_default=text("false"))
    stopped_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    longest_gap: Mapped[float] = mapped_column(Double, server_default=text("0"))


class ExternalWorker(Base):
    """From where a program that acquires external tasks has asked under which name. Two addresses may be two programs of one name."""

    __tablename__ = "external_worker"
    __table_args__ = (
        PrimaryKeyConstraint("tenant_id", "worker_id", "address", name="pk_external_worker"),
        Index("ix_external_worker_seen", "last_seen_at"),
    )
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    worker_id: Mapped[str] = mapped_column(Text)
    address: Mapped[str] = mapped_column(Text)
    first_seen_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    last_seen_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))


class Pause(Base):
    __tablename__ = "pause"
    __table_args__ = (PrimaryKeyConstraint("tenant_id", "kind", "topic", name="pk_pause"),)
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    kind: Mapped[str] = mapped_column(Text)
    topic: Mapped[str] = mapped_column(Text)
    paused_by: Mapped[str] = mapped_column(Text)
    paused_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    reason: Mapped[str] = mapped_column(Text, server_default=text("''"))


class Suspension(Base):
    """Who suspended a case (its root instance) or a version, and why. `cause_id`: the suspension of a version that took the case along."""

    __tablename__ = "suspension"
    __table_args__ = (
        CheckConstraint("kind IN ('instance', 'definition')", name="ck_suspension_kind"),
        PrimaryKeyConstraint("object_id", name="pk_suspension"),
        Index("ix_suspension_cause", "cause_id", "object_id", postgresql_where=text("cause_id IS NOT NULL")),
    )
    object_id: Mapped[UUID] = mapped_column(Uuid)
    id: Mapped[UUID] = mapped_column(Uuid)
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    kind: Mapped[str] = mapped_column(Text)
    suspended_by: Mapped[str] = mapped_column(Text)
    suspended_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    reason: Mapped[str] = mapped_column(Text, server_default=text("''"))
    cause_id: Mapped[UUID | None] = mapped_column(Uuid)


class Watermark(Base):
    __tablename__ = "watermark"
    __table_args__ = (PrimaryKeyConstraint("name", name="pk_watermark"),)
    name: Mapped[str] = mapped_column(Text)
    at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    swept_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
