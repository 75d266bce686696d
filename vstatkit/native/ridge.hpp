// A linear trend: ridge regression whose penalty is chosen by generalised
// cross-validation, on the rows of one subsample.

#ifndef VSTATKIT_RIDGE_HPP
#define VSTATKIT_RIDGE_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace vstatkit {

// Penalties on the scale of a correlation matrix; if none improves, slopes are zero.
constexpr double kPenalties[] = {1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0};

// A symmetric matrix brought to tridiagonal form by reflections, and a vector with it:
// ridge regressions with any penalty are then solved in a few steps a column.
class Tridiagonal {
  public:
    // Reduce `matrix` (p, p), which is overwritten, and rotate `vector`.
    void reduce(double* matrix, double* vector, int p) {
        matrix_ = matrix;
        p_ = p;
        diagonal_.assign(p, 0.0);
        off_diagonal_.assign(p, 0.0);
        length_.assign(p, 0.0);
        work_.resize(p);
        for (int c = 0; c + 2 < p; ++c) {
            make_reflection(c);
            if (length_[c] > 0) {
                reflect_rest(c);
                reflect(c, vector);
            }
        }
        for (int i = 0; i < p; ++i) diagonal_[i] = at(i, i);
        if (p > 1) off_diagonal_[p - 2] = at(p - 1, p - 2);
    }

    // Solve with a penalty added to the diagonal. Returns the trace of the inverse.
    double solve(double penalty, const double* right, double* solution) {
        down_.resize(p_);
        up_.resize(p_);
        down_[0] = diagonal_[0] + penalty;
        solution[0] = right[0];
        for (int i = 1; i < p_; ++i) {
            const double ratio = off_diagonal_[i - 1] / down_[i - 1];
            down_[i] = diagonal_[i] + penalty - ratio * off_diagonal_[i - 1];
            solution[i] = right[i] - ratio * solution[i - 1];
        }
        solution[p_ - 1] /= down_[p_ - 1];
        up_[p_ - 1] = diagonal_[p_ - 1] + penalty;
        for (int i = p_ - 2; i >= 0; --i) {
            solution[i] = (solution[i] - off_diagonal_[i] * solution[i + 1]) / down_[i];
            up_[i] =
                diagonal_[i] + penalty - off_diagonal_[i] * off_diagonal_[i] / up_[i + 1];
        }
        double trace = 0;
        for (int i = 0; i < p_; ++i)
            trace += 1 / (down_[i] + up_[i] - (diagonal_[i] + penalty));
        return trace;
    }

    // Rotate a solution back to the columns of the matrix.
    void rotate_back(double* vector) const {
        for (int c = p_ - 3; c >= 0; --c)
            if (length_[c] > 0) reflect(c, vector);
    }

  private:
    double& at(int i, int j) { return matrix_[static_cast<size_t>(i) * p_ + j]; }
    double at(int i, int j) const { return matrix_[static_cast<size_t>(i) * p_ + j]; }

    // The reflection that clears column c below the first subdiagonal; its vector is
    // kept in that column, half its squared length in `length_`.
    void make_reflection(int c) {
        double below = 0;
        for (int i = c + 2; i < p_; ++i) below += at(i, c) * at(i, c);
        const double first = at(c + 1, c);
        off_diagonal_[c] = first;
        if (below == 0) return;
        const double norm = std::sqrt(first * first + below);
        off_diagonal_[c] = first > 0 ? -norm : norm;
        at(c + 1, c) = first - off_diagonal_[c];
        length_[c] = (at(c + 1, c) * at(c + 1, c) + below) / 2;
    }

    void reflect(int c, double* vector) const {
        double product = 0;
        for (int i = c + 1; i < p_; ++i) product += at(i, c) * vector[i];
        product /= length_[c];
        for (int i = c + 1; i < p_; ++i) vector[i] -= product * at(i, c);
    }

    // Apply the reflection to the rows and columns after c.
    void reflect_rest(int c) {
        std::vector<double>& v = reflection_;
        v.resize(p_);
        double product = 0;
        for (int i = c + 1; i < p_; ++i) v[i] = at(i, c);
        for (int i = c + 1; i < p_; ++i) {
            double sum = 0;
            for (int j = c + 1; j < p_; ++j) sum += at(i, j) * v[j];
            work_[i] = sum / length_[c];
            product += v[i] * work_[i];
        }
        const double half = product / (2 * length_[c]);
        for (int i = c + 1; i < p_; ++i) work_[i] -= half * v[i];
        for (int i = c + 1; i < p_; ++i)
            for (int j = c + 1; j < p_; ++j) at(i, j) -= v[i] * work_[j] + work_[i] * v[j];
    }

    double* matrix_ = nullptr;
    int p_ = 0;
    std::vector<double> diagonal_, off_diagonal_, length_, work_, reflection_, down_, up_;
};

// A line is an intercept, p centres and p slopes; missing values count as the centre.
inline double line_step(double slope, double x, double centre) {
    const double step = slope * (x - centre);
    return step == step ? step : 0.0;  // without a branch
}

inline double predict_line(const double* line, const double* x, int p) {
    double sum = line[0];
    for (int f = 0; f < p; ++f) sum += line_step(line[1 + p + f], x[f], line[1 + f]);
    return sum;
}

class Ridge {
  public:
    explicit Ridge(int n_features) : p_(n_features) {}

