"""What can be asked for, noun by noun. A handler looks at the queue first (`asked.allow`), then does one thing."""
