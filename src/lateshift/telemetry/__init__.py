"""What others see of a process: its logs, the logs of attempts, and metrics. Reads and tells; decides nothing."""
