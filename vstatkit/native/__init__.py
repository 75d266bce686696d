"""The compiled tree grower."""
