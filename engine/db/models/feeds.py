"""Feeds: process events that are sent to a destination as they happen."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import BigInteger, DateTime, ForeignKeyConstraint, Index, PrimaryKeyConstraint, Text, Uuid, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from engine.db.models.base import Base, Xid8


class EventFeed(Base):
    """`kinds`, `definition_key`: which events; empty: all. Everything up to (`xid`, `event_id`) is in the outbox."""

    __tablename__ = "event_feed"
    __table_args__ = (
        PrimaryKeyConstraint("id", name="pk_event_feed"),
        ForeignKeyConstraint(["destination_id"], ["destination.id"], name="fk_event_feed_destination"),
        Index("uq_event_feed_name", "tenant_id", "name", unique=True),
    )
    id: Mapped[UUID] = mapped_column(Uuid)
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    name: Mapped[str] = mapped_column(Text)
    destination_id: Mapped[UUID] = mapped_column(Uuid)
    kinds: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=text("'{}'"))
    definition_key: Mapped[str] = mapped_column(Text, server_default=text("''"))
    xid: Mapped[int] = mapped_column(Xid8)
    event_id: Mapped[int] = mapped_column(BigInteger)
    created_by: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
