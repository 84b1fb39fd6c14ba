"""Leases jobs, runs them on an executor, settles them."""
