"""Pipelines: filters joined to a chain, whether their types fit, and how far the items are. Plain data."""
