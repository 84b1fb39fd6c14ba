"""The figures of the API: rates under load in one server process, and what an idle one costs."""

import re
import sys
import time
from functools import partial

from bench import children
from bench.measures import SETTLING_IN, Bench, Sample, environment, install, seconds_of
from bench.subjects import PROGRAM, Subject

STARTED_WITHIN = 60.0  # seconds
SERVE = (
    "-c",
    "from lateshift.cli.main import main; main()",
    "serve",
    PROGRAM,
    "--port",
    "0",
    "--show-secrets",
)


def under_load(bench: Bench, subject: Subject, seconds: float) -> Sample:
    """Each of the three kinds of request for so many seconds, in turn."""
    with bench.places.place(subject.store) as place:
        install(subject, place)
        told = place.folder / "server.json"
        server = [children.python("bench.http.server", told)]
        with children.running(server, environment(place), cwd=place.folder) as started:
            children.wait_until(told.exists, started, cwd=place.folder, limit=STARTED_WITHIN)
            load = children.python("bench.http.load", told, seconds)
            return children.ask(load, environment(place), cwd=place.folder)


def idle(bench: Bench, subject: Subject, seconds: float) -> Sample:
    """A server that nobody asks anything."""
    with bench.places.place(subject.store) as place:
        install(subject, place)
        command = [[sys.executable, *SERVE]]
        said = place.folder / "worker-0.log"
        with children.running(command, environment(place), cwd=place.folder) as started:
            listens = partial(re.search, r"http://127\.0\.0\.1:\d+")
            children.wait_until(
                lambda: bool(listens(said.read_text())), started, cwd=place.folder, limit=STARTED_WITHIN
            )
            time.sleep(SETTLING_IN)
            processes = [process for child in started for process in children.tree(child)]
            before = sum(map(seconds_of, processes))
            time.sleep(seconds)
            used = sum(map(seconds_of, processes)) - before
    return {"serve cpu": 100 * max(0.0, used) / seconds}
