"""Where bodies run: coroutines on the worker's loop, threads, processes."""
