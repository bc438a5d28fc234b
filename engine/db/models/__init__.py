"""The tables as SQLAlchemy models (plain DeclarativeBase), equal to what the migrations make; a test compares them."""

from sqlalchemy.orm import DeclarativeBase


class Base(DeclarativeBase):
    """All tables of Baton."""
