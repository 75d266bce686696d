"""Results: tables of estimates, fits, predictions, tests and summaries."""
