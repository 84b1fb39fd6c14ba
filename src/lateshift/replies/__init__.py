"""Replies: what becomes of jobs, told to tasks, channels, webhooks and brokers."""
