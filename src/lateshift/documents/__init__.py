"""What programs are shown of jobs, queues and the rest, as types: the command line's --json and the HTTP API give the same."""
