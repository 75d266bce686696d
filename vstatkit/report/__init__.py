"""Results as one page that stands alone."""
