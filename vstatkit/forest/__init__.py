"""scikit-learn estimators on the compiled grower, with standard errors."""

from vstatkit.forest.classifier import ForestClassifier
from vstatkit.forest.regressor import ForestRegressor

__all__ = ["ForestClassifier", "ForestRegressor"]
