"""The API under load: a server as `lateshift serve` runs it, a generator in a process of its own, and what an idle server costs."""
