"""Walks by the API, a worker, a workflow, replies and pages, with the interpreter's own audit on: `audited_walk URL [--eval]` prints, as JSON,
what was run in the second walk that was no code before. In the first all is imported, and templates are compiled."""

import ast
import json
import os
import pickle
import sys
from typing import Any

from lateshift import Flow, JobEvent, Lateshift, Permanent
from lateshift.api.application import make_api
from lateshift.model.access import Scope
from lateshift.testing import Kit, testing
from tests.api.asking import Web, asking
from tests.dashboard.browsing import Browser, browsing

WATCHED = {
    "pickle.find_class", "marshal.loads", "marshal.load", "compile", "exec", "os.system", "os.exec", "os.posix_spawn", "os.spawn",
    "subprocess.Popen", "import", "code.__new__", "function.__new__",
}  # fmt: skip
ABSENT = "sniffio"  # for which the client of these tests looks at each request


class Audit:
    def __init__(self) -> None:
        self.on = False
        self.seen: list[str] = []
        sys.addaudithook(self.hear)

    def hear(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.on or event not in WATCHED or (event == "import" and args[0] == ABSENT):
            return
        if (
            event != "compile" or sys._getframe(1).f_code is not ast.parse.__code__
        ):  # a traceback reads its own source, and runs nothing
            self.seen.append(f"{event} {args!r:.300}")


def program(url: str) -> Lateshift:
    app = Lateshift("walked", store=url)

    @app.task
    def hear(event: JobEvent) -> None: ...

    @app.task
    def add(values: list[int], note: str = "") -> dict[str, Any]:
        if note == "fail":
            raise Permanent(f"cannot: {note}")
        return {"sum": sum(values), "note": note}

    @app.workflow
    async def twice(flow: Flow, note: str) -> Any:
        await flow.step(add, [1, 2], note)
        return await flow.wait_for("picked")

    @app.task
    def run(text: str) -> None:
        eval(text)
        exec(text)
        os.system("true")
        pickle.loads(pickle.dumps(Lateshift))  # noqa: S301

    return app


def walk(app: Lateshift, kit: Kit, web: Web, browser: Browser, turn: int) -> None:
    note = f"cos\nsystem\n(S'true'\ntR. !!python/object/apply:os.system ['true'] {{{{ 7 * 7 }}}} {turn}"
    body = {
        "arguments": {"values": [turn, 2], "note": note}, "reply_to": ["task:hear", "channel:c"], "tags": ["a"],
        "correlation_id": "__import__('os')",
    }  # fmt: skip
    job = web("POST", "/v1/tasks/add/jobs", body, headers={"Idempotency-Key": f"k{turn}"}).json()["id"]
    dead = web("POST", "/v1/tasks/add/jobs", {"arguments": {"values": [1], "note": "fail"}}).json()["id"]
    run = web("POST", "/v1/tasks/twice/jobs", {"arguments": {"note": note}}).json()["id"]
    web("POST", "/v1/tasks/add/schedules", {"name": f"s{turn}", "every": 3600, "arguments": {"values": [1]}})
    kit.drain()
    assert (
        web("POST", f"/v1/workflows/{run}/signal", {"name": "picked", "data": {"a": note}}).status_code == 200
    )
    changed = {"change": {"note": note}}
    assert web("POST", f"/v1/jobs/{dead}/resubmit", changed).status_code == 200
    kit.travel(seconds=5)
    for path in (
        f"jobs/{job}", f"jobs/{job}/logs", f"jobs/{run}/explain", f"workflows/{run}", f"workflows/{run}/graph", "jobs", "dead-letters",
        "overview", "schedules", "queues",
    ):  # fmt: skip
        assert web("GET", f"/v1/{path}").status_code == 200, path
    assert web("GET", f"/v1/jobs/{run}").json()["state"] == "completed"
    for path in (
        "/",
        "/jobs",
        f"/jobs/{job}",
        f"/jobs/{run}",
        f"/workflows/{run}",
        "/dead-letters",
        "/schedules",
        "/queues",
    ):
        browser.look(path)


def main(url: str, *more: str) -> None:
    audit, app = Audit(), program(url)
    with testing(app, store=url) as kit, asking(app, make_api(app)) as web, browsing(app) as browser:
        browser.sign_in_as(Scope.ADMIN)
        walk(app, kit, web, browser, 1)
        audit.on = True
        walk(app, kit, web, browser, 2)
        if more:
            app.tasks["run"].enqueue("1")
            kit.drain()
        audit.on = False
    print(json.dumps(audit.seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
