"""When a blob becomes a job: turned by hand, on a store in memory and a clock that the test moves. Servers: tests/brokers."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import obstore
import pytest
from obstore.store import MemoryStore

from lateshift.clock import ManualClock
from lateshift.model.triggering.sources import BlobSource
from lateshift.triggers import blobs
from lateshift.triggers.blobs import PAGE, Blobs, told
from lateshift.triggers.source import SourceAway
from tests.unit.receiving import Kept, Turning

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture
def bucket() -> MemoryStore:
    return MemoryStore()


def turn(bucket: MemoryStore, clock: ManualClock, pattern: str, kept: Kept | None = None) -> Turning:
    return Turning(Blobs(BlobSource(url="gs://bucket", pattern=pattern), clock, bucket), kept)


def later(turning: Turning, clock: ManualClock) -> list[str]:
    clock.move(seconds=31)
    return turning.quiet()


def test_each_version_of_a_blob_is_one_job(bucket: MemoryStore, clock: ManualClock) -> None:
    bucket.put("in/a.csv", b"hello")
    turning = turn(bucket, clock, "in/*.csv")
    assert turning.quiet() == ["gs://bucket/in/a.csv"]
    [change] = turning.jobs
    assert (change.size, change.etag) == (5, bucket.head("in/a.csv")["e_tag"])
    assert later(turning, clock) == []
    bucket.put("in/a.csv", b"world")
    assert turning.quiet() == []  # not yet
    assert timedelta(seconds=20) < turning.last.pause <= timedelta(seconds=30)
    assert later(turning, clock) == ["gs://bucket/in/a.csv"]


@pytest.mark.parametrize(
    ("pattern", "prefix", "matching"),
    [
        ("*.csv", None, ["a.csv"]),
        ("in/*.csv", "in", ["in/b.csv"]),
        ("in/**/*.csv", "in", ["in/b.csv", "in/deep/c.csv"]),
        ("in/b.csv", "in", ["in/b.csv"]),
        ("**", None, ["a.csv", "in/b.csv", "in/deep/c.csv", "inbox/d.csv"]),
        ("in*/?.csv", None, ["in/b.csv", "inbox/d.csv"]),
        ("in/.*", "in", ["in/.hidden.csv"]),
    ],
)
def test_what_a_pattern_matches(
    bucket: MemoryStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, pattern: str, prefix: str | None,
    matching: list[str],
) -> None:  # fmt: skip
    asked: list[str | None] = []
    real = obstore.list

    def listing(store: Any, under: str | None, *, chunk_size: int) -> Any:
        asked.append(under)
        return real(store, under, chunk_size=chunk_size)

    monkeypatch.setattr(obstore, "list", listing)
    for name in ("a.csv", "in/b.csv", "in/deep/c.csv", "inbox/d.csv", "in/.hidden.csv"):
        bucket.put(name, b"x")
    assert turn(bucket, clock, pattern).quiet() == [f"gs://bucket/{name}" for name in matching]
    assert asked == [prefix]


def test_a_blob_that_is_gone_is_forgotten_and_seen_again(bucket: MemoryStore, clock: ManualClock) -> None:
    for name in "abcde":
        bucket.put(f"in/{name}.csv", b"x")
    turning = turn(bucket, clock, "in/*")
    assert len(turning.quiet()) == 5
    for name in "ace":
        bucket.delete(f"in/{name}.csv")
    assert later(turning, clock) == []
    assert turning.kept.forgotten == [f"gs://bucket/in/{name}.csv" for name in "ace"]
    bucket.put("in/a.csv", b"x")
    assert later(turning, clock) == ["gs://bucket/in/a.csv"]
    for name in "abd":
        bucket.delete(f"in/{name}.csv")
    assert later(turning, clock) == []
    assert turning.kept.marks == {}


def test_what_another_pattern_left_is_not_taken_for_gone(bucket: MemoryStore, clock: ManualClock) -> None:
    kept = Kept()
    kept.marks = {"gs://bucket/other/a.csv": "1", "s3://elsewhere/in/a.csv": "1", "gs://bucket/in/a.txt": "1"}
    bucket.put("in/a.csv", b"x")
    turning = turn(bucket, clock, "in/*.csv", kept)
    assert turning.quiet() == ["gs://bucket/in/a.csv"]
    assert turning.kept.forgotten == []


def test_a_url_that_is_too_long_to_be_known_by_makes_one_job(bucket: MemoryStore, clock: ManualClock) -> None:
    name = f"in/{'long' * 300}.csv"
    bucket.put(name, b"x")
    bucket.put("in/z.csv", b"x")
    turning = turn(bucket, clock, "in/*.csv")
    assert sorted(turning.quiet()) == [f"gs://bucket/{name}", "gs://bucket/in/z.csv"]
    assert later(turning, clock) == []
    assert turning.kept.forgotten == []


def blob(name: str) -> dict[str, Any]:
    return {"path": name, "size": 1, "e_tag": None, "last_modified": EPOCH, "version": None}


def lists(monkeypatch: pytest.MonkeyPatch, pages: Sequence[Sequence[str]]) -> None:
    def listing(store: Any, prefix: str | None, *, chunk_size: int) -> Iterator[list[dict[str, Any]]]:
        return ([blob(name) for name in page] for page in pages)

    monkeypatch.setattr(obstore, "list", listing)


def test_nothing_is_forgotten_where_the_listing_is_out_of_order(
    bucket: MemoryStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What seemed to be gone may come after what it should have come before."""
    lists(monkeypatch, [["in/b", "in/c"], ["in/a"]])
    turning = turn(bucket, clock, "in/*")
    assert len(turning.quiet()) == 3
    assert later(turning, clock) == later(turning, clock) == []
    assert turning.kept.forgotten == []
    [record] = caplog.records
    assert record.message.startswith(
        "gs://bucket is not listed in the order of names (gs://bucket/in/c before gs://"
    )


