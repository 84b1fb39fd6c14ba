"""The type checker sees through a task: wrong arguments are found before anything runs."""

from pathlib import Path

import mypy.api

PROGRAM = """
from datetime import timedelta
from lateshift import Job, Lateshift

app = Lateshift("typed")

@app.task
def plain(path: str, width: int = 1) -> str:
    return path

@app.task(queue="images")
async def waits(number: int) -> float:
    return 1.0

def good() -> str:
    job: Job[str] = plain.enqueue("a", width=2)
    plain.options(delay=timedelta(1)).enqueue("a")
    app.enqueue_many(plain.call(path) for path in ["a"])
    return job.result()

async def also_good() -> float:
    direct: float = await waits(1)
    return direct + await (await waits.aenqueue(3)).aresult()

def bad() -> None:
    plain.enqueue(1)                    # wrong type
    plain.enqueue("a", hight=2)         # unknown name
    waits.enqueue()                     # missing
    x: int = plain.enqueue("a").result()    # wrong result
    plain.options(priority="high")      # wrong option
    app.task(queue=7)                   # wrong option
    app.task(qeue="images")             # no option
    app.agent("payments").task(queue="images")  # an agent's tasks have its queue
"""


def test_wrong_arguments_are_found_by_the_type_checker_and_right_ones_pass(tmp_path: Path) -> None:
    program = tmp_path / "typed_program.py"
    program.write_text(PROGRAM)
    config = str(Path(__file__).parents[2] / "pyproject.toml")
    output, _, _ = mypy.api.run(["--config-file", config, "--cache-dir", str(tmp_path), str(program)])
    bad = PROGRAM.splitlines().index("def bad() -> None:") + 1
    errors = [line for line in output.splitlines() if "typed_program.py" in line and ": error:" in line]
    lines = {int(line.split("typed_program.py:")[1].split(":")[0]) for line in errors}
    assert lines == set(range(bad + 1, bad + 9)), output
