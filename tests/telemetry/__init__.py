"""What others see of a process: logs, logs of attempts, metrics."""
