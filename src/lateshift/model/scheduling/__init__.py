"""When schedules fire, and what becomes of each tick: plain data and pure decisions."""
