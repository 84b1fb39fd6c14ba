r"""A shop that loads order files: `lateshift up examples/inbox_files.py`, and then write one into the folder `inbox`.

    mkdir -p inbox && printf 'item,count\ntea,3\n' > inbox/monday.csv

Each file is one job, once it is whole; a changed one is one more. `lateshift triggers list` shows what has come of it.
"""

import csv
from datetime import timedelta
from pathlib import Path

from lateshift import FileChange, Lateshift

app = Lateshift("shop")


@app.on_file("inbox/*.csv")
@app.task(queue="orders")
def load(path: str) -> int:
    """Given the path. A file that is gone by now, or is no table, fails as any job does, and is tried again."""
    with Path(path).open(newline="") as file:
        return sum(int(row["count"]) for row in csv.DictReader(file))


@app.on_file("inbox/pictures/**/*.jpg", renamed=True, every=timedelta(minutes=1), name="pictures")
def measure(picture: FileChange) -> str:
    """Given all that is known. Pictures come by a rename: they are whole when they are seen."""
    return f"{Path(picture.path).name}: {picture.size:,} bytes"
