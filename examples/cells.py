"""Cells: a few that stand for all types, the rare ones included, and what to do about doublets.

What you learn here:

- types with one or two per cent of the cells get a representative; most random draws miss them;
- doublets, droplets with two cells in them, are **not** outliers: they lie between groups, and several look alike. So they
  are not found by their effective counts, and some may be chosen;
- rows in ``exclude`` are represented but never chosen. Here they come from a model of doublets, made from the data;
- with a label for each cell, ``groups`` and ``quotas`` give every type its share.

The cells are 700 blood cells of ten types (PBMC, 10x Genomics) where ``pbmc68k_reduced.npz`` is in the folder of real data,
otherwise random counts for six types, the rarest with 12 of 792 cells. Twenty doublets are mixed in.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from _shared import out_folder, real_data, write_answer
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from mosaic import MOSAIC

K, DOUBLETS, DRAWS = 25, 20, 500

folder = out_folder("cells", __doc__)
rng = np.random.default_rng(0)


def synthetic_cells() -> tuple[np.ndarray, np.ndarray]:
    """log(1 + counts in ten thousand) of types that differ in thirty marker genes each, and the types."""
    sizes, genes = (300, 220, 150, 80, 30, 12), 400
    profiles = np.tile(rng.gamma(0.5, 1.0, genes), (len(sizes), 1))
    for profile in profiles:
        profile[rng.choice(genes, 30, replace=False)] *= rng.uniform(4, 12, 30)
    profiles /= profiles.sum(axis=1, keepdims=True)
    kinds = np.repeat(np.arange(len(sizes)), sizes)
    counts = rng.poisson(rng.lognormal(np.log(3000), 0.25, (len(kinds), 1)) * profiles[kinds])
    types = np.array([f"type {letter}" for letter in "ABCDEF"])
    return np.log1p(1e4 * counts / counts.sum(axis=1, keepdims=True)), types[kinds]


def mixed(cells: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Doublets: what cells a and b give when they are counted as one."""
    return np.log1p((np.expm1(cells[a]) + np.expm1(cells[b])) / 2)


# 1. The cells, and doublets of two types among them.
blood = real_data("pbmc68k_reduced.npz")
if blood is not None:
    print("Data: 700 blood cells of 10x Genomics.")
    stored = np.load(blood)
    singles, types = stored["X"].astype(float), stored["classes"][stored["y"]]
else:
    print("Data: synthetic counts, in place of blood cells.")
    singles, types = synthetic_cells()
pairs = rng.integers(len(singles), size=(2, 10 * DOUBLETS))
pairs = pairs[:, types[pairs[0]] != types[pairs[1]]][:, :DOUBLETS]
cells = np.vstack([singles, mixed(singles, *pairs)])
types = np.append(types, np.full(DOUBLETS, "doublet"))
is_doublet = types == "doublet"
names, sizes = np.unique(types[~is_doublet], return_counts=True)
rarest = names[sizes.argmin()]
print(f"{len(singles)} cells of {len(names)} types, the rarest, {rarest}, of {sizes.min()}; and {DOUBLETS} doublets.\n")

# 2. Representatives.
X = PCA(30, random_state=0).fit_transform(cells)
model = MOSAIC(K).fit(X)
picks = model.representative_indices_
draws = [set(types[np.random.default_rng(s).choice(len(X), K, replace=False)]) - {"doublet"} for s in range(DRAWS)]
covered = set(types[picks]) - {"doublet"}
by_chance = np.mean([len(draw) for draw in draws])
print(f"Types among {K} representatives: {len(covered)} of {len(names)}; among {K} random cells: {by_chance:.1f}.")
rare = sizes <= 0.02 * len(singles)
for name, size in zip(names[rare], sizes[rare], strict=True):
    chance, own = np.mean([name in draw for draw in draws]), (types[picks] == name).sum()
    print(f"{name}, {size} cells: {own} among the representatives; {chance:.0%} of random draws have one.")

# 3. Doublets are not outliers.
lonely = model.is_outlier_ & is_doublet
print(f"\nDoublets among outliers: {lonely.sum()} of {DOUBLETS}; among the picks: {is_doublet[picks].sum()}.")

# 4. So model them: a cell is suspicious if its neighbours are mostly artificial mixtures of two cells.
made_up = mixed(cells, *rng.integers(len(cells), size=(2, 2 * len(cells))))
both = PCA(30, random_state=0).fit(cells).transform(np.vstack([cells, made_up]))
near = NearestNeighbors(n_neighbors=31).fit(both).kneighbors(both[: len(cells)], return_distance=False)[:, 1:]
share = (near >= len(cells)).mean(axis=1)
suspicious = np.argsort(-share, kind="stable")[: len(cells) // 20]
print(f"Among the twentieth of cells that resemble mixtures most: {is_doublet[suspicious].sum()} of {DOUBLETS} doublets.")
clean = MOSAIC(K).fit(X, exclude=suspicious)
kept = clean.representative_indices_
print(f"With these excluded, doublets among the picks: {is_doublet[kept].sum()}; types: {len(set(types[kept]) - {'doublet'})}.")

# 5. With labels: two of every type, and no doublet.
fair = MOSAIC(2 * len(names)).fit(X, groups=types, quotas=dict.fromkeys(names.tolist(), 2))
found = dict(zip(*np.unique(types[fair.representative_indices_], return_counts=True), strict=True))
print(f"With two asked for of every type: {', '.join(f'{count} {name}' for name, count in found.items())}.")

write_answer(clean, folder, "Cells that stand for all kinds", columns=pd.DataFrame({"type": types}), groups=types)
