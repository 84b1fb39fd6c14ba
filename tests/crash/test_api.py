"""Rows 2 and 3 of the catalogue over HTTP: `lateshift serve` is killed around a request with an Idempotency-Key, and its client asks
again at a new server. What was done is counted in the tables."""

import pytest

from lateshift.operating.bulk import BATCH
from tests.crash.asking import (
    CANCEL,
    KEPT,
    RESUBMIT,
    TOKEN,
    Caller,
    counted,
    let_a_minute_pass,
    prepare,
    write,
)
from tests.crash.scene import Scene

UNDER_WAY, UNKNOWN = (f"urn:lateshift:problem:request-{what}" for what in ("under-way", "unknown"))


@pytest.fixture
def caller(scene: Scene) -> Caller:
    prepare(scene)
    return Caller(scene)


def die_at(scene: Scene, caller: Caller, point: str, *, done: int) -> None:
    """Of each deed whose answer is kept, at a server of its own. It was done so many times, and is undone where it would not show
    if it were done again."""
    for deed in KEPT:
        caller.ask_and_kill(scene, point, deed.path, deed.body)
        assert (deed.shows(scene), deed.audited(scene)) == (done, done), deed
        if deed.undo is not None:
            write(scene, deed.undo)


def test_a_server_killed_before_it_has_noted_the_request_did_nothing_and_the_repeat_does_it_once(
    scene: Scene, caller: Caller
) -> None:
    die_at(scene, caller, "answer.before_begin", done=0)
    server = scene.server()
    for deed in KEPT:
        first, again = (caller.ask(server, deed.path, deed.body) for _ in range(2))
        assert first is not None
        assert again is not None
        assert (first.is_success, again.content) == (True, first.content), (deed, first.text, again.text)
        assert again.headers["idempotency-replayed"] == "true"
        assert (deed.shows(scene), deed.audited(scene)) == (1, 1), deed


@pytest.mark.parametrize(("point", "done"), [("api.before_deed", 0), ("api.after_deed", 1)])
def test_a_server_killed_around_the_deed_leaves_a_key_under_which_nobody_does_it_again(
    scene: Scene, caller: Caller, point: str, done: int
) -> None:
    die_at(scene, caller, point, done=done)
    server = scene.server()
    for told in (UNDER_WAY, UNKNOWN, UNKNOWN):
        for deed in KEPT:
            answer = caller.ask(server, deed.path, deed.body)
            assert answer is not None
            assert (answer.status_code, answer.json()["type"]) == (409, told), deed
            left = 0 if deed.undo else done
            assert (deed.shows(scene), deed.audited(scene)) == (left, done), deed
        if told == UNDER_WAY:
            let_a_minute_pass(scene)
    for deed in KEPT:  # who has looked asks with another key
        answer = caller.ask(server, deed.path, deed.body, key="k2")
        assert answer is not None
        assert answer.is_success, (deed, answer.text)
        left = 0 if deed.undo else done
        assert (deed.shows(scene), deed.audited(scene)) == (left + 1, done + 1), deed


def test_a_server_killed_after_it_has_kept_the_answer_has_the_next_one_give_it(
    scene: Scene, caller: Caller
) -> None:
    die_at(scene, caller, "answer.after_keep", done=1)
    server = scene.server()
    for deed in KEPT:
        answer = caller.ask(server, deed.path, deed.body)
        assert answer is not None
        assert (answer.is_success, answer.headers["idempotency-replayed"]) == (True, "true"), deed
        assert answer.json().get("changed", True) is True
        assert (deed.shows(scene), deed.audited(scene)) == (0 if deed.undo else 1, 1), deed


def test_a_server_killed_while_it_starts_a_job_made_one_or_none_and_the_repeat_gets_that_one(
    scene: Scene, caller: Caller
) -> None:
    points = {
        "api.before_deed": 0,
        "enqueue.before_commit": 0,
        "enqueue.after_commit": 1,
        "api.after_deed": 1,
    }
    path, held = "/v1/tasks/quick_sync/jobs", "SELECT count(*) FROM {}job WHERE task = 'quick_sync'"
    made = 0
    for number, (point, done) in enumerate(points.items()):
        caller.ask_and_kill(scene, point, path, {"arguments": {"number": number}}, key=f"order-{number}")
        made += done
        assert counted(scene, held) == made, point
    server, ids = scene.server(), set[str]()
    for number, done in enumerate(points.values()):
        for created in (not done, False):
            answer = caller.ask(server, path, {"arguments": {"number": number}}, key=f"order-{number}")
            assert answer is not None
            assert (answer.status_code, answer.json()["created"]) == (202, created), number
            ids.add(answer.json()["id"])
        other = caller.ask(server, path, {"arguments": {"number": 99}}, key=f"order-{number}")
        assert other is not None
        assert (other.status_code, other.json()["type"]) == (409, "urn:lateshift:problem:key-conflict")
    rows = [row for row in scene.rows().values() if row.job in {id.replace("-", "") for id in ids}]
    assert sorted(row.payload for row in rows) == [b'{"number":%d}' % number for number in range(len(points))]
    assert counted(scene, held) == len(points)
    for id in ids:
        line = f"SELECT count(*) FROM {{}}audit WHERE action = 'start' AND subject = '{id}'"
        assert counted(scene, line) == 1


