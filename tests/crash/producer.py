"""Makes a batch of jobs numbered from 0 on: `python -m tests.crash.producer COUNT`. A process of its own, to be killed; the
next one goes on with the same batch."""

import sys

from tests.crash.program import app

CALLBACK = 1_000_000  # the number of the job that follows
KEY = "nightly"

if __name__ == "__main__":
    quick = app.find_task("quick")
    app.batch((quick.call(number) for number in range(int(sys.argv[1]))), then=quick.call(CALLBACK), key=KEY)
