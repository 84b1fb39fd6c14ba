"""Dead letters and cancelled jobs: found in groups, run again, or discarded, each seen before it is done."""
