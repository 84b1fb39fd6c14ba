"""Templates: everything that is not ours is escaped and made plain, wherever it stands, and a name that is not there is an error. And what every
page forbids."""

import json
import re
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from urllib.parse import urlencode

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from lateshift.api.routes.narrowing import NARROWING
from lateshift.dashboard.choosing import is_pattern
from lateshift.dashboard.files import address_of, has_vendor
from lateshift.dashboard.lines import hanging
from lateshift.dashboard.page import back_to
from lateshift.dashboard.tables import labelled
from lateshift.model.escaping import OBEYED
from lateshift.model.words import in_two, sentence

HTML = "text/html; charset=utf-8"
HEADERS = {
    "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
}  # fmt: skip
_ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_WORD_ENDS = re.compile(r"([_.:/-]+)")
_BEFORE_UNIT = re.compile(r"(?<=[0-9]) (?![0-9])|(?<=[<>]) ")
_NO_BREAK = "\N{NO-BREAK SPACE}"
BRIEF = 100  # characters of a value in a table
_SEQUENCES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_CONTROLS = {
    code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if code not in (9, 10)
} | dict.fromkeys((code for code in OBEYED if code > 255), "�")  # fmt: skip
_IN_JSON = {code: f"\\u{code:04x}" for code in OBEYED if code > 126}
_SPELT = {"m": "min"}
COUNTED_TO = 10_000  # counts stop here, and say so


@cache
def templates() -> Environment:
    made = Environment(
        loader=PackageLoader("lateshift.dashboard"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        finalize=_finalized,
    )  # fmt: skip
    made.filters |= {
        "duration": unparted(duration), "count": count, "instant": instant, "clock": clock, "pretty": pretty, "short": short, "share": unparted(share), "rate": rate,
        "short_ids": short_ids, "linked": linked, "sentence": sentence, "with_cursor": with_cursor, "plain": plain, "brief": brief, "count_whole": count_whole,
        "labelled": labelled, "back_to": lambda form, path, names: back_to(path, form, names), "named": named, "told": told, "hanging": lambda text: hanging(plain(text)),
    }  # fmt: skip
    made.globals |= {"file": address_of, "has_vendor": has_vendor, "narrowing": NARROWING}
    made.tests["pattern"] = is_pattern
    return made


def render(name: str, **context: Any) -> str:
    return templates().get_template(name).render(**context)


def duration(span: timedelta | float | None) -> str:
    """In the one or two units that matter, to the nearest: `0 µs`, `80 µs`, `340 ms`, `12.4 s`, `3 min 20 s`, `2 d 4 h`."""
    if span is None:
        return "–"
    seconds = span.total_seconds() if isinstance(span, timedelta) else float(span)
    if seconds < 0:
        return f"−{duration(-seconds)}"
    if seconds < 0.999_5:
        return f"{seconds * 1e6:.0f} µs" if seconds < 0.000_999_5 else f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    return _minutes(max(60.0, seconds))


def told(at: datetime, now: datetime) -> str:
    """When, as people say it, to the nearest: `just now`, `58 s ago`, `4 min 12 s ago`, `2 h 5 min ago`, `in 3 min`. The rest stands in the title."""
    seconds = abs((now - at).total_seconds())
    if seconds < 1:
        return "just now" if at <= now else "now"
    span = f"{round(seconds)} s" if seconds < 59.5 else _minutes(max(60.0, seconds))
    return f"{span} ago" if at <= now else f"in {span}"


def unparted(told: Callable[[Any], str]) -> Callable[[Any], str]:
    """The same, with no end of a line between a number and its unit; between `3 min` and `20 s` there may be one."""
    return lambda value: _BEFORE_UNIT.sub(_NO_BREAK, told(value))


def _minutes(seconds: float) -> str:
    two = in_two(seconds)
    assert two is not None, "it is a minute or more"
    many, unit, few, less = two
    return f"{many} {_SPELT.get(unit, unit)}" + (f" {few} {_SPELT.get(less, less)}" if few else "")


def count(number: int) -> str:
    """Grouped; what is counted no further than COUNTED_TO says so."""
    return f"{number:,}" if number < COUNTED_TO else f"{COUNTED_TO:,}+"


def count_whole(number: int) -> str:
    """Grouped, of what is counted to the end."""
    return f"{number:,}"


def instant(at: datetime | None) -> str:
    return "–" if at is None else at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def clock(at: datetime, now: datetime) -> str:
    """What a clock showed, in UTC; with the date, unless that is today."""
    told = at.astimezone(UTC)
    return told.strftime("%H:%M:%S" if told.date() == now.astimezone(UTC).date() else "%Y-%m-%d %H:%M:%S")


def pretty(value: Any) -> str:
    """A value as JSON for people to read, and to send back as it is: what must not be obeyed is written as JSON writes it."""
    return json.dumps(msgspec.to_builtins(value), indent=2, ensure_ascii=False).translate(_IN_JSON)


def brief(value: Any) -> str:
    """A value on one line, its beginning. What is a text was cut before."""
    text = value if isinstance(value, str) else json.dumps(msgspec.to_builtins(value), ensure_ascii=False)
    return plain(text if len(text) <= BRIEF else f"{text[: BRIEF - 1]}…")


def plain(text: str | None) -> str:
    """What a program wrote for a terminal, to be read: without colours, and with what else a terminal obeys made visible."""
    return "" if text is None else _SEQUENCES.sub("", text).translate(_CONTROLS)


def _finalized(value: Any) -> Any:
    """Whatever a template writes; markup is what another one has written. Browsers send the lines of a form with two characters between."""
    if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable():
        return value
    return plain(value.replace("\r\n", "\n"))


def short(id: Any) -> str:
    """The end of an id, by which jobs made together differ."""
    return str(id)[-8:]


def short_ids(text: str) -> str:
    """A sentence in which ids stand, with the ends of them."""
    return _ID.sub(lambda found: short(found.group()), text)


def linked(text: str, jobs: Collection[Any]) -> Markup:
    """A sentence in which each id stands as its end; those of these jobs lead there."""
    known = {str(id) for id in jobs}

    def shown(found: re.Match[str]) -> str:
        id = found.group()
        inner = f'title="{id}">{short(id)}'
        return (
            f'<a class="id" href="/jobs/{id}" {inner}</a>'
            if id in known
            else f'<span class="id" {inner}</span>'
        )

    return Markup(_ID.sub(shown, str(escape(plain(text)))))


def named(name: str) -> Markup:
    """A name that may be broken into lines where its words end. It is markup now, so that it is made plain here."""
    return Markup(_WORD_ENDS.sub(r"\1<wbr>", str(escape(plain(name)))))


def share(part: float) -> str:
    """What is not nothing, and not all, is not told so."""
    if 0 < part < 0.001:
        return "< 0.1 %"
    if 0.999 < part < 1:
        return "> 99.9 %"
    return f"{part * 100:.1f}".removesuffix(".0") + " %"


def rate(number: float) -> str:
    """How many in a time: whole numbers where they are large, two digits where they are small."""
    if number >= 10:
        return f"{number:,.0f}"
    return f"{number:.1f}".removesuffix(".0") if number >= 1 or not number else f"{number:.2g}"


def with_cursor(query: Any, cursor: str) -> str:
    """The same question, for the next page."""
    asked = {name: value for name, value in msgspec.to_builtins(query).items() if value is not None}
    return urlencode(asked | {"cursor": cursor})
