"""An office with two schedules, one by the clock of its town and one by interval: `lateshift up examples/nightly.py`.

`lateshift schedules list` shows when they fire next; `lateshift schedules fire "the night's report"` does not wait for it.
"""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from lateshift import Lateshift

HERE = ZoneInfo("Europe/Madrid")

app = Lateshift("office")


@app.task
def report(tick: datetime) -> str:
    """Of the day before the tick: a job that runs late, or is backfilled, still knows which day it is for."""
    day = tick.astimezone(HERE).date() - timedelta(days=1)
    return f"the report of {day}"


@app.task
async def look(shelf: str) -> str:
    """Skipped while the last one has not ended."""
    return f"all is well on shelf {shelf}"


app.schedule(
    report, cron="30 2 * * *", timezone=HERE.key, tick_as="tick", catch_up="last", name="the night's report"
)
app.schedule(look, every=timedelta(seconds=5), args=["A"], name="look at shelf A")
