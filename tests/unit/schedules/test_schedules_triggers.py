"""When schedules are due: patterns, zones, clocks that are put forward and back, ends of months."""

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.schedules import cron
from callboard.schedules.reading import preview
from callboard.schedules.triggers import (
    Every,
    Once,
    checked,
    first_after,
    following,
    instant_of,
    passed,
    text_of,
    times_of,
)
from callboard_rpc.errors import CallboardError
from callboard_rpc.schedules import ScheduleTrigger


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def due(pattern: str, zone: str | None, after: str, count: int) -> list[str]:
    """Times in UTC, to the second."""
    trigger = checked(ScheduleTrigger(cron=pattern, time_zone=zone))
    found = following(times_of(trigger, at(after)), at(after), count)
    return [text_of(each).removesuffix(".000Z") for each in found]


def refused(trigger: ScheduleTrigger) -> str:
    with pytest.raises(CallboardError) as caught:
        preview(trigger, 1, "2031-05-17T09:00:00.000Z")
    assert caught.value.kind == "scheduleInvalid"
    return caught.value.message


# --- clocks that are put forward and back ---------------------------------------------------------------


def test_schedules_a_time_of_day_in_a_gap_fires_at_the_first_moment_after_it() -> None:
    # Berlin goes from 02:00 to 03:00 at 01:00 UTC, New York at 07:00 UTC
    assert due("30 2 * * *", "Europe/Berlin", "2031-03-29T12:00:00Z", 2) == [
        "2031-03-30T01:00:00",
        "2031-03-31T00:30:00",
    ]
    assert due("30 2 * * *", "America/New_York", "2031-03-08T12:00:00Z", 2) == [
        "2031-03-09T07:00:00",
        "2031-03-10T06:30:00",
    ]


def test_schedules_several_times_in_one_gap_fire_once() -> None:
    assert due("0,15,45 2,3 * * *", "Europe/Berlin", "2031-03-30T00:59:59Z", 3) == [
        "2031-03-30T01:00:00",
        "2031-03-30T01:15:00",
        "2031-03-30T01:45:00",
    ]


def test_schedules_six_fields_go_by_the_same_rules() -> None:
    assert due("30 30 2 * * *", "Europe/Berlin", "2031-03-29T12:00:00Z", 1) == [
        "2031-03-30T01:00:00"
    ]
    assert due("30 30 2 * * *", "Europe/Berlin", "2031-10-25T12:00:00Z", 2) == [
        "2031-10-26T00:30:30",
        "2031-10-27T01:30:30",
    ]


def test_schedules_a_time_of_day_that_comes_twice_fires_the_first_time_only() -> None:
    assert due("30 2 * * *", "Europe/Berlin", "2031-10-25T12:00:00Z", 2) == [
        "2031-10-26T00:30:00",
        "2031-10-27T01:30:00",
    ]
    assert due("30 1 * * *", "America/New_York", "2031-11-01T12:00:00Z", 2) == [
        "2031-11-02T05:30:00",
        "2031-11-03T06:30:00",
    ]


def test_schedules_within_the_second_pass_of_an_hour_nothing_comes_again() -> None:
    # 02:45 in Berlin was at 00:45 UTC; it is 02:30 for the second time now
    assert due("45 2 * * *", "Europe/Berlin", "2031-10-26T01:30:00Z", 1) == ["2031-10-27T01:45:00"]


@pytest.mark.parametrize(
    ("pattern", "zone"), [("0 * * * *", "Europe/Berlin"), ("0 * * * *", "UTC")]
)
def test_schedules_each_hour_goes_by_elapsed_time_in_both_directions(
    pattern: str, zone: str
) -> None:
    for start in ("2031-03-29T22:30:00Z", "2031-10-25T22:30:00Z"):
        times = following(
            times_of(checked(ScheduleTrigger(cron=pattern, time_zone=zone)), at(start)),
            at(start),
            8,
        )
        assert {b - a for a, b in pairwise(times)} == {timedelta(hours=1)}


def test_schedules_a_minute_of_any_kind_in_a_gap_is_passed_over_and_comes_twice_behind_it() -> None:
    assert due("*/30 2 * * *", "Europe/Berlin", "2031-03-29T12:00:00Z", 1) == [
        "2031-03-31T00:00:00"
    ]
    assert due("*/30 2 * * *", "Europe/Berlin", "2031-10-25T12:00:00Z", 4) == [
        "2031-10-26T00:00:00",
        "2031-10-26T00:30:00",
        "2031-10-26T01:00:00",
        "2031-10-26T01:30:00",
    ]


