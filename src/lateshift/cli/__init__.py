"""The command line: one file for each noun. Parsing by click; rich is imported only when something is drawn."""
