"""Real processes, killed, stopped and cut off; what became of the jobs is read from a ledger of our own."""
