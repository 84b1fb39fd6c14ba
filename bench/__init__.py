"""Measures Lateshift beside bare SQL and its peers: `make bench`. docs/benchmarks.md says what each line means."""
