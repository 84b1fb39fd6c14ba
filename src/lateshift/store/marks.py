"""What both stores do alike about what stands beside a job: its tags, and the job whose attempt asked for it."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from lateshift.model.ids import JobId
from lateshift.model.job import NewJob

GENERATIONS = 10  # up and down from a job that its family is looked at


class Descendant(Struct, frozen=True):
    """A job that one asked for, or that one that it asked for did. `depth`: 1 for its own."""

    id: JobId
    parent: JobId
    depth: int


class Kin(Struct, frozen=True):
    """The family of a job. `ancestors`: the nearest first. `descendants`: each generation after the one before. `cut`: there are
    more of these."""

    ancestors: list[JobId]
    descendants: list[Descendant]
    cut: bool

    @classmethod
    def of(
        cls, ancestors: list[JobId], id: JobId, children: Callable[[JobId, int], list[JobId]], limit: int
    ) -> "Kin":
        """`children` gives so many of those that one asked for. At most `limit` descendants, and as many looks."""
        found: list[Descendant] = []
        parents = [id]
        for depth in range(1, GENERATIONS + 1):
            before = len(found)
            for parent in parents:
                room = limit - len(found)
                here = children(parent, room + 1)
                found += [Descendant(child, parent, depth) for child in here[:room]]
                if len(here) > room:
                    return cls(ancestors, found, True)
            parents = [each.id for each in found[before:]]
        return cls(ancestors, found, bool(parents))


def marked(jobs: Sequence[NewJob]) -> list[NewJob]:
    """Those that have any."""
    return [job for job in jobs if job.tags or job.parent is not None]


def of_parents(jobs: Sequence[NewJob]) -> list[tuple[JobId, JobId]]:
    """Each with who asked for it. The jobs of a batch and of a workflow say by that where they belong."""
    return [(job.id, job.parent) for job in jobs if job.parent is not None and job.spec.batch is None]
