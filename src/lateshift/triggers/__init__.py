"""What starts jobs from outside: one file for each kind of source, and the reader that all of them share."""
