# The corrected estimators of the paper (Zhou, Mentch and Hooker), in plain R.
#
# Written from the formulas, for the certificate: it shares no line, no order of sums
# and no language with the code it checks.
#
# inbag:  how often each tree has drawn each row, (rows, trees)
# values: what each tree predicts, (points, trees)
# unit:   the cluster of every row; rows of a cluster are drawn together
# Gives sampling variances, k^2/n zeta_1, at every point.
function(inbag, values, unit) {
  N <- t(inbag[!duplicated(unit), , drop = FALSE])
  B <- nrow(N)
  n <- ncol(N)
  k <- sum(N[1, ])
  stopifnot(rowSums(N) == k, ncol(values) == B)

  # A one-way analysis of variance by R's own regression: a tree's value occurs once
  # for every draw, and belongs to the unit that was drawn.
  tree <- rep(row(N), N)
  drawn <- factor(rep(col(N), N))
  h <- t(values)
  corrected_v <- function() {
    fit <- stats::lm.fit(stats::model.matrix(~drawn), h[tree, , drop = FALSE])
    C <- B * k
    squares <- function(x) colSums(as.matrix(x)^2)
    ss_tau <- squares(scale(fit$fitted.values, scale = FALSE))
    ss_eps <- squares(fit$residuals)
    seen <- nlevels(drawn)
    (ss_tau - (seen - 1) * ss_eps / (C - seen)) / (C - sum(table(drawn)^2) / C)
  }

  # Variance of the means of the trees that hold a unit.
  means <- rowsum(h[tree, , drop = FALSE], drawn) / as.vector(table(drawn))
  bm <- apply(means, 2, stats::var)
  zeta_k <- apply(h, 2, stats::var)

  corrected_u <- function() {
    n * (n - 1) / (n - k)^2 * (bm - (n - k) / (k * B) * zeta_k)
  }

  sampling <- function(zeta_1) as.vector(k^2 / n * zeta_1)
  list(
    bm = sampling(bm),
    corrected_v = sampling(corrected_v()),
    corrected_v_simple = sampling(bm - n / (k * B) * zeta_k),
    corrected_u = if (k < n) sampling(corrected_u()),
    monte_carlo = as.vector(zeta_k / B)
  )
}
