"""Subsample designs and random streams."""
