"""When schedules fire: the same instants as an oracle says that knows nothing of this code, in every time zone."""

import itertools
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lateshift.errors import ScheduleInvalid
from lateshift.model.scheduling.cron import NICKNAMES, cron
from lateshift.model.scheduling.timing import Timing, count_ticks, last_ticks, next_tick, ticks, timing_of
from lateshift.model.scheduling.zones import zone, zone_names
from tests.simulation import oracle

EXPRESSIONS = ("30 2 * * *", "*/20 * * * *", "0,30 0-3 * * *", "15 23 * * sun", "5 0 l * *", "0 12 * * mon#2")
HOUR = timedelta(hours=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def found(expression: str, name: str, after: datetime, until: datetime) -> list[datetime]:
    return list(ticks(Timing(cron=expression, timezone=name), after, until))


def different_zones(year: int) -> dict[tuple[oracle.Period, ...], str]:
    """One name for each way in which clocks change in a year."""
    return {oracle.changes(zone(name), year, year + 1): name for name in sorted(zone_names())}


@pytest.mark.parametrize("year", [2011, 2026])
def test_in_every_zone_schedules_fire_around_each_change_of_the_clocks_as_the_oracle_says(year: int) -> None:
    """2011 is the year in which Samoa had no 30 December."""
    for table, name in different_zones(year).items():
        for change in table[1:]:
            middle = change.begin.replace(tzinfo=UTC)
            window = middle - 30 * HOUR, middle + 30 * HOUR
            for expression in EXPRESSIONS:
                told = oracle.ticks(expression, zone(name), *window)
                assert found(expression, name, *window) == told, (name, expression)


@pytest.mark.parametrize(
    "name", ["Europe/Madrid", "Australia/Lord_Howe", "America/St_Johns", "Africa/Casablanca"]
)
def test_the_oracle_itself_agrees_with_a_walk_through_every_minute(name: str) -> None:
    place = zone(name)
    for change in oracle.changes(place, 2026, 2027)[1:]:
        middle = change.begin.replace(tzinfo=UTC)
        minutes = [middle + timedelta(minutes=number) for number in range(-1800, 1800)]
        shown = [(each, each.astimezone(place).replace(tzinfo=None)) for each in minutes]
        for minute in (0, 15, 50):
            told = oracle.ticks(f"{minute} * * * *", place, minutes[0], minutes[-1])
            assert told == [each for each, local in shown[1:] if local.minute == minute]
        firsts: dict[datetime, datetime] = {}
        for each, local in shown:
            firsts.setdefault(local, each)
        told = oracle.ticks("40 2 * * *", place, minutes[0], minutes[-1])
        walked = {each for local, each in firsts.items() if (local.hour, local.minute) == (2, 40)}
        gaps = set(told) - walked
        assert walked <= set(told)
        assert all(each == middle for each in gaps)


@given(
    st.sampled_from(EXPRESSIONS), st.sampled_from(sorted(zone_names())),
    st.datetimes(datetime(1971, 1, 1), datetime(2037, 1, 1), timezones=st.just(UTC)), st.integers(1, 4000),
)  # fmt: skip
@settings(max_examples=100, deadline=None)
def test_anywhere_and_at_any_time_the_ticks_are_those_of_the_oracle(
    expression: str, name: str, after: datetime, minutes: int
) -> None:
    until = after + timedelta(minutes=minutes)
    assert found(expression, name, after, until) == oracle.ticks(expression, zone(name), after, until)


@given(
    st.sampled_from(EXPRESSIONS),
    st.sampled_from(["UTC", "Europe/Madrid"]),
    st.integers(0, 10_000),
    st.integers(1, 9),
)
@settings(max_examples=60, deadline=None)
def test_the_last_ticks_are_the_end_of_all_of_them(
    expression: str, name: str, minutes: int, most: int
) -> None:
    timing = Timing(cron=expression, timezone=name)
    after = at("2026-10-20T00:00")
    until = after + timedelta(minutes=minutes)
    whole = list(ticks(timing, after, until))
    assert last_ticks(timing, after, until, most) == whole[-most:]
    assert count_ticks(timing, after, until, 10_000) == len(whole)


def test_a_time_that_the_clocks_skip_fires_when_they_have_been_set_forward() -> None:
    assert found("30 2 * * *", "Europe/Madrid", at("2026-03-28T12:00"), at("2026-03-29T12:00")) == [
        at("2026-03-29T01:00")
    ]


def test_several_times_that_are_skipped_fire_together_once() -> None:
    window = at("2026-03-28T12:00"), at("2026-03-29T12:00")
    assert found("*/10 2 * * *", "Europe/Madrid", *window) == [at("2026-03-29T01:00")]


def test_a_time_that_the_clocks_show_twice_fires_the_first_time() -> None:
    assert found("30 2 * * *", "Europe/Madrid", at("2026-10-24T12:00"), at("2026-10-25T12:00")) == [
        at("2026-10-25T00:30")
    ]


def test_a_schedule_for_every_hour_fires_in_each_hour_that_passes() -> None:
    spring = found("0 * * * *", "Europe/Madrid", at("2026-03-28T22:30"), at("2026-03-29T03:30"))
    autumn = found("0 * * * *", "Europe/Madrid", at("2026-10-24T22:30"), at("2026-10-25T03:30"))
    for told in (spring, autumn):
        assert [later - earlier for earlier, later in itertools.pairwise(told)] == [HOUR] * 4


def test_six_fields_begin_with_the_seconds() -> None:
    told = found("*/20 30 2 * * *", "UTC", at("2026-01-01T00:00"), at("2026-01-01T12:00"))
    assert [each.second for each in told] == [0, 20, 40]


def test_an_interval_is_counted_from_its_start_whenever_somebody_looks() -> None:
    timing = Timing(every=timedelta(minutes=7), start=at("2026-01-01T00:03"))
    assert next_tick(timing, at("2025-01-01T00:00")) == at("2026-01-01T00:03")
    assert next_tick(timing, at("2026-01-01T00:03")) == at("2026-01-01T00:10")
    assert next_tick(timing, at("2026-01-01T00:09")) == at("2026-01-01T00:10")
    assert count_ticks(timing, at("2026-01-01T00:00"), at("2026-01-01T01:00"), 100) == 9
    assert next_tick(Timing(every=HOUR), at("2026-01-01T00:30")) == at("2026-01-01T01:00")


def test_nothing_fires_after_the_end() -> None:
    timing = Timing(cron="@daily", end=at("2026-01-03T00:00"))
    assert list(ticks(timing, at("2026-01-01T12:00"), at("2026-02-01T00:00"))) == [
        at("2026-01-02T00:00"),
        at("2026-01-03T00:00"),
    ]


def test_a_local_time_without_a_zone_is_one_of_the_schedules_zone() -> None:
    timing = timing_of(
        cron=None, every=None, at=datetime(2026, 7, 1, 9), timezone="Europe/Madrid", start=None, end=None
    )  # fmt: skip
    assert timing.at == at("2026-07-01T07:00")


@pytest.mark.parametrize("nickname", NICKNAMES)
def test_a_nickname_means_its_five_fields(nickname: str) -> None:
    window = at("2026-01-01T00:30"), at("2026-01-08T00:00")
    assert found(nickname, "UTC", *window) == found(NICKNAMES[nickname], "UTC", *window)
    assert cron(nickname.upper()).words == cron(NICKNAMES[nickname]).words


def test_an_expression_says_in_words_what_it_means() -> None:
    assert cron("0 2 * * *").words == "At 02:00 every day"
    assert (
        cron("0 9 1 * mon").words == "At 09:00 on the first day of month or on Monday"
    )  # it fires on either
    assert (
        cron("0 9 1,15 6 mon,fri").words
        == "At 09:00 on the first and the 15th day of month or on Monday and Friday in June"
    )
    assert " if it's on Monday" in cron("0 9 */2 * mon").words  # and here on both
    assert Timing(cron="0 9 * * mon", timezone="Asia/Tokyo").words == "At 09:00 on Monday, Asia/Tokyo"
    assert Timing(every=timedelta(minutes=90)).words == "Every 90 min"


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("0 0 31 2 *", "never fires"), ("0 0 30 feb *", "never fires"), ("* * */20 * 1L", "never fires"),
        ("61 * * * *", "minute that cannot be: '61'"), ("0 25 * * *", "has an hour that cannot be: '25'"),
        ("0 0 * foo *", "month that cannot be: 'FOO'"), ("0 0 * * 8", "day of the week that cannot be: '8'"),
        ("99 0 0 * * *", "second that cannot be: '99'"), ("* * *", "3 fields"), ("", "such as"), (5, "such as"),
        ("@sometimes", "@daily"), ("0 0 * * * * *", "7 fields"), ("x" * 300, "200 characters"),
    ],
)  # fmt: skip
def test_an_expression_that_cannot_be_is_refused_in_words(expression: str, said: str) -> None:
    with pytest.raises(ScheduleInvalid, match="(?i)" + said.replace("'", ".")):
        cron(expression)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Europe/Madird", "Did you mean Europe/Madrid"),
        ("Tokyo", "Asia/Tokyo"),
        ("", "such as"),
        (7, "There is no"),
    ],
)
def test_a_zone_that_does_not_exist_is_refused_and_close_ones_are_named(name: str, said: str) -> None:
    with pytest.raises(ScheduleInvalid, match=said):
        zone(name)


def test_zones_come_from_the_package_not_from_the_machine() -> None:
    assert isinstance(zone("Europe/Madrid"), ZoneInfo)
    assert len(zone_names()) > 500


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, "one of cron"), ({"cron": "@daily", "every": HOUR}, "one of cron"), ({"every": timedelta(0)}, "at least 1 s"),
        ({"every": 5}, "timedelta"), ({"at": "tomorrow"}, "datetime"), ({"at": at("2026-01-01"), "end": at("2027-01-01")}, "fires once"),
        ({"cron": "@daily", "start": at("2027-01-01"), "end": at("2026-01-01")}, "not before"),
        ({"cron": "@yearly", "start": at("2026-02-01"), "end": at("2026-03-01")}, "never fires"),
    ],
)  # fmt: skip
def test_a_timing_that_cannot_be_is_refused_in_words(wrong: dict[str, object], said: str) -> None:
    usual: dict[str, object] = {
        "cron": None,
        "every": None,
        "at": None,
        "timezone": "UTC",
        "start": None,
        "end": None,
    }
    with pytest.raises(ValueError, match=said):
        timing_of(**usual | wrong)  # type: ignore[arg-type]
