"""Where a test's clock had better stand."""

from datetime import timedelta

from lateshift.clock import StillClock


def midway(clock: StillClock) -> None:
    """Moves it on to the middle of an hour. PostgreSQL's own clock runs on from there: no minute and no hour ends by chance
    while a test counts in them."""
    hour = clock.now().replace(minute=30, second=30, microsecond=0)
    clock.move_to(hour + timedelta(hours=1))


def at_noon(clock: StillClock) -> None:
    """Moves it on to the next noon of UTC: what fires at night does not fire by chance in a test that moves on by some hours."""
    noon = clock.now().replace(hour=12, minute=30, second=30, microsecond=0)
    clock.move_to(noon + timedelta(days=1))
