"""Commands about files rather than picks: how columns are compared, what changed between two files, and copies."""

from __future__ import annotations

from argparse import Namespace
from contextlib import ExitStack
from dataclasses import asdict, fields
from typing import Any

import mosaic
from mosaic.choosing import counted, percent
from mosaic.cli.commands import open_new_rows
from mosaic.cli.run import check_outputs, opened
from mosaic.estimators.comparison import p_text
from mosaic.rows import Encoder
from mosaic.rows.drift import Change
from mosaic.rows.encoder import ComparedColumn
from mosaic.rows.frames import with_columns
from mosaic.rows.write import records_of, without_lists
from mosaic.text import Library

pa = Library("pyarrow")


def run_columns(args: Namespace) -> int:
    """``mosaic columns``."""
    check_outputs(args)
    with opened(args) as run:
        run.encoder = Encoder.fit(run.table)
        found = [column._asdict() for column in run.encoder.compared(run.table)]
        table = pa.Table.from_pylist(
            found, pa.schema([(name, pa.string()) for name in ComparedColumn._fields])
        )
        run.write_rows("columns", args.output, table)

    shown = {name.replace("_", " "): values for name, values in table.to_pydict().items()}
    return run.finish(table, shown, columns=found)


def run_compare(args: Namespace) -> int:
    """``mosaic compare``: columns of OTHER that moved, and its rows, placed by the picks of FILE."""
    check_outputs(args)
    with ExitStack() as stack:
        run = stack.enter_context(opened(args))
        other = stack.enter_context(
            open_new_rows(None, Namespace(**vars(args) | {"file": args.other}), run.bar)
        )
        run.bar.update("comparing columns")
        found = mosaic.compare(run.table, other, fit_params=run.constraints(), **run.settings())
        run.known(found.model)
        changes = {
            each.name: [getattr(change, each.name) for change in found.changes]
            for each in fields(Change)
        }
        table = pa.table(changes)
        run.write_rows("changes", args.output, table)
        shares = {"share": found.share, "share_in_other": found.share_in_other}
        picks = pa.table({"row": found.rows, "name": run.table.ids(found.rows), **shares})
        if not run.prints_answer:  # rows alone do not say what differs beyond single columns
            run.notes.append(str(found))

    p_values = list(map(p_text, changes["p_value"]))
    moved = {"column": changes["column"], "changed": changes["what"], "p": p_values}
    moved |= {name: changes[name] for name in ("before", "after")}
    first = picks.slice(0, 8).to_pydict()
    placed = {"row": first["row"], "name": first["name"]}
    placed["stands for"] = list(map(percent, first["share"]))
    placed[f"in {args.other}"] = list(map(percent, first["share_in_other"]))
    told = f"Of {counted(len(found.rows), 'representative')}, those that changed most:"
    about: dict[str, Any] = {
        "p_value": found.p_value,
        "moves_on": found.moves_on,
        "outlier_shares": found.outlier_shares,
    }
    about["changes"] = [asdict(change) for change in found.changes]
    about |= {"sentence": str(found), "picks": records_of(without_lists(picks))}
    return run.finish(table, str(found), moved if found.changes else {}, told, placed, **about)


def run_dedup(args: Namespace) -> int:
    """``mosaic dedup``: rows that repeat an earlier one, exactly or nearly."""
    check_outputs(args)
    with opened(args) as run:
        run.bar.update("comparing rows")
        found = mosaic.dedup(
            run.table, near=args.near, memory_budget=run.settings().get("memory_budget")
        )
        run.encoder = found.encoder
        names: dict[str, Any] = {
            "row": found.rows,
            "copy_of_row": found.copy_of,
            "copy_of": run.table.names(found.copy_of),
        }
        if found.differs:
            names |= {"equal_cells": found.equal_cells, "differs": found.differs}
        names["copy"] = ["exact" if is_exact else "near" for is_exact in found.is_exact]
        table = with_columns(
            run.table.cells(found.rows),
            {f"mosaic_{name}": values for name, values in names.items()},
        )
        run.write_rows("copies", args.output, table)
        kept = run.table.cells(found.kept)
        if args.keep != "-":
            run.write_rows("kept", args.keep, kept)
        shown = {"row": names.pop("row"), "name": run.table.ids(found.rows)}
        del names["copy_of_row"]
        shown |= {name.replace("_", " "): list(values) for name, values in names.items()}

    n_exact = int(found.is_exact.sum())
    rows = kept if args.keep == "-" else table
    about = {"sentence": str(found), "n_exact": n_exact, "copies": records_of(without_lists(table))}
    return run.finish(rows, str(found), shown if found else {}, **about)
