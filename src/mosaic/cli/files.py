"""Commands about files rather than picks: how columns are compared, what changed between two files, and near copies."""

from __future__ import annotations

from argparse import Namespace
from contextlib import ExitStack

import mosaic
from mosaic.choosing import percent
from mosaic.cli.commands import open_new_rows
from mosaic.cli.run import check_outputs, opened
from mosaic.cli.terminal import write, write_wrapped
from mosaic.estimators import Comparison
from mosaic.rows import Encoder
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
        table = pa.Table.from_pylist(found, pa.schema([(name, pa.string()) for name in ComparedColumn._fields]))
        run.write_rows("columns", args.output, table)

    def show() -> None:
        shown = {name.replace("_", " "): values for name, values in table.to_pydict().items()}
        run.write_table(shown)
        run.write_end()

    return run.finish(show, table, columns=found)


def run_compare(args: Namespace) -> int:
    """``mosaic compare``: rows of OTHER, placed by the picks of FILE."""
    check_outputs(args)
    with ExitStack() as stack:
        run = stack.enter_context(opened(args))
        model = run.fit()
        other = stack.enter_context(open_new_rows(model, Namespace(**vars(args) | {"file": args.other}), run.bar))
        run.bar.update("looking at all rows")
        found = Comparison.of(model, run.table, other)
        shares = {"share": found.share, "share_in_other": found.share_in_other}
        table = pa.table({"row": found.rows, "name": run.table.ids(found.rows), **shares})
        run.write_rows("picks", args.output, table)

    def show() -> None:
        write_wrapped(str(found))
        write()
        shown = table.to_pydict()
        stands_for = {"stands for": "share", f"in {args.other}": "share_in_other"}
        percents = {title: [percent(share) for share in shown[name]] for title, name in stands_for.items()}
        run.write_table({"row": shown["row"], "name": shown["name"], **percents})
        run.write_end()

    figures = {name: getattr(found, name) for name in ("p_value", "outlier_shares", "mean_similarities")}
    return run.finish(show, table, sentence=str(found), **figures, picks=records_of(without_lists(table)))


def run_dedup(args: Namespace) -> int:
    """``mosaic dedup``: rows that are nearly equal to an earlier one."""
    check_outputs(args)
    with opened(args) as run:
        found = mosaic.dedup(run.table, near=args.near, **run.settings())
        run.known(found.model)
        names = {"row": found.rows.tolist(), "copy_of_row": found.copy_of.tolist(), "copy_of": run.table.names(found.copy_of)}
        table = with_columns(run.table.cells(found.rows), {f"mosaic_{name}": values for name, values in names.items()})
        run.write_rows("copies", args.output, table)
        shown = {"row": names["row"], "name": run.table.ids(found.rows), "copy of": names["copy_of"]}

    def show() -> None:
        write(str(found))
        if found:
            write()
            run.write_table(shown)
        run.write_end()

    return run.finish(show, table, sentence=str(found), copies=records_of(without_lists(table)))
