"""Evaluate a kernel over a design, and grow until there are enough learners."""
