"""Bridge between vstatkit and R; importing it does not start R."""

from r_bridge.availability import available
from r_bridge.certificate import Certificate, check
from r_bridge.check_grf import compare_grf, compare_recorded
from r_bridge.check_ranger import compare_ranger
from r_bridge.compare import Comparison
from r_bridge.data import dataset
from r_bridge.exceptions import RError, ROutputWarning, RUnavailableError, RWarning
from r_bridge.forests import RForest, from_forest, register_forest
from r_bridge.formula import translate_formula
from r_bridge.from_grf import GRF, from_grf
from r_bridge.from_randomforest import RANDOMFOREST, from_randomforest
from r_bridge.from_ranger import RANGER, from_ranger
from r_bridge.reticulate import r_file, r_folder, register

__all__ = [
    "Certificate",
    "Comparison",
    "RError",
    "RForest",
    "ROutputWarning",
    "RUnavailableError",
    "RWarning",
    "available",
    "check",
    "compare_grf",
    "compare_ranger",
    "compare_recorded",
    "dataset",
    "from_forest",
    "from_grf",
    "from_randomforest",
    "from_ranger",
    "r_file",
    "r_folder",
    "register_forest",
    "translate_formula",
]

for _forest in (RANGER, GRF, RANDOMFOREST):
    register_forest(_forest)

register()
