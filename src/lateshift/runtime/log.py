"""Lateshift's logger: the standard library's, under the name `lateshift`; a program sets it up as it likes."""

import logging

log = logging.getLogger("lateshift")
