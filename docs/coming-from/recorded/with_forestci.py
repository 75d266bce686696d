"""Standard errors of a scikit-learn forest by forestci."""

import forestci
from sklearn.ensemble import RandomForestRegressor

import vstatkit as vs  # for the data alone

data = vs.datasets.mars(300, rng=1)
X, y = data[["x1", "x2", "x4"]], data["y"]
forest = RandomForestRegressor(1000, max_samples=0.3, random_state=1).fit(X, y)
new = X.head(3).to_numpy()
variance = forestci.random_forest_error(forest, X.shape, new, calibrate=False)
print("forestci", forestci.__version__)
print("mean   ", forest.predict(X.head(3)).round(3))
print("std err", (variance**0.5).round(3))
