"""A small slice of the runs against numbers that were measured before: a change that moves them is noticed.

python -m experiments.check            # compares
python -m experiments.check --write    # measures anew, after a change that is meant to move them
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

from experiments.job import Job
from experiments.run import run_job

EXPECTED = Path(__file__).parent / "expected" / "our_numbers.json"
#: Numbers may differ by this much between machines, where a tie falls the other way.
TOLERANCE = 0.06


def slice_of_runs() -> Iterator[tuple[Job, str]]:
    """Runs that need no file and few seconds, with the number that is looked at."""
    for method, seed in product(("MOSAIC", "K-medoids", "TED"), (0, 1)):
        yield Job("robustness", "select", method, "sphere", "uniform", 0.5, 300, 20, seed), "outlier_share"
    for method in ("MOSAIC", "MOSAIC (paper)", "K-medoids", "facility location"):
        yield Job("classification", "classify", method, "digits", None, 0.0, 600, 30, 0), "accuracy_1nn"
    for method, seed in product(("MOSAIC", "Kernel CoP", "kNN distance", "L1-KPCA"), (0, 1)):
        yield Job("f1_table", "detect", method, "swiss_roll/5", "repetitive", 1.0, 300, None, seed), "auc"


def measured() -> list[dict[str, Any]]:
    """The numbers as they are now; methods with their defaults."""
    found = []
    for job, measure in slice_of_runs():
        record = run_job(job)
        if "verdict" not in record:
            raise RuntimeError(f"{job} has no answer: {record.get('cannot') or record.get('missing')}")
        found.append({**asdict(job), "measure": measure, "value": round(record["verdict"][measure], 4)})
    return found


def differences(now: list[dict[str, Any]], before: dict[str, Any]) -> list[str]:
    """What is further from the expected number than the tolerance, or not expected at all, in words."""
    expected = {_key(number): number["value"] for number in before["numbers"]}
    words = [f"expected, but not run: {key}" for key in expected if key not in map(_key, now)]
    for number in now:
        value = expected.get(_key(number))
        if value is None:
            words.append(f"run, but not expected: {_key(number)}")
        elif abs(value - number["value"]) > before["tolerance"]:
            words.append(f"{_key(number)}: expected {value:g}, got {number['value']:g}")
    return words


def _key(number: dict[str, Any]) -> str:
    return json.dumps({name: value for name, value in number.items() if name != "value"}, sort_keys=True)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Compare a small slice of the runs with what is expected.")
    parser.add_argument("--write", action="store_true", help="take the present numbers for the expected ones")
    options = parser.parse_args()
    now = measured()
    if options.write:
        lines = ",\n    ".join(json.dumps(number) for number in now)
        EXPECTED.write_text(f'{{\n  "tolerance": {TOLERANCE},\n  "numbers": [\n    {lines}\n  ]\n}}\n')
        return
    words = differences(now, json.loads(EXPECTED.read_text()))
    sys.stdout.write("".join(f"{line}\n" for line in words) or f"{len(now)} numbers are as expected\n")
    sys.exit(bool(words))


if __name__ == "__main__":
    main()
