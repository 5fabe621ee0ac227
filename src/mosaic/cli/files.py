"""Commands about files rather than picks: how columns are compared, what changed between two files, and near copies."""

from __future__ import annotations

from argparse import Namespace
from contextlib import ExitStack
from typing import Any

import numpy as np
from scipy.stats import chi2_contingency
from sklearn.neighbors import NearestNeighbors

from mosaic.arrays.sources import Source
from mosaic.arrays.xp import on_host
from mosaic.choosing import counted, percent
from mosaic.cli.commands import open_new_rows, rows_as_dicts
from mosaic.cli.run import check_outputs, opened
from mosaic.cli.terminal import write, write_table, write_wrapped
from mosaic.estimators import MOSAIC
from mosaic.estimators.fit import numbers_of
from mosaic.exceptions import InvalidInputError
from mosaic.parameters import real_number
from mosaic.rows import Encoder
from mosaic.rows.frames import with_columns
from mosaic.text import Library

pa = Library("pyarrow")


def run_columns(args: Namespace) -> int:
    """``mosaic columns``."""
    check_outputs(args)
    with opened(args) as run:
        encoder = run.encoder = Encoder.fit(run.table)
        names = encoder.names or run.table.columns
        rows = [(name, "number, as it is", "") for name in names]
        if encoder.has_rules:
            rows = [(column.name, column.how, column.usually) for column in encoder.columns]
        rows += [(column.name, "not compared", column.why) for column in encoder.left_out]
        table = {name: [row[place] for row in rows] for place, name in enumerate(("column", "compared_as", "usual_or_why_not"))}
        run.write_rows("columns", args.output, pa.table(table))

    def show() -> None:
        write_table({name.replace("_", " "): values for name, values in table.items()}, "; -o columns.csv keeps them all")
        run.write_end()

    return run.finish(show, pa.table(table), columns=[dict(zip(table, row, strict=True)) for row in rows])


def run_compare(args: Namespace) -> int:
    """``mosaic compare``: rows of OTHER, placed by the picks of FILE."""
    check_outputs(args)
    with ExitStack() as stack:
        run = stack.enter_context(opened(args))
        model = run.fit()
        other = stack.enter_context(open_new_rows(model, Namespace(**vars(args) | {"file": args.other}), run.bar))
        run.bar.update("looking at all rows")
        here, there = model.explain_new(run.table), model.explain_new(other)
        picks = model.selection_.rows
        shares = [np.array([(one.representative == pick).mean() for pick in picks]) for one in (here, there)]
        order = np.argsort(-np.abs(shares[1] - shares[0]), kind="stable")
        found = {
            "row": picks[order].tolist(),
            "name": run.ids(picks[order]),
            "share": shares[0][order].tolist(),
            "share_in_other": shares[1][order].tolist(),
        }
        run.write_rows("picks", args.output, pa.table(found))
    odd = [float(one.is_outlier.mean()) for one in (here, there)]
    similar = [float(np.mean(one.similarity[~one.is_outlier])) if not one.is_outlier.all() else 0.0 for one in (here, there)]
    # Rows of each pick and outliers, in both files; those that are few in both together are counted as one.
    counts = np.array([[*(share * len(one)), one.is_outlier.sum()] for share, one in zip(shares, (here, there), strict=True)])
    few = counts.sum(axis=0) < 10
    counts = np.column_stack([counts[:, ~few], *([counts[:, few].sum(axis=1)] if counts[:, few].any() else [])])
    p = float(chi2_contingency(counts).pvalue) if counts.shape[1] > 1 else 1.0
    verdict = "The files differ" if p < 0.01 else "The files differ no more than by chance"
    sentence = (
        f"{verdict} (p = {p:.2g}). Outliers: {percent(odd[1])} of {counted(len(there), 'row')} of {args.other}, "
        f"{percent(odd[0])} of {counted(len(here), 'row')} of {args.file}. Mean similarity of the others to their "
        f"representatives: {similar[1]:.3g} and {similar[0]:.3g}."
    )

    def show() -> None:
        write_wrapped(sentence)
        write()
        write_table({"row": found["row"], "name": found["name"], "stands for": [percent(x) for x in found["share"]],
                     f"in {args.other}": [percent(x) for x in found["share_in_other"]]})  # fmt: skip
        run.write_end()

    figures: dict[str, Any] = {"p_value": p, "outlier_shares": odd, "mean_similarities": similar}
    return run.finish(show, pa.table(found), sentence=sentence, **figures, picks=rows_as_dicts(pa.table(found)))


def run_dedup(args: Namespace) -> int:
    """``mosaic dedup``: rows that are nearly equal to an earlier one."""
    check_outputs(args)
    with opened(args) as run:
        model = run.known(MOSAIC(1, outliers="keep", **run.settings()).fit(run.table))
        numbers = numbers_of(model, run.table)
        if isinstance(numbers, Source):
            raise InvalidInputError("near copies are looked for in memory, and the file is too large", "Raise `memory_budget`.")
        run.bar.update("comparing rows")
        rows, of = near_copies(on_host(model.selection_.data.geometry.prepare(numbers)), args.near)
        names = {"row": rows.tolist(), "copy_of_row": of.tolist(), "copy_of": run.table.names(of)}
        table = with_columns(run.table.cells(rows), {f"mosaic_{name}": values for name, values in names.items()})
        run.write_rows("copies", args.output, table)
        shown = {"row": names["row"], "name": run.ids(rows), "copy of": list(names["copy_of"])}
    sentence = f"{len(rows):,} near cop{'y' if len(rows) == 1 else 'ies'} among {counted(run.table.n, 'row')}."

    def show() -> None:
        write(sentence)
        if len(rows):
            write()
            write_table(shown, "" if "copies" in run.outputs else "; -o copies.csv keeps them all")
        run.write_end()

    return run.finish(show, table, sentence=sentence, copies=rows_as_dicts(table))


def near_copies(X: Any, share: float) -> tuple[Any, Any]:
    """Rows that are nearly equal to an earlier one that is none itself, and the first such row of each.

    They are nearer than ``share`` of the distance at which a row usually has ten neighbours, and nearer than by chance: in d
    dimensions, one row in a thousand has a neighbour within 1e-4^(1/d) of that distance r10. Half as many neighbours are within
    r5 = 2^(-1/d) r10, which gives d. The rule is ours.
    """
    real_number("near", share, above=0)
    search, radius = NearestNeighbors().fit(X), 0.0
    if X.shape[0] > 10:
        half, usual = np.median(search.kneighbors(n_neighbors=10)[0][:, [4, 9]], axis=0)
        by_chance = 1e-4 ** (np.log(usual / half) / np.log(2.0)) if half > 0 else 1.0
        radius = float(usual * min(share, by_chance))
    near = search.radius_neighbors(X, radius, return_distance=False)
    original = np.full(X.shape[0], -1, np.intp)
    for row, others in enumerate(near):
        if original[row] < 0:
            later = others[(others > row) & (original[others] < 0)]
            original[later] = row
    rows = np.flatnonzero(original >= 0)
    return rows, original[rows]
