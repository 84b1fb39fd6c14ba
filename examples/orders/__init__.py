"""Order processing as in Microsoft's Scheduler Agent Supervisor pattern, on Lateshift: `python -m examples.orders`.

An order goes through these files in this order; docs/orders.md tells the story.

submission.py   an order is posted to a queue; its row and its workflow are written in one transaction
scheduler.py    the workflow: which steps, in which order, by when, and how they are undone
agents.py       the tasks that call the remote services, and what they make of the answers
remote.py       those services: a small HTTP server that can be told to misbehave
supervisor.py   what follows when a step fails or is late, and who is alerted
replies.py      the queue on which the shop hears what became of its order
table.py        the orders as the pattern shows them: ProcessState, LockedBy, CompleteBy, FailureCount
"""

from examples.orders import agents, replies, scheduler, submission, supervisor
from examples.orders.application import app

__all__ = ["agents", "app", "replies", "scheduler", "submission", "supervisor"]
