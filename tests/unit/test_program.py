"""Finding the app in a user's program, and saying what is wrong when there is none."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lateshift.errors import AppInvalid
from lateshift.worker.program import find_app

HEAD = "from lateshift import Lateshift\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, empty; what is imported from it is forgotten after the test."""
    known = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    for name in set(sys.modules) - known:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if file.startswith(str(tmp_path)):
            del sys.modules[name]


def write(name: str, text: str) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def refusal(spec: str) -> str:
    with pytest.raises(AppInvalid) as caught:
        find_app(spec)
    return str(caught.value)


@pytest.mark.parametrize("spec", ["shop_a.py", "shop_a.py:app", "shop_a", "shop_a:app", "./shop_a.py"])
def test_an_app_is_found_by_file_or_by_module(spec: str) -> None:
    write("shop_a.py", HEAD + 'app = Lateshift("shop")\n')
    assert find_app(spec).name == "shop"


def test_a_file_elsewhere_is_importable_under_its_own_name_and_sees_its_neighbours(folder: Path) -> None:
    write("deep/shop_b.py", HEAD + "import shop_b_names\napp = Lateshift(shop_b_names.NAME)\n")
    write("deep/shop_b_names.py", 'NAME = "deep shop"\n')
    app = find_app("deep/shop_b.py")
    assert app.name == "deep shop"
    assert sys.modules["shop_b"].app is app
    assert sys.path[0] == str(folder / "deep")


def test_a_module_in_a_package_is_found() -> None:
    write("pkg_c/__init__.py", "")
    write("pkg_c/jobs.py", HEAD + 'app = Lateshift("packed")\n')
    assert find_app("pkg_c.jobs:app").name == "packed"


def test_an_app_under_another_name_is_found_if_it_is_the_only_one() -> None:
    write("shop_d.py", HEAD + 'app = "a web framework\'s"\njobs = also = Lateshift("shop")\n')
    assert find_app("shop_d.py").name == "shop"


def test_app_wins_among_several() -> None:
    write("shop_e.py", HEAD + 'other = Lateshift("other")\napp = Lateshift("shop")\n')
    assert find_app("shop_e.py").name == "shop"


def test_several_apps_are_refused_by_name() -> None:
    write("shop_f.py", HEAD + 'left = Lateshift("l")\nright = Lateshift("r")\n')
    assert refusal("shop_f.py") == "shop_f.py holds several apps: left, right. Name one: shop_f.py:left."
    assert find_app("shop_f.py:right").name == "r"


def test_a_program_without_an_app_is_told_how_to_make_one() -> None:
    write("shop_g.py", HEAD)
    assert (
        refusal("shop_g.py") == 'shop_g.py holds no Lateshift app. Make one in it: app = Lateshift("shop").'
    )


def test_a_missing_file_is_named_with_the_folder_it_was_looked_for_in(folder: Path) -> None:
    assert refusal("shpo.py") == f"There is no file shpo.py in {folder}. Check the path."


def test_a_missing_module_is_named() -> None:
    assert refusal("shpo_missing:app").startswith("There is no module shpo_missing in ")


def test_a_folder_is_no_program() -> None:
    write("shop_h/jobs.py", HEAD)
    assert refusal("./shop_h").startswith("./shop_h is a folder.")


def test_a_missing_attribute_is_answered_with_the_apps_there_are() -> None:
    write("shop_i.py", HEAD + 'app = Lateshift("shop")\nprices = {}\n')
    assert refusal("shop_i.py:ap") == "shop_i.py has no 'ap'. Its apps: app."
    assert refusal("shop_i.py:prices") == "shop_i.py:prices is no Lateshift app but a dict."


def test_an_error_in_the_program_is_shown_with_its_own_line(folder: Path) -> None:
    write("shop_j.py", HEAD + "\nprice = 1 / 0\n")
    assert refusal("shop_j.py") == (
        f"shop_j.py could not be imported: ZeroDivisionError: division by zero ({folder}/shop_j.py, line 3)"
    )


def test_an_error_that_lateshift_raises_is_shown_with_the_line_that_called_it(folder: Path) -> None:
    write("shop_k.py", HEAD + 'app = Lateshift("shop")\n\napp.task(lambda: None)\n')
    assert refusal("shop_k.py").endswith(f"({folder}/shop_k.py, line 4)")


def test_a_module_that_the_program_lacks_is_its_own_error(folder: Path) -> None:
    write("shop_l.py", "import no_such_library\n")
    assert refusal("shop_l.py") == (
        "shop_l.py could not be imported: ModuleNotFoundError: No module named 'no_such_library' "
        f"({folder}/shop_l.py, line 1)"
    )


def test_a_syntax_error_is_shown_with_its_place(folder: Path) -> None:
    write("shop_m.py", "x = 1\ndef (\n")
    assert refusal("shop_m.py").endswith(f"SyntaxError: invalid syntax ({folder}/shop_m.py, line 2)")


def test_a_program_that_exits_when_imported_is_refused(folder: Path) -> None:
    write("shop_n.py", "import sys\nsys.exit(2)\n")
    assert refusal("shop_n.py") == (
        f"shop_n.py could not be imported: SystemExit: 2 ({folder}/shop_n.py, line 2)"
    )


def test_a_file_whose_name_python_uses_itself_is_refused() -> None:
    write("json.py", HEAD + 'app = Lateshift("shop")\n')
    assert "the name json is taken by " in refusal("json.py")


@pytest.mark.parametrize("name", ["rich", "psycopg", "starlette"])
def test_a_file_named_as_what_lateshift_imports_later_is_refused(name: str) -> None:
    write(f"{name}.py", HEAD + 'app = Lateshift("shop")\n')
    assert refusal(f"{name}.py").endswith(
        f"the name {name} is that of a module which Lateshift itself imports. Rename the file."
    )


def test_looking_for_an_app_does_not_open_its_store(folder: Path) -> None:
    write("shop_o.py", HEAD + 'app = Lateshift("shop")\n')
    find_app("shop_o.py")
    assert not (folder / "lateshift.db").exists()


def test_no_program_at_all_is_refused() -> None:
    assert refusal(":app").startswith("':app' names no program.")