def test_schedules_a_gap_at_midnight_begins_the_day_behind_it() -> None:
    # Beirut goes from 00:00 to 01:00
    zone = ZoneInfo("Asia/Beirut")
    day = next(
        d
        for d in (datetime(2031, 3, 1, tzinfo=UTC) + timedelta(days=n) for n in range(60))
        if d.astimezone(zone).utcoffset() != (d + timedelta(days=1)).astimezone(zone).utcoffset()
    )
    first = cron.parse("0 0 * * *", "Asia/Beirut").after(day)
    assert first is not None
    assert first.astimezone(zone).strftime("%H:%M") == "01:00"
    never = cron.parse("*/5 0 * * *", "Asia/Beirut").after(day)
    assert never is not None
    assert never.astimezone(zone).date() > first.astimezone(zone).date()


def test_schedules_half_an_hour_of_summer_time() -> None:
    # Lord Howe goes from 02:00 to 02:30
    assert due("15 2 * * *", "Australia/Lord_Howe", "2031-10-04T00:00:00Z", 1) == [
        "2031-10-04T15:30:00"
    ]


# --- days that not every month, or year, has --------------------------------------------------------------


def test_schedules_the_leap_day_comes_every_four_years() -> None:
    assert due("0 12 29 2 *", None, "2031-05-17T00:00:00Z", 2) == [
        "2032-02-29T12:00:00",
        "2036-02-29T12:00:00",
    ]


def test_schedules_the_leap_day_is_left_out_of_a_century() -> None:
    assert due("0 12 29 2 *", None, "2097-01-01T00:00:00Z", 1) == ["2104-02-29T12:00:00"]


def test_schedules_the_31st_is_left_out_of_months_without_one() -> None:
    assert due("0 0 31 * *", None, "2031-01-15T00:00:00Z", 4) == [
        "2031-01-31T00:00:00",
        "2031-03-31T00:00:00",
        "2031-05-31T00:00:00",
        "2031-07-31T00:00:00",
    ]


def test_schedules_the_last_day_of_each_month() -> None:
    assert due("0 0 L * *", None, "2031-01-15T00:00:00Z", 3) == [
        "2031-01-31T00:00:00",
        "2031-02-28T00:00:00",
        "2031-03-31T00:00:00",
    ]


def test_schedules_either_day_is_enough_where_both_are_restricted() -> None:
    # the 13th, and Fridays
    assert due("0 0 13 * 5", None, "2031-05-09T00:00:00Z", 3) == [
        "2031-05-13T00:00:00",
        "2031-05-16T00:00:00",
        "2031-05-23T00:00:00",
    ]


def test_schedules_sunday_is_0_and_7_and_a_name() -> None:
    assert (
        due("0 0 * * 0", None, "2031-05-17T00:00:00Z", 3)
        == due("0 0 * * 7", None, "2031-05-17T00:00:00Z", 3)
        == due("0 0 * * sun", None, "2031-05-17T00:00:00Z", 3)
        == ["2031-05-18T00:00:00", "2031-05-25T00:00:00", "2031-06-01T00:00:00"]
    )


def test_schedules_six_fields_begin_with_the_second() -> None:
    assert due("*/20 0 9 * * *", None, "2031-05-17T08:59:59Z", 3) == [
        "2031-05-17T09:00:00",
        "2031-05-17T09:00:20",
        "2031-05-17T09:00:40",
    ]


# --- what is none ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("0 0 30 2 *", "day-of-month"),
        ("0 0 31 4,6,9,11 *", "day-of-month"),
        ("0 0 */30 * MON#2", "never fires"),
        ("60 * * * *", "minute"),
        ("* 24 * * *", "hour"),
        ("* * * 13 *", "month"),
        ("* * * * 8", "day-of-week"),
        ("* * * * FRI-MON", "upwards"),
        ("*/0 * * * *", "minute"),
        ("* * * *", "4 fields"),
        ("* * * * * * *", "7 fields"),
        ("", "0 fields"),
        ("@daily", "1 fields"),
        ("1L/2 * * * *", "minute"),
        ("* * * * 1L/2", "day-of-week"),
        ("٣ * * * *", "minute"),
        ("0," * 150 + "0 * * * *", "longer"),
    ],
)
def test_schedules_a_pattern_that_is_none_is_refused_with_the_way_out(
    pattern: str, said: str
) -> None:
    message = refused(ScheduleTrigger(cron=pattern))
    assert said in message


