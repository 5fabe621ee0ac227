"""How many earlier picks stay when rows are added (``fit(X_more, start=model)``), and what that costs, for several thresholds.

Run ``python benchmarks/start.py confirm 0,0.03`` for the sets that the threshold was confirmed on; ``choose`` for those before.
"""

from __future__ import annotations

import argparse
import importlib
from dataclasses import replace

import report  # noqa: F401  first: it sets the number of threads

import numpy as np  # isort: skip
from sklearn.datasets import load_digits, load_iris, load_wine, make_moons

from mosaic import MOSAIC

choosing = importlib.import_module("mosaic.choosing.choose")
K = 20


def blobs(n, rng):
    centres = np.random.default_rng(5).normal(size=(12, 4)) * 4
    return centres[rng.integers(12, size=n)] + rng.normal(size=(n, 4))


def roll(n, rng):
    t = 1.5 * np.pi * (1 + 2 * rng.random(n))
    return np.column_stack([t * np.cos(t), 21 * rng.random(n), t * np.sin(t)])


def ring(n, rng):
    t = 2 * np.pi * rng.random(n)
    return np.column_stack([np.cos(t), np.sin(t), 0.3 * rng.normal(size=n)])


def noisy(data, noise):
    def draw(n, rng):
        X = data[rng.integers(len(data), size=n)]
        return X + rng.normal(size=X.shape) * noise

    return draw


def wine(n, rng):
    X = load_wine().data[rng.integers(178, size=n)]
    return X * (1 + 0.03 * rng.normal(size=X.shape))


SETS = {
    "choose": [blobs, lambda n, rng: rng.normal(size=(n, 6)), roll, noisy(load_digits().data, 1.0)],
    "confirm": [
        lambda n, rng: rng.standard_t(3, size=(n, 3)),
        lambda n, rng: make_moons(n, noise=0.1, random_state=int(rng.integers(1e9)))[0],
        ring,
        noisy(load_iris().data, 0.1),
        wine,
    ],
}


def measured(draw, n, share, seed, elsewhere, thresholds):
    """Share of the picks that a fresh fit has again; for every threshold, the share that stays and the similarity lost."""
    rng = np.random.default_rng(seed)
    X, more = draw(n, rng), draw(int(n * share), rng)
    if elsewhere:
        more = 0.5 * more + 2 * X.std(axis=0)
    old, fresh = MOSAIC(K).fit(X), MOSAIC(K).fit(np.vstack([X, more])).selection_
    begun = replace(fresh.material.constraints, start=old.representative_indices_)
    material, found = fresh.material.with_constraints(begun), []
    for threshold in thresholds:
        choosing.CLEARLY_BETTER = threshold
        changes = choosing.choose(material, fresh.settings).changes
        found.append((len(changes.kept) / K, 1 - changes.similarity_after / fresh.gains.sum()))
    return np.isin(fresh.rows, old.representative_indices_).mean(), found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", choices=list(SETS))
    parser.add_argument("thresholds", type=lambda text: [float(part) for part in text.split(",")])
    args = parser.parse_args()
    for elsewhere in (False, True):
        for n in (300, 1000, 5000):
            for share in (0.01, 0.1, 1.0):
                draws = [(draw, seed) for draw in SETS[args.sets] for seed in range(3 if n < 5000 else 1)]
                runs = [measured(draw, n, share, seed, elsewhere, args.thresholds) for draw, seed in draws]
                told = [
                    f"{t:g}: {100 * kept.mean():.0f} % kept, {100 * lost.mean():.2f} % lost ({100 * lost.max():.2f} %)"
                    for t, (kept, lost) in zip(
                        args.thresholds, np.array([found for _, found in runs]).transpose(1, 2, 0), strict=True
                    )
                ]
                again = np.mean([share_again for share_again, _ in runs])
                where = "elsewhere" if elsewhere else "same kind"
                print(f"{where}, {n} rows, {share:.0%} more: fresh {again:.0%}; {'; '.join(told)}", flush=True)


if __name__ == "__main__":
    main()
