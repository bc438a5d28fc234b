"""Configuration by environment variables: every problem is named at once, with what was expected and found."""

from __future__ import annotations

from dataclasses import fields

import pytest

from engine.config import Address, ConfigurationError, Settings, markdown_table


def test_without_variables_the_defaults_hold():
    settings = Settings.from_env({})
    assert settings.database_url is None
    assert settings.lease_seconds == 30
    assert settings.minimum_lease_seconds == 6
    assert not settings.production


def test_every_problem_is_named_at_once():
    with pytest.raises(ConfigurationError) as caught:
        Settings.from_env({"BATON_LEASE_SECONDS": "soon", "BATON_LISTEN": "localhost", "DATABASE_URL": "mysql://me:secret@db/x"})
    lines = str(caught.value).splitlines()
    assert lines == [
        "DATABASE_URL: expected postgresql://user:password@host:port/database, found another value",
        "BATON_LISTEN: expected host:port, an IPv6 address in brackets, found 'localhost'",
        "BATON_LEASE_SECONDS: expected a number of seconds from 1 to 3600, found 'soon'",
    ]


def test_a_secret_is_neither_in_the_message_nor_in_the_repr():
    with pytest.raises(ConfigurationError) as caught:
        Settings.from_env({"BATON_SECRET_KEY": "hunter2"})
    assert "hunter2" not in str(caught.value)
    settings = Settings.from_env({"DATABASE_URL": "postgresql://me:hunter2@db/x", "BATON_SECRET_KEY": "hunter2" * 5})
    assert "hunter2" not in repr(settings)


def test_production_refuses_fail_points_and_wants_a_secret_key():
    with pytest.raises(ConfigurationError) as caught:
        Settings.from_env({"BATON_ENV": "production", "BATON_FAILPOINTS": "before_effect=kill"})
    assert "BATON_FAILPOINTS" in str(caught.value)
    assert "BATON_SECRET_KEY" in str(caught.value)
    assert Settings.from_env({"BATON_ENV": "production", "BATON_SECRET_KEY": "k" * 32}).production


def test_an_empty_variable_counts_as_not_set():
    assert Settings.from_env({"BATON_LEASE_SECONDS": " "}).lease_seconds == 30


def test_lists_and_addresses_are_parsed():
    settings = Settings.from_env(
        {"BATON_HANDLERS": "shop.work, more.work", "BATON_ALLOWED_NETWORKS": "10.1.0.0/16,::1/128", "BATON_LISTEN": "[::1]:80"}
    )
    assert settings.handlers == ("shop.work", "more.work")
    assert [str(network) for network in settings.allowed_networks] == ["10.1.0.0/16", "::1/128"]
    assert settings.listen == Address("::1", 80)
    assert str(settings.listen) == "[::1]:80"


def test_a_minimum_lease_above_the_lease_is_refused():
    with pytest.raises(ConfigurationError, match="BATON_MINIMUM_LEASE_SECONDS: expected less than the lease of 5 s, found 6"):
        Settings.from_env({"BATON_LEASE_SECONDS": "5", "BATON_MINIMUM_LEASE_SECONDS": "6"})


def test_the_table_has_a_row_for_every_variable():
    table = markdown_table()
    for each in fields(Settings):
        assert f"| `{each.metadata['name']}` |" in table
        assert each.metadata["doc"]
