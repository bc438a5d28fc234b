"""Destinations: what deliveries to an address have in common."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, DateTime, Double, Index, Integer, PrimaryKeyConstraint, SmallInteger, Text, Uuid, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from engine.db.models.base import Base


class Destination(Base):
    """`address`: as engine.destinations writes it. `salts`: of its signing secrets, [{salt, until}], the newest first.

    `concurrency` None: as many at a time as there are slots. `turns` moves on with every acquisition that respects it. A row that was
    removed stays, so that what was written for it is still sent as it says.
    """

    __tablename__ = "destination"
    __table_args__ = (
        CheckConstraint("kind IN ('http', 'mail')", name="ck_destination_kind"),
        CheckConstraint(
            "concurrency >= 1 AND max_attempts >= 1 AND redirects BETWEEN 0 AND 3 AND seconds > 0 AND max_bytes >= 1",
            name="ck_destination_numbers",
        ),
        PrimaryKeyConstraint("id", name="pk_destination"),
        Index("uq_destination_name", "tenant_id", "name", unique=True, postgresql_where=text("removed_at IS NULL")),
        Index("uq_destination_address", "tenant_id", "address", unique=True, postgresql_where=text("removed_at IS NULL")),
        {"postgresql_with": {"fillfactor": 50}},
    )
    id: Mapped[UUID] = mapped_column(Uuid)
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    name: Mapped[str] = mapped_column(Text)
    kind: Mapped[str] = mapped_column(Text)
    address: Mapped[str] = mapped_column(Text)
    concurrency: Mapped[int | None] = mapped_column(Integer)
    retry: Mapped[str | None] = mapped_column(Text)
    max_attempts: Mapped[int] = mapped_column(Integer, server_default=text("8"))
    redirects: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    seconds: Mapped[float | None] = mapped_column(Double)
    max_bytes: Mapped[int | None] = mapped_column(Integer)
    salts: Mapped[Any] = mapped_column(JSONB, server_default=text("'[]'"))
    turns: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    created_by: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    changed_by: Mapped[str] = mapped_column(Text)
    changed_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    removed_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
