"""Formulas for data that do not fit into memory: scanned, encoded, kept on disk."""
