"""Workflows: what is kept of a run and of its steps. Plain data."""
