"""Bridge between vstatkit and R; importing it does not start R."""

from r_bridge.availability import available

__all__ = ["available"]
