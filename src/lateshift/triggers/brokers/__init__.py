"""How messages are taken from each kind of broker, and given back: never lost between the broker and the store."""
