"""Cases: instances, scopes, tokens, variables."""

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
    PrimaryKeyConstraint,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from engine.db.models.base import Base, status_check


class ProcessInstance(Base):
    __tablename__ = "process_instance"
    __table_args__ = (
        CheckConstraint("mark = ANY ('{suspending,suspended,cancelling}'::text[])", name="ck_process_instance_mark"),
        CheckConstraint(status_check("running", "completed,cancelled"), name="ck_process_instance_status"),
        PrimaryKeyConstraint("id", name="pk_process_instance"),
        Index("ix_process_instance_all", "tenant_id", "started_at", "id"),
        Index("ix_process_instance_called", "root_id", postgresql_where=text("status = 'running' AND parent_id IS NOT NULL")),
        Index("ix_process_instance_definition", "definition_id", "started_at"),
        Index("ix_process_instance_key", "tenant_id", "business_key", postgresql_where=text("business_key IS NOT NULL")),
        Index("ix_process_instance_root", "root_id"),
        Index("ix_process_instance_running", "tenant_id", "started_at", "id", postgresql_where=text("status = 'running'")),
        {"postgresql_with": {"fillfactor": 90}},
    )
    id: Mapped[UUID] = mapped_column(Uuid)
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    root_id: Mapped[UUID] = mapped_column(Uuid)
    parent_id: Mapped[UUID | None] = mapped_column(Uuid)
    parent_token_id: Mapped[UUID | None] = mapped_column(Uuid)
    definition_id: Mapped[UUID] = mapped_column(Uuid)
    business_key: Mapped[str | None] = mapped_column(Text)
    status: Mapped[str] = mapped_column(Text, server_default=text("'running'"))
    mark: Mapped[str | None] = mapped_column(Text)
    revision: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    started_by: Mapped[str] = mapped_column(Text)
    started_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    ended_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    ended_by: Mapped[str | None] = mapped_column(Text)
    final_variables: Mapped[Any | None] = mapped_column(JSONB)
    takes_turns: Mapped[bool] = mapped_column(Boolean, server_default=text("false"))


class Scope(Base):
    __tablename__ = "scope"
    __table_args__ = (
        ForeignKeyConstraint(["instance_id"], ["process_instance.id"], name="fk_scope_instance", ondelete="CASCADE"),
        ForeignKeyConstraint(["parent_id"], ["scope.id"], name="fk_scope_parent", ondelete="CASCADE"),
        ForeignKeyConstraint(["token_id"], ["token.id"], name="fk_scope_token", ondelete="CASCADE", use_alter=True),
        PrimaryKeyConstraint("id", name="pk_scope"),
        Index("ix_scope_instance", "instance_id"),
        Index("ix_scope_parent", "parent_id", postgresql_where=text("parent_id IS NOT NULL")),
        Index("ix_scope_token", "token_id", postgresql_where=text("token_id IS NOT NULL")),
    )
    id: Mapped[UUID] = mapped_column(Uuid)
    instance_id: Mapped[UUID] = mapped_column(Uuid)
    parent_id: Mapped[UUID | None] = mapped_column(Uuid)
    token_id: Mapped[UUID | None] = mapped_column(Uuid)
    element_id: Mapped[str | None] = mapped_column(Text)
    path: Mapped[list[UUID]] = mapped_column(ARRAY(Uuid))
    counters: Mapped[Any] = mapped_column(JSONB, server_default=text("'{}'"))


class Token(Base):
    __tablename__ = "token"
    __table_args__ = (
        CheckConstraint("status = ANY ('{waiting,joining,listening,failed}'::text[])", name="ck_token_status"),
        ForeignKeyConstraint(["scope_id"], ["scope.id"], name="fk_token_scope", ondelete="CASCADE"),
        PrimaryKeyConstraint("id", name="pk_token"),
        Index("ix_token_instance", "instance_id"),
        Index("ix_token_quiet", "scope_id", postgresql_where=text("status IN ('joining', 'listening')")),
        Index("ix_token_scope", "scope_id"),
        {"postgresql_with": {"fillfactor": 90}},
    )
    id: Mapped[UUID] = mapped_column(Uuid)
    instance_id: Mapped[UUID] = mapped_column(Uuid)
    root_id: Mapped[UUID] = mapped_column(Uuid)
    scope_id: Mapped[UUID] = mapped_column(Uuid)
    element_id: Mapped[str] = mapped_column(Text)
    flow_id: Mapped[str | None] = mapped_column(Text)
    status: Mapped[str] = mapped_column(Text, server_default=text("'waiting'"))
    arrived_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    memory: Mapped[Any | None] = mapped_column(JSONB)


class CompletedExecution(Base):
    """A completed execution that can be compensated; only processes with compensation handlers have any.

    No foreign key to its scope: every scope that ends would pay for it. Whoever ends a scope of such a process deletes them.
    """

    __tablename__ = "completed_execution"
    __table_args__ = (
        CheckConstraint("(scope_id IS NULL) <> (within_id IS NULL)", name="ck_completed_execution_place"),
        ForeignKeyConstraint(["instance_id"], ["process_instance.id"], name="fk_completed_execution_instance", ondelete="CASCADE"),
        ForeignKeyConstraint(["within_id"], ["completed_execution.id"], name="fk_completed_execution_within", ondelete="CASCADE"),
        PrimaryKeyConstraint("id", name="pk_completed_execution"),
        Index("ix_completed_execution_instance", "instance_id"),
        Index("ix_completed_execution_scope", "scope_id", "number", postgresql_where=text("scope_id IS NOT NULL")),
        Index("ix_completed_execution_within", "within_id", postgresql_where=text("within_id IS NOT NULL")),
    )
    id: Mapped[UUID] = mapped_column(Uuid)
    instance_id: Mapped[UUID] = mapped_column(Uuid)
    scope_id: Mapped[UUID | None] = mapped_column(Uuid)
    within_id: Mapped[UUID | None] = mapped_column(Uuid)
    element_id: Mapped[str] = mapped_column(Text)
    number: Mapped[int] = mapped_column(BigInteger)
    completed_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    variables: Mapped[Any] = mapped_column(JSONB, server_default=text("'{}'"))


class Variable(Base):
    __tablename__ = "variable"
    __table_args__ = (
        CheckConstraint("type = ANY ('{string,integer,double,boolean,date,datetime,json,\"null\"}'::text[])", name="ck_variable_type"),
        ForeignKeyConstraint(["scope_id"], ["scope.id"], name="fk_variable_scope", ondelete="CASCADE"),
        PrimaryKeyConstraint("scope_id", "name", name="pk_variable"),
    )
    scope_id: Mapped[UUID] = mapped_column(Uuid)
    name: Mapped[str] = mapped_column(Text)
    type: Mapped[str] = mapped_column(Text)
    value: Mapped[Any] = mapped_column(JSONB)
    revision: Mapped[int] = mapped_column(BigInteger, server_default=text("1"))
