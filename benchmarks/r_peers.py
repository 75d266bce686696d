"""Forests with standard errors in R: ranger and grf, each in a fresh process."""

import os
import subprocess
from pathlib import Path

import numpy as np

from benchmarks.workloads import Workload, make_data

R_PEERS = {
    "ranger": """
library(ranger)
started <- Sys.time()
forest <- ranger(y ~ ., data, num.trees = B, mtry = mtry, keep.inbag = TRUE,
                 sample.fraction = k / nrow(data), replace = TRUE, min.node.size = 1,
                 num.threads = 2, seed = 1)
suppressWarnings(predict(forest, at, type = "se", num.threads = 2))
""",
    "grf": """
library(grf)
started <- Sys.time()
x <- as.matrix(data[, names(data) != "y"])
forest <- regression_forest(x, data$y, num.trees = B, mtry = mtry, min.node.size = 1,
                            sample.fraction = min(0.5, k / nrow(data)),
                            num.threads = 2, seed = 1)
predict(forest, as.matrix(at), estimate.variance = TRUE, num.threads = 2)
""",
}

R_FRAME = """
arguments <- commandArgs(trailingOnly = TRUE)
data <- read.csv(arguments[1]); at <- read.csv(arguments[2])
B <- as.integer(arguments[3]); k <- as.integer(arguments[4])
mtry <- as.integer(arguments[5])
{body}
seconds <- as.numeric(difftime(Sys.time(), started, units = "secs"))
cat("seconds", seconds, "\\n")
"""


def measure_r(peer: str, load: Workload, folder: Path) -> dict[str, float]:
    """Run an R peer in a fresh process, and measure that process's own memory."""
    X, y, at = make_data(load)
    names = [f"x{j}" for j in range(load.p)]
    train, query = folder / "train.csv", folder / "at.csv"
    header = ",".join([*names, "y"])
    np.savetxt(
        train, np.column_stack([X, y]), delimiter=",", header=header, comments=""
    )
    np.savetxt(query, at, delimiter=",", header=",".join(names), comments="")
    script = folder / "peer.R"
    script.write_text(R_FRAME.replace("{body}", R_PEERS[peer]))
    sizes = [str(load.B), str(load.k), str(load.mtry)]
    process = subprocess.Popen(
        ["Rscript", "--vanilla", str(script), str(train), str(query), *sizes],
        stdout=subprocess.PIPE,
        text=True,
    )
    output = process.stdout.read() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{peer} failed in R.")
    line = next(line for line in output.splitlines() if line.startswith("seconds"))
    return {"seconds": float(line.split()[1]), "peak_mb": usage.ru_maxrss / 1024}
