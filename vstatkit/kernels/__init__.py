"""Kernels: the functions that are evaluated on each subsample."""
