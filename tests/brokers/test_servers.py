"""The servers that the other tests here stand on: each answers its own client."""

import boto3
import kombu
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

from tests.brokers.servers import Azurite


def test_rabbitmq_answers(rabbitmq: str) -> None:
    with kombu.Connection(rabbitmq) as connection:
        connection.connect()
        assert connection.connected


def test_redis_answers_and_has_nothing_of_others(redis: str) -> None:
    with kombu.Connection(redis) as connection:
        channel = connection.channel()
        assert channel.client.dbsize() <= 1  # the mark that it is ours


def test_azurite_answers_for_blobs_and_for_queues(azurite: Azurite) -> None:
    with BlobServiceClient.from_connection_string(azurite.connection_string) as blobs:
        blobs.create_container("first")
        assert "first" in [each.name for each in blobs.list_containers()]  # beside those of other tests
        blobs.delete_container("first")
    with QueueServiceClient.from_connection_string(azurite.connection_string) as queues:
        queues.create_queue("first")
        assert "first" in [each.name for each in queues.list_queues()]
        queues.delete_queue("first")


def test_moto_answers_for_queues_and_for_blobs(moto: str) -> None:
    told = {
        "endpoint_url": moto, "region_name": "us-east-1", "aws_access_key_id": "any", "aws_secret_access_key": "any",
    }  # fmt: skip
    queues = boto3.client("sqs", **told)
    url = queues.create_queue(QueueName="first")["QueueUrl"]
    queues.delete_queue(QueueUrl=url)
    blobs = boto3.client("s3", **told)
    blobs.create_bucket(Bucket="first")
    assert "first" in [each["Name"] for each in blobs.list_buckets()["Buckets"]]
    blobs.delete_bucket(Bucket="first")
