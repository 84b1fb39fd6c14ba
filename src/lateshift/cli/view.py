"""The live view: queues, workers, throughput, running jobs, dead letters and the latest log lines on one screen. It
redraws four times a second, off the event loop, and fits any terminal from 80 by 24 upwards."""

import contextlib
import logging
import os
import re
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import IO, TYPE_CHECKING

from rich import box
from rich.console import ConsoleDimensions, Group, RenderableType
from rich.layout import Layout
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from lateshift.cli.breakers import summary
from lateshift.cli.narrow import FRAME, SIDE_BY_SIDE, staying
from lateshift.cli.output import amount, duration, short, without_password
from lateshift.cli.plain_console import PlainConsole
from lateshift.cli.watch import HELD_READ, Watch
from lateshift.model.explaining.words import one_line
from lateshift.model.fingerprint import last_failure
from lateshift.model.job import JobView
from lateshift.runtime.aside import aside
from lateshift.store.contract import COUNT_LIMIT, MemberView, QueueView

if TYPE_CHECKING:
    from lateshift.app.app import Lateshift
    from lateshift.cli.door import Door

BARS = " ▁▂▃▄▅▆▇█"
QUIET = "bright_black"
LINES_KEPT = 200
JOB_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{6}([0-9a-f]{6})")


