"""`python -m lateshift` is the command `lateshift`."""

from lateshift.cli.main import main

if __name__ == "__main__":
    main()
