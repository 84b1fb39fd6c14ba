"""The peers, each with the settings that were found to be its fastest: its producer, its bodies, and its worker."""
