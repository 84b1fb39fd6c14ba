"""Which queues a worker serves."""

from lateshift.model.member import served

__all__ = ["served"]
