"""Text of others for a terminal, a log or a label: nothing in it is obeyed, and nothing turns its neighbours around."""

# C0 and C1 controls, the two separators at which some programs end a line, and what changes the direction of text: embeddings,
# overrides, isolates and marks.
OBEYED = (
    *range(32),
    *range(127, 160),
    0x061C,
    0x200E,
    0x200F,
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
)
_SHOWN = {code: f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" for code in OBEYED} | {10: "\\n"}


def escaped(text: str) -> str:
    """On one line, and nothing that a terminal obeys."""
    return text.translate(_SHOWN)
