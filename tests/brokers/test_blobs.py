"""Blob triggers on moto's S3 and Azurite's blobs: each version of a blob is one job, whoever is killed and whoever goes away."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import obstore
import pytest
from obstore.store import AzureStore, ObjectStore, S3Store

from lateshift import Lateshift
from lateshift.clock import ManualClock
from lateshift.model.ids import new_member_id
from lateshift.model.triggering.sources import BlobSource
from lateshift.store.open import open_store
from lateshift.triggers.blobs import Blobs
from lateshift.triggers.declaring import Declaring
from lateshift.triggers.reader import Reader
from lateshift.triggers.source import SourceAway
from tests.brokers import servers
from tests.brokers.blob_reader import options
from tests.crash.checker import query
from tests.crash.scene import PATH, ROOT
from tests.unit.receiving import Kept, Turning

KILLS = 10


class Bucket:
    """One of its own on a server, reached without Lateshift."""

    def __init__(self, url: str, options: dict[str, str], store: ObjectStore) -> None:
        self.url = url
        self.options = options
        self._store = store

    def put(self, name: str, content: bytes = b"x") -> None:
        obstore.put(self._store, name, content)

    def delete(self, *names: str) -> None:
        for name in names:
            obstore.delete(self._store, name)

    def source(self, pattern: str, clock: ManualClock) -> Blobs:
        return Blobs(BlobSource(url=self.url, pattern=pattern, options=self.options), clock)


def s3(endpoint: str) -> Bucket:
    import boto3

    name = f"b{uuid4().hex}"
    client = boto3.client(
        "s3", endpoint_url=endpoint, aws_access_key_id="a", aws_secret_access_key="b", region_name="us-east-1"
    )
    client.create_bucket(Bucket=name)
    given = options(endpoint)
    return Bucket(f"s3://{name}", given, S3Store(name, config=given))  # type: ignore[arg-type]


def azure(azurite: servers.Azurite) -> Bucket:
    from azure.storage.blob import BlobServiceClient

    name = f"b{uuid4().hex}"
    with BlobServiceClient.from_connection_string(azurite.connection_string) as client:
        client.create_container(name)
    given = {
        "account_name": azurite.account, "account_key": azurite.key, "endpoint": azurite.blob, "allow_http": "true",
    }  # fmt: skip
    return Bucket(f"az://{name}", given, AzureStore(name, config=given))  # type: ignore[arg-type]


@pytest.fixture(params=["s3", "azure"])
def bucket(request: pytest.FixtureRequest) -> Iterator[Bucket]:
    if request.param == "s3":
        yield s3(request.getfixturevalue("moto"))
    else:
        yield azure(request.getfixturevalue("azurite"))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def later(turning: Turning, clock: ManualClock) -> list[str]:
    clock.move(seconds=31)
    return turning.quiet()


def test_blobs_that_come_change_go_and_come_again(bucket: Bucket, clock: ManualClock) -> None:
    names = ["in/a b#%41.csv", "in/deep/c.csv", "in/ü.csv"]
    for name in (*names, "in/b.txt", "inbox/d.csv", "in/.hidden.csv"):
        bucket.put(name, b"hello")
    turning = Turning(bucket.source("in/**/*.csv", clock))
    urls = [f"{bucket.url}/{name}" for name in names]
    assert turning.quiet() == urls
    assert [change.size for change in turning.jobs] == [5, 5, 5]
    assert later(turning, clock) == []
    bucket.put(names[0], b"changed")
    assert later(turning, clock) == urls[:1]
    bucket.delete(names[1])
    assert later(turning, clock) == []
    assert turning.kept.forgotten == urls[1:2]
    bucket.put(names[1], b"hello")
    assert later(turning, clock) == urls[1:2]
    bucket.delete(*names)
    assert later(turning, clock) == []
    assert turning.kept.marks == {}


@pytest.mark.timeout(300)
def test_more_blobs_than_one_page(bucket: Bucket, clock: ManualClock) -> None:
    names = [f"in/{number:05}.csv" for number in range(1200)]
    for name in names:
        bucket.put(name)
    turning = Turning(bucket.source("in/*.csv", clock))
    assert turning.quiet() == [f"{bucket.url}/{name}" for name in names]
    assert max(turning.kept.asked) <= 1000
    assert later(turning, clock) == []
    bucket.delete(*names[:100], *names[1100:])
    assert later(turning, clock) == []
    assert len(turning.kept.marks) == 1000


def test_a_bucket_that_is_not_there_is_told(bucket: Bucket, clock: ManualClock) -> None:
    source = Blobs(BlobSource(url=f"{bucket.url}x", pattern="*", options=bucket.options), clock)
    source.open(None, Kept())
    with pytest.raises(
        SourceAway, match=rf"{bucket.url}x cannot be listed: .*(NoSuchBucket|ContainerNotFound)"
    ):
        source.read(10, 0.5)


def test_a_server_that_does_not_answer_is_told_without_secrets(bucket: Bucket, clock: ManualClock) -> None:
    nobody = {**bucket.options, "endpoint": f"http://127.0.0.1:{servers.free_port()}"}
    source = Blobs(BlobSource(url=bucket.url, pattern="*", options=nobody), clock)
    source.open(None, Kept())
    with pytest.raises(SourceAway, match="cannot be listed") as error:
        source.read(10, 0.5)
    secrets = [value for name, value in nobody.items() if "key" in name]
    assert not [value for value in secrets if value in str(error.value)]
    assert error.value.__cause__ is None


def test_a_key_that_obstore_cannot_read_is_told_by_name(moto: str, clock: ManualClock) -> None:
    import boto3

    bucket = s3(moto)
    client = boto3.client(
        "s3", endpoint_url=moto, aws_access_key_id="a", aws_secret_access_key="b", region_name="us-east-1"
    )
    client.put_object(Bucket=bucket.url.removeprefix("s3://"), Key="in//double.csv", Body=b"x")
    source = bucket.source("in/**", clock)
    source.open(None, Kept())
    with pytest.raises(SourceAway, match=r"in//double\.csv"):
        source.read(10, 0.5)


def test_what_the_options_do_not_say_comes_from_the_environment(
    moto: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = s3(moto)
    bucket.put("in/a.csv")
    for name, value in {
        "AWS_ENDPOINT_URL": moto, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    turning = Turning(Blobs(BlobSource(url=bucket.url, pattern="in/*"), clock))
    assert turning.quiet() == [f"{bucket.url}/in/a.csv"]


def test_a_trigger_of_an_app_makes_jobs(bucket: Bucket, store_url: str, clock: ManualClock) -> None:
    app = Lateshift("blobs", store=store_url, clock=clock)

    @app.on_file(f"{bucket.url}/in/*.csv", every=timedelta(0), options=bucket.options)
    def load(url: str) -> None: ...

    try:
        [trigger] = app.triggers.values()
        Declaring(app.store, app.name, lambda: [trigger.declared]).say()
        reader = Reader(app.store, trigger, new_member_id(), clock)
        made = []
        for name in ("in/a.csv", "in/b.csv", "in/a.csv"):
            bucket.put(name, uuid4().bytes)
            clock.move(seconds=1)
            for _ in range(5):
                reader.round()
            view = app.store.triggers.get("load")
            assert view is not None
            made.append((view.made, view.error))
        assert made == [(1, None), (2, None), (3, None)]
        reader.resign()
    finally:
        app.close()


@pytest.mark.parametrize("point", ["trigger.after_read", "trigger.before_commit", "trigger.after_commit"])
def test_no_blob_is_lost_and_none_makes_two_jobs(moto: str, tmp_path: Path, point: str) -> None:
    """Readers are killed, by kill -9, at the worst of moments."""
    url = f"sqlite:///{tmp_path}/blobs.db"
    store = open_store(url)
    store.ready()
    store.close()
    bucket = s3(moto).url.removeprefix("s3://")
    environment = os.environ | {"PYTHONPATH": PATH, "LATESHIFT_STORE": url}
    command = [sys.executable, "-m", "tests.brokers.blob_reader", moto, bucket, point, str(KILLS)]
    done = subprocess.run(
        command, check=False, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["killed"] == KILLS
    payloads = query(url, "SELECT payload FROM job", "SELECT payload FROM lateshift.job")
    jobs = Counter(json.loads(payload)["file"]["path"] for (payload,) in payloads)
    print(f"{KILLS} kills, {sum(answer['versions'].values())} versions, {jobs.total()} jobs")
    assert jobs == answer["versions"]
