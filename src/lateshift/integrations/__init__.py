"""Lateshift inside other frameworks."""
