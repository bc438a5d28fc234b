"""User tasks, and the inbox entries of those that are open."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    DateTime,
    ForeignKeyConstraint,
    Index,
    PrimaryKeyConstraint,
    SmallInteger,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from engine.db.models.base import Base


class UserTask(Base):
    __tablename__ = "user_task"
    __table_args__ = (
        CheckConstraint("priority BETWEEN 0 AND 100", name="ck_user_task_priority"),
        # Final if and only if it has ended; until then claimed if and only if somebody has it.
        CheckConstraint(
            "status = ANY (CASE WHEN ended_at IS NOT NULL THEN '{completed,cancelled}'::text[]"
            " WHEN assignee IS NOT NULL THEN '{claimed}'::text[] ELSE '{open}'::text[] END)",
            name="ck_user_task_status",
        ),
        ForeignKeyConstraint(["token_id"], ["token.id"], name="fk_user_task_token"),
        PrimaryKeyConstraint("id", name="pk_user_task"),
        Index("ix_user_task_assignee", "tenant_id", "assignee", "created_at", "id", postgresql_where=text("status = 'claimed'")),
        Index("ix_user_task_definition", "definition_id", "element_id", postgresql_where=text("status IN ('open', 'claimed')")),
        Index("ix_user_task_ended_by", "tenant_id", "ended_by", "ended_at", postgresql_where=text("status = 'completed'")),
        Index("ix_user_task_instance", "instance_id"),
        Index("ix_user_task_live", "tenant_id", "created_at", "id", postgresql_where=text("status IN ('open', 'claimed')")),
        Index("ix_user_task_token", "token_id", postgresql_where=text("token_id IS NOT NULL")),
    )
    id: Mapped[UUID] = mapped_column(Uuid)
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    instance_id: Mapped[UUID] = mapped_column(Uuid)
    root_id: Mapped[UUID] = mapped_column(Uuid)
    definition_id: Mapped[UUID] = mapped_column(Uuid)
    token_id: Mapped[UUID | None] = mapped_column(Uuid)
    element_id: Mapped[str] = mapped_column(Text)
    name: Mapped[str] = mapped_column(Text)
    sort_key: Mapped[str] = mapped_column(Text)
    process_name: Mapped[str] = mapped_column(Text, server_default=text("''"))
    business_key: Mapped[str | None] = mapped_column(Text)
    about: Mapped[str] = mapped_column(Text, server_default=text("''"))
    status: Mapped[str] = mapped_column(Text, server_default=text("'open'"))
    assignee: Mapped[str | None] = mapped_column(Text)
    assigned_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    assigned_by: Mapped[str | None] = mapped_column(Text)
    candidate_users: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=text("'{}'"))
    candidate_groups: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=text("'{}'"))
    priority: Mapped[int] = mapped_column(SmallInteger, server_default=text("50"))
    due_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    follow_up_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    ended_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    ended_by: Mapped[str | None] = mapped_column(Text)
    version: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))


class InboxEntry(Base):
    __tablename__ = "inbox_entry"
    __table_args__ = (
        CheckConstraint("kind = ANY ('{user,group}'::text[])", name="ck_inbox_entry_kind"),
        PrimaryKeyConstraint("task_id", "kind", "name", name="pk_inbox_entry"),
        Index("ix_inbox_entry_candidate", "tenant_id", "kind", "name", "created_at", "task_id"),
    )
    task_id: Mapped[UUID] = mapped_column(Uuid)
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    kind: Mapped[str] = mapped_column(Text)
    name: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
