"""Graphs: what a workflow does, read from its code or from what a run has recorded, and drawn."""
