"""Sources of triggers, read by readers that the tests turn by hand."""
