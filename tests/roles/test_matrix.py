"""Each role tries each kind of statement on a real server; what is allowed is written down here, and nothing else is."""

from itertools import product

import psycopg
import pytest
from psycopg import errors as pg

from lateshift.store.postgres.roles import ROLES
from tests.roles.conftest import Realm

CLAIM_A_KEY = "lateshift.take_key('t', 'k', gen_random_uuid(), '', interval '1 hour', interval '0')"
# What each role may do, by the first letters of its name: Owner, Server, Worker, Reader, submItter ("i").
STATEMENTS: list[tuple[str, str, str]] = [
    ("read the state of jobs", "SELECT id, state, queue, task FROM lateshift.job", "oswri"),
    ("read how jobs ended", "SELECT id, state, reason, settled_at FROM lateshift.settled", "oswri"),
    ("read payloads", "SELECT payload FROM lateshift.job", "oswr"),
    ("read payloads that ended", "SELECT payload FROM lateshift.settled", "oswr"),
    ("read whole jobs", "SELECT * FROM lateshift.job", "oswr"),
    ("read results", "SELECT result FROM lateshift.settled", "oswr"),
    ("read checkpoints", "SELECT checkpoint FROM lateshift.job", "oswr"),
    ("read what failed", "SELECT history FROM lateshift.settled", "oswr"),
    ("read progress", "SELECT progress FROM lateshift.job", "oswr"),
    ("read logs", "SELECT lines FROM lateshift.attempt_log", "oswr"),
    ("read sessions' state", "SELECT state FROM lateshift.session", "oswr"),
    ("read steps", "SELECT payload, result FROM lateshift.step", "oswr"),
    ("read schedules", "SELECT payload FROM lateshift.schedule", "oswr"),
    ("read the audit", "SELECT * FROM lateshift.audit", "oswr"),
    ("read tokens", "SELECT id, name, scopes FROM lateshift.token", "osr"),
    ("read tokens' digests", "SELECT digest FROM lateshift.token", "os"),
    ("read the version", "SELECT max(version) FROM lateshift.migration", "oswri"),
    (
        "enqueue",
        """INSERT INTO lateshift.job (id, queue, lane, state, priority, attempts, due_at, created_at, task, payload)
         VALUES (gen_random_uuid(), 'q', 0, 1, 0, 1, now(), now(), 't', '')""",
        "oswi",
    ),
    (
        "enqueue as if leased",
        """INSERT INTO lateshift.job (id, queue, lane, state, priority, attempts, due_at, created_at, task, payload, fence)
         VALUES (gen_random_uuid(), 'q', 0, 1, 0, 1, now(), now(), 't', '', 9)""",
        "osw",
    ),
    ("take a key", "INSERT INTO lateshift.job_key VALUES ('t', 'k', gen_random_uuid(), '', now())", "osw"),
    ("claim a key", f"SELECT {CLAIM_A_KEY}", "oswi"),
    ("lease", "UPDATE lateshift.job SET fence = fence + 1, state = 2 WHERE false", "osw"),
    ("change a payload", "UPDATE lateshift.job SET payload = '' WHERE false", "osw"),
    ("settle", "DELETE FROM lateshift.job WHERE false", "osw"),
    ("bring a job back", "UPDATE lateshift.settled SET state = 4 WHERE false", "osw"),
    ("record a step", "UPDATE lateshift.step SET state = 2 WHERE false", "osw"),
    ("beat", "UPDATE lateshift.member SET expires_at = now() WHERE false", "osw"),
    ("lead", "UPDATE lateshift.lock SET fence = fence + 1 WHERE false", "osw"),
    ("pause a queue", "UPDATE lateshift.queue SET paused_at = now() WHERE false", "os"),
    (
        "write into the audit",
        "INSERT INTO lateshift.audit (at, action, subject, actor) VALUES (now(), '', '', '')",
        "osw",
    ),
    ("change the audit", "UPDATE lateshift.audit SET actor = '' WHERE false", "os"),
    ("take lines out of the audit", "DELETE FROM lateshift.audit WHERE false", "os"),
    ("purge what has passed its time", "SELECT lateshift.purge_audit(1)", "ow"),
    (
        "make a token",
        """INSERT INTO lateshift.token (id, name, scopes, queues, digest, created_at, created_by)
         VALUES (gen_random_uuid(), 'n', 'admin', '', '', now(), '')""",
        "os",
    ),
    ("delete a token", "DELETE FROM lateshift.token WHERE false", "os"),
    ("plant an answer", "UPDATE lateshift.answer SET answer = '' WHERE false", "os"),
    ("purge tokens past their time", "SELECT lateshift.purge_tokens(1)", "ow"),
    ("purge answers past their time", "SELECT lateshift.purge_answers(1)", "ow"),
    ("hide a queue", "INSERT INTO lateshift.sensitive VALUES ('q')", "osw"),
    ("show a hidden queue", "DELETE FROM lateshift.sensitive WHERE false", "o"),
    ("stop everybody", "LOCK TABLE lateshift.job_key IN ACCESS EXCLUSIVE MODE", "osw"),
    ("widen a token", "UPDATE lateshift.token SET scopes = 'admin' WHERE false", "os"),
    ("change the version", "UPDATE lateshift.migration SET version = 99 WHERE false", "o"),
    ("use the turns", "SELECT nextval('lateshift.turn')", "oswi"),
    ("set the turns", "SELECT setval('lateshift.turn', 1)", "o"),
    ("undo a repeat for oneself", "SELECT lateshift.undo_repeat('{}')", "oi"),
    ("truncate", "TRUNCATE lateshift.job", "o"),
    ("lock everybody out", "LOCK TABLE lateshift.migration IN ACCESS EXCLUSIVE MODE", "o"),
    ("change a table", "ALTER TABLE lateshift.job ADD COLUMN extra text", "o"),
    ("drop a table", "DROP TABLE lateshift.job", "o"),
    ("make a table", "CREATE TABLE lateshift.extra (n integer)", "o"),
    (
        "make a function",
        "CREATE FUNCTION lateshift.extra() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
        "o",
    ),
    (
        "watch a table with a trigger",
        "CREATE TRIGGER extra BEFORE INSERT ON lateshift.job FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "o",
    ),
    ("give rights on", "ALTER SCHEMA lateshift RENAME TO other", ""),
    ("make a role", "CREATE ROLE lateshift_test_extra", ""),
    ("read the server's files", "SELECT pg_read_file('/etc/passwd')", ""),
    ("run a program", "COPY (SELECT 1) TO PROGRAM 'true'", ""),
]
LETTERS = {"owner": "o", "server": "s", "worker": "w", "reader": "r", "submitter": "i"}


