"""The roles of PostgreSQL: what each may do, and what it may not."""
