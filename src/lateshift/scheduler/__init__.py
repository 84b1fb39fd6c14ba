"""The scheduler: fires schedules whose time has come."""
