"""Is a page as fast with a million jobs as with a thousand? A real server is asked for every page that its links lead to, and for
those of jobs and dead letters by many a filter."""

import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import httpx

from bench.filling import fill_tables
from bench.measures import Sample
from bench.places import Places
from bench.subjects import Subject
from lateshift.store.open import open_store
from tests.browser.crawling import kind_of
from tests.browser.serving import Served, serving

FEW = 1_000
LOOKS = 31  # at each page, of which the median counts
HELD = "default"  # the queue of those jobs, which nobody works on
SHARES = {"completed": 1.0, "ready": 1.0, "dead": 0.2, "scheduled": 0.2, "blocked": 0.2}
# What an index knows: such a page reads what it shows.
NARROWED = (
    *(f"/jobs?state={state}" for state in ("scheduled", "ready", "blocked", "completed", "dead")),
    "/jobs?task=noop", "/jobs?queue=default", "/jobs?tag=none", "/jobs?session=one", "/jobs?since=1h",
    "/jobs?state=dead&task=noop", "/dead-letters?queue=default", "/dead-letters?task=none",
    "/dead-letters?like=00000000", "/audit?actor=none", "/workflows?name=none", "/workflows?state=completed",
)  # fmt: skip
# What none knows, and no job has: such a page looks at as many jobs as one search may.
SEARCHED = (
    "/jobs?queue=none", "/jobs?task=none", "/jobs?reason=none", "/jobs?argument=none", "/jobs?state=dead&error=none",
    "/jobs?id=00000000", "/dead-letters?reason=none",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pages:
    """Takes both sides of the comparison on the same store."""

    places: Places
    million: int

    def take(self, subject: Subject) -> Sample:
        """The page that grew most, the slowest page of the full store, and the slowest search in it."""
        few, many = (self.times(subject, jobs) for jobs in (FEW, self.million))
        searches = [many.pop(address) for address in SEARCHED]
        return {
            "page grown": max(many[kind] / few[kind] for kind in many),
            "page slowest": max(many.values()) * 1000,
            "search slowest": max(searches) * 1000,
            "pages": len(many),
        }

    def times(self, subject: Subject, jobs: int) -> dict[str, float]:
        """By page: how long the server took, in seconds. A thousand of each kind at least: pages show as many."""
        with self.places.place(subject.store) as place, tempfile.TemporaryDirectory() as folder:
            fill_tables(subject, place, {kind: max(FEW, int(jobs * share)) for kind, share in SHARES.items()})
            store = open_store(place.url)
            store.queues.pause(HELD, by="the benchmark")
            store.close()
            place.rest()
            with serving(place.url, Path(folder), text="cat.png") as served:
                return times_of_pages(served)


def times_of_pages(served: Served) -> dict[str, float]:
    """Of every kind of page, and of the addresses above."""
    own = {"Origin": served.url, "Sec-Fetch-Site": "same-origin"}
    with httpx.Client(base_url=served.url, trust_env=False, timeout=60) as client:
        code = served.link.partition("code=")[2]
        assert client.post("/sign-in", data={"code": code}, headers=own).status_code == 303
        found, waiting = {"/": "/"}, ["/"]
        while waiting:
            for link in re.findall(r'href="(/[^"?#]*)', client.get(waiting.pop()).text):
                kind = kind_of(link)
                if kind is not None and kind not in found:
                    found[kind] = link
                    waiting.append(link)
        found |= {path: path for path in (*NARROWED, *SEARCHED)}
        return {kind: _time_of(client, path) for kind, path in found.items()}


def _time_of(client: httpx.Client, path: str) -> float:
    taken: list[float] = []
    for _ in range(LOOKS):
        began = time.perf_counter()
        assert client.get(path).status_code == 200, path
        taken.append(time.perf_counter() - began)
    return median(taken)
