"""Variance components from the values of the learners."""
