"""outliers: rows that few others look like."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

import numpy as np
import scipy.sparse as sp

from mosaic.budget import DEFAULT_BUDGET
from mosaic.cli._faults import writing
from mosaic.cli._first_line import visible
from mosaic.cli._fitting import Work, check_outputs, name_features, opened
from mosaic.cli._options import DETECTOR_SETTINGS
from mosaic.cli._output import (
    MOST_ROWS,
    left_out,
    write,
    write_csv,
    write_json,
    write_notes,
    write_table,
    write_wrapped,
)
from mosaic.cli._picks import settings_of, values_of, with_columns
from mosaic.data import write_rows
from mosaic.engines import is_source
from mosaic.estimators import MOSAIC, MOSAICOutlierDetector
from mosaic.exceptions import InvalidInputError
from mosaic.inspection import Summary, explain, summary

#: Part of the memory budget up to which all rows are taken into memory.
IN_MEMORY = 0.25


def outliers(args: Namespace) -> int:
    """``mosaic outliers``."""
    check_outputs(args, "output")
    with opened(args) as work:
        model = _fit(work)
        work.bar.say("looking at all rows")
        counts, odd = np.asarray(model.effective_count_), np.asarray(model.is_outlier_)
        found = np.flatnonzero(odd)
        found = found[np.argsort(counts[found], kind="stable")]
        rows = np.arange(work.table.n) if args.all else found
        reasons = {int(row): _reason(work, model, int(row)) for row in found}
        columns = work.table.rows(rows)
        said = {
            "mosaic_row": work.numbers(rows),
            "mosaic_score": np.log(counts[rows]),
            "mosaic_effective_count": counts[rows],
            "mosaic_is_outlier": odd[rows],
            "mosaic_reason": [reasons.get(int(row)) for row in rows],
        }
        table, names = with_columns(columns, said), work.names(rows)
        facts = summary(model, certificate=False, parts=())
        answer = None
        if args.output is not None:
            with writing(args.output):
                work.warned.extend(left_out(write_rows(args.output, table, force=args.force)))
        if args.json:
            answer = _to_json(work, facts, len(found), said, names, values_of(columns))
    if answer is not None:
        write_json(answer)
    elif sys.stdout.isatty():
        _write(work, facts, len(found), said, names)
    else:
        work.say_notes()
        if args.output is None:
            write_csv(table)
    return 0


def _fit(work: Work) -> Any:
    """The detector; for rows that do not fit into memory, the selector, which also says who is an outlier."""
    X, weights = work.table.X, work.table.weights
    settings = work.settings(DETECTOR_SETTINGS)
    constraints = {} if weights is None else {"sample_weight": weights}
    budget = settings.get("memory_budget", DEFAULT_BUDGET)
    large = not sp.issparse(X) and weights is None and getattr(X, "nbytes", 0) > IN_MEMORY * budget
    by_passes = is_source(X) or large
    if by_passes:
        work.warned.append(
            f"{work.table.path.name} is too large to be taken into memory, so a sample of the rows decides from which count on "
            "rows are outliers. A larger --memory-budget may change that."
        )
        if settings.pop("max_samples", None) is not None:
            work.warned.append("--max-samples is for data in memory; it was not used.")
    with work.using():
        model: Any = MOSAIC(strategy="sketch", **settings) if by_passes else MOSAICOutlierDetector(**settings)
        model.fit(X, **constraints)
    name_features(model, work.table.feature_names)
    return model


def _reason(work: Work, model: Any, row: int) -> str:
    try:
        told: Any = explain(model, row)
    except InvalidInputError:  # a row that a fit by passes did not keep
        count = model.effective_count_[row]
        return f"an outlier: {count:.3g} rows look like it, itself included; those below {model.outlier_threshold_:.3g} are out."
    return str(told.reason)


def _to_json(
    work: Work, summary: Summary, n: int, said: dict[str, Any], names: list[str | None], values: list[dict[str, Any]]
) -> dict[str, Any]:
    keys = ("row", "score", "effective_count", "is_outlier", "reason")
    columns = [said[f"mosaic_{key}"] for key in keys]
    return {
        "schema": "mosaic/outliers/1",
        "file": work.file,
        "sentence": _sentence(n, work.table.n),
        "n_outliers": n,
        "rule": summary.outliers.rule,
        "count_threshold": summary.outliers.threshold,
        "estimator": summary.estimator,
        "rows": [
            {**dict(zip(keys, row, strict=True)), "id": name, "values": cells}
            for *row, name, cells in zip(*columns, names, values, strict=True)
        ],
        "certificate": vars(summary.certificate),
        "settings": settings_of(summary),
        "notes": work.notes,
        "outputs": {} if work.args.output is None else {"outliers": work.args.output},
    }


def _sentence(n: int, of: int) -> str:
    found = "No outliers" if n == 0 else f"{n:,} {'outlier' if n == 1 else 'outliers'}"
    return f"{found} among {of:,} {'point' if of == 1 else 'points'}."


def _write(work: Work, summary: Summary, n: int, said: dict[str, Any], names: list[str | None]) -> None:
    """For people: the oddest first, whatever the order of the file."""
    write(_sentence(n, work.table.n))
    odd = [i for i in np.argsort(said["mosaic_score"], kind="stable").tolist() if said["mosaic_is_outlier"][i]]
    if odd:
        named = work.table.has_names
        headers = ["row", *(["id"] if named else []), "effective count", "why"]
        cells = [
            [
                said["mosaic_row"][i],
                *([names[i]] if named else []),
                f"{said['mosaic_effective_count'][i]:.3g}",
                str(said["mosaic_reason"][i]).partition(": ")[2],
            ]
            for i in odd[:MOST_ROWS]
        ]
        write()
        write_table(headers, cells, numbers={0, len(headers) - 2})
        if len(odd) > MOST_ROWS:
            write(
                f"… and {len(odd) - MOST_ROWS:,} more{'' if work.args.output else '; -o outliers.csv keeps them all'}."
            )
        write()
    for text in summary.settings["sentences"][-1:]:
        write_wrapped(text)
    write_notes(work.notes)
    if work.args.output is not None:
        write(f"outliers: {visible(work.args.output)}")
