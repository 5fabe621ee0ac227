"""Runs contestants on cases: (item × method × data × contamination × k × seed) → one JSON line each. Stopped, it resumes.

    python -m experiments.run --slice small                             # minutes
    python -m experiments.run --item robustness --item f1_table --workers 16

A method with a grid of settings first gets the best of them on validation cases, see ``experiments.tasks``: three other draws of
the same kind of data, or the validation part of the split; judged by 1-NN accuracy where there are classes, by the explained
share where there are none, by the share of outliers for robustness, and by AUC for detectors. The same rule holds for ours.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import platform
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias

from experiments.job import Job
from experiments.tasks import TASKS, VALIDATION_DRAWS, settings_key

#: Settings of a method, or the reason why it has none: {"settings": …}, {"cannot": …} or {"missing": …}.
Choice: TypeAlias = dict[str, Any]

RESULTS = Path(__file__).parent / "results"
#: Processor seconds that one run may take, as a trial of settings too; what takes longer is listed as such.
LIMIT = 20.0
TOO_LONG = "took more than"


def run_job(
    job: Job, settings: Mapping[str, Any] | None = None, limit: float = LIMIT, validation: int | None = None
) -> dict[str, Any]:
    """One line of results: the job, the settings used, the judge's numbers, or why there are none."""
    from experiments.datasets import MissingData
    from experiments.judge import measure
    from experiments.methods import CannotRun

    task = TASKS[job.task]
    method = task.methods()[job.method]
    record: dict[str, Any] = {**asdict(job), "tier": method.tier, "settings": dict(settings or {})}
    if job.task == "time":
        record |= {"cores": os.cpu_count(), "load": os.getloadavg()[0]}
    try:
        case = task.case(job, validation)
    except MissingData as missing:
        return {**record, "missing": str(missing)}
    if len(case.X) > method.largest:
        return {**record, "cannot": f"takes at most {method.largest} points"}
    arguments = (case.X, job.seed) if job.k is None else (case.X, job.k, job.seed)
    try:
        result, seconds = measure(lambda: _within(limit, lambda: method.run(*arguments, **(settings or {}))))
    except CannotRun as reason:
        return {**record, "cannot": str(reason)}
    except TimeoutError:
        return {**record, "cannot": f"{TOO_LONG} {limit:g} s"}
    except Exception as error:
        return {**record, "cannot": f"{type(error).__name__}: {error}"}
    verdict = {**task.judge(case, result), "seconds": seconds}
    return {**record, "verdict": verdict, **task.keep(job, case, result)}


def choose_settings(job: Job) -> Choice:
    """The best settings of a method's grid, mean over the validation cases; or why none has an answer on all of them."""
    task = TASKS[job.task]
    assert task.best is not None  # or there is nothing to choose
    draws = range(1 if task.validated_each_seed else VALIDATION_DRAWS)
    reached, reasons = [], []
    for settings in task.methods()[job.method].grid:
        records = [run_job(job, settings, validation=draw) for draw in draws]
        for record in records:
            if "missing" in record:
                return {"missing": record["missing"]}
        refused = [record["cannot"] for record in records if "cannot" in record]
        if refused:
            reasons.append(refused[0])
            continue
        numbers = [task.best(record["verdict"]) for record in records]
        reached.append((tuple(fmean(each) for each in zip(*numbers, strict=True)), dict(settings)))
    if not reached:
        return {"cannot": f"with all of its settings, on validation cases: {reasons[0]}"}
    return {"settings": max(reached, key=lambda pair: pair[0])[1]}


def _within(limit: float, function: Callable[[], Any]) -> Any:
    """function(), or TimeoutError after so many processor seconds: a busy machine must not make a method fail.

    The alarm is repeated, since an exception within a destructor is lost.
    """
    before = signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, limit, 1.0)
    try:
        return function()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _too_long(*_: Any) -> None:
    raise TimeoutError


def _work(job: Job, choice: Choice | None) -> dict[str, Any]:
    if choice is not None and "settings" not in choice:
        return {**asdict(job), "tier": TASKS[job.task].methods()[job.method].tier, **choice}
    return run_job(job, choice and choice["settings"])


