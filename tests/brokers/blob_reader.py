"""Puts blobs into a bucket of moto's, and lets processes read them that are killed:
`python -m tests.brokers.blob_reader ENDPOINT BUCKET POINT KILLS`. Prints how many jobs each blob must have become."""

import json
import random
import sys
from collections import Counter
from functools import partial

import boto3

from lateshift import Lateshift
from lateshift.clock import ManualClock
from lateshift.model.triggering.events import FileChange
from tests.crash.readers import Readers

NEW, CLEAN_EVERY = 3, 5


def options(endpoint: str) -> dict[str, str]:
    return {
        "endpoint": endpoint, "access_key_id": "anybody", "secret_access_key": "anything", "region": "us-east-1",
        "allow_http": "true",
    }  # fmt: skip


def make_app(endpoint: str, bucket: str, clock: ManualClock) -> Lateshift:
    app = Lateshift("blobs", clock=clock)

    @app.on_file(f"s3://{bucket}/in/**/*.csv", options=options(endpoint))
    def load(file: FileChange) -> None: ...

    return app


def main() -> None:
    endpoint, bucket, point, kills = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    client = boto3.client(
        "s3", endpoint_url=endpoint, aws_access_key_id="a", aws_secret_access_key="b", region_name="us-east-1"
    )
    readers = Readers(partial(make_app, endpoint, bucket))
    versions: Counter[str] = Counter()
    there: set[str] = set()

    def put(name: str) -> None:
        client.put_object(Bucket=bucket, Key=name, Body=random.randbytes(10))
        versions[f"s3://{bucket}/{name}"] += 1
        there.add(name)

    while readers.killed < kills:
        for _ in range(NEW):
            put(f"in/{len(versions) % 3}/{len(versions)}.csv")
        readers.read(point)
        if readers.killed % CLEAN_EVERY == 0:
            readers.read()
            changed, gone, again = random.sample(sorted(there), 3)
            put(changed)
            client.delete_object(Bucket=bucket, Key=gone)
            there.remove(gone)
            client.delete_object(Bucket=bucket, Key=again)
            put(again)
        assert readers.started < 3 * kills, "they are not killed"
    readers.read()
    print(json.dumps({"killed": readers.killed, "versions": versions}))


if __name__ == "__main__":
    main()
