"""Runs contestants on cases: (item × method × data × contamination × k × seed) → one JSON line each. Stopped, it resumes.

    python -m experiments.run --slice small          # minutes
    python -m experiments.run --item robustness --workers 8

A method with a grid of settings first gets the best of them on a validation case: another draw of the same kind of data
(seed 100 000), judged by 1-NN accuracy where there are classes, by the explained share where there are none, and by AUC for
detectors. The same rule holds for ours.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
#: Seconds that one run may take; what takes longer is listed as such.
LIMIT = 120
VALIDATION_SEED = 100_000


@dataclass(frozen=True)
class Job:
    """One run. ``task`` is "select" or "detect"; ``item`` the part of the paper that it serves."""

    item: str
    task: str
    method: str
    dataset: str
    contamination: str | None = None
    ratio: float = 0.0
    n: int | None = None
    k: int | None = None
    seed: int = 0

    @property
    def key(self) -> str:
        """What makes a run the same run."""
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def setting(self) -> tuple[Any, ...]:
        """What settings are chosen for: all but the seed and the item."""
        return self.task, self.method, self.dataset, self.contamination, self.ratio, self.n, self.k


def run_job(job: Job, settings: Mapping[str, Any] | None = None, limit: float = LIMIT) -> dict[str, Any]:
    """One line of results: the job, the settings used, the judge's numbers, or why there are none."""
    from experiments.datasets import MissingData, case
    from experiments.judge import judge_outliers, judge_selection, measure
    from experiments.methods import CannotRun, all_detectors, all_selectors

    method = (all_selectors() if job.task == "select" else all_detectors())[job.method]
    record: dict[str, Any] = {**asdict(job), "tier": method.tier, "settings": dict(settings or {})}
    try:
        task = case(job.dataset, contamination=job.contamination, ratio=job.ratio, n=job.n, seed=job.seed)  # type: ignore[arg-type]
    except MissingData as missing:
        return {**record, "missing": str(missing)}
    if len(task.X) > method.largest:
        return {**record, "cannot": f"takes at most {method.largest} points, not {len(task.X)}"}
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        arguments = (task.X, job.k, job.seed) if job.task == "select" else (task.X, job.seed)
        result, seconds, peak = measure(lambda: method.run(*arguments, **(settings or {})))
    except CannotRun as reason:
        return {**record, "cannot": str(reason)}
    except TimeoutError:
        return {**record, "cannot": f"took more than {limit:g} s"}
    except Exception as error:
        return {**record, "cannot": f"{type(error).__name__}: {error}"}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    if job.task == "select":
        verdict = judge_selection(task, result, seconds=seconds, peak_memory=peak)
    else:
        verdict = {
            **judge_outliers(task.is_outlier, result.values, result.flagged),
            "seconds": seconds,
            "peak_memory": peak,
        }
    return {**record, "verdict": verdict, "note": result.note}


def choose_settings(job: Job) -> dict[str, Any]:
    """The best settings of a method's grid on a validation case, with what each of them reached."""
    from dataclasses import replace

    from experiments.methods import all_detectors, all_selectors

    method = (all_selectors() if job.task == "select" else all_detectors())[job.method]
    trial = replace(job, item="validation", seed=VALIDATION_SEED)
    reached = []
    for settings in method.grid:
        verdict = run_job(trial, settings, limit=LIMIT / 6).get("verdict", {})
        measures = ("accuracy_1nn", "explained_share") if job.task == "select" else ("auc",)
        values = [verdict.get(name) for name in measures if verdict.get(name) is not None]
        reached.append(values[0] if values else float("-inf"))
    best = max(range(len(reached)), key=reached.__getitem__)
    return dict(method.grid[best])


def _too_long(*_: Any) -> None:
    raise TimeoutError


def _work(job: Job, settings: Mapping[str, Any] | None) -> dict[str, Any]:
    return run_job(job, settings)


