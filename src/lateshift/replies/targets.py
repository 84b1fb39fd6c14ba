"""What `reply_to=` may name: a task, a channel, and the webhooks and brokers that the app has declared."""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from lateshift.errors import OptionInvalid
from lateshift.model.job import Spec
from lateshift.model.queue import is_sensitive
from lateshift.model.reply import CHANNEL, DELIVERIES, TASK, URL_LIMIT, Target, channel_name
from lateshift.replies.webhook import refuse_foreign
from lateshift.task import Bound, Task

BROKER = "broker:"
SHOWN = 40  # characters of what names no receiver
KINDS = 'a task, "task:NAME", "channel:NAME", "broker:NAME" or the URL of a webhook'


class Targets:
    """Of one app. `hearers`: its tasks that hear alerts. `webhooks`: by origin the task that delivers there. `brokers`: the same by name."""

    def __init__(
        self, tasks: Mapping[str, Task[..., Any]], hearers: Callable[[], Collection[str]] = tuple
    ) -> None:
        self._tasks = tasks
        self._hearers = hearers
        self.webhooks: dict[str, Task[..., Any]] = {}
        self.brokers: dict[str, Task[..., Any]] = {}

    def find(self, reply_to: Any) -> list[Target]:
        """Each receiver once, as it is named first: what is told is told it once. Raises OptionInvalid for what cannot be told anything."""
        if reply_to is None:
            return []
        several = reply_to if isinstance(reply_to, list | tuple) else [reply_to]
        try:
            found = [self._one(each) for each in several]
        except OptionInvalid as error:
            error.field = "reply_to"
            raise
        once: dict[tuple[Any, ...], Target] = {}
        for target in found:
            once.setdefault((target.to, *target.given.values()), target)
        return list(once.values())

    def _one(self, given: Any) -> Target:
        if isinstance(given, Task | Bound):
            return self._to_task(given)
        if not isinstance(given, str) or not 0 < len(given) <= URL_LIMIT or not given.isprintable():
            raise _no_receiver(given)
        if given.startswith(CHANNEL):
            return Target(to=CHANNEL + channel_name(given.removeprefix(CHANNEL)))
        if given.startswith(TASK):
            return self._named(given.removeprefix(TASK))
        if given.startswith(BROKER):
            return self._broker(given.removeprefix(BROKER))
        if given.startswith(("https://", "http://")):
            return self._webhook(given)
        raise _no_receiver(given)

    def _named(self, name: str) -> Target:
        if name not in self._tasks:
            raise no_such_task(name)
        if self._tasks[name].limits.own:
            raise OptionInvalid(f"reply_to: {name} is of Lateshift itself, and is told nothing by others.")
        return self._to_task(self._tasks[name])

    def _to_task(self, what: Task[..., Any] | Bound[..., Any]) -> Target:
        """What the courier would refuse, who does not know who has written a route."""
        target = to_task(what)
        name = target.to.removeprefix(TASK)
        if name in self._hearers():
            raise OptionInvalid(
                f"reply_to: {name} hears alerts, and nobody else tells it anything. Declare another task, which may call the same function."
            )
        own = (what.task if isinstance(what, Bound) else what).limits.own
        if not own and target.spec is not None and target.spec.queue.startswith(DELIVERIES):
            raise OptionInvalid(
                f"reply_to: {name} is in the queue {target.spec.queue}, and those that begin with {DELIVERIES} are for webhooks and brokers. "
                "Give the task another queue."
            )
        return target

    def _broker(self, name: str) -> Target:
        if name not in self.brokers:
            raise OptionInvalid(f"reply_to: there is no broker {name!r}. Declare it with app.reply_broker.")
        return Target(to=BROKER + name, spec=_guarded(self.brokers[name]))

    def _webhook(self, url: str) -> Target:
        refuse_foreign(url)
        origin = origin_of(url)
        if origin not in self.webhooks:
            raise OptionInvalid(
                f"reply_to: nothing is sent to {origin}, for there is no secret to sign it with. Declare it with app.reply_webhook."
            )
        return Target(to=f"{origin}/…", spec=_guarded(self.webhooks[origin]), given={"url": url})


def no_such_task(name: str) -> OptionInvalid:
    return OptionInvalid(f"reply_to: this app has no task {name!r}.", "reply_to")


def _no_receiver(given: Any) -> OptionInvalid:
    """What may be a URL is not repeated: its path may be a secret."""
    shown = given
    if isinstance(given, str):
        head = re.split(r"[:/?@]", given)[0][:SHOWN]
        shown = head if head == given else f"{head}…"
    return OptionInvalid(f"reply_to is {KINDS}, or a list of these, not {shown!r}.")


def to_task(what: Task[..., Any] | Bound[..., Any]) -> Target:
    """Each event is a job of it, with the event as its first argument."""
    task = what.task if isinstance(what, Bound) else what
    if not task.arguments.names or task.arguments.required[1:]:
        raise OptionInvalid(
            f"reply_to: {task.name} is called with the event alone. Give it one parameter, and any others defaults."
        )
    first = task.arguments.names[0]
    if not task.arguments.takes_object(first):
        raise OptionInvalid(
            f"reply_to: {task.name} is called with the event, which its {first} cannot be. Write {first}: JobEvent."
        )
    if isinstance(what, Bound) and (what.place is not None or what.key is not None):
        raise OptionInvalid(
            f"reply_to: each event is a job of {task.name} in a session of its own. Leave session, tenant, limit_key and key out."
        )
    if what.replies:
        raise OptionInvalid(
            f"reply_to: {task.name} has a reply_to of its own, and telling of what was told might never end. Give it none here: "
            f"reply_to={task.name}.options(reply_to=[])."
        )
    if task.limits.singleton:
        raise OptionInvalid(
            f"reply_to: {task.name} is a singleton, whose jobs keep no order. Leave singleton out: replies to a job run one at a time."
        )
    return Target(to=TASK + task.name, spec=_guarded(what), parameter=first)


def origin_of(url: str) -> str:
    """Scheme, host and port, as a browser would compare them. Raises OptionInvalid."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise OptionInvalid("The URL of a webhook cannot be read: look at its host and its port.") from error
    if not parts.hostname or parts.username is not None or parts.password is not None or parts.fragment:
        raise OptionInvalid("The URL of a webhook has a host, and no name or password and no #.")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    usual = {"https": 443, "http": 80}.get(parts.scheme)
    return f"{parts.scheme}://{host}" + ("" if port in (None, usual) else f":{port}")


def _guarded(what: Task[..., Any] | Bound[..., Any]) -> Spec:
    """Of the jobs that the courier makes, who has no key."""
    task = what.task if isinstance(what, Bound) else what
    if is_sensitive(task.sender.queues, what.spec.queue):
        raise OptionInvalid(
            f"reply_to: {task.name} is in the sensitive queue {what.spec.queue}, and events come unsealed, so none would be run. Reply to "
            "a task in another queue, which enqueues what is to be sealed."
        )
    return replace(what.spec, lane=what.spec.lane.guarded)
