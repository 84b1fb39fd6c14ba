"""Workflows: functions that go on where they were, whatever dies."""