@pytest.mark.parametrize(
    "zone",
    [
        "Europe/Berlim",
        "Mars/Olympus",
        "America",
        "../etc/passwd",
        "/etc/localtime",
        "localtime",
        "right/UTC",
        "x" * 300,
        "Europe/Berlin\x00",
        "Europe/../UTC",
    ],
)
def test_schedules_a_zone_that_does_not_exist_is_refused(zone: str) -> None:
    assert "no time zone" in refused(ScheduleTrigger(cron="0 9 * * *", time_zone=zone))


def test_schedules_a_zone_with_a_slip_is_answered_with_the_one_that_is_meant() -> None:
    message = refused(ScheduleTrigger(cron="0 9 * * *", time_zone="Europe/Berlim"))
    assert "Europe/Berlin" in message


def test_schedules_a_zone_in_the_wrong_case_is_answered_with_that_one_alone() -> None:
    message = refused(ScheduleTrigger(cron="0 9 * * *", time_zone="europe/berlin"))
    assert "is Europe/Berlin meant?" in message


@pytest.mark.parametrize(
    ("trigger", "said"),
    [
        (ScheduleTrigger(), "exactly one"),
        (ScheduleTrigger(cron="* * * * *", every_seconds=5), "this has cron and everySeconds"),
        (ScheduleTrigger(at="2031-05-17T10:00:00Z", time_zone="UTC"), "timeZone"),
        (ScheduleTrigger(at="2031-05-17T08:00:00Z"), "past"),
        (ScheduleTrigger(at="tomorrow"), "offset"),
        (ScheduleTrigger(at="2031-05-17T10:00:00"), "offset"),
        (ScheduleTrigger(at="2031-02-29T10:00:00Z"), "offset"),
        (ScheduleTrigger(at="20310517T100000Z"), "offset"),
        (ScheduleTrigger(at="0001-01-01T00:00:00+14:00"), "offset"),
        (ScheduleTrigger(every_seconds=0), "everySeconds"),
        (ScheduleTrigger(every_seconds=-5), "everySeconds"),
        (ScheduleTrigger(every_seconds=10**12), "everySeconds"),
    ],
)
def test_schedules_a_trigger_that_is_none_is_refused(trigger: ScheduleTrigger, said: str) -> None:
    assert said in refused(trigger)


def test_schedules_no_time_beyond_the_end_of_the_calendar() -> None:
    end = datetime(9999, 12, 31, 23, 59, tzinfo=UTC)
    assert cron.parse("0 0 1 1 *", None).after(end) is None
    assert Every(at("2031-01-01T00:00:00Z"), 3600).after(end + timedelta(seconds=30)) is None


# --- instants and intervals -----------------------------------------------------------------------------


def test_schedules_an_instant_is_kept_in_utc() -> None:
    assert checked(ScheduleTrigger(at="2031-05-17T12:00:00+02:00")).at == "2031-05-17T10:00:00.000Z"
    assert text_of(instant_of("2031-05-17T12:00:00.1234567Z", "at")) == "2031-05-17T12:00:00.123Z"


def test_schedules_an_instant_comes_once() -> None:
    once = Once(at("2031-05-17T12:00:00Z"))
    assert once.after(at("2031-05-17T11:00:00Z")) == at("2031-05-17T12:00:00Z")
    assert once.after(at("2031-05-17T12:00:00Z")) is None


def test_schedules_an_interval_keeps_its_step_whenever_it_is_looked_at() -> None:
    every = Every(at("2031-05-17T09:00:10Z"), 90)
    assert every.after(at("2031-05-17T09:00:10Z")) == at("2031-05-17T09:01:40Z")
    assert every.after(at("2031-05-17T09:05:00Z")) == at("2031-05-17T09:06:10Z")
    assert every.after(at("2031-05-17T08:00:00Z")) == at("2031-05-17T09:01:40Z")


# --- what has passed ------------------------------------------------------------------------------------

GRACE = timedelta(seconds=60)


def test_schedules_a_time_just_past_is_kept_and_those_before_it_were_missed() -> None:
    hourly = cron.parse("0 * * * *", None)
    gone = passed(hourly, at("2031-05-17T06:00:00Z"), at("2031-05-17T09:00:20Z"), GRACE)
    assert (gone.missed, gone.on_time) == (3, at("2031-05-17T09:00:00Z"))
    assert gone.last_missed == at("2031-05-17T08:00:00Z")
    assert gone.following == at("2031-05-17T10:00:00Z")


