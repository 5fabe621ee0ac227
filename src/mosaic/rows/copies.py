"""Copies as people mean them: rows with the same cells but for a few, texts with the same words, pictures that were turned.

Rows of a table are copies if all cells are equal (exact), or all but a share ``near``, and the equal ones more than by chance:
−Σ log p(cell) ≥ 2 log n, where p is the share of other rows with this cell. Cells are equal in small letters, without signs and
as numbers; long texts if the cosine of their TF-IDF counts is at least 1 − ``near``. Pictures are turned by quarters and
mirrored, and compared by the correlation of their pixels. Ours; ``benchmarks/results/copies.md`` has the measurements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from mosaic.arrays.blocks import FloatArray, IntArray, row_blocks
from mosaic.rows.frames import Cells, Values
from mosaic.rows.kinds import Column, Number, is_long
from mosaic.rows.rules import LeftOut, rule_of

#: How much near copies may differ: in a share of the cells, 1 − the cosine of long texts, 1 − the correlation of pictures; and of
#: numbers, in a share of the usual distance to ten neighbours.
NEAR_CELLS, NEAR_TEXTS, NEAR_PICTURES, NEAR_NUMBERS = 0.2, 0.4, 0.03, 0.1
#: Rows with some equal cells of which all pairs are looked at; more have these cells by chance.
MOST_ALIKE = 500
#: Random pairs of texts, and the share of these, or of few texts 1 − 2/n, that copies are more alike than.
PAIRS, ALIKE_BY_CHANCE = 100_000, 0.998
NO_PAIRS = np.empty((0, 2), np.intp)
_SIGNS = re.compile(r"[\W_]+")


class ComparedCells:
    """The cells of a table as they are compared: of every row and column the place of its cell among the different ones, −1 where
    missing. Columns that are the same or different in every row are left out, but for long ``texts`` and vectors; those that are
    the same are compared where there are no others (``is_constant``).
    """

    def __init__(self, cells: Cells):
        self.n = len(cells.frame)
        self.names: list[str] = []
        self.texts: dict[int, list[str]] = {}
        codes = [np.zeros((self.n, 0), np.intp)]
        known = [name for name in cells if cells[name].kind != "other"]
        rules = {name: rule_of(name, cells[name], forced=True) for name in known}
        telling = [name for name, rule in rules.items() if not isinstance(rule, LeftOut)]
        self.is_constant = bool(known) and not telling
        for name in telling or known:
            values = cells[name]
            levels, places = _levels_of(values, rules[name])
            if values.kind == "text" and is_long(values.levels):
                self.texts[len(self.names)] = np.array([*levels, ""], object)[places].tolist()
            elif len(levels) == self.n and not _has_fractions(rules[name], levels):
                continue  # names, ids, counters
            self.names.append(name)
            codes.append(places[:, None])
        self.codes = np.concatenate(codes, axis=1)

    def unlike(self, rows: IntArray, others: IntArray) -> list[list[str]]:
        """The columns in which each of the rows differs from the other one."""
        unlike = self.codes[rows] != self.codes[others]
        return [[self.names[column] for column in np.flatnonzero(one)] for one in unlike]

    def copies(self, near: float | None) -> IntArray:
        """Of every row the first that it is a copy of, or −1."""
        if not self.names:
            return np.full(self.n, -1, np.intp)
        _, first, group = np.unique(self.codes, axis=0, return_index=True, return_inverse=True)
        original = first[group.ravel()]
        original[first] = -1
        if len(self.names) == len(self.texts) == 1:
            pairs = _alike(self.texts[0], NEAR_TEXTS if near is None else near)
        else:
            pairs = self._near(np.sort(first), NEAR_CELLS if near is None else near)
        return settled(original, pairs)

    def _near(self, rows: IntArray, share: float) -> IntArray:
        """Pairs of rows, the earlier first, that differ in at most this share of the cells and are equal in telling ones."""
        n = self.n
        most = int(share * len(self.names) + 1e-9)
        surprise = np.column_stack([_surprise(column, n) for column in self.codes.T])
        alike = {column: _alike(texts, NEAR_TEXTS) for column, texts in self.texts.items()}
        candidates = [*alike.values(), *_candidates(self.codes, surprise, rows, most)]
        pairs = np.unique(np.concatenate([NO_PAIRS, *candidates]), axis=0)
        i, j = pairs.T
        equal = self.codes[i] == self.codes[j]
        for column, known in alike.items():
            equal[:, column] |= np.isin(pairs @ (n, 1), known @ (n, 1))
        differing = (~equal).sum(axis=1)
        told = (equal * surprise[j]).sum(axis=1)
        return np.asarray(pairs[(differing <= most) & (told >= 2 * np.log(n))])


def settled(original: IntArray, pairs: IntArray) -> IntArray:
    """The originals, with pairs of an earlier and a later row besides: each copy is of the earliest row that is none itself."""
    for i, j in pairs[np.lexsort(pairs.T)].tolist():
        if original[i] < 0 and original[j] < 0:
            original[j] = i
    of = original[original]
    return np.where((original >= 0) & (of >= 0), of, original)


def _levels_of(values: Values, rule: Column | LeftOut) -> tuple[list[str], IntArray]:
    """The different cells of a column as they are compared (none of vectors), and for each row its place among them; −1 where
    missing.
    """
    if values.kind == "vector":
        places = np.full(len(values), -1, np.intp)
        vectors = np.asarray(values.numbers)[~values.missing]
        places[~values.missing] = np.unique(vectors, axis=0, return_inverse=True)[1].ravel()
        return [], places
    written, codes = values.as_levels()
    same = list(written)
    if values.codes is not None:
        form = rule.written if isinstance(rule, Number) else None
        numbers = np.full(len(written), np.nan) if form is None else form.read(written)
        words = [_SIGNS.sub(" ", text.casefold()).strip() or text for text in written]
        same = [
            word if np.isnan(x) else f"{x:.12g}" for x, word in zip(numbers, words, strict=True)
        ]
    levels, places = np.unique(np.array(same, object), return_inverse=True)
    return levels.tolist(), np.append(places, -1)[codes]


def _has_fractions(rule: Column | LeftOut, levels: list[str]) -> bool:
    return isinstance(rule, Number) and any("." in level for level in levels)


def _surprise(codes: IntArray, n: int) -> FloatArray:
    """−log of the share of the other rows with the same cell."""
    _, place, counts = np.unique(codes, return_inverse=True, return_counts=True)
    return np.asarray(-np.log(np.maximum(counts - 1, 1) / n))[place]


def _candidates(
    codes: IntArray, surprise: FloatArray, rows: IntArray, most: int
) -> Iterator[IntArray]:
    """Pairs of rows that may differ in no more than ``most`` cells: they are equal in one of most + 1 parts of the columns, which
    are as telling as one another.
    """
    parts: list[list[int]] = [[] for _ in range(most + 1)]
    told = surprise.mean(axis=0)
    for column in np.argsort(-told, kind="stable").tolist():
        min(parts, key=lambda part: told[part].sum()).append(column)
    for part in parts:
        _, group = np.unique(codes[rows][:, part], axis=0, return_inverse=True)
        order = np.argsort(group.ravel(), kind="stable")
        for bucket in np.split(rows[order], np.flatnonzero(np.diff(group.ravel()[order])) + 1):
            if 1 < len(bucket) <= MOST_ALIKE:
                yield np.array(list(combinations(bucket.tolist(), 2)))


def _alike(texts: list[str], share: float) -> IntArray:
    """Pairs of rows, the earlier first, whose texts are alike, and more so than nearly all others are."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    found = [NO_PAIRS]
    if not any(map(re.compile(r"\w\w").search, texts)):
        return NO_PAIRS
    X = TfidfVectorizer(sublinear_tf=True).fit_transform(texts)
    a, b = np.random.default_rng(0).integers(0, len(texts), (2, PAIRS))
    by_chance = np.asarray(X[a].multiply(X[b]).sum(axis=1)).ravel()[a != b]
    least = max(
        1 - share,
        float(np.quantile(by_chance, min(ALIKE_BY_CHANCE, 1 - 2 / len(texts))))
        if len(texts) > 2
        else 0.0,
    )
    for part in row_blocks(len(texts), len(texts)):
        near = (X[part] @ X.T).tocoo()
        i = near.row + part.start
        found.append(np.column_stack([i, near.col])[(near.data >= least) & (near.col > i)])
    return np.concatenate(found).astype(np.intp)


def copies_of_pictures(pixels: FloatArray, near: float | None) -> IntArray:
    """Of every picture, n × side × side × colours, the first that it is a copy of, turned by quarters or mirrored; or −1."""
    n = len(pixels)
    least = 1 - (NEAR_PICTURES if near is None else near)

    def unit(pictures: FloatArray) -> FloatArray:
        flat = pictures.reshape(n, -1) - pictures.reshape(n, -1).mean(axis=1, keepdims=True)
        return np.asarray(flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-9))

    turned = [
        unit(np.rot90(each, times, (1, 2)))
        for each in (pixels, pixels[:, :, ::-1])
        for times in range(4)
    ]
    pairs = [NO_PAIRS]
    for part in row_blocks(n, n):
        alike = np.max([turned[0][part] @ one.T for one in turned], axis=0)
        pairs.append(
            np.argwhere(np.triu(alike >= least, 1 + part.start)) + np.array([part.start, 0])
        )
    return settled(np.full(n, -1, np.intp), np.concatenate(pairs))