def test_many_blobs_come_a_page_at_a_time(
    bucket: MemoryStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blobs, "GONE_MOST", 2500)
    pages = [[f"in/{page:02}{number:04}" for number in range(PAGE)] for page in range(6)]
    lists(monkeypatch, pages)
    turning = turn(bucket, clock, "in/*")
    assert len(turning.read(400)) == 400
    assert turning.last.more
    assert len(turning.quiet(400)) == 6 * PAGE - 400
    assert max(turning.kept.asked) <= PAGE
    lists(monkeypatch, [])
    for left in (3500, 1000, 0):
        assert later(turning, clock) == []
        assert len(turning.kept.marks) == left


def test_a_blob_without_an_etag_is_known_by_its_size_and_time(
    bucket: MemoryStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists(monkeypatch, [["in/a"]])
    turning = turn(bucket, clock, "in/*")
    assert turning.quiet() == ["gs://bucket/in/a"]
    assert later(turning, clock) == []


@pytest.mark.parametrize("scheme", ["s3", "az", "gs"])
def test_an_option_that_obstore_does_not_know_is_told(scheme: str) -> None:
    where = BlobSource(url=f"{scheme}://bucket", pattern="*", options={"nonsense": "secret"})
    with pytest.raises(SourceAway, match=rf"{scheme}://bucket cannot be opened: .*nonsense"):
        Blobs(where).open(None, Kept())


def test_what_a_server_says_is_told_without_secrets() -> None:
    said = (
        "Error performing GET https://host/bucket?sig=abc&se=1 in 3ms - status 403: <?xml version='1.0'?><Error>"
        "<Code>SignatureDoesNotMatch</Code><Message>It does not match.\nmore</Message><StringToSign>GET wJalr"
        "</StringToSign></Error>\n\nDebug source:\nGeneric { wJalr }"
    )
    assert told(said, {}) == (
        "Error performing GET https://host/bucket in 3ms - status 403: SignatureDoesNotMatch: It does not match."
    )
    assert (
        told("bad key wJalr of host", {"secret_access_key": "wJalr", "endpoint": "host"})
        == "bad key *** of host"
    )
