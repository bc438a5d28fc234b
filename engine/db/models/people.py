"""People, their groups, sessions, sign-in attempts and API keys."""

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
    Identity,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from engine.db.models.base import Base


class Person(Base):
    __tablename__ = "person"
    __table_args__ = (
        CheckConstraint("role IN ('user', 'operator', 'administrator')", name="ck_person_role"),
        CheckConstraint("theme IN ('system', 'light', 'dark')", name="ck_person_theme"),
        CheckConstraint("kind IN ('person', 'service')", name="ck_person_kind"),
        CheckConstraint("kind <> 'service' OR password_hash IS NULL", name="ck_person_service_has_no_password"),
        PrimaryKeyConstraint("id", name="pk_person"),
        UniqueConstraint("tenant_id", "username", name="uq_person_username"),
    )
    id: Mapped[UUID] = mapped_column(Uuid)
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    username: Mapped[str] = mapped_column(Text)
    display_name: Mapped[str] = mapped_column(Text)
    sort_key: Mapped[str] = mapped_column(Text)
    password_hash: Mapped[str | None] = mapped_column(Text)
    role: Mapped[str] = mapped_column(Text)
    theme: Mapped[str] = mapped_column(Text, server_default=text("'system'"))
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    disabled_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    kind: Mapped[str] = mapped_column(Text, server_default=text("'person'"))


class PersonGroup(Base):
    __tablename__ = "person_group"
    __table_args__ = (
        ForeignKeyConstraint(["person_id"], ["person.id"], name="fk_person_group_person", ondelete="CASCADE"),
        PrimaryKeyConstraint("person_id", "group_key", name="pk_person_group"),
        Index("ix_person_group_key", "tenant_id", "group_key"),
    )
    person_id: Mapped[UUID] = mapped_column(Uuid)
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    group_key: Mapped[str] = mapped_column(Text)


class RequestCount(Base):
    """How many requests one who asks has made in a minute since the epoch. Unlogged; webapp.limits alone reads it."""

    __tablename__ = "request_count"
    __table_args__ = (PrimaryKeyConstraint("who", "minute", name="pk_request_count"), {"prefixes": ["UNLOGGED"]})
    who: Mapped[str] = mapped_column(Text)
    minute: Mapped[int] = mapped_column(BigInteger)
    requests: Mapped[int] = mapped_column(BigInteger)


class WebSession(Base):
    __tablename__ = "web_session"
    __table_args__ = (
        ForeignKeyConstraint(["person_id"], ["person.id"], name="fk_web_session_person", ondelete="CASCADE"),
        PrimaryKeyConstraint("token_hash", name="pk_web_session"),
        Index("ix_web_session_expires", "expires_at"),
        Index("ix_web_session_person", "person_id"),
    )
    token_hash: Mapped[bytes] = mapped_column(LargeBinary)
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    person_id: Mapped[UUID] = mapped_column(Uuid)
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    last_seen_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    expires_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    data: Mapped[Any] = mapped_column(JSONB, server_default=text("'{}'"))


class LoginAttempt(Base):
    __tablename__ = "login_attempt"
    __table_args__ = (
        PrimaryKeyConstraint("id", name="pk_login_attempt"),
        Index("ix_login_attempt_address", "address", "at"),
        Index("ix_login_attempt_username", "tenant_id", "username_key", "at"),
    )
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True))
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    username_key: Mapped[str] = mapped_column(Text)
    address: Mapped[str] = mapped_column(Text)
    at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    succeeded: Mapped[bool] = mapped_column(Boolean)


class ApiKey(Base):
    __tablename__ = "api_key"
    __table_args__ = (
        ForeignKeyConstraint(["person_id"], ["person.id"], name="fk_api_key_person", ondelete="CASCADE"),
        PrimaryKeyConstraint("id", name="pk_api_key"),
        UniqueConstraint("token_hash", name="uq_api_key_token"),
        Index("ix_api_key_person", "person_id"),
        CheckConstraint(
            "cardinality(scopes) > 0"
            " AND scopes <@ ARRAY['read', 'tasks', 'start', 'messages', 'external_tasks', 'deploy', 'operate', 'administer']",
            name="ck_api_key_scopes",
        ),
    )
    id: Mapped[UUID] = mapped_column(Uuid)
    tenant_id: Mapped[str] = mapped_column(Text, server_default=text("''"))
    person_id: Mapped[UUID] = mapped_column(Uuid)
    name: Mapped[str] = mapped_column(Text)
    token_hash: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), server_default=text("baton_clock()"))
    expires_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    revoked_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    last_used_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    scopes: Mapped[list[str] | None] = mapped_column(ARRAY(Text))
    ending: Mapped[str | None] = mapped_column(Text)
    made_by: Mapped[str | None] = mapped_column(Text)
    revoked_by: Mapped[str | None] = mapped_column(Text)
    last_used_from: Mapped[str | None] = mapped_column(Text)