    // Fit a line to `m` rows of points, whose columns are `step` numbers apart, and
    // responses, with weights, and write it to `line` (2 p + 1).
    void fit(const double* points, size_t step, const double* response,
             const double* weight, int m, double* line) {
        centre_response(response, weight, m, line);
        for (int f = 0; f < p_; ++f) {
            line[1 + f] = line[1 + p_ + f] = 0;
            range_[f] = centre_column(points + f * step, f, m, line[1 + f]);
        }
        if (m < 4) return;
        compute_gram(m);
        const double spread = sum_terms(m, [&](size_t j) {
            return share_[j] * response_[j] * response_[j];
        });
        tridiagonal_.reduce(gram_.data(), right_.data(), p_);
        slopes_.assign(p_, 0.0);
        solution_.resize(p_);
        double best = spread / square(1 - 1.0 / m);
        for (const double penalty : kPenalties) {
            const double trace =
                tridiagonal_.solve(penalty, right_.data(), solution_.data());
            const double freedom = 1 + p_ - penalty * trace;
            if (freedom > kMaxFreedom * m) continue;
            const double score =
                residual_variance(spread, penalty) / square(1 - freedom / m);
            if (!(score < best)) continue;
            best = score;
            slopes_ = solution_;
        }
        tridiagonal_.rotate_back(slopes_.data());
        for (int f = 0; f < p_; ++f)
            if (unit_[f] > 0) line[1 + p_ + f] = slopes_[f] / unit_[f];
    }

  private:
    static double square(double x) { return x * x; }

    // Residual variance, from the tridiagonal system alone.
    double residual_variance(double spread, double penalty) const {
        double explained = 0;
        for (int f = 0; f < p_; ++f)
            explained += solution_[f] * (right_[f] + penalty * solution_[f]);
        return std::max(0.0, spread - explained);
    }

    // Centre the response inside the subsample.
    void centre_response(const double* response, const double* weight, int m,
                         double* line) {
        share_.assign(weight, weight + m);
        double total = 0;
        for (int j = 0; j < m; ++j) total += weight[j];
        for (double& share : share_) share /= total;
        response_.resize(m);
        line[0] = 0;
        for (int j = 0; j < m; ++j) line[0] += share_[j] * response[j];
        for (int j = 0; j < m; ++j) response_[j] = response[j] - line[0];
        columns_.resize(static_cast<size_t>(p_) * m);
        range_.resize(p_);
    }

    // Centre a column, in units of its range so that squares stay in range. Returns the
    // range. A column whose known values are all equal is left at zero.
    double centre_column(const double* x, int f, int m, double& centre) {
        double* z = columns_.data() + static_cast<size_t>(f) * m;
        double least = INFINITY, most = -INFINITY;
        bool has_missing = false;
        for (int j = 0; j < m; ++j) {
            least = x[j] < least ? x[j] : least;
            most = x[j] > most ? x[j] : most;
            has_missing |= x[j] != x[j];
        }
        const double range = most - least;
        if (!(range > 0) || !std::isfinite(range)) {
            std::fill(z, z + m, 0.0);
            centre = std::isfinite(least) ? least : 0;
            return 0;
        }
        for (int j = 0; j < m; ++j) z[j] = (x[j] - least) / range;
        const double mean = has_missing ? known_mean(z, m) : sum_terms(m, [&](size_t j) {
            return share_[j] * z[j];
        });
        for (int j = 0; j < m; ++j) z[j] -= mean;
        for (int j = 0; has_missing && j < m; ++j) z[j] = std::isnan(z[j]) ? 0 : z[j];
        centre = least + mean * range;
        return range;
    }

    double known_mean(const double* z, int m) const {
        double known = 0, sum = 0;
        for (int j = 0; j < m; ++j) {
            if (std::isnan(z[j])) continue;
            known += share_[j];
            sum += share_[j] * z[j];
        }
        return sum / known;
    }

    // Products of all columns, of unit variance, with each other and with the response.
    void compute_gram(int m) {
        gram_.resize(static_cast<size_t>(p_) * p_);
        right_.resize(p_);
        unit_.resize(p_);
        root_.resize(p_);
        weighted_.resize(m);
        for (int f = 0; f < p_; ++f) {
            const double* z = columns_.data() + static_cast<size_t>(f) * m;
            for (int j = 0; j < m; ++j) weighted_[j] = share_[j] * z[j];
            double* row = gram_.data() + static_cast<size_t>(f) * p_;
            for (int g = 0; g <= f; ++g)
                row[g] = dot(columns_.data() + static_cast<size_t>(g) * m, m);
            const double root = std::sqrt(row[f]), unit = root * range_[f];
            root_[f] = root > 0 ? 1 / root : 0;
            unit_[f] = std::isfinite(1 / unit) ? unit : 0;
            right_[f] = root_[f] * dot(response_.data(), m);
            for (int g = 0; g <= f; ++g) {
                row[g] *= root_[f] * root_[g];
                gram_[static_cast<size_t>(g) * p_ + f] = row[g];
            }
        }
    }

    double dot(const double* z, int m) const {
        const double* w = weighted_.data();
        return sum_terms(m, [=](size_t j) { return w[j] * z[j]; });
    }

    // Sum in four parts, which the processor adds in parallel.
    template <class Term>
    static double sum_terms(int m, Term term) {
        double a = 0, b = 0, c = 0, d = 0;
        const size_t count = m, whole = count - count % 4;
        for (size_t j = 0; j < whole; j += 4) {
            a += term(j);
            b += term(j + 1);
            c += term(j + 2);
            d += term(j + 3);
        }
        for (size_t j = whole; j < count; ++j) a += term(j);
        return (a + b) + (c + d);
    }

    static constexpr double kMaxFreedom = 0.5;  // of the rows

    const int p_;
    Tridiagonal tridiagonal_;
    std::vector<double> share_, response_, columns_, weighted_;  // of the rows
    std::vector<double> range_, root_, unit_;  // of the columns
    std::vector<double> gram_, right_, solution_, slopes_;
};

}  // namespace vstatkit

#endif
