// Choose the criterion, once for all trees.

#ifndef VSTATKIT_GROWERS_HPP
#define VSTATKIT_GROWERS_HPP

#include "absolute.hpp"
#include "class_criteria.hpp"
#include "grow.hpp"
#include "poisson.hpp"
#include "variance.hpp"

namespace vstatkit {

// `table` and `y` must outlive the grower, which the caller deletes.
inline AnyGrower* make_grower(const Table& table, const double* y, const Options& options) {
    if (options.n_classes && options.loss == Loss::entropy)
        return new Grower<Entropy>(table, y, options);
    if (options.n_classes) return new Grower<Gini>(table, y, options);
    switch (options.loss) {
        case Loss::poisson:
            return new Grower<Poisson>(table, y, options);
        case Loss::absolute_error:
            return new Grower<AbsoluteError>(table, y, options);
        default:
            return new Grower<Variance>(table, y, options);
    }
}

}  // namespace vstatkit

#endif
