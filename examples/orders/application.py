"""The app, and how long things may take: seconds, so that there is something to see. In a shop these would be minutes."""

import os
from datetime import timedelta

from lateshift import Lateshift

app = Lateshift("orders")


def seconds(variable: str, default: float) -> timedelta:
    return timedelta(seconds=float(os.environ.get(variable, default)))


COMPLETE_BY = seconds("ORDERS_COMPLETE_BY", 4)  # of a step: its queueing and all its retries included
ONE_CALL = seconds("ORDERS_ONE_CALL", 1)  # how long an agent waits for one answer
PATIENCE = seconds("ORDERS_PATIENCE", 1)  # before a step is asked for again that has failed twice
