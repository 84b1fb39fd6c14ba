"""Where a test's clock had better stand."""

from datetime import timedelta

from lateshift.clock import StillClock


def midway(clock: StillClock) -> None:
    """Moves it on to the middle of an hour. PostgreSQL's own clock runs on from there: no minute and no hour ends by chance
    while a test counts in them."""
    hour = clock.now().replace(minute=30, second=30, microsecond=0)
    clock.move_to(hour + timedelta(hours=1))
