"""Something of everything that pages show, all of it of one queue, for those who may see it and for those who may not."""

from datetime import timedelta
from typing import Any

from lateshift import Breaker, Flow, Permanent, Retry
from lateshift.model.access import Scope
from lateshift.model.fingerprint import fingerprint
from lateshift.model.ids import new_member_id
from lateshift.model.job import JobFilter
from lateshift.store.contract import Store
from lateshift.store.taking import KEEP_LEAST
from lateshift.testing import Kit
from lateshift.worker.service import introduce
from tests.api.asking import token_of

ATTIC = "attic"  # the queue
HEIRLOOM = "heirloom"  # in the name of all that is there
MOST = 100  # of anything


class Attic:
    """Each thing is made when it is asked for; gives what a path names it by."""

    def __init__(self, kit: Kit) -> None:
        self.kit, self.app, self.store = kit, kit.app, kit.app.store
        app = kit.app

        @app.task(name="heirloom-send", queue=ATTIC, retry=Retry(attempts=1))
        def send(to: str) -> str:
            if to == "nobody":
                raise Permanent("the heirloom is lost")
            return to

        @app.task(name="heirloom-pay", queue=ATTIC, breaker=Breaker(failures=2, open_for=timedelta(hours=1)))
        def pay() -> None: ...

        @app.workflow(name="heirloom-order", queue=ATTIC, on_failure="hold")
        async def order(flow: Flow, card: str) -> Any:
            await flow.step(charge, card)
            return await flow.wait_for("picked")

        def charge(card: str) -> str:
            if card == "bad":
                raise Permanent("no such heirloom")
            return card

        self.send, self.pay, self.order = send, pay, order

    def waiting(self) -> dict[str, str]:
        return {"id": str(self.send.enqueue("ann").id)}

    def dead(self) -> dict[str, str]:
        job = self.send.enqueue("nobody")
        self.kit.drain()
        return {"id": str(job.id)}

    def unwanted(self) -> dict[str, str]:
        """Dead for so long that it may be discarded."""
        letter = self.dead()
        self.kit.travel(seconds=2 * KEEP_LEAST.total_seconds())
        return letter

    def group(self) -> dict[str, str]:
        self.dead()
        [view] = self.store.reports.jobs(JobFilter(queue=ATTIC), 2)
        return {"name": fingerprint(view)}

    def run(self, card: str = "good") -> dict[str, str]:
        job = self.order.enqueue(card)
        self.kit.drain()
        return {"id": str(job.id)}

    def pipeline(self) -> dict[str, str]:
        def words(text: str) -> str:
            return text

        first = self.app.task(name="heirloom-first", queue=ATTIC)(words)
        second = self.app.task(name="heirloom-second", queue=ATTIC)(words)
        self.app.pipeline(first | second, name="heirloom-line").enqueue("ann")
        self.kit.drain()
        return {"name": "heirloom-line"}

    def batch(self) -> dict[str, str]:
        return {"id": str(self.app.batch([self.send.call("ann")], name="heirloom-batch").id)}

    def queue(self, *, paused: bool = False) -> dict[str, str]:
        self.waiting()
        if paused:
            self.store.queues.pause(ATTIC, by="a test")
        return {"name": ATTIC}

    def session(self) -> dict[str, str]:
        """Which is held, as a form names it."""
        self.app.queue(ATTIC, on_dead="hold")
        self.send.options(session="heirloom-session").enqueue("nobody")
        self.kit.drain()
        return {"queue": ATTIC, "session": "heirloom-session"}

    def schedule(self, *, paused: bool = False) -> dict[str, str]:
        self.app.schedule(self.send, args=["all"], name="heirloom-news", cron="0 * * * *")
        self.kit.travel(seconds=1)
        if paused:
            self.store.schedules.pause("heirloom-news", by="a test")
        return {"name": "heirloom-news"}

    def past(self) -> dict[str, str]:
        """Two hours of it, in UTC as a browser writes it."""
        now = self.store.clock.now()
        return {"since": f"{now - timedelta(hours=2):%Y-%m-%dT%H:%M}", "until": f"{now:%Y-%m-%dT%H:%M}"}

    def trigger(self, *, paused: bool = False) -> dict[str, str]:
        """With an event that it refused."""

        @self.app.on_webhook("heirloom-hook", verify=lambda headers, body, now: headers["x-id"])
        @self.app.task(name="heirloom-ordered", queue=ATTIC)
        def ordered(n: int) -> int:
            return n

        self.app.declare_webhooks()
        self.app.deliver("heirloom-hook", {"x-id": "heirloom-1"}, b'"many"')
        self.app.triggers["heirloom-hook"]._decode = lambda message: len(message.body)  # as it should have
        if paused:
            self.store.triggers.pause("heirloom-hook", by="a test")
        [refused] = self.store.triggers.refused("heirloom-hook", None, 2)
        return {"name": "heirloom-hook", "id": str(refused.id)}

    def breaker(self, *, opened: bool = False) -> dict[str, str]:
        self.pay.enqueue()
        self.kit.drain()
        if opened:
            self.store.breakers.open("heirloom-pay", by="a test")
        return {"name": "heirloom-pay"}

    def member(self) -> dict[str, str]:
        member = introduce(new_member_id(), "worker", "heirloom-worker", self.app.clock)
        self.store.members.join(member, timedelta(days=1))
        return {}

    def line(self) -> dict[str, str]:
        """Of the audit; gives who did it."""
        self.store.audit.record("find", "the heirloom", by="ann")
        return {"actor": "ann"}

    def token(self) -> dict[str, str]:
        token_of(self.app, "heirloom-token", [Scope.READ])
        token = self.store.tokens.named("heirloom-token")
        assert token is not None
        return {"id": str(token.id)}


def kept(store: Store) -> list[Any]:
    """All that a form could change, and what the audit says of it. When a token was used is no deed."""
    jobs = store.reports.jobs(JobFilter(), MOST)
    return [
        jobs, [(queue.name, queue.paused_at) for queue in store.queues.list()], store.batches.newest(None, MOST), store.triggers.all(),
        store.triggers.refused(None, None, MOST), store.breakers.list(), store.sessions.list(held=True, limit=MOST),
        [store.workflows.view(view.run.id) for view in store.workflows.newest(None, MOST)],
        [store.workflows.told(job.id, MOST) for job in jobs],
        [(token.id, token.revoked_at) for kind in (False, True) for token in store.tokens.list(MOST, sign_ins=kind)],
        [(it.name, it.plan, it.job.payload, it.changed_at, it.paused_at) for it in store.schedules.list(None, MOST)],
        store.audit.list(limit=MOST),
    ]  # fmt: skip
