"""Bridge between vstatkit and R; importing it does not start R."""

from r_bridge.adopt import from_grf, from_randomforest, from_ranger
from r_bridge.availability import available
from r_bridge.check_grf import compare_grf, compare_recorded
from r_bridge.check_ranger import compare_ranger
from r_bridge.data import dataset
from r_bridge.exceptions import RError, ROutputWarning, RUnavailableError, RWarning
from r_bridge.formula import translate_formula

__all__ = [
    "RError",
    "ROutputWarning",
    "RUnavailableError",
    "RWarning",
    "available",
    "compare_grf",
    "compare_ranger",
    "compare_recorded",
    "dataset",
    "from_grf",
    "from_randomforest",
    "from_ranger",
    "translate_formula",
]
