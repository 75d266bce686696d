"""Labelled results, and how they are shown."""
