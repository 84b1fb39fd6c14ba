"""Is a page as fast with a million jobs as with a thousand? A real server is asked for every page that its links lead to, and for
those of jobs and dead letters by many a filter. A search that looks at ten thousand jobs is soon through with a thousand: it is held beside
a store that has more than it looks at."""

import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import httpx

from bench.filling import fill_tables
from bench.measures import Sample
from bench.places import Places
from bench.subjects import Subject
from lateshift.model.search import LOOKED_AT
from lateshift.store.open import open_store
from tests.browser.crawling import kind_of
from tests.browser.serving import serving

FEW = 1_000
SOME = 100_000  # and a fifth of it of the rarer kinds: of each more than a search looks at
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
    """Takes all sides of the comparison from stores that are there at the same time."""

    places: Places
    million: int

    def take(self, subject: Subject) -> Sample:
        """The page that grew most, be it a search; the slowest page of the full store, and the slowest search in it. And how much each grew."""
        assert min(SHARES.values()) * SOME > LOOKED_AT, (
            "the searches would show how far they look, and not how they grow"
        )
        with ExitStack() as stack:
            few, some, many = (
                stack.enter_context(self._asked(subject, jobs)) for jobs in (FEW, SOME, self.million)
            )
            before, after = _kinds_of_pages(few), _kinds_of_pages(many)
            pages = {kind: _times_of((few, before[kind]), (many, after[kind])) for kind in after}
            pages |= {address: _times_of((few, address), (many, address)) for address in NARROWED}
            searches = {address: _times_of((some, address), (many, address)) for address in SEARCHED}
        grown = {f"grown {kind}": full / small for kind, (small, full) in (pages | searches).items()}
        return {
            "page grown": max(grown.values()),
            "page slowest": max(full for _, full in pages.values()) * 1000,
            "search slowest": max(full for _, full in searches.values()) * 1000,
            "pages": len(grown),
        } | grown

    @contextmanager
    def _asked(self, subject: Subject, jobs: int) -> Iterator[httpx.Client]:
        """A browser that is signed in to a server of so many jobs. A thousand of each kind at least: pages show as many."""
        with self.places.place(subject.store) as place, tempfile.TemporaryDirectory() as folder:
            fill_tables(subject, place, {kind: max(FEW, int(jobs * share)) for kind, share in SHARES.items()})
            store = open_store(place.url)
            store.queues.pause(HELD, by="the benchmark")
            store.close()
            place.rest()
            with (
                serving(place.url, Path(folder), text="cat.png") as served,
                httpx.Client(base_url=served.url, trust_env=False, timeout=60) as client,
            ):
                own = {"Origin": served.url, "Sec-Fetch-Site": "same-origin"}
                code = served.link.partition("code=")[2]
                assert client.post("/sign-in", data={"code": code}, headers=own).status_code == 303
                yield client


def _kinds_of_pages(client: httpx.Client) -> dict[str, str]:
    """From the overview on: for each kind of page, the first address that was found."""
    found, waiting = {"/": "/"}, ["/"]
    while waiting:
        for link in re.findall(r'href="(/[^"?#]*)', client.get(waiting.pop()).text):
            kind = kind_of(link)
            if kind is not None and kind not in found:
                found[kind] = link
                waiting.append(link)
    return found


def _times_of(*pages: tuple[httpx.Client, str]) -> tuple[float, ...]:
    """How long each took its server, in seconds. They are looked at in turn: a machine that becomes slower does so for all of them."""
    taken: list[list[float]] = [[] for _ in pages]
    for _ in range(LOOKS):
        for (client, path), times in zip(pages, taken, strict=True):
            began = time.perf_counter()
            assert client.get(path).status_code == 200, path
            times.append(time.perf_counter() - began)
    return tuple(map(median, taken))
