"""What is evaluated on each subsample."""
