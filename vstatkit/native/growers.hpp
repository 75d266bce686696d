// Choose the criterion, once for all trees.

#ifndef VSTATKIT_GROWERS_HPP
#define VSTATKIT_GROWERS_HPP

#include "gini.hpp"
#include "grow.hpp"
#include "variance.hpp"

namespace vstatkit {

// `table` and `y` must outlive the grower, which the caller deletes.
inline AnyGrower* make_grower(const Table& table, const double* y, const Options& options) {
    if (options.n_classes) return new Grower<Gini>(table, y, options);
    return new Grower<Variance>(table, y, options);
}

}  // namespace vstatkit

#endif
