"""What to say to a user of the database who lacks a right: which of the roles has it, never to give this one more than it needs."""

import re

from lateshift.store.postgres.roles import matrix

_TABLE = re.compile(r"permission denied for (?:table|relation) (\w+)")
_SCHEMA = re.compile(r"permission denied for schema lateshift\b")
_ROLES = "the roles of `lateshift store roles`"


def remedy(refused: str) -> str:
    """`refused`: PostgreSQL's own words."""
    if _SCHEMA.search(refused):
        return (
            f"This user has none of {_ROLES}: name another in the store's URL, or give this one the role that it needs. Only the owner may "
            "migrate"
        )
    found = _TABLE.search(refused)
    if found is None:
        return f"This user may not do that: do it as the owner, of {_ROLES}, or as a superuser"
    table = found[1]
    writers = [
        role
        for role, rights in matrix().items()
        if any("INSERT, UPDATE, DELETE" in it for it in rights.get(table, ()))
    ]
    readers = [
        role
        for role, rights in matrix().items()
        if role not in writers and any(it.startswith("SELECT") for it in rights.get(table, ()))
    ]
    may = f"{_or(writers or ['owner'])} may write that table"
    reads = f", and {_or(readers)} may read it, or some of it" if readers else ""
    return f"This user may not do that. Of {_ROLES} the {may}{reads}: name such a user in the store's URL for this"


def _or(roles: list[str]) -> str:
    *others, last = roles
    return f"{', '.join(others)} or {last}" if others else last
