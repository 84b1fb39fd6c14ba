"""How much memory a process had at the most."""

from pathlib import Path

import psutil

MEGABYTE = 1_000_000


def peak(process: psutil.Process) -> float:
    """Resident, in MB, since the process became what it is. `ru_maxrss` will not do: it begins with what the parent had.
    Where the kernel keeps no such mark, what the process has now."""
    try:
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / MEGABYTE
    return float(process.memory_info().rss) / MEGABYTE
