"""What an attempt reports while it runs. Rows of their own: nothing that moves a case reads or writes them."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, DateTime, Identity, Index, Integer, PrimaryKeyConstraint, Text, Uuid, text
from sqlalchemy.dialects.postgresql import REAL
from sqlalchemy.orm import Mapped, mapped_column

from engine.db.models.base import Base


class AttemptReport(Base):
    """One attempt that reported something. `progress`: 0 to 1; `lines`: how many it said, of which the first are kept."""

    __tablename__ = "attempt_report"
    __table_args__ = (
        PrimaryKeyConstraint("item_id", "lease_number", name="pk_attempt_report"),
        CheckConstraint("progress BETWEEN 0 AND 1", name="ck_attempt_report_progress"),
        Index("ix_attempt_report_at", "reported_at"),
    )
    item_id: Mapped[UUID] = mapped_column(Uuid)
    lease_number: Mapped[int] = mapped_column(BigInteger)
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    progress: Mapped[float | None] = mapped_column(REAL)
    doing: Mapped[str] = mapped_column(Text, server_default=text("''"))
    lines: Mapped[int] = mapped_column(Integer, server_default=text("0"))
    reported_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))


class AttemptLine(Base):
    __tablename__ = "attempt_line"
    __table_args__ = (
        PrimaryKeyConstraint("id", name="pk_attempt_line"),
        CheckConstraint("level IN ('debug', 'info', 'warning', 'error')", name="ck_attempt_line_level"),
        Index("ix_attempt_line_item", "item_id", "lease_number", "id"),
        Index("ix_attempt_line_at", "at"),
    )
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True))
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    item_id: Mapped[UUID] = mapped_column(Uuid)
    lease_number: Mapped[int] = mapped_column(BigInteger)
    at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    level: Mapped[str] = mapped_column(Text, server_default=text("'info'"))
    text: Mapped[str] = mapped_column(Text)
