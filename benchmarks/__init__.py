"""Measurements of speed and memory, side by side with other packages."""
