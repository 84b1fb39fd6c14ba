"""The HTTP API: routes as values, and what is made of them. `lateshift serve` runs it."""
