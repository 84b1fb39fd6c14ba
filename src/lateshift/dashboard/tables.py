"""Tables that a phone shows as cards: each cell knows the heading of its column, which a style sheet puts before it."""

import re
from html import unescape

from markupsafe import Markup, escape

_PART = re.compile(r"<(tr|th|td)\b([^>]*)>")
_HEADING = re.compile(r"<th\b[^>]*>(.*?)</th>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_SPAN = re.compile(r'\bcolspan="(\d+)"')
UNSEEN = 'class="unseen"'  # a heading for those who listen only


def labelled(table: str) -> Markup:
    """A table as a template has written it, in which whatever others wrote is escaped. A cell of several columns, and one whose
    column has no heading, has no label."""
    headings = ["" if UNSEEN in each else _text(each) for each in _HEADING.findall(table)]
    column = 0

    def marked(found: re.Match[str]) -> str:
        nonlocal column
        kind, attributes = found.groups()
        if kind != "td":
            column = 0
            return found.group()
        label = headings[column] if column < len(headings) and not _SPAN.search(attributes) else ""
        column += 1
        return f'<td data-label="{escape(label)}"{attributes}>' if label else found.group()

    return Markup(_PART.sub(marked, table))


def _text(html: str) -> str:
    return " ".join(unescape(_TAG.sub("", html)).split())
