"""Write a Parquet file of any number of rows, block after block.

python -m benchmarks.make_parquet big.parquet --rows 10000000 --columns 10 --seed 1

Columns `x1`, `x2`, ... are independent and uniform on (0, 1); the response is

    y = 10 sin(pi x1 x2) + 20 (x3 - 0.05)**2 + 10 x4 + 5 x5 + e,  e standard normal,

without the terms whose columns are missing. `--columns` counts the response. A block's
numbers depend on the seed and on its number alone, so that a shorter file with the same
seed is the beginning of a longer one.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

BLOCK_ROWS = 250_000
"""Rows of a block, which is a row group of the file."""


def blocks(rows: int, columns: int, seed: int) -> Iterator[pa.Table]:
    """Draw the data, block after block."""
    names = [f"x{j}" for j in range(1, columns)]
    for number, first in enumerate(range(0, rows, BLOCK_ROWS)):
        rng = np.random.default_rng([seed, number])
        X = rng.random((len(names), BLOCK_ROWS))
        y = mean(X) + rng.standard_normal(BLOCK_ROWS)
        size = min(BLOCK_ROWS, rows - first)
        yield pa.table([y[:size], *X[:, :size]], ["y", *names])


def mean(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute what is expected of the response, given columns in rows."""
    total = np.zeros(X.shape[1])
    terms = [
        (2, lambda: 10 * np.sin(np.pi * X[0] * X[1])),
        (3, lambda: 20 * (X[2] - 0.05) ** 2),
        (4, lambda: 10 * X[3]),
        (5, lambda: 5 * X[4]),
    ]
    for needed, term in terms:
        if len(X) >= needed:
            total += term()
    return total


def write(path: Path, rows: int, columns: int, seed: int) -> None:
    """Write the file; random numbers gain nothing from compression."""
    schema = next(blocks(1, columns, seed)).schema
    with pq.ParquetWriter(
        path, schema, compression="none", use_dictionary=False
    ) as writer:
        for table in blocks(rows, columns, seed):
            writer.write_table(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.rows < 1 or options.columns < 2:
        parser.error("a file needs a row, a response and a predictor.")
    write(options.path, options.rows, options.columns, options.seed)


if __name__ == "__main__":
    main()
