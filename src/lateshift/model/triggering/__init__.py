"""What starts jobs from outside: messages, files, rows and the application's own events. Plain data."""
