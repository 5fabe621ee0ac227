"""What all examples share: finding real data, the folder for output, writing a report and a table of the picks."""

from __future__ import annotations

import argparse
import csv
import os
from pathlib import Path
from typing import Any

import numpy as np

from mosaic import MOSAIC
from mosaic.show import write_report


def real_data(file: str) -> Path | None:
    """A file in the folder of real data, MOSAIC_DATA or shared/data next to the repository; None if it does not exist."""
    given = os.environ.get("MOSAIC_DATA")
    folder = Path(given).expanduser() if given else Path(__file__).resolve().parents[2] / "shared" / "data"
    path = folder / file
    return path if path.is_file() else None


def out_folder(name: str, about: str | None) -> Path:
    """The folder for what an example writes: ``--out``, by default mosaic-examples/NAME; it is made if it is not there."""
    parser = argparse.ArgumentParser(description=(about or "").split("\n", 1)[0])
    parser.add_argument("--out", type=Path, default=Path("mosaic-examples") / name, metavar="FOLDER")
    folder: Path = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def stands_for(model: MOSAIC) -> np.ndarray:
    """How many rows each representative stands for, in the order of their rank."""
    return np.bincount(model.labels_[model.labels_ >= 0], minlength=model.n_representatives_)


def write_answer(model: MOSAIC, folder: Path, title: str, **about: Any) -> None:
    """Write report.html and picks.csv; ``about`` has names, columns, images or groups with an entry for every row."""
    report = write_report(model, folder / "report.html", title=title, force=True, **about)
    columns = {"name": about["names"]} if "names" in about else {}
    columns |= dict(about.get("columns", {}))
    table = folder / "picks.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["rank", "row", *columns, "stands_for", "why"])
        for rank, (row, size) in enumerate(zip(model.representative_indices_.tolist(), stands_for(model), strict=True)):
            cells = [values[row] for values in columns.values()]
            writer.writerow([rank + 1, row, *cells, size, model.explain(row).reason])
    print(f"\nTo look at: {report}. The picks as a table: {table}.")
