"""A server that is paused (SIGSTOP) right before it does what it was asked, for longer than it holds the request: another says that nobody
knows, and the caller asks with another key. Whoever wakes does nothing then."""

import os
import signal
import threading

import httpx
import pytest

from tests.crash.asking import FIRE, RESUBMIT, Caller, Deed, let_a_minute_pass, prepare
from tests.crash.scene import Scene


@pytest.mark.parametrize("deed", [FIRE, RESUBMIT], ids=["fire", "resubmit"])
def test_who_was_paused_before_its_deed_and_given_up_does_nothing_when_it_wakes(
    scene: Scene, deed: Deed
) -> None:
    prepare(scene)
    caller, answers = Caller(scene), list[httpx.Response | None]()
    paused = scene.server(crash="api.before_deed:1:stop")
    asking = threading.Thread(target=lambda: answers.append(caller.ask(paused, deed.path, deed.body)))
    asking.start()
    stopped = scene.hit(pauses=True)
    let_a_minute_pass(scene)
    other = scene.server()

    unknown = caller.ask(other, deed.path, deed.body)
    assert unknown is not None
    assert unknown.json()["type"] == "urn:lateshift:problem:request-unknown"
    assert (deed.shows(scene), deed.audited(scene)) == (0, 0)  # who looks sees that it was not done
    done = caller.ask(other, deed.path, deed.body, key="k2")
    assert done is not None
    assert done.is_success, done.text

    os.kill(stopped, signal.SIGCONT)
    asking.join(60)
    [late] = answers
    assert late is not None
    assert (late.status_code, late.json()["type"]) == (503, "urn:lateshift:problem:begun-late")
    assert (deed.shows(scene), deed.audited(scene)) == (1, 1)
