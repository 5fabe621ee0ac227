"""Commands about files rather than picks: how columns are compared, what changed between two files, and near copies."""

from __future__ import annotations

import math
from argparse import Namespace
from contextlib import ExitStack
from dataclasses import fields, replace
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from mosaic.arrays.blocks import IntArray
from mosaic.arrays.xp import on_host
from mosaic.choosing import counted, percent
from mosaic.cli.commands import open_new_rows, rows_as_dicts
from mosaic.cli.run import Run, check_outputs, opened
from mosaic.cli.terminal import write, write_table, write_wrapped
from mosaic.estimators import MOSAIC
from mosaic.estimators.fit import numbers_of
from mosaic.exceptions import InvalidInputError
from mosaic.parameters import real_number
from mosaic.rows import Encoder
from mosaic.rows.copies import NEAR_NUMBERS, Compared, copies_of_pictures, settled
from mosaic.rows.drift import KINDS_OF_TESTS, LEVEL, Change, chi2, drift_of
from mosaic.rows.frames import with_columns
from mosaic.text import Library, listed

pa = Library("pyarrow")


def columns(args: Namespace) -> int:
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


def compare(args: Namespace) -> int:
    """``mosaic compare``: columns of OTHER that moved, and its rows, placed by the picks of FILE."""
    check_outputs(args)
    with ExitStack() as stack:
        run = stack.enter_context(opened(args))
        other = stack.enter_context(open_new_rows(None, Namespace(**vars(args) | {"file": args.other}), run.bar))
        Encoder.fit(run.table).known_columns(other)
        run.bar.update("comparing columns")
        drift = drift_of(run.table, other)
        roles = run.table.roles
        compared = tuple(name for name in roles.compared if name not in drift.moves_on)
        run.table = replace(run.table, roles=replace(roles, compared=compared or roles.compared))
        model = run.fit()
        run.bar.update("looking at all rows")
        both = model.explain_new(run.table), model.explain_new(other)
        picks = np.append(model.selection_.rows, -1)  # and outliers
        counts = np.array([(each.representative[:, None] == picks).sum(axis=0) for each in both])
        shares = counts / counts.sum(axis=1, keepdims=True)
        # Where all columns only move on, so do the rows.
        p = min(drift.p_value, KINDS_OF_TESTS * chi2(*counts)[0] if compared or not drift.moves_on else 1.0)
        order = np.argsort(-np.abs(shares[1] - shares[0])[:-1], kind="stable")
        found = {
            "row": picks[order],
            "name": run.ids(picks[order]),
            "share": shares[0][order],
            "share_in_other": shares[1][order],
        }
        told = {each.name: [getattr(change, each.name) for change in drift.changes] for each in fields(Change)}
        run.write_rows("changes", args.output, pa.table(told))
    verdict = (
        "The files differ no more than by chance" if p >= LEVEL else "The files differ in which rows they have, not in one column"
    )
    if drift.changes:
        verdict = f"The files differ, most in {listed(list(dict.fromkeys(told['column'])), 5)}"
    aside = f" {listed(drift.moves_on)} only move{'s' * (len(drift.moves_on) == 1)} on." if drift.moves_on else ""
    odd = [float(each.is_outlier.mean()) for each in both]
    sizes = [f"{percent(share)} of {counted(len(each), 'row')}" for share, each in zip(odd, both, strict=True)]
    sentence = f"{verdict} ({p_text(p)}).{aside} Outliers: {sizes[1]} of {args.other}, {sizes[0]} of {args.file}."

    def show() -> None:
        write_wrapped(sentence)
        if drift.changes:
            write()
            shown = {"column": told["column"], "changed": told["what"], "p": list(map(p_text, told["p_value"]))}
            shown |= {"before": told["before"], "after": told["after"]}
            write_table(shown, "" if "changes" in run.outputs else "; -o changes.csv keeps them all")
        write()
        called = {"share": "stands for", "share_in_other": f"in {args.other}"}
        lines = {called.get(name, name): list(map(percent, each) if name in called else each) for name, each in found.items()}
        write_table(lines, "; --json has them all", most=8)
        run.write_end()

    answer: dict[str, Any] = {"p_value": p, "changes": rows_as_dicts(pa.table(told)), "moves_on": drift.moves_on}
    answer |= {"outlier_shares": odd, "picks": rows_as_dicts(pa.table(found))}
    return run.finish(show, pa.table(told), sentence=sentence, **answer)


def p_text(p: float) -> str:
    return "p < 0.001" if p < 1e-3 else f"p = {p:.2g}"


