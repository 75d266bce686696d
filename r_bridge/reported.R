# The numbers that tables show by default, from the formulas, in plain R.
#
# Written from docs/theory.md for the certificate: standard errors, degrees of freedom,
# tests and intervals of the estimator "hoeffding", given the trees. It shares no line
# and no language with the code it checks; sums over observations, and over pairs
# of them, are taken one by one.
#
# inbag:     how often each tree has drawn each unit, (units, trees); all trees are
#            compared in pairs, which is so up to 256 of them
# values:    what each tree predicts, (points, trees); differences of two predictions
#            if `difference`
# reference: what each tree predicts at the reference points, (points, trees)
# replace:   whether subsamples were drawn with replacement
# expected:  of such kernels: rho and its error, in units of that of nearest neighbours,
#            and zeta_k / (k zeta_1)
# limit:     largest standard deviation that a prediction can have
# ends:      least and greatest value that an estimate can have
# classes:   whether predictions are probabilities
# difference: whether the values are differences of predictions
# average:   whether the values are averages over rows
# widths:    distances that differences were divided by, one for each value
# alpha:     one minus the coverage of intervals
function(inbag, values, reference, replace, expected, limit, ends, classes, difference,
         average, widths, alpha) {
  present <- t(inbag > 0) * 1                            # Z, (trees, units)
  B <- ncol(values)
  n <- ncol(present)
  k <- sum(inbag[, 1])
  stopifnot(colSums(inbag) == k, ncol(inbag) == B, ncol(reference) == B)

  # --- chances of one unit, and of both, one or none of two
  absent <- if (replace) (1 - 1 / n)^k else 1 - k / n
  none <- if (replace) (1 - 2 / n)^k else (n - k) * (n - k - 1) / (n * (n - 1))
  one <- 1 - absent
  split <- absent - none
  both <- one - split

  # --- rho = Q_2 / Q_1 over pairs of trees
  standard <- apply(reference, 1, function(x) {
    centred <- x - mean(x)
    centred / sqrt(mean(centred^2))
  })
  standard <- standard[, apply(reference, 1, function(x) any(x != x[1])), drop = FALSE]
  product <- tcrossprod(standard) / ncol(standard)
  diag(product) <- 0
  d <- present / one - (1 - present) / absent
  pairs <- utils::combn(n, 2)
  first <- present[, pairs[1, ]]
  second <- present[, pairs[2, ]]
  e <- first * second / both + (1 - first) * (1 - second) / none -
    (first * (1 - second) + (1 - first) * second) / split
  terms_1 <- (n - 1) / n * one^2 * tcrossprod(d) * product
  terms_2 <- (n - 3) / (n - 1) * both^2 * tcrossprod(e) * product
  Q_1 <- sum(terms_1) / (B * (B - 1))
  Q_2 <- sum(terms_2) / (B * (B - 1))
  neighbours <- one / (2 - one)
  rho_0 <- expected[1] * neighbours
  error_0 <- expected[2] * neighbours
  # Of a U-statistic: the variance of its projections, and of its terms.
  u_error <- function(terms) {
    pair <- sum(terms^2) / (B * (B - 1))
    single <- max(stats::var(rowSums(terms) / (B - 1)) - pair / (B - 1), 0)
    sqrt(4 * single / B + 2 * pair / (B * (B - 1)))
  }
  weight <- 0
  rho <- rho_0
  error_m <- 0
  if (Q_1 > 0) {
    measured <- Q_2 / Q_1
    error_m <- u_error(terms_2 - measured * terms_1) / Q_1
    weight <- error_0^2 / (error_0^2 + error_m^2)
    rho <- weight * measured + (1 - weight) * rho_0
  }
  rho <- max(rho, 0)
  unknown <- sqrt(1 - weight) * error_0
  by_chance <- weight * error_m
  if (average) {
    # Averages have half the rho of predictions, give or take a half of that.
    unknown <- sqrt((unknown / 2)^2 + (rho / 4)^2)
    by_chance <- by_chance / 2
    rho <- rho / 2
  }
  factor <- 1 / (1 + rho)
  rho_error <- unknown * factor
  rho_noise <- by_chance * factor

  noise_variance <- function(V, noise) 2 * n * noise^2 + 4 * noise * pmax(V, 0)
  positive <- function(V, s) {
    known <- s <= 0
    s <- ifelse(known, 1, s)
    hazard <- exp(stats::dnorm(V / s, log = TRUE) - stats::pnorm(V / s, log.p = TRUE))
    ifelse(known, pmax(V, 0), V + s * hazard)
  }

  # --- the share of a tree's variance that is typical of the forest's
  usual <- min(k / n, 1) / expected[3]
  certainty <- usual^2 / (usual^2 + u_error(terms_1)^2)
  typical_share <- positive(certainty * Q_1 + (1 - certainty) * usual,
                            sqrt(certainty) * u_error(terms_1))

  # --- variances of the values of trees, (trees, points)
  describe <- function(h, limit) {
    estimate <- colMeans(h)
    centred <- sweep(h, 2, estimate)
    zeta_k <- colSums(centred^2) / (B - 1)
    monte_carlo <- zeta_k / B

    # The jackknife over pairs of trees: no tree is multiplied by itself.
    z <- present - one
    weights <- tcrossprod(z)
    diag(weights) <- 0
    jackknife <- (n - 1) / n * B / ((B - 1) * (B^2 - 2 * B + 2)) / absent^2 *
      colSums(centred * (weights %*% centred))
    sampling <- factor * jackknife
    noise_1 <- one / absent * monte_carlo
    noise <- factor * noise_1
    mc_se <- sqrt(noise_variance(sampling, noise) + (rho_noise * pmax(sampling, 0))^2)

    # Positive, and at most what single trees allow where they are too few to tell.
    V <- positive(sampling, mc_se)
    most <- pmin(noise * (B - 1) * n / (n - 1), zeta_k - monte_carlo)
    most <- ifelse(sqrt(noise_variance(most, noise)) > most / 2, most, Inf)
    most <- pmin(most, limit^2)
    bounded <- V > most
    V <- pmin(V, most)
    variance <- V + monte_carlo

    # Influences: the mean of all trees minus that of the trees without a unit.
    influence <- crossprod(present, centred) / (B * absent)
    squares <- colSums(influence^2) - n * noise_1
    fourths <- colSums(influence^4) - 6 * noise_1 * squares - 3 * n * noise_1^2
    certain <- positive(squares, sqrt(noise_variance(squares, noise_1)))
    concentration <- ifelse(certain > 0, fourths / certain^2, 1 / n)
    concentration <- pmin(pmax(concentration, 1 / n), 1)
    skew <- ifelse(certain > 0, colSums(influence^3) / certain^1.5, 0)

    # Degrees of freedom.
    excess <- (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * (n * concentration - 3) + 6)
    data <- pmax(2 / (n - 1) + excess / n, 0)
    spread <- noise_variance(V, noise) + V^2 * data + (rho_error * V)^2
    df <- pmax(2 * variance^2 / spread, 3)
    df <- ifelse(variance > 0, df, Inf)
    df <- pmax(pmin(df, ifelse(bounded, min(n, B), n) - 1), 1)

    # The Monte Carlo error, relative to a variance that it does not inflate.
    usual <- factor * typical_share * zeta_k
    scatter <- usual^2 + pmax(pmax(sampling - usual, 0)^2 - 4 * mc_se^2, 0)
    share <- ifelse(scatter > 0, scatter / (scatter + mc_se^2), 0)
    likely <- positive(share * sampling + (1 - share) * usual, sqrt(share) * mc_se)
    if (average) likely <- V                             # no share is typical of them
    data.frame(estimate, zeta_k, monte_carlo, sampling, noise, mc_se, V, variance,
               concentration, skew, df,
               mc_error = ifelse(zeta_k > 0, sqrt(noise_variance(likely, noise)) /
                                   (2 * (likely + monte_carlo)), 0))
  }

  # --- skewness: what noise and chance explain is taken off
  skew_noise <- function(r, concentration) {
    9 * r * concentration + 36 * r^2 + 15 * n * r^3
  }
  shrink <- function(skew, variance) {
    share <- ifelse(skew == 0, 1, 2 * variance / skew^2)
    pmin(pmax(skew * pmax(1 - share, 0), -1), 1)
  }

  h <- t(values)
  found <- describe(h, (if (difference) 2 * limit else limit) / widths)
  usual <- describe(t(reference[seq_len(min(300, nrow(reference))), , drop = FALSE]),
                    limit)
  bse <- sqrt(found$variance)
  t <- ifelse(bse > 0, found$estimate / bse, NaN)
  critical <- stats::qt(alpha / 2, found$df, lower.tail = FALSE)

  if (classes) {
    # Agresti and Coull's, on at most four times the usual number of observations.
    size <- 4 * sum(usual$estimate * (1 - usual$estimate)) /
      sum(usual$sampling + usual$monte_carlo)
    size <- min(max(size, 1), n)
    low <- ends[1] / widths
    extent <- diff(ends) / widths
    share <- (found$estimate - low) / extent
    spread <- pmax(share * (1 - share), .Machine$double.eps)
    added <- 1 / (1 + spread / (critical * bse / extent)^2)
    # Differences and averages may be known better, but not at the very ends.
    most <- ifelse((difference | average) & spread > .Machine$double.eps, Inf, size)
    added <- pmax(added, 1 / (1 + most / stats::qnorm(alpha / 2)^2))
    centre <- share + added * (0.5 - share)
    half <- sqrt(added * centre * (1 - centre))
    lower <- pmax(pmin(centre - half, share), 0)
    upper <- pmin(pmax(centre + half, share), 1)
    # All trees agree on a combination: what a probability of zero could be.
    z2 <- stats::qnorm(alpha / 2)^2
    q <- z2 / 2 / (size + z2)
    bound <- min(q + sqrt(z2 * q * (1 - q) / (size + z2)), 1)
    agreed <- (difference | average) & bse == 0
    lower <- low + extent * ifelse(agreed, (1 - bound) * share, lower)
    upper <- low + extent * ifelse(agreed, share + bound * (1 - share), upper)
    p <- 2 * stats::pt(-abs(t), found$df)
  } else {
    noise_share <- found$noise / found$V
    skew <- shrink(found$skew, skew_noise(noise_share, found$concentration) +
                     6 * (found$concentration / 3)^2)
    # Own skewness counts only if the standard error is known.
    skew <- skew * pmin(pmax((0.3 - found$mc_error) / 0.1, 0), 1)
    error <- bse
    single <- !difference && !average
    if (single) {
      # Predictions have the skewness of all reference points together.
      weight <- usual$V^1.5
      skew <- shrink(sum(usual$skew * weight) / sum(weight),
                     skew_noise(sum(usual$noise) / sum(usual$V),
                                mean(usual$concentration)))
    }
    skew <- sign(skew) * pmax(abs(skew) - 0.1, 0)
    if (single) {
      least <- 0.15 * pmin(abs(skew) / 0.5, 1) * mean(usual$V)
      error <- pmax(bse, sqrt(least))
    }
    double <- stats::qt(stats::pnorm(-2), found$df, lower.tail = FALSE)
    b <- 0.75 * skew * 2 / double
    short <- function(b, t) ifelse(b == 0, t, log(1 + abs(b) * t) / abs(b))
    long <- function(b, t) t + abs(b) * t^2 / 2
    down <- ifelse(b > 0, short(b, critical), long(b, critical))
    up <- ifelse(b > 0, long(b, critical), short(b, critical))
    lower <- pmax(found$estimate - down * error, pmin(ends[1], found$estimate))
    upper <- pmin(found$estimate + up * error, pmax(ends[2], found$estimate))
    # The p-value is the alpha whose interval ends at zero.
    distance <- abs(found$estimate) / error
    towards <- b * sign(found$estimate)
    z <- ifelse(towards == 0, distance,
                ifelse(towards > 0, (exp(abs(b) * distance) - 1) / abs(b),
                       (sqrt(1 + 2 * abs(b) * distance) - 1) / abs(b)))
    p <- 2 * stats::pt(-z, found$df)
  }
  list(
    estimate = found$estimate, zeta_k = found$zeta_k, monte_carlo = found$monte_carlo,
    sampling = found$sampling, zeta_1 = n / k^2 * found$sampling, rho = rho, bse = bse,
    df = found$df, t = t, p = ifelse(bse > 0, p, NaN), lower = lower, upper = upper,
    mc_error = found$mc_error, se_mc_error = ifelse(bse > 0, found$mc_se / (2 * bse), 0)
  )
}
