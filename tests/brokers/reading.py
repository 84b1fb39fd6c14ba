"""An app whose one trigger reads a queue, for the tests and, as a program, for those that kill it."""

import importlib
import json
import os
import sys
import traceback
from typing import Any
from uuid import UUID

from lateshift import Lateshift
from lateshift.model.ids import new_member_id
from lateshift.store import crashpoints
from lateshift.triggers.declaring import Declaring
from lateshift.triggers.reader import Reader

MEMBER = UUID(int=7)  # whoever follows a dead one under its name need not wait for its term to end


def make_app(store: str, url: str, queue: str, options: dict[str, Any], **more: Any) -> Lateshift:
    app = Lateshift("inbox", store=store)

    @app.on_message(url, queue, options=options, name="inbox", **more)
    @app.task
    def take(order: dict[str, Any]) -> None: ...

    declaring = app.readers()[0]
    assert isinstance(declaring, Declaring)
    declaring.say()
    return app


def reader(app: Lateshift, member: UUID | None = None) -> Reader:
    return Reader(app.store, app.triggers["inbox"], member or new_member_id(), app.clock, app.name)


def read_all() -> None:
    """Reads until nothing comes for a few looks. LATESHIFT_CRASH says where it dies, if it does."""
    queue = json.loads(os.environ["TEST_QUEUE"])
    app = make_app(os.environ["LATESHIFT_STORE"], queue["url"], queue["name"], queue["options"])
    mine = reader(app, MEMBER)
    quiet = 0
    for _ in range(1000):
        before = _counts(app)
        mine.round()
        quiet = 0 if _counts(app) != before else quiet + 1
        if quiet == 3:
            break
    mine.resign()
    app.close()


def _counts(app: Lateshift) -> tuple[int, ...]:
    view = app.store.triggers.get("inbox")
    assert view is not None
    return view.made, view.repeated, view.refused


def in_child(crash: str) -> int:
    """A process that reads all, or dies at a crash point; gives how it ended. Nothing is open yet that it could inherit."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.environ["LATESHIFT_CRASH"] = crash
            importlib.reload(crashpoints)
            read_all()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> None:
    """For each line, a process: its crash point, or nothing. To import everything takes longer than to live and die."""
    import lateshift.triggers.brokers.azure
    import lateshift.triggers.brokers.consumer
    import lateshift.triggers.brokers.redis_lists
    import lateshift.triggers.brokers.sqs  # noqa: F401

    for line in sys.stdin:
        print(in_child(line.strip()), flush=True)


if __name__ == "__main__":
    main()
