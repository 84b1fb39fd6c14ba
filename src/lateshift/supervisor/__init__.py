"""Finds what is overdue and takes it back; deletes what has passed its retention. Runs no job, restarts nothing."""
