"""Agents: each speaks to one remote service, behind a circuit breaker that all workers share."""
