"""Sensitive queues: what is sealed, who can open it, and what anybody else sees."""
