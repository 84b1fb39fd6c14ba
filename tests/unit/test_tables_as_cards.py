"""A cell of a table knows the heading of its column, for screens that are too narrow for a table."""

from lateshift.dashboard.tables import labelled

HEAD = (
    '<thead><tr><th class="tick"><span class="unseen">Ticked</span></th><th>Ready &amp; due</th>'
    '<th class="number">In <b>all</b></th></tr></thead>'
)


def test_each_cell_has_the_heading_of_its_column() -> None:
    row = '<tr data-href="/x"><td>1</td><td class="wide">2</td><td>3</td></tr>'
    marked = labelled(f"<table>{HEAD}<tbody>{row}{row}</tbody></table>")
    told = '<td>1</td><td data-label="Ready &amp; due" class="wide">2</td><td data-label="In all">3</td>'
    assert marked.count(told) == 2
    assert HEAD in marked


def test_a_cell_of_several_columns_and_one_too_many_have_none() -> None:
    row = '<tr><td></td><td colspan="2">all</td></tr><tr><td></td><td></td><td></td><td>4</td></tr>'
    marked = labelled(f"<table>{HEAD}{row}</table>")
    assert '<td colspan="2">all</td>' in marked
    assert "<td>4</td>" in marked
