"""``mosaic check``: how many of 200 clean files it stops, and how many with one odd row, beside the rate that it states.

Every file comes with rows of its own from the same source, half of which are fitted and half held out, as the command does it.
An odd row has one cell that no other row has: an age of 999, a value of ten standard deviations or, of pictures, noise.
"""

from __future__ import annotations

from report import header, table, write  # sets the number of threads, so it comes before numpy

# isort: split
import warnings
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control
from sklearn.datasets import load_digits

from mosaic import MOSAICOutlierDetector

LEVELS, FILES = (0.05, 0.2), 200
#: Rows as they should be, and rows of a new file.
SIZES = ((200, 5), (400, 100), (1000, 25), (2000, 50))
DIGITS = load_digits().data


def mixed(n: int, rng: np.random.Generator) -> Any:
    frame = pd.DataFrame({"age": rng.integers(18, 90, n), "income": rng.lognormal(10, 0.4, n).round()})
    return frame.assign(city=rng.choice(["Rome", "Paris", "Ulm"], n, p=[0.7, 0.25, 0.05]), change=rng.standard_t(3, n))


def normal(n: int, rng: np.random.Generator) -> Any:
    return rng.normal(size=(n, 8))


def digits(n: int, rng: np.random.Generator) -> Any:
    return DIGITS[rng.permutation(len(DIGITS))[:n]]


def with_odd_row(X: Any, name: str, rng: np.random.Generator) -> Any:
    X = X.copy()
    if name == "mixed table":
        X.iloc[0, 0] = 999
    elif name == "normal, 8 columns":
        X[0, 0] = 10.0
    else:
        X[0] = rng.integers(0, 17, X.shape[1])
    return X


def main() -> None:
    rows = []
    for name, draw in (("mixed table", mixed), ("normal, 8 columns", normal), ("digits", digits)):
        for n, m in SIZES:
            if name == "digits" and n + m > len(DIGITS):
                continue
            stopped = np.zeros((2, len(LEVELS)))
            for seed in range(FILES):
                rng = np.random.default_rng(seed)
                X = draw(n + m, rng)
                fitted, held_out, new = (X[start:stop] for start, stop in ((0, n // 2), (n // 2, n), (n, n + m)))
                detector = MOSAICOutlierDetector().fit(fitted).hold_out(held_out)
                for i, file in enumerate((new, with_odd_row(new, name, rng))):
                    adjusted = false_discovery_control(detector.p_values(file))
                    stopped[i] += [(adjusted <= level).any() for level in LEVELS]
            shares = [f"{100 * share:.1f} %" for share in (stopped / FILES).T.ravel()]
            least = [str(int(np.ceil(m / (level * (1 + n // 2))))) for level in LEVELS]
            rows.append([name, f"{n // 2:,}", f"{m:,}", least[0], *shares[:2], least[1], *shares[2:]])
            print(rows[-1], flush=True)
    head = ["data", "held out", "new rows"]
    for level in LEVELS:
        head += [f"at {level:.0%}: odd rows needed", "clean files stopped", "with one odd row"]
    told = (
        f"{FILES:,} files each. A rate of 5 % has a standard error of 1.5 % here, one of 20 % has 2.8 %. Where more than one odd "
        "row is needed, `check` says so."
    )
    write("check.md", f"{header('A check of new rows', ['numpy', 'scipy', 'pandas'])}\n{told}\n\n{table(head, rows)}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
