"""Is a page as fast with a million jobs as with a thousand? A real server is asked for every page that its links lead to."""

import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import httpx

from bench.history import fill_table
from bench.measures import Sample
from bench.places import Places
from bench.subjects import Subject
from lateshift.store.open import open_store
from tests.browser.crawling import kind_of
from tests.browser.serving import Served, serving

FEW = 1_000
LOOKS = 9  # at each page, of which the median counts
HELD = "default"  # the queue of those jobs, which nobody works on


@dataclass(frozen=True, slots=True)
class Pages:
    """Takes both sides of the comparison on the same store."""

    places: Places
    million: int

    def take(self, subject: Subject) -> Sample:
        """The page that grew most, and the slowest page of the full store."""
        few, many = (self._times(subject, jobs) for jobs in (FEW, self.million))
        grown = {kind: many[kind] / few[kind] for kind in few}
        return {
            "page grown": max(grown.values()),
            "page slowest": max(many.values()) * 1000,
            "pages": len(many),
        }

    def _times(self, subject: Subject, jobs: int) -> dict[str, float]:
        with self.places.place(subject.store) as place, tempfile.TemporaryDirectory() as folder:
            fill_table(subject, place, "settled", jobs)
            fill_table(subject, place, "ready", jobs)
            store = open_store(place.url)
            store.queues.pause(HELD, by="the benchmark")
            store.close()
            place.rest()
            with serving(place.url, Path(folder), text="cat.png") as served:
                return times_of_pages(served)


def times_of_pages(served: Served) -> dict[str, float]:
    """By the kind of the page: how long the server took, in seconds."""
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
        return {kind: _time_of(client, path) for kind, path in found.items()}


def _time_of(client: httpx.Client, path: str) -> float:
    taken: list[float] = []
    for _ in range(LOOKS):
        began = time.perf_counter()
        assert client.get(path).status_code == 200, path
        taken.append(time.perf_counter() - began)
    return median(taken)
