"""Keys, and what is sealed with them. Needs the extra `sensitive`, once something is sealed or opened."""
