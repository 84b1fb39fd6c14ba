"""Enqueues a job and writes it down: `python -m tests.crash.caller NUMBER [KEY]`. A process of its own, to be killed."""

import sys
from typing import Any

from lateshift import Lateshift
from lateshift.errors import StoreError
from tests.crash.ledger import Ledger, here
from tests.crash.program import app


def enqueue(
    app: Lateshift,
    ledger: Ledger,
    task: str,
    number: int,
    *rest: object,
    key: str | None = None,
    **options: Any,
) -> str | None:
    """The id of the job if it was accepted, else None: then nobody knows."""
    found = app.find_task(task)
    if key is not None:
        options["key"] = key
    call = found.options(**options).call(number, *rest) if options else found.call(number, *rest)
    ledger.call("attempted", call.id.hex, number, key)
    try:
        job = app.client.send(call, None)
    except StoreError:
        ledger.call("unknown", call.id.hex, number, key)
        return None
    ledger.call("ok", job.id.hex, number, key)
    return job.id.hex


if __name__ == "__main__":
    enqueue(app, here(), "quick", int(sys.argv[1]), key=sys.argv[2] if len(sys.argv) > 2 else None)
