"""One module for what each page is about."""
