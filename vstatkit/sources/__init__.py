"""Data that need not fit into memory: read batch after batch, kept on disk."""
