"""Dates, times and durations of FEEL: read, printed, added, compared (DMN 1.3, 10.3.2.3)."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.expressions.feel import timeline
from engine.expressions.feel.temporal import MonthsDuration, TemporalError, parse_temporal, show


@pytest.mark.parametrize(
    "text",
    [
        "2017-08-30",
        "0001-01-01",
        "9999-12-31",
        "23:59:00",
        "00:00:00Z",
        "10:20:30.123",
        "10:20:30.000001-05:30",
        "10:20:30+01:00:30",
        "10:20:30@Europe/Paris",
        "2017-08-30T23:59:00",
        "2017-08-30T23:59:00Z",
        "2017-08-30T23:59:00.5+02:00",
        "2017-08-30T23:59:00@America/Argentina/Buenos_Aires",
        "P1Y2M",
        "-P11M",
        "P0M",
        "P3Y",
        "PT0S",
        "P1DT2H3M4.5S",
        "-PT0.000001S",
        "P999999999D",
    ],
)
def test_a_text_that_was_read_is_printed_as_it_was(text: str) -> None:
    assert show(parse_temporal(text)) == text


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("23:59:00z", "23:59:00Z"),
        ("T23:59:00", "23:59:00"),
        ("10:00:00+00:00", "10:00:00Z"),
        ("10:00:00@Etc/UTC", "10:00:00@Etc/UTC"),
        ("10:00:00.1234567890", "10:00:00.123456"),
        ("10:00:00.500", "10:00:00.5"),
        ("PT36H", "P1DT12H"),
        ("PT90S", "PT1M30S"),
        ("P14M", "P1Y2M"),
        ("P0Y", "P0M"),
        ("-PT0S", "PT0S"),
        ("2021-03-28T02:30:00@Europe/Paris", "2021-03-28T03:30:00@Europe/Paris"),  # the clocks skip this hour
    ],
)
def test_texts_of_one_value_are_printed_alike(text: str, printed: str) -> None:
    assert show(parse_temporal(text)) == printed


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("2017-02-29", "a date of the calendar"),
        ("2017-13-01", "a date of the calendar"),
        ("10000-01-01", "a year from 1 to 9999"),
        ("-0044-03-15", "a year from 1 to 9999"),
        ("0000-01-01", "a year from 1 to 9999"),
        ("999999999-01-01", "a year from 1 to 9999"),
        ("2017-8-30", "a date such as"),
        ("2017-08-30Z", "a date such as"),
        ("٢٠١٧-08-30", "a date such as"),
        ("24:00:00", "a time from 00:00:00"),
        ("23:59:60", "a time from 00:00:00"),
        ("23:59", "a time such as"),
        ("23:59:00+19:00", "an offset of at most 18 hours"),
        ("23:59:00+01:60", "an offset such as +01:00"),
        ("23:59:00@Europe/Atlantis", "a time zone such as"),
        ("23:59:00@../../etc/passwd", "a time such as"),
        ("23:59:00Z@Europe/Paris", "a time such as"),
        ("0001-01-01T00:00:00@Asia/Tokyo", "a year from 1 to 9999 in every zone"),
        ("P1Y1D", "a duration such as"),
        ("P1W", "a duration such as"),
        ("P", "a duration such as"),
        ("PT", "a duration such as"),
        ("P1DT", "a duration such as"),
        ("P1.5D", "a duration such as"),
        ("--P1D", "a duration such as"),
        ("P1000000000D", "999999999 days"),
        ("P999999999999Y", "months"),
        ("P" + "1" * 500 + "D", "a duration such as"),
        ("", "a date such as"),
    ],
)
def test_a_text_that_is_no_moment_and_no_duration_is_refused_with_what_was_expected(text: str, part: str) -> None:
    with pytest.raises(TemporalError) as caught:
        parse_temporal(text)
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("sign", "left", "right", "expected"),
    [
        ("+", "2020-01-31", "P1M", "2020-02-29"),
        ("+", "P1Y", "2020-02-29", "2021-02-28"),
        ("+", "2020-01-01", "P1DT23H", "2020-01-02"),
        ("-", "2020-01-01", "PT1H", "2019-12-31"),
        ("-", "2020-03-31", "P1M", "2020-02-29"),
        ("-", "2020-03-01", "2020-02-01", "P29D"),
        ("-", "2020-02-01", "2020-03-01", "-P29D"),
        ("-", "2020-03-01T06:00:00", "2020-02-29", "P1DT6H"),
        ("-", "2020-03-01T06:00:00+06:00", "2020-03-01", "PT0S"),
        ("-", "2021-03-28T12:00:00@Europe/Paris", "2021-03-27T12:00:00@Europe/Paris", "PT23H"),
        ("+", "2021-03-27T12:00:00@Europe/Paris", "P1D", "2021-03-28T13:00:00@Europe/Paris"),
        ("+", "2021-02-28T02:30:00@Europe/Paris", "P1M", "2021-03-28T03:30:00@Europe/Paris"),
        ("+", "2021-10-31T01:30:00@Europe/Paris", "PT1H", "2021-10-31T02:30:00@Europe/Paris"),
        ("+", "2021-10-31T01:30:00@Europe/Paris", "PT2H", "2021-10-31T02:30:00+01:00"),  # the second 02:30 of that night
        ("+", "23:00:00", "PT2H", "01:00:00"),
        ("-", "01:00:00Z", "P1DT2H", "23:00:00Z"),
        ("-", "10:00:00+02:00", "10:00:00Z", "-PT2H"),
        ("-", "10:00:00@Europe/Paris", "09:00:00@Europe/Paris", "PT1H"),
        ("+", "P1Y", "P2M", "P1Y2M"),
        ("-", "P1Y", "P2Y", "-P1Y"),
        ("+", "PT1H", "-PT90M", "-PT30M"),
        ("-", "P1D", "PT1S", "PT23H59M59S"),
    ],
)
def test_moments_and_lengths_add_up(sign: str, left: str, right: str, expected: str) -> None:
    calculate = timeline.add if sign == "+" else timeline.subtract
    assert show(calculate(parse_temporal(left), parse_temporal(right))) == expected


@pytest.mark.parametrize(
    ("sign", "left", "right", "expected"),
    [
        ("*", "PT1H", 3, "PT3H"),
        ("*", Decimal("0.5"), "P1D", "PT12H"),
        ("*", "P1Y", Decimal("1.5"), "P1Y6M"),
        ("*", "P1M", Decimal("1.9"), "P1M"),
        ("*", -2, "P5M", "-P10M"),
        ("/", "P1D", 24, "PT1H"),
        ("/", "P1Y", 5, "P2M"),
        ("/", "-P1Y", 5, "-P2M"),
        ("/", "P1D", "PT6H", Decimal(4)),
        ("/", "P1Y", "P8M", Decimal("1.5")),
    ],
)
def test_durations_are_multiplied_and_divided(sign: str, left: Any, right: Any, expected: Any) -> None:
    left, right = (parse_temporal(value) if isinstance(value, str) else value for value in (left, right))
    found = timeline.multiply(left, right) if sign == "*" else timeline.divide(left, right)
    assert (found if isinstance(found, Decimal) else show(found)) == expected


@pytest.mark.parametrize(
    ("calculate", "left", "right"),
    [
        (timeline.add, "9999-12-31", "P1D"),
        (timeline.add, "9999-12-31", "P1M"),
        (timeline.add, "0001-01-01T00:00:00Z", "-PT1S"),
        (timeline.add, "9999-12-31T23:00:00@Europe/Paris", "P1D"),
        (timeline.add, "P999999999D", "P1D"),
        (timeline.subtract, "-P999999999D", "P1D"),
        (timeline.add, "P1D", "P1M"),
        (timeline.add, "2020-01-01", "2020-01-01"),
        (timeline.add, "10:00:00", "P1M"),
        (timeline.subtract, "P1D", "2020-01-01"),
        (timeline.subtract, "10:00:00", "10:00:00Z"),
        (timeline.subtract, "10:00:00@Europe/Paris", "10:00:00Z"),
        (timeline.subtract, "2020-01-01T00:00:00", "2020-01-01T00:00:00Z"),
        (timeline.subtract, "10:00:00", "2020-01-01"),
        (timeline.divide, "P1D", "PT0S"),
        (timeline.divide, "P1M", "P0M"),
        (timeline.divide, "P1M", "P1D"),
        (timeline.multiply, "P1M", "P1M"),
        (timeline.order, "P1M", "P30D"),
        (timeline.order, "2020-01-01T00:00:00", "2020-01-01T00:00:00Z"),
        (timeline.order, "10:00:00", "10:00:00Z"),
    ],
)
def test_what_has_no_result_says_what_was_expected(calculate: Any, left: str, right: str) -> None:
    with pytest.raises(TemporalError, match="expected"):
        calculate(parse_temporal(left), parse_temporal(right))


@pytest.mark.parametrize("factor", [True, 0, Decimal("1E-300"), Decimal("NaN"), None, "2", 1.5])
def test_a_duration_is_divided_by_numbers_alone(factor: Any) -> None:
    for length in (timedelta(days=999_999_999), MonthsDuration(12 * 999_999_999)):
        with pytest.raises(TemporalError):
            timeline.multiply(timeline.divide(length, factor), Decimal("1E+300"))


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("2020-01-01", "2020-01-02", -1),
        ("2020-01-01T10:00:00Z", "2020-01-01T12:00:00+02:00", 0),
        ("2020-01-01T10:00:00Z", "2020-01-01T11:00:00@Europe/Paris", 0),
        ("2020-01-01T10:00:00", "2020-01-01", 1),
        ("10:00:00Z", "11:00:00+02:00", 1),
        ("10:00:00", "10:00:00.000001", -1),
        ("P1D", "PT24H", 0),
        ("P1Y", "P13M", -1),
        ("2021-10-31T02:30:00@Europe/Paris", "2021-10-31T02:30:00+01:00", -1),
    ],
)
def test_values_of_one_kind_are_in_order(left: str, right: str, expected: int) -> None:
    assert timeline.order(parse_temporal(left), parse_temporal(right)) == expected
    assert timeline.order(parse_temporal(right), parse_temporal(left)) == -expected


def test_a_moment_with_a_zone_equals_none_without_one() -> None:
    assert timeline.equal(datetime(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC)) is False
    assert timeline.equal(time(10), time(10, tzinfo=UTC)) is False
    assert timeline.equal(date(2020, 1, 1), datetime(2020, 1, 1)) is False
    assert timeline.equal(parse_temporal("10:00:00Z"), parse_temporal("12:00:00+02:00")) is True


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("2017-08-30", {"year": 2017, "month": 8, "day": 30, "weekday": 3}),
        ("2017-09-03T01:02:03.5", {"weekday": 7, "hour": 1, "minute": 2, "second": Decimal("3.5"), "time offset": None, "timezone": None}),
        ("2017-07-03T01:02:03@Europe/Paris", {"time offset": timedelta(hours=2), "timezone": "Europe/Paris"}),
        ("01:02:03-05:00", {"hour": 1, "time offset": timedelta(hours=-5), "timezone": None}),
        ("P1DT2H3M4.5S", {"days": 1, "hours": 2, "minutes": 3, "seconds": Decimal("4.5")}),
        ("-P1DT2H3M4.5S", {"days": -1, "hours": -2, "minutes": -3, "seconds": Decimal("-4.5")}),
        ("P2Y5M", {"years": 2, "months": 5}),
        ("-P2Y5M", {"years": -2, "months": -5}),
    ],
)
def test_a_value_has_the_properties_of_its_kind(text: str, properties: dict[str, Any]) -> None:
    value = parse_temporal(text)
    assert {name: timeline.property_of(value, name) for name in properties} == properties
    with pytest.raises(TemporalError, match="'__class__'"):
        timeline.property_of(value, "__class__")


@pytest.mark.parametrize(
    ("first", "second", "months"),
    [
        ("2011-12-22", "2013-08-24", 20),
        ("2013-08-24", "2011-12-22", -20),
        ("2015-01-31", "2015-02-28", 0),
        ("2015-02-28", "2015-01-31", 0),
        ("2015-01-31", "2015-03-31", 2),
        ("2020-05-05", "2020-05-04", 0),
    ],
)
def test_whole_months_lie_between_two_dates(first: str, second: str, months: int) -> None:
    assert timeline.months_between(date.fromisoformat(first), date.fromisoformat(second)) == MonthsDuration(months)


ZONES = [UTC, *(ZoneInfo(name) for name in ("Europe/Paris", "Asia/Kathmandu", "America/St_Johns", "Pacific/Apia", "Africa/Monrovia"))]


@given(moment=st.datetimes(timezones=st.none() | st.sampled_from(ZONES)), length=st.timedeltas())
def test_every_moment_and_length_reads_back_from_its_text(moment: datetime, length: timedelta) -> None:
    assert parse_temporal(show(length)) == length
    try:
        text = show(moment)
        found = parse_temporal(text)
    except TemporalError:  # at the ends of the calendar
        assert moment.year in (1, 9999)
        return
    if moment.tzinfo is None:
        assert found == moment
    else:
        assert found.astimezone(UTC) == moment.astimezone(UTC)  # type: ignore[union-attr]


@given(start=st.dates(date(1000, 1, 1), date(9000, 1, 1)), length=st.integers(-100_000, 100_000))
def test_a_length_that_is_added_is_the_one_between(start: date, length: int) -> None:
    end = timeline.add(start, timedelta(days=length))
    assert timeline.subtract(end, start) == timedelta(days=length)
    assert timeline.order(end, start) == (length > 0) - (length < 0)
