"""What operators can do to what they name: the command line and the HTTP API do it alike."""
