"""Timers: what their texts mean, and when they are due."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.bpmn.retries import Retry, parse_retry
from engine.bpmn.times import (
    CycleTimer,
    DateTimer,
    DurationTimer,
    Occurrence,
    Timer,
    TimerError,
    first,
    following,
    missed,
    parse_due,
    parse_moment,
    parse_timer,
)
from engine.zones import UnknownZone, zone_named

NOW = datetime(2026, 11, 29, 8, 10, tzinfo=UTC)
BERLIN = "Europe/Berlin"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def occurrences(timer: Timer, start: datetime, *, until: datetime) -> list[datetime]:
    """Every time up to `until`, each handled the moment it is due."""
    found: list[datetime] = []
    occurrence = first(timer, now=start)
    while occurrence is not None and occurrence.due_at <= until:
        found.append(occurrence.due_at)
        stored = Occurrence.from_payload(occurrence.payload(), occurrence.due_at)
        occurrence = following(timer, stored, now=max(start, occurrence.due_at))
    return found


def minutes(found: list[datetime]) -> list[int]:
    return [moment.minute for moment in found]


def test_S16_a_cycle_anchored_in_the_past_keeps_its_grid_and_makes_no_burst() -> None:
    timer = parse_timer("cycle", "R/2026-07-01T00:00:00+02:00/PT15M")
    found = occurrences(timer, NOW, until=NOW + timedelta(minutes=50))
    assert minutes(found) == [15, 30, 45, 0]
    redeployed = occurrences(timer, NOW + timedelta(minutes=7), until=NOW + timedelta(minutes=50))
    assert redeployed == found[1:]


def test_S16_a_date_in_the_past_is_due_at_once_and_once() -> None:
    timer = parse_timer("date", "2020-01-01T00:00:00Z")
    occurrence = first(timer, now=NOW)
    assert occurrence is not None and occurrence.due_at < NOW
    assert following(timer, occurrence, now=NOW) is None


def test_S16_long_durations_come_in_their_order() -> None:
    ten, twenty = (first(parse_timer("duration", text), now=NOW) for text in ("P10D", "P20D"))
    assert ten is not None and twenty is not None
    assert (ten.due_at, twenty.due_at) == (NOW + timedelta(days=10), NOW + timedelta(days=20))


def test_after_an_outage_one_occurrence_is_caught_up_with_and_the_next_lies_on_the_grid_ahead() -> None:
    timer = parse_timer("cycle", "R/PT10M")
    occurrence = first(timer, now=NOW)
    assert occurrence is not None
    late = NOW + timedelta(minutes=65)
    after = following(timer, occurrence, now=late)
    assert after is not None
    assert after.due_at == NOW + timedelta(minutes=70)


def test_an_occurrence_that_is_handled_early_by_a_hair_does_not_come_again() -> None:
    """The worker's clock and the database's may differ: the next one is later than the last one in any case."""
    timer = parse_timer("cycle", "R/PT10M")
    occurrence = first(timer, now=NOW)
    assert occurrence is not None
    after = following(timer, occurrence, now=occurrence.due_at - timedelta(milliseconds=5))
    assert after is not None and after.due_at == occurrence.due_at + timedelta(minutes=10)
    cron = parse_timer("cycle", "0 * * * *")
    hourly = first(cron, now=NOW)
    assert hourly is not None
    after = following(cron, hourly, now=hourly.due_at - timedelta(milliseconds=5))
    assert after is not None and after.due_at == hourly.due_at + timedelta(hours=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("R3/PT10M", [20, 30, 40]),
        ("R1/PT10M", [20]),
        ("R3/2026-11-29T08:20:00Z/PT10M", [20, 30, 40]),  # the start is the first of the three
        ("R3/2026-11-29T08:00:00Z/PT10M", [20]),  # two of three are past: at 8:10 exactly "now" is past, too
        ("R3/2026-11-29T07:00:00Z/PT10M", []),
    ],
)
def test_a_finite_cycle_ends(text: str, expected: list[int]) -> None:
    found = occurrences(parse_timer("cycle", text), NOW + timedelta(seconds=1) if "08:00" in text else NOW, until=NOW + timedelta(days=1))
    assert minutes(found) == expected


def test_months_are_counted_from_the_anchor_not_from_the_last_occurrence() -> None:
    found = occurrences(parse_timer("cycle", "R4/2027-01-31T10:00:00+02:00/P1M"), NOW, until=at("2028-01-01T00:00:00Z"))
    assert [moment.isoformat() for moment in found] == [
        "2027-01-31T10:00:00+02:00",
        "2027-02-28T10:00:00+02:00",
        "2027-03-31T10:00:00+02:00",
        "2027-04-30T10:00:00+02:00",
    ]


@pytest.mark.parametrize(
    ("text", "start", "expected"),
    [
        ("P1M", "2024-01-31T00:00:00+00:00", "2024-02-29T00:00:00+00:00"),
        ("P1Y", "2024-02-29T00:00:00+00:00", "2025-02-28T00:00:00+00:00"),
        ("P1Y2M10DT2H30M", "2026-01-01T00:00:00+00:00", "2027-03-11T02:30:00+00:00"),
        ("P2W", "2026-01-01T00:00:00+00:00", "2026-01-15T00:00:00+00:00"),
        ("PT0.5H", "2026-01-01T00:00:00+00:00", "2026-01-01T00:30:00+00:00"),
        ("PT1.25S", "2026-01-01T00:00:00+00:00", "2026-01-01T00:00:01.250000+00:00"),
        ("P1.5D", "2026-01-01T00:00:00+00:00", "2026-01-02T12:00:00+00:00"),
        ("PT36H", "2026-01-01T00:00:00+00:00", "2026-01-02T12:00:00+00:00"),
        ("PT0S", "2026-01-01T00:00:00+00:00", "2026-01-01T00:00:00+00:00"),
    ],
)
def test_a_duration_is_added_by_the_calendar(text: str, start: str, expected: str) -> None:
    timer = parse_timer("duration", text)
    assert isinstance(timer, DurationTimer)
    assert timer.after(at(start)) == at(expected)


def test_only_a_duration_that_is_always_as_long_has_seconds() -> None:
    seconds = {
        text: parse_timer("duration", text, zone=zone)
        for text, zone in [("P1DT1H", "UTC"), ("P1M", "UTC"), ("P1D", BERLIN), ("PT90M", BERLIN)]
    }
    assert {text: timer.seconds for text, timer in seconds.items() if isinstance(timer, DurationTimer)} == {
        "P1DT1H": 90_000.0,
        "P1M": None,
        "P1D": None,
        "PT90M": 5400.0,
    }


def test_a_day_in_a_zone_keeps_the_time_on_the_wall_when_the_clocks_change() -> None:
    timer = parse_timer("cycle", "R/2027-03-26T08:00:00/P1D", zone=BERLIN)
    found = occurrences(timer, at("2027-03-26T00:00:00Z"), until=at("2027-03-30T00:00:00Z"))
    assert [moment.astimezone(ZoneInfo(BERLIN)).hour for moment in found] == [8, 8, 8, 8]
    assert [moment.astimezone(UTC).hour for moment in found] == [7, 7, 6, 6]


def test_a_time_that_the_clocks_skip_comes_an_hour_later_and_one_that_comes_twice_comes_once() -> None:
    skipped = occurrences(
        parse_timer("cycle", "R/2027-03-27T02:30:00/P1D", zone=BERLIN), at("2027-03-27T00:00:00Z"), until=at("2027-03-29T12:00:00Z")
    )
    assert [moment.astimezone(ZoneInfo(BERLIN)).strftime("%d %H:%M") for moment in skipped] == ["27 02:30", "28 03:30", "29 02:30"]
    doubled = occurrences(
        parse_timer("cycle", "R/2027-10-30T02:30:00/P1D", zone=BERLIN), at("2027-10-30T00:00:00Z"), until=at("2027-11-01T12:00:00Z")
    )
    assert [moment.astimezone(ZoneInfo(BERLIN)).strftime("%d %H:%M") for moment in doubled] == ["30 02:30", "31 02:30", "01 02:30"]


def test_cron_follows_its_zone_over_both_changes_of_the_clocks() -> None:
    timer = parse_timer("cycle", "0 8 * * *", zone=BERLIN)
    for start in ("2027-03-27T00:00:00Z", "2027-10-30T00:00:00Z"):
        found = occurrences(timer, at(start), until=at(start) + timedelta(days=3, hours=-1))
        assert [moment.astimezone(ZoneInfo(BERLIN)).strftime("%H:%M") for moment in found] == ["08:00"] * 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("*/15 * * * *", "2026-11-29T08:15:00+00:00"),
        ("0 0 9 ? * MON-FRI", "2026-11-30T09:00:00+00:00"),
        ("30 0 9 ? * *", "2026-11-29T09:00:30+00:00"),
        ("0 0/5 * * * ?", "2026-11-29T08:15:00+00:00"),
        ("0 0 0 L * ?", "2026-11-30T00:00:00+00:00"),
        ("0 9 * * 1", "2026-11-30T09:00:00+00:00"),
        ("0 0/20 * 1/1 * ? *", "2026-11-29T08:20:00+00:00"),
        ("@daily", "2026-11-30T00:00:00+00:00"),
        ("0 9 1 jan *", "2027-01-01T09:00:00+00:00"),
    ],
)
def test_cron_of_five_fields_and_of_six_with_seconds_is_read(text: str, expected: str) -> None:
    occurrence = first(parse_timer("cycle", text), now=NOW)
    assert occurrence is not None and occurrence.due_at == at(expected)


BAD: list[tuple[str, Any, str]] = [
    ("cycle", "0 0 9 ? * 2-6", "days of the week by name"),
    ("cycle", "0 0 9 ? * 2#1", "days of the week by name"),
    ("cycle", "0 0 30 2 *", "a next time"),
    ("cycle", "61 * * * *", "a next time"),
    ("cycle", "R * * * *", "a cycle such as"),
    ("cycle", "0 R * * *", "cron of five fields"),
    ("cycle", "0 0 12 1 1 ? 2020", "a next time"),
    ("cycle", "0 0 12 1 1 ? 20x7", "years such as 2027"),
    ("cycle", "0 0 12 1 1 ? * *", "seven with the year last"),
    ("cycle", "0 0 9 1 * MON", "? for the day of the month"),
    ("cycle", "CRON_TZ=Mars/Base 0 9 * * *", "a time zone of tzdata"),
    ("cycle", "R/2027-01-01T00:00:00[Mars/Base]/P1D", "a time zone of tzdata"),
    ("date", "2027-01-01T00:00:00[../etc/passwd]", "a time zone of tzdata"),
    ("date", "2027-01-01T00:00:00[Europe/Berlin][UTC]", "a date and time"),
    ("cycle", "@reboot", "cron of five fields"),
    ("cycle", "PT10M", "cron of five fields"),
    ("cycle", "R0/PT10M", "at least one repetition"),
    ("cycle", "R3", "a cycle such as"),
    ("cycle", "R/PT10M/2027-01-01T00:00:00Z", "a cycle such as"),
    ("cycle", "R/soon/PT10M", "a date and time"),
    ("cycle", "R/PT0S", "1 second or more"),
    ("cycle", "R/PT0.001S", "1 second or more"),
    ("cycle", "R1001/PT0.5S", "1 second or more"),
    ("cycle", "R2/PT0S", "0.001 second or more"),
    ("duration", "-PT5M", "a duration such as"),
    ("duration", "PT-5M", "a duration such as"),
    ("duration", "P0.5Y", "whole years and months"),
    ("duration", "P", "a duration such as"),
    ("duration", "PT", "a duration such as"),
    ("duration", "5 minutes", "a duration such as"),
    ("duration", "P9999999Y", "at most 1000 years"),
    ("duration", "PT1e9S", "a duration such as"),
    ("duration", "", "1 to 200 characters"),
    ("duration", "P" + "1" * 500 + "D", "1 to 200 characters"),
    ("duration", 300, "the text of a duration, found int"),
    ("date", "tomorrow", "a date and time"),
    ("date", "2026-02-30", "a date and time"),
    ("date", True, "a date and time, found bool"),
    ("moon", "full", "date, duration or cycle"),
]


@pytest.mark.parametrize(("kind", "value", "part"), BAD)
def test_what_is_no_timer_is_refused_by_saying_what_one_is(kind: str, value: Any, part: str) -> None:
    with pytest.raises(TimerError) as caught:
        parse_timer(kind, value)
    assert part in str(caught.value)


def test_a_time_without_a_zone_is_in_the_zone_of_the_timer() -> None:
    assert parse_moment("2026-07-01T08:00:00") == at("2026-07-01T08:00:00Z")
    assert parse_moment("2026-07-01T08:00:00", zone=BERLIN) == at("2026-07-01T06:00:00Z")
    assert parse_moment("2026-07-01T08:00:00+05:00", zone=BERLIN) == at("2026-07-01T03:00:00Z")
    assert parse_moment(date(2026, 7, 1)) == parse_moment("2026-07-01") == at("2026-07-01T00:00:00Z")
    assert parse_timer("date", at("2026-07-01T08:00:00Z")) == DateTimer(at("2026-07-01T08:00:00Z"))


def test_a_task_is_due_at_a_time_at_the_end_of_a_day_or_after_a_duration() -> None:
    assert parse_due("2026-12-01T09:00:00Z", now=NOW) == at("2026-12-01T09:00:00Z")
    assert parse_due("2026-12-01", now=NOW) == parse_due(date(2026, 12, 1), now=NOW) == at("2026-12-01T23:59:59Z")
    assert parse_due("P2D", now=NOW) == NOW + timedelta(days=2)
    assert parse_due(NOW, now=NOW) == NOW
    with pytest.raises(TimerError):
        parse_due("soon", now=NOW)


def test_the_end_of_the_calendar_is_an_error_with_a_name() -> None:
    timer = parse_timer("duration", "P900Y")
    assert isinstance(timer, DurationTimer)
    with pytest.raises(TimerError, match="before the year 10000"):
        timer.after(at("9900-01-01T00:00:00Z"))


@pytest.mark.parametrize(
    "text",
    [
        *("R101/PT1M", "0", "101", "PT1M,", "P1M", "", "R3/PT0,5S", "R3/P1M", "R/PT1M", "R3", ",".join(["PT1M"] * 100)),
        *("R3/PT5M*0.5", "R3/PT5M*101", "R3/PT1H*2/PT1M", "R3/P1M*2", "R3/PT5M*2/P1M", "R3/PT5M*", "R3/PT5M*x", "R3/PT5M*2/PT1H/PT2H"),
    ],
)
def test_a_retry_policy_that_the_engine_could_not_follow_is_refused(text: str) -> None:
    with pytest.raises(TimerError):
        parse_retry(text)


@pytest.mark.parametrize(
    ("text", "waits", "attempts"),
    [
        ("R3/PT5M", "R3/PT5M", 3),
        ("R0/PT5M", "R1/PT5M", 1),
        ("5", None, 5),
        ("PT1M, PT10M ,PT1H", "PT1M,PT10M,PT1H", 4),
        ("R5/PT10S*2", "PT10S,PT20S,PT40S,PT80S", 5),
        ("R5/PT10S*2/PT30S", "PT10S,PT20S,PT30S,PT30S", 5),
        ("R4/PT1S*1.5", "PT1S,PT1.5S,PT2.25S", 4),
        ("R4/P1D*3", "PT86400S,PT86400S,PT86400S", 4),  # without a limit of its own: a day
        ("R1/PT1M*2", "PT60S", 1),
    ],
)
def test_each_form_of_a_retry_policy_is_waits_and_attempts(text: str, waits: str | None, attempts: int) -> None:
    assert parse_retry(text) == Retry(waits, attempts)


@pytest.mark.parametrize("text", ["PT5M", "PT0.5H", "P1DT2H3M4.5S", "P2W", "PT36H", "P1.5D", "PT0S"])
def test_postgresql_reads_the_waits_of_a_retry_policy_as_we_do(db: psycopg.Connection[Any], text: str) -> None:
    """The wait after a failure is taken from the text in SQL."""
    retry, timer = parse_retry(f"R3/{text}"), parse_timer("duration", text)
    assert isinstance(timer, DurationTimer)
    row = db.execute("SELECT extract(epoch FROM split_part(%s, '/', 2)::interval)::float8", (retry.text,)).fetchone()
    assert row == (timer.seconds,)


@given(
    anchor=st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(timezone(timedelta(hours=2)))),
    now=st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC)),
    span=st.sampled_from(["PT15M", "PT7H", "P1D", "P1W", "P1M", "P1Y", "P1M1DT1S", "PT1S"]),
)
def test_every_occurrence_lies_on_the_grid_and_in_order(anchor: datetime, now: datetime, span: str) -> None:
    timer = parse_timer("cycle", f"R/{anchor.isoformat()}/{span}")
    assert isinstance(timer, CycleTimer)
    occurrence = first(timer, now=now)
    assert occurrence is not None
    assert occurrence.due_at >= now
    assert occurrence.due_at == timer.span.after(anchor, times=occurrence.number)
    if occurrence.number:
        assert timer.span.after(anchor, times=occurrence.number - 1) <= now
    after = following(timer, occurrence, now=now)
    assert after is not None
    assert after.number == occurrence.number + 1
    assert after.due_at > occurrence.due_at


@pytest.mark.parametrize(
    "text", ["9999-12-31T23:59:59-12:00", "9999-12-31", "9999-01-01T00:00:00Z", "0001-01-01", "0001-01-01T00:00:00+14:00"]
)
def test_a_time_that_some_zone_cannot_show_is_refused_before_it_is_stored(text: str) -> None:
    with pytest.raises(TimerError, match="expected a time from the year 2 to the year 9998"):
        parse_due(text, now=NOW)


def test_a_duration_does_not_reach_past_the_last_year_that_can_be_read_again() -> None:
    with pytest.raises(TimerError, match="to the year 9998"):
        parse_due("P900Y", now=datetime(9099, 6, 1, tzinfo=UTC))


@pytest.mark.parametrize("text", ["0002-01-01T00:00:00+14:00", "9998-12-31T23:59:59-12:00"])
def test_the_first_and_the_last_time_are_shown_in_every_zone(text: str) -> None:
    for hours in (-12, 14):
        parse_due(text, now=NOW).astimezone(UTC).astimezone(timezone(timedelta(hours=hours)))


def test_a_cycle_of_few_repetitions_may_be_shorter_than_a_second() -> None:
    found = occurrences(parse_timer("cycle", "R2/PT0.5S"), NOW, until=NOW + timedelta(minutes=1))
    assert [each - NOW for each in found] == [timedelta(seconds=0.5), timedelta(seconds=1)]


def test_a_date_may_name_its_zone_in_brackets() -> None:
    assert parse_moment("2026-07-01T08:00:00[Europe/Berlin]") == at("2026-07-01T06:00:00Z")
    assert parse_moment("2026-07-01T08:00:00[Europe/Berlin]", zone="Asia/Kolkata") == at("2026-07-01T06:00:00Z")
    assert parse_moment("2026-07-01T08:00:00+05:00[Europe/Berlin]") == at("2026-07-01T03:00:00Z"), "the offset says which instant"


@pytest.mark.parametrize(
    ("text", "now", "expected"),
    [
        ("R/PT10M", NOW + timedelta(minutes=9, seconds=59), 0),
        ("R/PT10M", NOW + timedelta(minutes=19, seconds=59), 0),
        ("R/PT10M", NOW + timedelta(minutes=20), 1),
        ("R/PT10M", NOW + timedelta(days=1), 143),
        ("R3/PT10M", NOW + timedelta(days=1), 2),
        ("R3/2026-11-29T08:20:00Z/PT10M", NOW + timedelta(days=1), 2),
        ("R/PT1S", NOW + timedelta(days=100), 8_639_999),
        ("*/15 * * * *", NOW + timedelta(minutes=34), 1),
        ("*/15 * * * *", NOW + timedelta(minutes=35), 2),
        ("0 0 12 31 12 ? 2026-2027", NOW + timedelta(days=4000), 1),
        ("* * * * *", NOW + timedelta(days=30), 1000),
    ],
)
def test_F38_what_passes_while_an_occurrence_waits_is_counted(text: str, now: datetime, expected: int) -> None:
    timer = parse_timer("cycle", text)
    due = first(timer, now=NOW)
    assert due is not None
    assert missed(timer, due, now=now) == expected
    after = following(timer, due, now=now)
    assert after is None or after.due_at > now


def test_F36_zones_are_those_of_the_package_whatever_the_system_has() -> None:
    import zoneinfo

    assert zoneinfo.TZPATH == ()
    with pytest.raises(UnknownZone, match=r"tzdata 20\d\d\.\d+ such as Europe/Berlin, found 'Mars/Base'"):
        zone_named("Mars/Base")


def test_F36_no_time_on_the_wall_is_due_twice_and_none_is_left_out_in_a_year_of_any_zone() -> None:
    """Each wall time of a daily cron once a day, and in order; a rhythm every half hour of the clock, with no gap over one."""
    for zone in (BERLIN, "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Kolkata"):
        for text in ("30 2 * * *", "45 1 * * *", "0 0 * * *"):
            days = occurrences(parse_timer("cycle", text, zone=zone), at("2026-01-01T00:00:00Z"), until=at("2027-01-01T00:00:00Z"))
            dates = [moment.astimezone(ZoneInfo(zone)).date() for moment in days]
            assert len(dates) == len(set(dates)) and len(dates) in (365, 366), (zone, text)
        halves = occurrences(parse_timer("cycle", "*/30 * * * *", zone=zone), at("2026-03-01T00:00:00Z"), until=at("2026-04-15T00:00:00Z"))
        steps = {(later - earlier) for earlier, later in pairwise([moment.astimezone(UTC) for moment in halves])}
        assert steps == {timedelta(minutes=30)}, zone
