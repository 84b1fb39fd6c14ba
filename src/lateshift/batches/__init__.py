"""Batches: many calls under one handle."""
