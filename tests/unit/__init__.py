"""Plain data and pure decisions: no store, no clock, no network."""