def dedup(args: Namespace) -> int:
    """``mosaic dedup``: rows that repeat an earlier one, exactly or nearly."""
    check_outputs(args)
    near = args.near
    with opened(args) as run:
        table, encoder = run.table, Encoder.fit(run.table)
        run.encoder = encoder
        by_cells = table.array is None and table.request.embedding is None
        is_of_numbers = not encoder.has_rules and table.pictures_of is None
        if near is not None:
            real_number("near", near, above=0, below=math.inf if is_of_numbers else 1.0)
        if table.stays:
            raise InvalidInputError("copies are looked for in memory, and the file is too large", "Raise `memory_budget`.")
        run.bar.update("comparing rows")
        compared = Compared(table.table.cells(table.roles.compared)) if by_cells else None
        X: Any = None
        original = np.full(table.n, -1) if compared is None else compared.copies(near if encoder.has_rules else None)
        if table.pictures_of is not None:
            side = table.request.image_size
            X = table.array[:, :-2].reshape(table.n, side, side, -1)
            original = copies_of_pictures(X, near)
        elif is_of_numbers:
            X, pairs = near_numbers(run, near)
            original = settled(original, pairs)
        rows = np.flatnonzero(original >= 0)
        of = original[rows]
        names: dict[str, Any] = {"row": rows, "copy_of_row": of, "copy_of": table.names(of)}
        if compared is None:
            is_exact = (X[rows] == X[of]).all(axis=tuple(range(1, X.ndim)))
        else:
            unlike, m = compared.unlike(rows, of), len(compared.names)
            is_exact = np.array([not columns for columns in unlike], bool)
            told = zip(table.cells(rows).to_pylist(), table.cells(of).to_pylist(), unlike, strict=True)
            names["equal_cells"] = [f"{m - len(columns)} of {m}" for columns in unlike]
            names["differs"] = ["; ".join(f"{c}: {one[c]} / {other[c]}" for c in columns) for one, other, columns in told]
        names["copy"] = np.where(is_exact, "exact", "near")
        copies = with_columns(table.cells(rows), {f"mosaic_{name}": values for name, values in names.items()})
        run.write_rows("copies", args.output, copies)
        if args.keep is not None:
            run.write_rows("kept", args.keep, table.cells(np.flatnonzero(original < 0)))
        shown: dict[str, Any] = {"row": rows, "name": run.ids(rows)} | {
            name.replace("_", " "): list(names[name]) for name in list(names)[2:]
        }
        n_exact = int(is_exact.sum())
    noun = "copy" if len(rows) == 1 else "copies"
    sentence = f"{len(rows):,} {noun} among {counted(table.n, 'row')}: {n_exact:,} exact, {len(rows) - n_exact:,} near."

    def show() -> None:
        write(sentence)
        if len(rows):
            write()
            write_table(shown, "" if "copies" in run.outputs else "; -o copies.csv keeps them all")
        run.write_end()

    return run.finish(show, copies, sentence=sentence, n_exact=n_exact, copies=rows_as_dicts(copies))


def near_numbers(run: Run, share: float | None) -> tuple[Any, IntArray]:
    """The numbers of rows, and pairs of rows that are nearly equal, the earlier first.

    They are nearer than ``share`` of the distance at which a row usually has ten neighbours, and nearer than by chance: in d
    dimensions, one row in a thousand has a neighbour within 1e-4^(1/d) of that distance r10. Half as many neighbours are within
    r5 = 2^(-1/d) r10, which gives d. The rule is ours.
    """
    model = run.known(MOSAIC(1, outliers="keep", **run.settings()).fit(run.table))
    X: Any = on_host(model.selection_.data.geometry.prepare(numbers_of(model, run.table)))
    search, radius = NearestNeighbors().fit(X), 0.0
    if X.shape[0] > 10:
        half, usual = np.median(search.kneighbors(n_neighbors=10)[0][:, [4, 9]], axis=0)
        by_chance = 1e-4 ** (np.log(usual / half) / np.log(2.0)) if half > 0 else 1.0
        if share is not None and share > by_chance:
            fault = f"has no effect above {by_chance:.2g}, where rows are near by chance"
            raise InvalidInputError(fault, "Give a lower share.", parameter="near", value=share)
        radius = float(usual * min(NEAR_NUMBERS if share is None else share, by_chance))
    pairs = np.column_stack(search.radius_neighbors_graph(X, radius).nonzero())
    return X, pairs[pairs[:, 0] < pairs[:, 1]]
