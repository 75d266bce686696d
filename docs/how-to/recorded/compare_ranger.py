"""The same forest in ranger and in vstatkit, number by number."""

import r_bridge
import vstatkit as vs

data = vs.datasets.mars(60, rng=1)
same = r_bridge.compare_ranger("y ~ x1 + x2 + x4", data, k=0.5, B=200, replace=False)
print(same)
same.assert_close()
