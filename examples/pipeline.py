"""Albums through a pipeline: each is opened, each of its pictures is made small and marked, and a page is made of them. A picture that
fails holds its own album, until somebody has mended it, and no other.

python examples/pipeline.py
"""

import asyncio

from msgspec import Struct

from lateshift import Lateshift, Permanent, fan_in, fan_out

app = Lateshift("albums")
app.queue("open", max_ready=100)  # so many albums may wait to be opened; then enqueue says QueueFull


class Picture(Struct):
    name: str
    width: int


@app.task(queue="open")
def pictures(album: str) -> list[str]:
    return [f"{animal}.png" for animal in album.split()]


@app.task(queue="images")  # its own queue: `lateshift work --queues images` on machines with many cores
def shrink(name: str) -> Picture:
    if name == "owl.png":
        raise Permanent(f"{name} cannot be read")
    return Picture(name, 200)


@app.task(queue="images")
def mark(picture: Picture) -> Picture:
    return Picture(f"marked-{picture.name}", picture.width)


@app.task(queue="pages")
def page(pictures: list[Picture]) -> str:
    return ", ".join(picture.name for picture in pictures)


publish = app.pipeline(pictures | fan_out(shrink | mark) | fan_in(page), name="publish")


@app.on("alert.workflow_held")
@app.task
async def tell_somebody(data: dict[str, str]) -> None:
    print(f"held: {data['why']}")
    told.set()


told = asyncio.Event()


async def main() -> None:
    async with app.running():  # or `lateshift work examples/pipeline.py`, anywhere
        await publish.aenqueue("owl wren")
        cats = await publish.aenqueue("lynx puma lion")
        print(f"cats: {await cats.aresult()}")
        await told.wait()
        progress = await publish.aprogress()
        print(
            f"{progress.completed} completed, {progress.held} held at",
            *[at.name for at in progress.filters if at.held],
        )
        print("mended, it goes on with: lateshift workflows resume ID")


if __name__ == "__main__":
    asyncio.run(main())