def test_schedules_a_time_long_past_was_missed() -> None:
    hourly = cron.parse("0 * * * *", None)
    gone = passed(hourly, at("2031-05-17T06:00:00Z"), at("2031-05-17T09:30:00Z"), GRACE)
    assert (gone.missed, gone.on_time) == (4, None)
    assert gone.last_missed == at("2031-05-17T09:00:00Z")
    assert gone.following == at("2031-05-17T10:00:00Z")


def test_schedules_a_year_of_seconds_is_not_counted_one_by_one() -> None:
    each = cron.parse("* * * * * *", None)
    gone = passed(each, at("2030-05-17T09:00:00Z"), at("2031-05-17T09:00:00Z"), GRACE)
    assert (gone.missed, gone.on_time) == (100, at("2031-05-17T09:00:00Z"))
    every = Every(at("2030-05-17T08:59:59Z"), 1)
    gone = passed(every, at("2030-05-17T09:00:00Z"), at("2031-05-17T09:00:00Z"), GRACE)
    assert (gone.missed, gone.on_time) == (365 * 86_400, at("2031-05-17T09:00:00Z"))


def test_schedules_a_single_instant_is_never_missed() -> None:
    once = Once(at("2031-05-17T06:00:00Z"))
    gone = passed(once, once.at, at("2032-05-17T06:00:00Z"), GRACE)
    assert (gone.missed, gone.on_time, gone.following) == (0, once.at, None)


# --- properties -----------------------------------------------------------------------------------------

_ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Beirut")
_PATTERNS = st.tuples(
    st.sampled_from(["0", "30", "*/15", "5,35", "*"]),
    st.sampled_from(["2", "0", "1,2,3", "*", "*/6", "23"]),
    st.sampled_from(["*", "1", "28-31", "L"]),
    st.just("*"),
    st.sampled_from(["*", "1-5", "0", "7"]),
).map(" ".join)


@settings(deadline=None, max_examples=150)
@given(
    _PATTERNS,
    st.sampled_from(_ZONES),
    st.datetimes(min_value=datetime(2030, 1, 1), max_value=datetime(2034, 1, 1)),
)
def test_schedules_times_rise_and_lie_where_the_clock_shows_them(
    pattern: str, zone: str, start: datetime
) -> None:
    begin = start.replace(tzinfo=UTC)
    times = cron.parse(pattern, zone)
    before = begin
    for each in following(times, begin, 6):
        assert each > before
        # the first after any moment between two times is the later of them
        assert times.after(each - timedelta(milliseconds=1)) == each
        shown = each.astimezone(ZoneInfo(zone))
        minute, hour = pattern.split()[:2]
        in_gap = shown != each.astimezone(UTC).astimezone(ZoneInfo(zone)) or (
            (each - timedelta(seconds=1)).astimezone(ZoneInfo(zone)).utcoffset()
            != shown.utcoffset()
        )
        if hour.isdigit() and not in_gap:
            assert shown.hour == int(hour)
        if minute.isdigit() and not in_gap:
            assert shown.minute == int(minute)
        before = each


def test_schedules_a_preview_tells_the_next_times() -> None:
    found = preview(ScheduleTrigger(cron="0 9 * * *"), 2, "2031-05-17T09:00:00.000Z")
    assert found == ("2031-05-18T09:00:00.000Z", "2031-05-19T09:00:00.000Z")
    for count in (0, 101):
        with pytest.raises(CallboardError):
            preview(ScheduleTrigger(cron="0 9 * * *"), count, "2031-05-17T09:00:00.000Z")


def test_schedules_what_never_comes_is_told_by_its_pattern() -> None:
    trigger = ScheduleTrigger(cron="0 0 */30 * MON#2")
    with pytest.raises(CallboardError) as caught:
        first_after(
            trigger, times_of(trigger, at("2031-01-01T00:00:00Z")), at("2031-01-01T00:00:00Z")
        )
    assert "'0 0 */30 * MON#2'" in caught.value.message


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Beirut"])
@pytest.mark.parametrize(
    "pattern",
    ["*/7 * * * *", "30 2 * * *", "15,45 0-3 * * *", "0 */5 * * *", "* 2 * * *", "20 30 1 * * *"],
)
@pytest.mark.parametrize("start", ["2031-03-29T22:00:00Z", "2031-10-25T22:00:00Z"])
def test_schedules_times_told_in_a_row_are_those_told_one_by_one(
    pattern: str, zone: str, start: str
) -> None:
    times = cron.parse(pattern, zone)
    last = at(start)
    for each in islice(times.each_after(last), 60):
        assert each == times.after(last)
        last = each
