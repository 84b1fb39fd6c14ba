"""Every page that can be reached by its links, one of each kind."""

import re

from playwright.sync_api import Page

from lateshift.dashboard.pages.all import PAGES

CLICKS = 200  # pages looked at


def kind_of(path: str) -> str | None:
    """The pattern of the page at a path."""
    for page in PAGES:
        pattern = re.sub(r"\\{\w+:path\\}", ".+", re.escape(page.path))
        if re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", pattern), path):
            return page.path
    return None


def reached(page: Page) -> dict[str, str]:
    """From the overview on: for each kind of page, the first address that was found."""
    found = {"/": "/"}
    waiting = ["/"]
    for _ in range(CLICKS):
        if not waiting:
            break
        page.goto(waiting.pop(0))
        links = page.eval_on_selector_all(
            "main a[href], nav a[href]", "all => all.map(a => a.getAttribute('href'))"
        )
        for link in links:
            path = link.partition("?")[0].partition("#")[0]
            kind = kind_of(path) if path.startswith("/") else None
            if kind is not None and kind not in found:
                found[kind] = path
                waiting.append(path)
    return found
