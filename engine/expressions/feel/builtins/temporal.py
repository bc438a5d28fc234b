"""Functions over dates and times (DMN 1.3, 10.3.4.6 and 10.3.4.7, tables 72 and 73).

`now` and `today` are the time that the caller of the expression gives, never the machine's (R11).
"""

from __future__ import annotations

from calendar import monthrange
from datetime import date, datetime

from engine.expressions.clock import time_of
from engine.expressions.feel.builtins.define import Group
from engine.expressions.values import Scope

TEMPORAL = Group()
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


@TEMPORAL.function("now", "")
def _now(scope: Scope) -> datetime:
    return time_of(scope)


@TEMPORAL.function("today", "")
def _today(scope: Scope) -> date:
    return time_of(scope).date()


@TEMPORAL.function("day of year", "date: date|date and time")
def _day_of_year(scope: Scope, day: date) -> int:
    return day.timetuple().tm_yday


@TEMPORAL.function("day of week", "date: date|date and time")
def _day_of_week(scope: Scope, day: date) -> str:
    return DAYS[day.weekday()]


@TEMPORAL.function("month of year", "date: date|date and time")
def _month_of_year(scope: Scope, day: date) -> str:
    return MONTHS[day.month - 1]


@TEMPORAL.function("week of year", "date: date|date and time")
def _week_of_year(scope: Scope, day: date) -> int:
    return day.isocalendar().week


@TEMPORAL.function("last day of month", "date: date|date and time")
def _last_day_of_month(scope: Scope, day: date) -> date:
    return date(day.year, day.month, monthrange(day.year, day.month)[1])
