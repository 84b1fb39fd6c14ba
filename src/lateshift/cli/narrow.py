"""Which columns of the live view stay where there is little room: a heading that is cut says nothing, nor does a number without its name."""

from collections.abc import Sequence

from rich.text import Text

NAME_WANTS = 16  # characters of the first column, if its names are as long
SIDE_BY_SIDE = 72  # columns of a terminal below which panels do not stand beside each other
FRAME = 4  # characters of a panel that are not its content


def staying(
    heads: Sequence[tuple[str, str]], rows: Sequence[Sequence[Text]], room: int, gives_way: Sequence[str]
) -> list[int]:
    """The numbers of the columns that fit. Those that say nothing go first, as far as they may go; then the others, in this order."""
    stay = list(range(len(heads)))
    idle = [name for name in gives_way if all(_is_nothing(row[_at(heads, name)]) for row in rows)]
    for name in [*idle, *(each for each in gives_way if each not in idle)]:
        if _needs(heads, rows, stay) <= room:
            break
        stay.remove(_at(heads, name))
    return stay


def _at(heads: Sequence[tuple[str, str]], name: str) -> int:
    return [head for head, _ in heads].index(name)


def _is_nothing(cell: Text) -> bool:
    return cell.plain in ("", "0", "0.0")


def _needs(heads: Sequence[tuple[str, str]], rows: Sequence[Sequence[Text]], stay: Sequence[int]) -> int:
    widths = [max(len(heads[number][0]), *(row[number].cell_len for row in rows), 0) for number in stay]
    if stay[0] == 0 and heads[0][1] == "1":
        widths[0] = min(widths[0], NAME_WANTS)
    return sum(widths) + len(stay) - 1
