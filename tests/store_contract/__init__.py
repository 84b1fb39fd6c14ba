"""What every store promises, put to the test on each of them alike."""