def test_a_server_killed_while_it_tells_a_run_something_has_told_it_once_at_the_most(
    scene: Scene, caller: Caller
) -> None:
    run = scene.app.find_task("order").enqueue(1, "well")
    path, body = f"/v1/workflows/{run.id}/signal", {"name": "picked", "data": 7}
    told = "SELECT count(*) FROM {}signal WHERE key = "
    lines = "SELECT count(*) FROM {}audit WHERE action = 'signal'"
    points = {"api.before_deed": 0, "api.after_deed": 1}
    for point, done in points.items():
        caller.ask_and_kill(scene, point, path, body, key=point)
        assert (counted(scene, f"{told}'{point}'"), counted(scene, lines)) == (done, done)
    server = scene.server()
    for point, done in points.items():
        for changed in (not done, False):
            answer = caller.ask(server, path, body, key=point)
            assert answer is not None
            assert (answer.status_code, answer.json()["changed"]) == (200, changed), point
        assert counted(scene, f"{told}'{point}'") == 1
    assert counted(scene, lines) == len(points)


def test_a_server_killed_while_it_makes_a_token_has_made_one_or_none_and_none_is_made_besides(
    scene: Scene, caller: Caller
) -> None:
    caller.ask_and_kill(scene, "api.before_deed", TOKEN.path, TOKEN.body)
    assert (TOKEN.shows(scene), TOKEN.audited(scene)) == (0, 0)
    caller.ask_and_kill(scene, "api.after_deed", TOKEN.path, TOKEN.body)
    assert (TOKEN.shows(scene), TOKEN.audited(scene)) == (1, 1)
    again = caller.ask(
        scene.server(), TOKEN.path, TOKEN.body
    )  # nobody has seen its text: it is revoked by hand
    assert again is not None
    assert again.status_code == 409
    assert (TOKEN.shows(scene), TOKEN.audited(scene)) == (1, 1)


def test_a_server_killed_between_two_transactions_of_a_bulk_action_has_audited_what_it_did_and_no_more(
    scene: Scene, caller: Caller
) -> None:
    quick = scene.app.find_task("quick").options(queue="line")
    scene.app.enqueue_many(quick.call(scene.number()) for _ in range(BATCH))
    whole = {"action": "cancel", "queue": "line"}
    caller.ask_and_kill(scene, "bulk.after_batch", CANCEL.path, whole)
    assert (CANCEL.shows(scene), CANCEL.audited(scene)) == (BATCH, BATCH)
    server = scene.server()
    refused, rest = (caller.ask(server, CANCEL.path, whole, key=key) for key in ("k1", "k2"))
    assert refused is not None
    assert rest is not None
    assert (refused.json()["type"], len(rest.json()["done"])) == (UNDER_WAY, 2)
    assert (CANCEL.shows(scene), CANCEL.audited(scene)) == (BATCH + 2, BATCH + 2)


def test_a_server_killed_within_a_resubmission_at_a_rate_leaves_what_was_done_to_its_times_and_the_rest_dead(
    scene: Scene, caller: Caller
) -> None:
    quick = scene.app.find_task("quick").options(queue="graves")
    made = scene.app.store.jobs.enqueue([quick.call(scene.number()).job for _ in range(BATCH)])
    scene.app.store.jobs.cancel([job.id for job in made], by="a test")
    write(scene, "UPDATE {}settled SET state = 6, reason = 'exhausted' WHERE queue = 'graves'")
    whole = {"action": "resubmit", "queue": "graves", "rate": "1/h"}
    waiting = "SELECT count(*) FROM {}job WHERE queue = 'graves' AND state = 0"
    dead = "SELECT count(*) FROM {}settled WHERE queue = 'graves' AND state = 6"

    caller.ask_and_kill(scene, "bulk.after_batch", CANCEL.path, whole)

    assert (counted(scene, waiting), counted(scene, dead), RESUBMIT.audited(scene)) == (BATCH - 1, 2, BATCH)
    server = scene.server()
    refused, rest = (caller.ask(server, CANCEL.path, whole, key=key) for key in ("k1", "k2"))
    assert refused is not None
    assert rest is not None
    assert (refused.json()["type"], len(rest.json()["done"]), rest.json()["spread"]) == (UNDER_WAY, 2, 3600)
    assert (counted(scene, waiting), counted(scene, dead)) == (BATCH, 0)
    assert RESUBMIT.audited(scene) == BATCH + 2