def run_all(jobs: Iterable[Job], *, workers: int = 2, folder: Path = RESULTS, quiet: bool = False) -> int:
    """Run what is not in the folder yet; returns the number of new lines. Killed, it loses the runs under way only.

    Runs that measure time have every second processor, the smallest first; a method that took too long is not asked for more.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted = list(dict.fromkeys(jobs))
    before = list(read(folder))
    done = {_key_of(record) for record in before if "missing" not in record}  # the file may have come since
    todo = [job for job in wanted if job.key not in done]
    if not todo:
        return 0
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
        os.environ[name] = "1"  # for the workers, which start afresh
    versions = _versions()
    progress = _Progress(len(todo), quiet)

    def write(record: Mapping[str, Any]) -> None:
        _append(folder / f"{record['item']}.jsonl", {**record, "versions": versions})
        progress.count += 1
        progress.say(f"{record['method']} on {record['dataset']}")

    together, timed = ([job for job in todo if (job.task == "time") == alone] for alone in (False, True))
    if together:
        with _pool(workers) as pool:
            for future in _item_by_item(together, pool, folder, progress):
                write(future.result())
    if timed:
        with _pool(max(workers // 2, 1)) as pool:
            for record in _timed(timed, pool, _stopped(before)):
                write(record)
    return len(todo)


def _pool(workers: int) -> ProcessPoolExecutor:
    # Workers live until the end: with max_tasks_per_child the pool of Python 3.11 can wait forever for a new one.
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))


def _item_by_item(
    jobs: Sequence[Job], pool: ProcessPoolExecutor, folder: Path, progress: _Progress
) -> Iterator[Future[dict[str, Any]]]:
    """The runs as they end, those of an item after those before it; meanwhile settings of the next item are chosen."""
    chosen = _read_settings(folder)
    runs: list[Future[dict[str, Any]]] = []
    for item in dict.fromkeys(job.item for job in jobs):
        mine = [job for job in jobs if job.item == item]
        needed = {json.dumps(settings_key(job)): job for job in reversed(mine) if _has_grid(job)}
        choosing = {pool.submit(choose_settings, job): key for key, job in needed.items() if key not in chosen}
        yield from as_completed(runs)
        for number, future in enumerate(as_completed(choosing), 1):
            key = choosing[future]
            chosen[key] = future.result()
            if "missing" not in chosen[key]:
                _append(folder / "settings.jsonl", {"for": json.loads(key), **chosen[key]})
            progress.say(f"settings of {item} {number}/{len(choosing)}")
        runs = [pool.submit(_work, job, chosen.get(json.dumps(settings_key(job)))) for job in mine]
    yield from as_completed(runs)


def _stopped(records: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """Methods that took too long, by method and set, and with how many points."""
    found: dict[tuple[str, str], str] = {}
    for record in sorted((r for r in records if r["task"] == "time"), key=lambda r: int(r["n"])):
        if str(record.get("cannot", "")).startswith(TOO_LONG):
            found.setdefault((record["method"], record["dataset"]), f"{record['cannot']} with n = {record['n']}")
    return found


def _timed(jobs: Iterable[Job], pool: ProcessPoolExecutor, stopped: dict[tuple[str, str], str]) -> Iterator[dict[str, Any]]:
    """Lines of the runs, size by size; a method that took too long for fewer points is not asked again."""
    sizes: dict[int, list[Job]] = {}
    for job in jobs:
        sizes.setdefault(job.n or 0, []).append(job)
    for n in sorted(sizes):
        why = {job: stopped.get((job.method, job.dataset)) for job in sizes[n]}
        runs = [pool.submit(_work, job, {"cannot": f"not tried: {w}"} if w else None) for job, w in why.items()]
        for future in as_completed(runs):
            record = future.result()
            if str(record.get("cannot", "")).startswith(TOO_LONG):
                stopped[record["method"], record["dataset"]] = f"{record['cannot']} with n = {n}"
            yield record


def read(folder: Path = RESULTS) -> Iterator[dict[str, Any]]:
    """All lines that were written; a line cut off by a kill is left out."""
    for path in sorted(folder.glob("*.jsonl*")):
        if path.name != "settings.jsonl":
            yield from _lines_of(path)


def keep(lines: Iterable[Mapping[str, Any]], folder: Path) -> None:
    """Write lines as one compressed file, which ``read`` finds."""
    with lzma.open(folder / "lines.jsonl.xz", "wt") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def _lines_of(path: Path) -> Iterator[dict[str, Any]]:
    with lzma.open(path, "rt") if path.suffix == ".xz" else path.open() as file:
        lines = file.read().splitlines()
    for line in lines:
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue


def _key_of(record: Mapping[str, Any]) -> str:
    return Job(**{name: record[name] for name in Job.__dataclass_fields__}).key


def _has_grid(job: Job) -> bool:
    task = TASKS[job.task]
    return task.best is not None and len(task.methods()[job.method].grid) > 1


def _read_settings(folder: Path) -> dict[str, Choice]:
    path = folder / "settings.jsonl"
    if not path.exists():
        return {}
    return {json.dumps(line.pop("for")): line for line in _lines_of(path)}


def _append(path: Path, record: Mapping[str, Any]) -> None:
    with path.open("a+b") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":  # a line was cut off; it must not swallow this one
                file.write(b"\n")
        file.write(json.dumps(record).encode() + b"\n")


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for package in ("mosaic-select", "numpy", "scipy", "scikit-learn", "kmedoids", "pyod"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


class _Progress:
    """A line every minute."""

    def __init__(self, total: int, quiet: bool):
        self.total, self.count, self.quiet = total, 0, quiet
        self.started = self.written = time.monotonic()

    def say(self, text: str) -> None:
        now = time.monotonic()
        if not self.quiet and now - self.written > 60.0:
            self.written = now
            sys.stderr.write(f"{self.count}/{self.total}  {now - self.started:.0f} s  {text}\n")


def main() -> None:
    """The command line."""
    from experiments.items import ITEMS, PAPER, jobs_of

    parser = argparse.ArgumentParser(description="Run the experiments of the paper.")
    parser.add_argument("--item", choices=[*ITEMS], action="append", help="one after the other; without it, all of the paper")
    parser.add_argument("--slice", choices=["small", "all"], default="all", help="few seeds and cases, or everything")
    parser.add_argument("--method", action="append", help="only these methods (may be repeated)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path, default=RESULTS)
    options = parser.parse_args()
    items = options.item or list(PAPER)
    jobs = [job for item in items for job in jobs_of(item, small=options.slice == "small")]
    if options.method:
        jobs = [job for job in jobs if job.method in options.method]
    new = run_all(jobs, workers=options.workers, folder=options.folder)
    sys.stderr.write(f"{new} new runs of {len(jobs)} in {options.folder}\n")


if __name__ == "__main__":
    main()
