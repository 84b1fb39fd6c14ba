"""The state store: `contract` says what every store does, `open` turns a URL into one."""
