"""What each command does: it opens, fits, writes its outputs, and gives its answer."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.datasets
from scipy.stats import false_discovery_control

import mosaic
from mosaic.arrays.blocks import IntArray, lowest_first
from mosaic.choosing import MOST_AUTOMATIC, PICK_COLUMNS, counted
from mosaic.cli.options import DETECTOR_SETTINGS, NEW_ROWS
from mosaic.cli.run import Part, Run, check_outputs, opened, rows_of_model
from mosaic.cli.terminal import ProgressBar
from mosaic.door import as_indices, as_points
from mosaic.estimators import MOSAIC, MOSAICOutlierDetector, explain_model, load
from mosaic.estimators.fitted import FittedAttributes
from mosaic.estimators.selector import BaseSelector
from mosaic.exceptions import InvalidInputError
from mosaic.facts import Facts, coverage_text, known_of
from mosaic.parameters import real_number, whole_number
from mosaic.rows import Rows, read
from mosaic.rows.faults import FileFault
from mosaic.rows.frames import with_columns
from mosaic.rows.images import thumbnails
from mosaic.rows.roles import Request, Roles
from mosaic.rows.tables import InMemory
from mosaic.rows.write import records_of, without_lists
from mosaic.text import Library, jsonable

pa = Library("pyarrow")  # here, because some commands read arrays without it


def run_select(args: Namespace, open_: Callable[[ProgressBar], Rows] | None = None) -> int:
    """``mosaic select``, and with other outputs ``mosaic report`` and ``mosaic demo``."""
    check_outputs(args)
    with opened(args, open_) as run:
        model = run.fit()
        # A saved model keeps its certificate.
        wanted = args.report is not None or args.save is not None or run.prints_answer
        if args.labels is not None:
            run.bar.update("looking at all rows")
            model.labels_  # noqa: B018 - from now on the number of outliers is exact
        facts = Facts(model, run.table)
        if wanted and not facts.detects:
            run.bar.update("certificate")
            facts.certificate  # noqa: B018 - from now on it is known
        if facts.scaled:
            run.notes.append("Counts of represented rows are estimated from a sample.")
        cells = run.table.cells([] if facts.detects else facts.selection.rows)
        told = {
            f"mosaic_{name}": [getattr(pick, name) for pick in facts.picks] for name in PICK_COLUMNS
        }
        picks = with_columns(cells, told)
        answer: dict[str, Any] = {}
        if run.prints_answer:
            answer = facts.to_dict(
                "sentence",
                "coverage",
                "picks",
                "outliers",
                "known_certificate",
                "decisions",
                "settings",
            )
            answer["certificate"] = answer.pop("known_certificate")
            for pick, values in zip(answer["picks"], records_of(without_lists(cells)), strict=True):
                pick["values"] = values
        run.write_rows("picks", args.output, picks)
        if args.labels is not None:
            labels = _placed(
                run, run.table, np.append(model.selection_.rows, -1)[np.asarray(model.labels_)]
            )
            labels |= {
                name: np.asarray(getattr(model, f"{name}_"))
                for name in ("is_outlier", "effective_count")
            }
            run.write_rows("labels", args.labels, pa.table(labels))
        run.write_others(facts)
        if args.command == "demo":
            noise = np.array(run.table.table.texts("digit")) == "noise"
            odd = model.is_outlier_
            found = f"{(noise & odd).sum()} of {noise.sum()} images of noise and {(odd & ~noise).sum()} digits are outliers"
            run.notes.append(f"{found}. MOSAIC was not told which is which. Look at {args.report}.")
    parts = selected_parts(answer) if answer else []
    return run.finish(picks if args.command == "select" else None, *parts, **answer)


run_report = run_select


def run_demo(args: Namespace) -> int:
    """``mosaic demo``: the handwritten digits of scikit-learn, and one image of noise for every twenty of them."""
    folder = Path(args.folder)
    folder.mkdir(parents=True, exist_ok=True)
    args.force |= args.folder == "mosaic-demo"  # files of an earlier demo are replaced
    args.n_representatives = 20
    args.title = "Digits with noise among them"
    args.output = str(folder / "picks.csv")
    args.report = str(folder / "report.html")

    def digits_with_noise(bar: ProgressBar) -> Rows:
        X, digit = sklearn.datasets.load_digits(return_X_y=True)
        noise = mosaic.datasets.noise_images(len(X) // 20, X)
        names = [f"digit-{i:04d}" for i in range(len(X))] + [
            f"noise-{i:02d}" for i in range(len(noise))
        ]
        what = [*digit.astype(str).tolist(), *["noise"] * len(noise)]
        X = np.vstack([X, noise])
        records = InMemory.of_arrow(pa.table({"image": names, "digit": what}))
        request = Request(Path("digits"), kind="handwritten digits and noise")
        pictures = 1.0 - X.reshape(-1, 8, 8) / 16.0  # dark on light
        return Rows.of_array(
            request,
            X,
            records,
            roles=Roles(id_name="image"),
            pictures_of=lambda rows, side: thumbnails(list(pictures[rows]), side),
        )

    return run_select(args, digits_with_noise)


def _placed(run: Run, fitted: Rows, picks: IntArray) -> dict[str, Any]:
    """Number and name of all rows, and of the representative of each, a row of the fitted table; null for -1."""
    rows = np.arange(run.table.n)
    without = picks < 0
    known, place = np.unique(np.where(without, 0, picks), return_inverse=True)
    names = np.array(fitted.names(known), object)[place]
    return {
        "row": rows,
        "name": run.table.names(rows),
        "representative_row": pa.array(picks, mask=without),
        "representative": pa.array(names, pa.string(), mask=without),
    }


def selected_parts(answer: dict[str, Any]) -> list[Part]:
    picks = answer["picks"]
    n = answer["outliers"]["n"]
    lowest = answer["outliers"]["lowest"]
    columns = {
        name.replace("_", " "): [pick[name] for pick in picks]
        for name in ("rank", "row", "name", "stands_for")
    }
    # A reason begins with rank and number of rows, which have their own columns.
    columns["why"] = [pick["reason"].partition("; ")[2] or pick["reason"] for pick in picks]
    called = [one["name"] or f"row {one['row']}" for one in lowest[:8]]
    others = f" and {n - len(called):,} more" if n > len(called) else ""
    outliers = f"{counted(n, 'outlier')}, oddest first: {', '.join(called)}{others}."
    proof = answer["certificate"]["sentence"]
    return [answer["sentence"], columns if picks else {}, outliers if called else "", proof]


def run_outliers(args: Namespace) -> int:
    check_outputs(args)
    with opened(args) as run:
        model = _detector(run)
        run.bar.update("looking at all rows")
        counts = np.asarray(model.effective_count_)
        odd = np.asarray(model.is_outlier_)
        found = lowest_first(odd, counts)
        rows = np.arange(run.table.n) if args.all else found
        # A fit by passes says what became of an outlier, too; here nothing is rejected.
        told = [
            f"an outlier: {one.reason.partition(': ')[2]}"
            for one in explain_model(model, found.tolist(), run.table)
        ]
        reasons = dict(zip(found.tolist(), told, strict=True))
        judged = {
            "row": rows,
            "score": np.log(counts[rows]),
            "effective_count": counts[rows],
            "is_outlier": odd[rows],
            "reason": pa.array([reasons.get(int(row)) for row in rows], pa.string()),
        }
        facts = Facts(model, run.table, outliers_only=True)
        table = with_columns(
            run.table.cells(rows), {f"mosaic_{name}": values for name, values in judged.items()}
        )
        run.write_rows("outliers", args.output, table)
        run.write_others(facts)
        ids = run.table.ids(found)
    cut = model.selection_.cut
    n = len(found)
    sentence = (
        f"{counted(n, 'outlier') if n else 'No outliers'} among {counted(run.table.n, 'row')}."
    )

    # The columns that a reason names, without how many rows look like the row, which has a column of its own.
    why = [reason.partition(": ")[2].rpartition(". ")[0] for reason in told]
    effective = counts[found].astype(float).tolist()
    columns = {"row": found, "name": ids, "effective count": effective, "why": why}
    answer: dict[str, Any] = {"sentence": sentence, "n_outliers": n, "rule": cut.rule}
    answer |= {
        "threshold": float(cut.count) if cut.count > 0 else None,
        "estimator": type(model).__name__,
    }
    answer |= facts.to_dict("decisions", "settings") | {
        "rows": records_of(without_lists(table)) if args.json else []
    }
    return run.finish(table, sentence, columns if n else {}, facts.decisions[-1], **answer)


def _detector(run: Run) -> Any:
    """Fit the detector, or, if the rows do not fit into memory, the selector, which finds outliers by passes."""
    settings = run.settings(DETECTOR_SETTINGS)
    selector = {name: value for name, value in settings.items() if name != "max_samples"}
    model: Any
    if mosaic.estimate(run.table, **selector).passes:
        decides = "so a sample of the rows decides below which count rows are outliers"
        change = "A larger --memory-budget may change that."
        run.notes.append(
            f"{run.args.file} is too large to be taken into memory, {decides}. {change}"
        )
        if "max_samples" in settings:
            run.notes.append("--max-samples is for data in memory; it was not used.")
        model = MOSAIC(**selector)
    else:
        model = MOSAICOutlierDetector(**settings)
    return run.known(model.fit(run.table, **run.constraints()))


def run_predict(args: Namespace) -> int:
    check_outputs(args)
    model = load(args.model)
    if hasattr(args, "n_jobs"):
        model.n_jobs = args.n_jobs
    with opened(args, lambda bar: open_new_rows(model, args, bar)) as run:
        run.bar.update("looking at all rows")
        new = model.explain_new(run.table)
        fitted = rows_of_model(model, args.model)
        placed = _placed(run, fitted, new.representative)
        placed |= {
            name: pa.array(getattr(new, name), from_pandas=True)
            for name in ("similarity", "representation_error")
        }
        placed |= {"is_outlier": new.is_outlier, "effective_count": new.effective_count}
        table = pa.table(placed | {"reason": pa.array(new.reason, pa.string())})
        run.write_rows("rows", args.output, table)
        odd = lowest_first(new.is_outlier, new.effective_count)
        ids = run.table.ids(odd)
    picks, n_new = np.unique(new.representative[new.representative >= 0], return_counts=True)
    by = f", represented by {counted(len(picks), 'row')} of the model" if len(picks) else ""
    sentence = f"{counted(len(new), 'new row')}{by}; {counted(len(odd), 'outlier') if len(odd) else 'no outliers'}."

    order = np.argsort(-n_new, kind="stable")
    names = fitted.ids(picks[order])
    by_pick = {"row of the model": picks[order], "name": names, "new rows": n_new[order]}
    columns = {"new row": odd, "name": ids, "effective count": new.effective_count[odd].tolist()}
    columns["why it is an outlier"] = [new.reason[row] for row in odd]
    saved = model.selection_
    about = {
        "path": args.model,
        "estimator": type(model).__name__,
        "rows": saved.n_rows,
        "n_representatives": len(saved.rows),
    }
    return run.finish(
        table,
        sentence,
        by_pick if len(picks) else {},
        columns if len(odd) else {},
        sentence=sentence,
        model=about,
        n_outliers=len(odd),
        rows=records_of(table),
    )


def run_check(args: Namespace) -> int:
    """``mosaic check``: new rows by their rank among rows that were held out of the fit."""
    check_outputs(args)
    level = real_number("false_alarms", args.false_alarms, above=0, below=1)
    if args.model.endswith(".mosaic"):
        model = load(args.model)
        if not hasattr(model, "held_out_"):
            raise FileFault(
                args.model,
                "has no rows that were held out",
                "Write it with: mosaic check good.csv FILE --save …",
            )
        check_held_out(args.model, len(model.held_out_), level)
    else:
        with opened(Namespace(**vars(args) | {"file": args.model})) as run:
            check_held_out(args.model, run.table.n // 2, level)
            fitted, held_out = halves(run.table)
            model = run.known(
                MOSAICOutlierDetector(**run.settings(DETECTOR_SETTINGS)).fit(fitted)
            ).hold_out(held_out)
            if args.save is not None:
                model.save(args.save, table=fitted, force=args.force)
    with opened(args, lambda bar: open_new_rows(model, args, bar)) as run:
        p, n, n_held = model.p_values(run.table), run.table.n, len(model.held_out_)
        odd = lowest_first(false_discovery_control(p) <= level, p)
        reasons = model.explain_new(run.table).reason
        why = [reasons[row] for row in odd]
        told = {
            "mosaic_row": odd,
            "mosaic_p_value": p[odd],
            "mosaic_reason": pa.array(why, pa.string()),
        }
        table = with_columns(run.table.cells(odd), told)
        run.write_rows("rows", args.output, table)
        shown = {"row": odd.tolist(), "name": run.table.ids(odd), "p": p[odd].tolist(), "why": why}
    stated = f"at most {100 * level:g} % of files of rows like the {n_held:,} that were held out have one"
    least = int(np.ceil(n / (level * (1 + n_held))))
    sentence = f"{counted(len(odd), 'row')} of {n:,} {'does' if len(odd) == 1 else 'do'} not belong; {stated}."
    if least > 1:
        few = f"Fewer than {least:,} odd rows among {n:,} cannot be told from chance"
        run.notes.append(f"{few}; with more rows held out, fewer can.")

    about = {"false_alarms": level, "n_held_out": n_held, "n_outliers": len(odd)}
    parts = sentence, shown if len(odd) else {}
    return run.finish(table, *parts, sentence=sentence, **about, rows=records_of(table))


def check_held_out(path: str, n_held: int, level: float) -> None:
    """Refuse so few rows held out that no file could fail, since p-values are no lower than 1 / (1 + how many they are)."""
    needed = int(np.ceil(1 / level)) - 1
    if n_held < needed:
        fault = f"with {counted(n_held, 'row')} held out, no row could be told from chance"
        raise FileFault(
            path, fault, f"Give a table of {2 * needed:,} rows or more, or raise `false_alarms`."
        )


def halves(rows: Rows) -> list[Any]:
    """Two halves of the rows, drawn at random. Entries of an array are checked before, while rows have their numbers."""
    if rows.array is not None and not rows.stays:
        as_points(rows.array)
    some = [
        rows.take(np.sort(half))
        for half in np.array_split(np.random.default_rng(0).permutation(rows.n), 2)
    ]
    if rows.array is not None:
        return some
    return [Rows.of_table(rows.request, InMemory.of_arrow(half)) for half in some]


def open_new_rows(model: FittedAttributes | None, args: Namespace, bar: ProgressBar) -> Rows:
    """The file of new rows, read as that of the fit was."""
    kept = getattr(model, "kept_rows_", None)
    options = {} if kept is None else dict(kept.options)
    options |= {
        name: getattr(args, name) for name in NEW_ROWS if hasattr(args, name) and name != "n_jobs"
    }
    return read(args.file, **options, progress=bar.on_read)


def run_explain(args: Namespace) -> int:
    with opened(args) as run:
        rows = [run.table.find(name) for name in args.rows]
        rows += as_indices(args.row, run.table.n, "row", may_repeat=True).tolist()
        model = run.fit()
        decisions = list(model.explain())
        explained = explain_model(model, rows, run.table)
        sentence = Facts(model, run.table).sentence
        run.notes = [note for note in run.notes if note not in decisions]

    rows_told = [asdict(each) for each in explained]
    lines = list(map(str, explained)) or decisions
    return run.finish(None, lines, sentence=sentence, decisions=decisions, rows=rows_told)


def run_certify(args: Namespace) -> int:
    with opened(args) as run:
        rows = picked_rows(run)
        if run.saved is None:
            certificate = mosaic.certify(
                run.table, rows, fit_params=run.constraints(), **run.settings()
            )
        elif isinstance(run.saved, BaseSelector):
            certificate = run.saved.certify(rows)
        else:
            raise InvalidInputError(
                f"{args.file} is a model that chooses no rows",
                "Name the data instead of the model.",
            )
    told = known_of(certificate)

    details = told.details.removeprefix(told.sentence).strip()
    about = {"sentence": told.sentence, "certificate": jsonable(vars(told))}
    return run.finish(None, told.sentence, details, **about)


def picked_rows(run: Run) -> list[int]:
    """The rows of a table of picks, by the row numbers that ``select`` wrote or by their ids; or those that are named."""
    given = run.args.picks
    if len(given) > 1 or not Path(given[0]).is_file():
        return [run.table.find(name) for name in given]
    with read(given[0]) as picks:
        rows = np.arange(picks.n)
        if "mosaic_row" in picks.columns:
            numbers = picks.cells(rows, ["mosaic_row"]).column(0).to_numpy()
            return list(as_indices(numbers, run.table.n, "picks"))
        only = picks.columns if len(picks.columns) == 1 else []
        ids = [name for name in (run.table.id_name, picks.id_name, *only) if name in picks.columns]
        if not ids:
            fault = f"has no column mosaic_row, and none of ids: {given[0]}"
            raise InvalidInputError(
                fault, "Write picks with select, or a file with a column of ids.", parameter="picks"
            )
        return [run.table.find(name) for name in picks.table.texts(str(ids[0]))]


def run_path(args: Namespace) -> int:
    check_outputs(args)
    most = whole_number("max_representatives", args.max_representatives)
    with opened(args) as run:
        limit = max(most, MOST_AUTOMATIC)
        curve = mosaic.path(
            run.table, max_representatives=limit, fit_params=run.constraints(), **run.settings()
        )
        run.known(curve.model)
        rows = curve.indices[:most]
        names = pa.array([name or None for name in run.table.ids(rows)], pa.string())
        numbered = {"k": np.arange(1, len(rows) + 1), "row": rows, "name": names}
        bound = (
            pa.nulls(len(rows), pa.float64()) if curve.bound is None else curve.bound[: len(rows)]
        )
        shares = {
            "similarity": curve.similarity[: len(rows)],
            "coverage": curve.coverage[: len(rows)],
            "bound": bound,
        }
        table = pa.table(numbered | shares)
        run.write_rows("curve", args.output, table)

    def told(k: int) -> str:
        return coverage_text(
            curve.coverage[k - 1], None if curve.bound is None else curve.bound[k - 1]
        )

    k = int(curve.suggested)
    sentence = f"Suggested: {counted(k, 'representative')}, coverage {told(k)}."
    needed = [(share, curve.least_number(share)) for share in (0.5, 0.8, 0.9, 0.95)]
    least = [
        f"{100 * share:g} % needs at least {counted(number, 'row')}"
        for share, number in needed
        if number is not None
    ]

    needs = f" A coverage of {', '.join(least)}." if least else ""
    ks = [
        number for number in sorted({1, 2, 5, 10, 20, 50, 100, k, len(rows)}) if number <= len(rows)
    ]
    bars = ["█" * round(40 * max(float(curve.coverage[number - 1]), 0.0)) for number in ks]
    columns = {"k": ks, "coverage": [told(number) for number in ks], "": bars}
    about = {"sentence": sentence, "suggested": k, "curve": table.to_pylist()}
    return run.finish(table, sentence + needs, columns, **about)


def run_estimate(args: Namespace) -> int:
    with opened(args) as run:
        cost = mosaic.estimate(run.table, **run.settings())
    return run.finish(None, [str(cost)], sentence=str(cost), estimate=asdict(cost))
