"""A database of its own with roles of its own: roles belong to the whole server."""

import secrets
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from lateshift.store.open import open_store
from lateshift.store.postgres.roles import ROLES
from tests.postgres_databases import PostgresDatabases, unused_name
from tests.walks.conftest import cli as cli


class Realm:
    """The URL of the database for each role."""

    def __init__(self, url: str, prefix: str) -> None:
        self.admin = url
        self.prefix = prefix

    def url(self, role: str) -> str:
        parts = urlsplit(self.admin)
        return parts._replace(netloc=f"{self.prefix}_{role}@{parts.netloc.rpartition('@')[2]}").geturl()

    def connect(self, role: str) -> psycopg.Connection:
        return psycopg.connect(self.url(role), autocommit=True)


def give_everything(url: str, prefix: str) -> None:
    """More than any release ever gave, to whole tables and to columns."""
    with psycopg.connect(url, autocommit=True) as admin:
        for role in ROLES[1:]:
            to = f"{prefix}_{role}"
            for what in ("TABLES", "SEQUENCES", "FUNCTIONS"):
                admin.execute(f"GRANT ALL ON ALL {what} IN SCHEMA lateshift TO {to}".encode())
            admin.execute(f"GRANT UPDATE (last_used_at), SELECT (digest) ON lateshift.token TO {to}".encode())
            admin.execute(f"GRANT SELECT (digest), UPDATE (digest) ON lateshift.job_key TO {to}".encode())


@pytest.fixture(scope="module")
def realm(postgres_server: PostgresDatabases, postgres_template: str) -> Iterator[Realm]:
    name, prefix = unused_name(), f"lateshift_test_{secrets.token_hex(4)}"
    url = postgres_server.create_database(name, template=postgres_template)
    store = open_store(url)
    try:
        store.ready()
        store.upkeep.apply_roles(prefix)
        give_everything(url, prefix)
        store.upkeep.apply_roles(prefix)  # takes away what this release does not give, whatever another gave
    finally:
        store.close()
    yield Realm(url, prefix)
    postgres_server.drop_database(name)
    with postgres_server.connect() as connection:
        for role in ROLES:
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(f"{prefix}_{role}")))
