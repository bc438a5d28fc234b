"""Subscriptions and stored messages."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    CheckConstraint,
    DateTime,
    ForeignKeyConstraint,
    Index,
    PrimaryKeyConstraint,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from engine.db.models.base import Base, Xid8


class Subscription(Base):
    __tablename__ = "subscription"
    __table_args__ = (
        CheckConstraint(
            "(kind IN ('catch', 'signal')) = (token_id IS NOT NULL) AND (kind IN ('catch', 'signal')) = (instance_id IS NOT NULL)",
            name="ck_subscription_catch",
        ),
        CheckConstraint("kind IN ('catch', 'start', 'signal', 'signal_start')", name="ck_subscription_kind"),
        ForeignKeyConstraint(["definition_id"], ["process_definition.id"], name="fk_subscription_definition", ondelete="CASCADE"),
        ForeignKeyConstraint(["token_id"], ["token.id"], name="fk_subscription_token", ondelete="CASCADE"),
        PrimaryKeyConstraint("id", name="pk_subscription"),
        Index("ix_subscription_definition", "definition_id"),
        Index("ix_subscription_instance", "instance_id", postgresql_where=text("instance_id IS NOT NULL")),
        Index("ix_subscription_message", "tenant_id", "message_name", "correlation_key", "created_at", "id"),
        Index("ix_subscription_token", "token_id", postgresql_where=text("token_id IS NOT NULL")),
        Index("uq_subscription_start", "tenant_id", "definition_id", "element_id", unique=True, postgresql_where=text("kind = 'start'")),
        Index(
            "uq_subscription_signal_start",
            *("tenant_id", "definition_id", "element_id", "message_name"),
            unique=True,
            postgresql_where=text("kind = 'signal_start'"),
        ),
    )
    id: Mapped[UUID] = mapped_column(Uuid)
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    kind: Mapped[str] = mapped_column(Text)
    message_name: Mapped[str] = mapped_column(Text)
    correlation_key: Mapped[str] = mapped_column(Text, server_default=text("''"))
    definition_id: Mapped[UUID] = mapped_column(Uuid)
    instance_id: Mapped[UUID | None] = mapped_column(Uuid)
    root_id: Mapped[UUID | None] = mapped_column(Uuid)
    token_id: Mapped[UUID | None] = mapped_column(Uuid)
    element_id: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    xid: Mapped[int | None] = mapped_column(Xid8, server_default=text("pg_current_xact_id()"))


class Message(Base):
    __tablename__ = "message"
    __table_args__ = (
        PrimaryKeyConstraint("id", name="pk_message"),
        Index("ix_message_expires", "expires_at"),
        Index("ix_message_key", "tenant_id", "name", "correlation_key", "published_at", "id"),
    )
    id: Mapped[UUID] = mapped_column(Uuid)
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    name: Mapped[str] = mapped_column(Text)
    correlation_key: Mapped[str] = mapped_column(Text, server_default=text("''"))
    variables: Mapped[Any] = mapped_column(JSONB, server_default=text("'{}'"))
    published_by: Mapped[str] = mapped_column(Text)
    published_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    expires_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))


class MessageExpired(Base):
    """What expired unused: to be seen for a day, never to be used. Its content is gone."""

    __tablename__ = "message_expired"
    __table_args__ = (
        PrimaryKeyConstraint("id", name="pk_message_expired"),
        Index("ix_message_expired_at", "expires_at"),
        Index("ix_message_expired_key", "tenant_id", "name", "correlation_key", "expires_at"),
    )
    id: Mapped[UUID] = mapped_column(Uuid)
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    name: Mapped[str] = mapped_column(Text)
    correlation_key: Mapped[str] = mapped_column(Text, server_default=text("''"))
    published_by: Mapped[str] = mapped_column(Text)
    published_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    expires_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))


class MessageReceipt(Base):
    """The id of a message that was sent, with what it did. It counts until `kept_until`."""

    __tablename__ = "message_receipt"
    __table_args__ = (
        PrimaryKeyConstraint("tenant_id", "name", "message_id", name="pk_message_receipt"),
        Index("ix_message_receipt_kept", "kept_until"),
    )
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    name: Mapped[str] = mapped_column(Text)
    message_id: Mapped[str] = mapped_column(Text)
    correlation_key: Mapped[str] = mapped_column(Text, server_default=text("''"))
    outcome: Mapped[Any] = mapped_column(JSONB)
    published_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    kept_until: Mapped[datetime] = mapped_column(DateTime(timezone=True))
