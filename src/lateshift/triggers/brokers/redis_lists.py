"""Lists in Redis, as kombu has its queues and as anybody may LPUSH to.

kombu pops a message and then notes that it has it: a reader that dies in between loses it. Here both are one script, which
moves messages from the list into a hash under a name of their own. There they stay until they are acknowledged, and whoever
reads next begins with what it finds there, under the same names.
"""

from collections.abc import Sequence
from typing import Any

import kombu
import redis

from lateshift.model.ids import new_job_id
from lateshift.triggers.brokers.broker import Delivery
from lateshift.triggers.brokers.envelopes import opened

LOOK_BACK_EVERY = 20  # quiet looks, until it is looked whether somebody left something in the hash

# KEYS: the hash, the lists. ARGV: the beginning of the names, how many. Each is in the hash before it leaves the list.
TAKE = """
local taken = {}
for place = 2, #KEYS do
  while #taken < 2 * tonumber(ARGV[2]) do
    local item = redis.call('LINDEX', KEYS[place], -1)
    if not item then break end
    local name = ARGV[1] .. string.format('-%05d', #taken / 2)
    redis.call('HSET', KEYS[1], name, item)
    redis.call('RPOP', KEYS[place])
    table.insert(taken, name)
    table.insert(taken, item)
  end
end
return taken
"""


class RedisList:
    """See the top of this file."""

    pause = 0.0

    def __init__(self, connection: kombu.Connection, queue: str, taken: str | None) -> None:
        self._connection = connection
        channel = connection.channel()
        self._redis = redis.Redis(connection_pool=channel.pool)
        prefix = channel.global_keyprefix
        self._lists = [prefix + channel._q_for_pri(queue, step) for step in channel.priority_steps]
        self._hash = prefix + (taken or f"{queue}.lateshift")
        self._take = self._redis.register_script(TAKE)
        self._held: set[str] = set()
        self._left: list[tuple[bytes, bytes]] = []
        self._quiet = 0
        self._look_back()

    def receive(self, most: int, wait: float) -> list[Delivery]:
        found = self._left[:most]
        self._left = self._left[most:]
        if not found:
            found = self._taken(most) or self._taken_after(wait, most)
        self._held.update(name.decode() for name, _ in found)
        return [opened(item, tag=name.decode(), id=name.decode()) for name, item in found]

    def acknowledge(self, tags: Sequence[Any]) -> None:
        if tags:
            self._redis.hdel(self._hash, *tags)
            self._held.difference_update(tags)

    def waiting(self) -> int:
        with self._redis.pipeline(transaction=False) as pipeline:
            for each in self._lists:
                pipeline.llen(each)
            return sum(pipeline.execute())

    def close(self) -> None:
        """What is held stays in the hash: put back into the list, it would come again under another name."""
        self._connection.release()

    def _taken(self, most: int) -> list[tuple[bytes, bytes]]:
        flat = self._take(keys=[self._hash, *self._lists], args=[new_job_id().hex, most])
        return list(zip(flat[::2], flat[1::2], strict=True))

    def _taken_after(self, wait: float, most: int) -> list[tuple[bytes, bytes]]:
        """Waits until the list has something: a move from its end to its end changes nothing."""
        self._quiet += 1
        if self._quiet % LOOK_BACK_EVERY == 0:
            self._look_back()
        if self._redis.blmove(self._lists[0], self._lists[0], wait, "RIGHT", "RIGHT") is None:
            return []
        return self._taken(most)

    def _look_back(self) -> None:
        """What another took and did not acknowledge: it died, or it is late, and then our receipts tell."""
        if self._redis.hlen(self._hash) > len(self._held):
            there = self._redis.hgetall(self._hash)
            self._left = sorted(
                (name, item) for name, item in there.items() if name.decode() not in self._held
            )
