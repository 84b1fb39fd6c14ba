"""Programs that tests run as a user would run theirs: by the name of their file."""
