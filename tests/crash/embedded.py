"""A worker inside a program of the user's own: `python -m tests.crash.embedded`, until it is ended."""

import asyncio
import logging

from tests.crash.program import app


async def main() -> None:
    async with app.running():
        await asyncio.Event().wait()


if __name__ == "__main__":
    logging.basicConfig(level="INFO", format="%(levelname)s %(name)s: %(message)s")
    asyncio.run(main())