def run_all(jobs: Iterable[Job], *, workers: int = 2, folder: Path = RESULTS, quiet: bool = False) -> int:
    """Run what is not in the folder yet; returns the number of new lines. Killed, it loses the runs under way only."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = list(dict.fromkeys(jobs))
    done = {_key_of(record) for record in read(folder)}
    todo = [job for job in wanted if job.key not in done]
    if not todo:
        return 0
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # for the workers, which start afresh
    versions = _versions()
    chosen = _read_settings(folder)
    bar = _Bar(len(todo), quiet)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), max_tasks_per_child=200) as pool:
        needed = {job.setting: job for job in todo if _has_grid(job) and json.dumps(job.setting) not in chosen}
        futures = {pool.submit(choose_settings, job): setting for setting, job in needed.items()}
        for number, future in enumerate(as_completed(futures), 1):
            chosen[json.dumps(futures[future])] = future.result()
            _append(
                folder / "settings.jsonl", {"for": futures[future], "settings": chosen[json.dumps(futures[future])]}
            )
            bar.say(f"settings {number}/{len(futures)}")
        runs = [pool.submit(_work, job, chosen.get(json.dumps(job.setting))) for job in todo]
        for future in as_completed(runs):
            record = future.result()
            _append(folder / f"{record['item']}.jsonl", {**record, "versions": versions})
            bar.step(f"{record['method']} on {record['dataset']}")
    bar.close()
    return len(todo)


def read(folder: Path = RESULTS) -> Iterator[dict[str, Any]]:
    """All lines that were written; a line cut off by a kill is left out."""
    for path in sorted(folder.glob("*.jsonl")):
        if path.name == "settings.jsonl":
            continue
        for line in path.read_text().splitlines():
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                continue


def _key_of(record: Mapping[str, Any]) -> str:
    return Job(**{name: record[name] for name in Job.__dataclass_fields__}).key


def _has_grid(job: Job) -> bool:
    from experiments.methods import all_detectors, all_selectors

    return len((all_selectors() if job.task == "select" else all_detectors())[job.method].grid) > 1


def _read_settings(folder: Path) -> dict[str, dict[str, Any]]:
    path = folder / "settings.jsonl"
    if not path.exists():
        return {}
    lines = (json.loads(line) for line in path.read_text().splitlines())
    return {json.dumps(line["for"]): line["settings"] for line in lines}


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


class _Bar:
    """One line on a terminal, a line every minute elsewhere."""

    def __init__(self, total: int, quiet: bool):
        self.total, self.count, self.quiet = total, 0, quiet
        self.live, self.started, self.written = sys.stderr.isatty(), time.monotonic(), 0.0

    def step(self, text: str) -> None:
        self.count += 1
        self.say(text)

    def say(self, text: str) -> None:
        now = time.monotonic()
        if self.quiet or now - self.written < (0.2 if self.live else 60.0):
            return
        self.written = now
        filled = int(20 * self.count / self.total)
        line = f"[{'#' * filled:<20}] {self.count}/{self.total}  {now - self.started:.0f} s  {text}"
        sys.stderr.write(f"\r{line:<99}" if self.live else line + "\n")
        sys.stderr.flush()

    def close(self) -> None:
        if self.live and not self.quiet:
            sys.stderr.write("\n")


def main() -> None:
    """The command line."""
    from experiments.items import ITEMS, jobs_of

    parser = argparse.ArgumentParser(description="Run the experiments of the paper.")
    parser.add_argument("--item", choices=[*ITEMS, "all"], default="all")
    parser.add_argument("--slice", choices=["small", "all"], default="all", help="few seeds and cases, or everything")
    parser.add_argument("--method", action="append", help="only these methods (may be repeated)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path, default=RESULTS)
    options = parser.parse_args()
    items = list(ITEMS) if options.item == "all" else [options.item]
    jobs = [job for item in items for job in jobs_of(item, small=options.slice == "small")]
    if options.method:
        jobs = [job for job in jobs if job.method in options.method]
    new = run_all(jobs, workers=options.workers, folder=options.folder)
    sys.stderr.write(f"{new} new runs of {len(jobs)} in {options.folder}\n")


if __name__ == "__main__":
    main()
