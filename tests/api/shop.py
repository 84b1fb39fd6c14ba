"""An app with something of everything that can be asked for."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import Struct

from lateshift import Breaker, Flow, Lateshift, Permanent, Retry

# Half a day away: it does not fire by chance in a test that moves on by some hours.
HOUR = (datetime.now(UTC).hour + 12) % 24
DAILY = f"0 {HOUR} * * *"


class Box(Struct):
    width: int
    height: int


class Shop:
    def __init__(self, app: Lateshift) -> None:
        @app.task(queue="images")
        def thumbnail(path: str, width: int = 200, boxes: list[Box] | None = None) -> str:
            return f"{path} at {width}"

        @app.task(queue="mail", retry=Retry(attempts=1))
        def send(to: str) -> str:
            if to == "nobody":
                raise Permanent("there is nobody")
            return f"sent to {to}"

        @app.task(queue="pay", breaker=Breaker(failures=2, open_for=timedelta(hours=10)))
        def pay() -> None: ...

        @app.workflow(queue="orders", on_failure="hold")
        async def order(flow: Flow, number: int, card: str = "good") -> Any:
            await flow.step(charge, card, undo=refund)
            if card == "task":
                await flow.step(send, "nobody")
            return await flow.wait_for("picked")

        def charge(card: str) -> str:
            if card == "bad":
                raise Permanent("no such card")
            return "charged"

        def refund(card: str, result: str) -> None: ...

        app.queue("tight", max_ready=1)
        app.schedule(send, args=["all"], name="news", cron=DAILY)
        self.thumbnail, self.send, self.pay, self.order = thumbnail, send, pay, order

    @staticmethod
    def watch_files(app: Lateshift, folder: Path) -> None:
        @app.on_file(str(folder / "*.csv"), name="files")
        def read(path: str) -> None: ...