@pytest.mark.parametrize(
    ("role", "what"), list(product(ROLES, STATEMENTS)), ids=lambda it: it if isinstance(it, str) else it[0]
)
def test_a_role_may_do_what_the_matrix_says_and_nothing_else(
    realm: Realm, role: str, what: tuple[str, str, str]
) -> None:
    _, statement, allowed = what
    with psycopg.connect(realm.url(role)) as connection:
        try:
            connection.execute(statement.encode())
            done = True
        except pg.InsufficientPrivilege:
            done = False
        connection.rollback()
    assert done == (LETTERS[role] in allowed)


@pytest.mark.parametrize("role", [role for role in ROLES if role != "owner"])
def test_no_role_can_become_the_owner(realm: Realm, role: str) -> None:
    with realm.connect(role) as connection, pytest.raises(pg.InsufficientPrivilege):
        connection.execute(f"SET ROLE {realm.prefix}_owner".encode())


@pytest.mark.parametrize("role", ROLES)
def test_the_search_path_of_each_role_is_fixed(realm: Realm, role: str) -> None:
    with realm.connect(role) as connection:
        [[path]] = connection.execute("SHOW search_path").fetchall()
    assert path == "pg_catalog, pg_temp"


def test_the_public_may_nothing(realm: Realm) -> None:
    with psycopg.connect(realm.admin, autocommit=True) as connection:
        found = connection.execute(
            "SELECT table_name, privilege_type FROM information_schema.role_table_grants "
            "WHERE table_schema = 'lateshift' AND grantee = 'PUBLIC'"
        ).fetchall()
    assert found == []
