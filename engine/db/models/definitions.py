"""Deployments, and the versions of process definitions, decisions and forms."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    DateTime,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from engine.db.models.base import Base


class Deployment(Base):
    __tablename__ = "deployment"
    __table_args__ = (
        PrimaryKeyConstraint("id", name="pk_deployment"),
        Index("ix_deployment_tenant", "tenant_id", "deployed_at"),
    )
    id: Mapped[UUID] = mapped_column(Uuid)
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    name: Mapped[str] = mapped_column(Text, server_default=text("''"))
    deployed_by: Mapped[str] = mapped_column(Text)
    deployed_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))


class ProcessDefinition(Base):
    __tablename__ = "process_definition"
    __table_args__ = (
        CheckConstraint("status IN ('active', 'suspended', 'deleting')", name="ck_process_definition_status"),
        ForeignKeyConstraint(["deployment_id"], ["deployment.id"], name="fk_process_definition_deployment"),
        PrimaryKeyConstraint("id", name="pk_process_definition"),
        UniqueConstraint("tenant_id", "key", "version", name="uq_process_definition_version"),
        Index("ix_process_definition_deployment", "deployment_id"),
    )
    id: Mapped[UUID] = mapped_column(Uuid)
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    key: Mapped[str] = mapped_column(Text)
    version: Mapped[int] = mapped_column(Integer)
    name: Mapped[str] = mapped_column(Text, server_default=text("''"))
    sort_key: Mapped[str] = mapped_column(Text, server_default=text("''"))
    status: Mapped[str] = mapped_column(Text, server_default=text("'active'"))
    deployment_id: Mapped[UUID] = mapped_column(Uuid)
    resource_name: Mapped[str] = mapped_column(Text)
    content_hash: Mapped[bytes] = mapped_column(LargeBinary)
    xml: Mapped[bytes] = mapped_column(LargeBinary)
    documentation: Mapped[str] = mapped_column(Text, server_default=text("''"))
    has_none_start: Mapped[bool] = mapped_column(Boolean, server_default=text("true"))
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    version_tag: Mapped[str | None] = mapped_column(Text)


class Drawing(Base):
    """What was laid out for a version without a drawing; `xml` null: `note` says why not. No foreign key: decision 0090."""

    __tablename__ = "drawing"
    __table_args__ = (PrimaryKeyConstraint("definition_id", name="pk_drawing"),)
    definition_id: Mapped[UUID] = mapped_column(Uuid)
    xml: Mapped[bytes | None] = mapped_column(LargeBinary)
    note: Mapped[str] = mapped_column(Text, server_default=text("''"))
    made_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))


class DecisionDefinition(Base):
    __tablename__ = "decision_definition"
    __table_args__ = (
        ForeignKeyConstraint(["deployment_id"], ["deployment.id"], name="fk_decision_definition_deployment"),
        PrimaryKeyConstraint("id", name="pk_decision_definition"),
        UniqueConstraint("tenant_id", "key", "version", name="uq_decision_definition_version"),
        Index("ix_decision_definition_deployment", "deployment_id"),
    )
    id: Mapped[UUID] = mapped_column(Uuid)
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    key: Mapped[str] = mapped_column(Text)
    version: Mapped[int] = mapped_column(Integer)
    version_tag: Mapped[str | None] = mapped_column(Text)
    name: Mapped[str] = mapped_column(Text, server_default=text("''"))
    sort_key: Mapped[str] = mapped_column(Text, server_default=text("''"))
    deployment_id: Mapped[UUID] = mapped_column(Uuid)
    resource_name: Mapped[str] = mapped_column(Text)
    content_hash: Mapped[bytes] = mapped_column(LargeBinary)
    xml: Mapped[bytes] = mapped_column(LargeBinary)
    documentation: Mapped[str] = mapped_column(Text, server_default=text("''"))
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))


class FormDefinition(Base):
    __tablename__ = "form_definition"
    __table_args__ = (
        ForeignKeyConstraint(["deployment_id"], ["deployment.id"], name="fk_form_definition_deployment"),
        PrimaryKeyConstraint("id", name="pk_form_definition"),
        UniqueConstraint("tenant_id", "key", "version", name="uq_form_definition_version"),
        Index("ix_form_definition_deployment", "deployment_id"),
        Index("ix_form_definition_file", "tenant_id", "resource_name", "created_at"),
    )
    id: Mapped[UUID] = mapped_column(Uuid)
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    key: Mapped[str] = mapped_column(Text)
    version: Mapped[int] = mapped_column(Integer)
    version_tag: Mapped[str | None] = mapped_column(Text)
    deployment_id: Mapped[UUID] = mapped_column(Uuid)
    resource_name: Mapped[str] = mapped_column(Text)
    content_hash: Mapped[bytes] = mapped_column(LargeBinary)
    content: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