class View(Watch):
    """Draws what Watch sees."""

    every = timedelta(milliseconds=250)
    detailed = True

    def __init__(
        self, app: "Lateshift", terminal: IO[str], lines: deque[str], door: "Door | None" = None
    ) -> None:
        """`door`: where the dashboard is, if it is in this process."""
        super().__init__(app)
        self._door = door
        self._terminal = terminal
        self._lines = lines
        self._console = PlainConsole(file=terminal, force_terminal=True)
        self._live = Live(console=self._console, screen=True, auto_refresh=False, redirect_stdout=False,
                          redirect_stderr=False)  # fmt: skip

    async def show(self) -> None:
        with contextlib.suppress(OSError):  # the terminal has gone; the work goes on
            await aside(self._draw)

    def _draw(self) -> None:
        size = os.get_terminal_size(self._terminal.fileno())
        self._console.size = ConsoleDimensions(size.columns, size.lines)
        self._live.start()
        self._live.update(self.screen(size.columns, size.lines), refresh=True)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._live.stop()

    # -- the screen -------------------------------------------------------------------------------------------

    def screen(self, width: int, height: int) -> RenderableType:
        now = self._app.clock.monotonic()
        door = self._where(width)
        left = height - 1 - len(door)
        top = max(8, min(left * 2 // 5, len(self.sight.queues) + 4, 16))
        log = max(4, left // 6)
        dead = max(4, min(left // 5, 8))
        layout = Layout()
        layout.split_column(
            Layout(self._header(now), size=1),
            *[Layout(line, size=1) for line in door],
            Layout(name="top", size=top),
            Layout(self._running(width, left - top - log - dead - 2), name="running"),
            self._attention(dead),
            Layout(self._log(log - 2), size=log),
        )
        if width < SIDE_BY_SIDE:
            layout["top"].update(self._queues(top - 3, width, f"{amount(self.pace.rate(now))} jobs/s"))
            return layout
        side = max(30, width * 2 // 5)
        tall = 1 if top < 10 else 3
        layout["top"].split_row(
            Layout(self._queues(top - 3, width - side), name="queues"), Layout(name="side", size=side)
        )
        layout["side"].split_column(
            Layout(self._throughput(now, side - 4, tall), size=tall + 2),
            Layout(self._workers(now, top - tall - 5, side), name="workers"),
        )
        return layout

    def _where(self, width: int) -> list[Text]:
        """Where the dashboard is: the link that signs one browser in, whole, for it is copied; when it is used, the address."""
        if self._door is None:
            return []
        said = f" dashboard {self._door.shown}"
        return [Text(said[at : at + width], style="bold") for at in range(0, len(said), max(width, 1))]

    def _header(self, now: float) -> RenderableType:
        ran = duration(timedelta(seconds=int(now - self.begun)))
        line = Table.grid(expand=True, padding=(0, 1))
        line.add_column(no_wrap=True)
        line.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        line.add_column(justify="right", no_wrap=True)
        if self.stopping.is_set():
            limit = duration(self._app.settings.stop_time)
            running = self.sight.running_count
            rest = (
                f"{running} jobs still running, they have {limit}"
                if running
                else "nothing is running any more"
            )
            middle = Text(f"stopping… {self.trouble or rest}", style="bold yellow")
        elif self.trouble is not None:
            middle = Text(self.trouble, style="bold red")
        elif self.sight.broken:
            middle = Text("; ".join(summary(view) for view in self.sight.broken), style="bold red")
        else:
            middle = Text(without_password(self._app.store.url), style=QUIET)
        line.add_row(Text(f" Lateshift · {self._app.name}", style="bold cyan"), middle, Text(f"up {ran} "))
        return line

    def _queues(self, rows: int, width: int, also: str = "") -> RenderableType:
        """`also`: what stands nowhere else, where there is no room for its panel."""
        heads = (("queue", "1"), ("ready", ">"), ("later", ">"), ("run", ">"), ("block", ">"), ("dead", ">"), ("oldest", ">"))  # fmt: skip
        lines: list[list[Text]] = []
        for queue in _most_urgent(self.sight.queues, rows):
            name = Text(queue.name)  # first: it is what is read where the column is narrow
            name.append(" paused" if queue.paused_at is not None else "", style="bold yellow")
            lines.append([
                name, _count(queue.ready, ""), _count(queue.scheduled, "blue"), _count(queue.running, "cyan", cut=queue.more_running),
                _count(queue.blocked, "magenta"), _count(queue.dead, "bold red"),
                Text(duration(queue.oldest_ready), style="yellow" if _is_late(queue) else ""),
            ])  # fmt: skip
        table = _fitted(heads, lines, width, ("block", "later", "oldest", "run"))
        more = _left_out(len(self.sight.queues), rows)
        return _panel(table, "queues", " · ".join(filter(None, (also, more))))

    def _throughput(self, now: float, width: int, tall: int) -> RenderableType:
        rate = self.pace.rate(now)
        number = Text(f"{rate:.1f}" if rate < 100 else amount(rate), style="bold green")
        number.append(" jobs/s", style="green")
        chart = sparkline(self.pace.last_minute(now), max(10, width - 15), tall)
        line = Table.grid(expand=True)
        line.add_column(width=14, no_wrap=True)
        line.add_column(justify="right", no_wrap=True)
        line.add_row(Group(number, *([Text(f"{amount(self.pace.total)} in all", style=QUIET)] if tall > 1 else [])),
                     Text("\n".join(chart), style="green"))  # fmt: skip
        return _panel(line, "now, and the last minute")

    def _workers(self, now: float, rows: int, width: int) -> RenderableType:
        if not self.sight.workers:
            return _panel(
                Text("starting…" if not self.stopping.is_set() else "all gone home", style=QUIET), "workers"
            )
        lines: list[list[Text]] = []
        for worker in self.sight.workers[: max(1, rows)]:
            pace = self.paces.get(worker.id)
            lines.append([
                Text(str(worker.pid)), Text(amount(worker.stats.get("running", 0))),
                Text(amount(worker.stats.get("completed", 0))), Text(f"{pace.rate(now):.1f}" if pace else ""),
                Text(self._age(worker), style=QUIET),
            ])  # fmt: skip
        heads = (("pid", ">"), ("busy", ">"), ("done", ">"), ("jobs/s", ">"), ("up", ">"))
        table = _fitted(heads, lines, width, ("up", "jobs/s", "done"))
        return _panel(table, "workers", _left_out(len(self.sight.workers), max(1, rows)))

    def _age(self, worker: MemberView) -> str:
        return duration(
            timedelta(seconds=max(0, int((self._app.clock.now() - worker.started_at).total_seconds())))
        )

    def _running(self, width: int, rows: int) -> RenderableType:
        running = sorted(
            self.sight.running, key=lambda job: (job.progress is None, job.started_at or job.created_at)
        )
        if not running:
            return _panel(Text("nothing is running", style=QUIET), "running")
        table = _table(("task", ""), ("job", ""), ("progress", ""), ("", ">"), ("note", "1"), ("for", ">"))
        wide = max(10, width // 5)
        for job in running[: max(1, rows)]:
            bar, share = _progress(job, wide)
            ran = self._app.clock.now() - (job.started_at or self._app.clock.now())
            note = job.progress.note if job.progress and job.progress.note else ""
            if job.cancel_requested:
                note = "cancelled, told to stop"
            table.add_row(
                job.task, Text(short(job.id), style=QUIET), bar, share, Text(note, style=QUIET),
                duration(max(timedelta(0), ran)),
            )  # fmt: skip
        return _panel(table, "running", _left_out(self.sight.running_count, max(1, rows)))

    def _attention(self, tall: int) -> Layout:
        """Dead letters, and runs that wait for an operator beside them if there are any."""
        row = Layout(size=tall)
        if not self.sight.held:
            row.update(self._dead(tall - 2))
            return row
        row.split_row(Layout(self._held(tall - 2)), Layout(self._dead(tall - 2)))
        return row

    def _held(self, rows: int) -> RenderableType:
        table = _table(("workflow", ""), ("run", ""), ("why", "1"), header=False)
        for view in self.sight.held[:rows]:
            table.add_row(
                view.run.name, Text(short(view.run.id), style=QUIET), Text(one_line(view.run.why or "an operator wants it so"))
            )  # fmt: skip
        more = max(0, len(self.sight.held) - rows)
        least = " or more" if len(self.sight.held) == HELD_READ else ""
        note = f"and {more}{least} more" if more else ""
        return _panel(table, "held workflows", note, style="yellow")

    def _dead(self, rows: int) -> RenderableType:
        if not self.sight.dead:
            return _panel(Text("none", style=QUIET), "dead letters")
        table = _table(("task", ""), ("job", ""), ("reason", ""), ("message", "1"), ("", ">"), header=False)
        for job in self.sight.dead[:rows]:
            last = last_failure(job)
            message = " ".join((last.message or last.error or "").split()) if last else ""
            ago = self._app.clock.now() - (job.settled_at or job.created_at)
            table.add_row(
                job.task, Text(short(job.id), style=QUIET), Text(job.reason or "", style="red"), Text(message),
                Text(f"{duration(max(timedelta(0), ago))} ago", style=QUIET),
            )  # fmt: skip
        note = " · ".join(filter(None, (self.sight.dead_needing, _left_out(self.sight.dead_count, rows))))
        return _panel(table, "dead letters", note, style="red")

    def _log(self, rows: int) -> RenderableType:
        shown = [_log_line(line) for line in list(self._lines)[-rows:]]
        return _panel(Group(*shown), "log", "Ctrl-C stops gracefully" if not self.stopping.is_set() else "")


def sparkline(values: Sequence[int], width: int, tall: int) -> list[str]:
    """Rows of text, the topmost first, of the newest `width` values; the highest value reaches the top."""
    shown = list(values[-width:])
    highest = max([*shown, 1])
    levels = [-(-value * tall * 8 // highest) for value in shown]
    return [
        "".join(BARS[max(0, min(8, level - row * 8))] for level in levels) for row in reversed(range(tall))
    ]


@contextlib.contextmanager
def captured() -> Iterator[tuple[IO[str], deque[str]]]:
    """Gives the terminal, and the latest lines of what this process and its children write to stdout and stderr
    meanwhile: nothing they print breaks the screen. Afterwards everything is as it was."""
    lines: deque[str] = deque(maxlen=LINES_KEPT)
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    source, sink = os.pipe()
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    os.close(sink)

    def read() -> None:
        with os.fdopen(source, errors="replace") as text:
            for line in text:
                lines.append(Text.from_ansi(line.rstrip("\n")).plain)

    threading.Thread(target=read, name="lateshift-view", daemon=True).start()
    terminal = os.fdopen(os.dup(kept[0]), "w")
    try:
        yield terminal, lines
    finally:
        with contextlib.suppress(OSError):  # it has gone
            terminal.close()
        sys.stdout.flush()
        sys.stderr.flush()
        for descriptor, was in enumerate(kept, start=1):
            os.dup2(was, descriptor)
            os.close(was)


def _table(*columns: tuple[str, str], header: bool = True) -> Table:
    """A column's second word: `>` for numbers, `1` for the one that takes the room that is left."""
    table = Table(
        box=None, expand=True, padding=(0, 1, 0, 0), header_style=QUIET, show_header=header, pad_edge=False
    )
    for name, kind in columns:
        table.add_column(
            name, justify="right" if kind == ">" else "left", ratio=1 if kind == "1" else None, no_wrap=True,
            overflow="ellipsis",
        )  # fmt: skip
    return table


def _fitted(
    heads: Sequence[tuple[str, str]], lines: Sequence[Sequence[Text]], width: int, gives_way: Sequence[str]
) -> Table:
    stay = staying(heads, lines, width - FRAME, gives_way)
    table = _table(*(heads[number] for number in stay))
    for line in lines:
        table.add_row(*(line[number] for number in stay))
    return table


def _panel(content: RenderableType, title: str, note: str = "", style: str = "blue") -> Panel:
    return Panel(
        content, title=f"[bold]{title}[/]", title_align="left", subtitle=f"[{QUIET}]{note}[/]" if note else None,
        subtitle_align="right", border_style=style, box=box.ROUNDED,
    )  # fmt: skip


def _most_urgent(queues: Sequence[QueueView], rows: int) -> list[QueueView]:
    """All by name if they fit, else those that need somebody first, then those where something waits or runs."""
    if len(queues) <= rows:
        return list(queues)
    return sorted(
        queues,
        key=lambda queue: (
            not queue.dead, queue.paused_at is None, not _is_late(queue), -(queue.ready + queue.running + queue.scheduled), queue.name,
        ),
    )[:rows]  # fmt: skip


def _is_late(queue: QueueView) -> bool:
    return queue.oldest_ready is not None and queue.oldest_ready > timedelta(minutes=1)


def _left_out(count: int, rows: int) -> str:
    return f"and {count - rows:,} more" if count > rows else ""


def _count(number: int, style: str, *, cut: bool = False) -> Text:
    if number >= COUNT_LIMIT:
        return Text(f"{COUNT_LIMIT // 1000}k+", style=style)
    if cut:
        return Text(f"{amount(number)}+", style=style)
    return Text(amount(number), style=style if number else QUIET)


def _progress(job: JobView, width: int) -> tuple[RenderableType, str]:
    progress = job.progress
    if progress is None:
        return Text("·" * width, style=QUIET), ""
    if not progress.total:
        return Text("━" * width, style="cyan"), f"{progress.done:g}"
    share = max(0.0, min(1.0, progress.done / progress.total))
    return ProgressBar(total=1.0, completed=share, width=width, complete_style="cyan"), f"{share:.0%}"


def _log_line(line: str) -> Text:
    """Coloured by its level; ids as short as elsewhere on the screen."""
    level, _, rest = line.partition(" ")
    style = {"ERROR": "red", "CRITICAL": "bold red", "WARNING": "yellow"}.get(level, QUIET)
    if level in logging.getLevelNamesMapping():
        line = rest.partition(" ")[2].removeprefix(
            "lateshift: "
        )  # the time stands in the files' lines, not here
    return Text(JOB_ID.sub("…\\1", line), style=style, no_wrap=True, overflow="ellipsis")
