"""Bridge between vstatkit and R; importing it does not start R."""
