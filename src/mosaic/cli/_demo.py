"""demo: handwritten digits with images of noise among them, for whoever wants to see something first."""

from __future__ import annotations

import time
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike
from sklearn.datasets import load_digits

from mosaic import datasets
from mosaic.cli._commands import Answer
from mosaic.cli._explanations import explanation_of
from mosaic.cli._faults import writing
from mosaic.cli._fitting import Work
from mosaic.cli._output import width, write, write_json, write_notes, write_wrapped
from mosaic.cli._progress import Bar, warnings_as
from mosaic.data import check_output, write_rows
from mosaic.data.records import InMemory
from mosaic.data.stacks import thumbnail
from mosaic.data.table import Table
from mosaic.estimators import MOSAIC
from mosaic.report import write_report

#: Representatives, and how many of them a terminal shows as pictures.
K, DRAWN = 20, 6
#: Digits for one image of noise.
PER_NOISE = 20
SIDE, DARKEST = 8, 16.0
SHADES = " .:-=+*#%@"
TITLE = "Digits with noise among them"
#: Of files that an earlier demo has written: up to where, and how what stands before that begins and ends.
OWN = {
    "picks.csv": (b"\n", b"image,digit,mosaic_rank,", b",mosaic_effective_count,mosaic_reason"),
    "report.html": (b"<style>", b"<!doctype html>", f"<title>{TITLE}</title>".encode()),
}
#: Bytes in which that has to stand.
HEAD = 1 << 14


class Digits(Table):
    """Pictures of 8 × 8 pixels in memory, as if they were a file."""

    def pictures(self, rows: ArrayLike, side: int = 64) -> list[bytes] | None:
        """Ink on paper."""
        paper = 1.0 - self.X.reshape(-1, SIDE, SIDE)[np.asarray(rows, np.intp)] / DARKEST
        return [thumbnail(picture, side) for picture in paper]


def digits_with_noise() -> Digits:
    """Handwritten digits that scikit-learn brings along, and one image of noise for twenty of them."""
    digits = load_digits()
    n = len(digits.data)
    noise = datasets.noise_images(n // PER_NOISE, digits.data)
    what = [str(label) for label in digits.target] + ["noise"] * len(noise)
    names = [f"digit-{i:04d}" for i in range(n)] + [f"noise-{i:02d}" for i in range(len(noise))]
    X = np.vstack([digits.data, noise])
    records = InMemory(pa.table({"image": names, "digit": what}))
    kind = "handwritten digits and noise"
    return Digits(Path("digits"), kind, X, records, id_name="image", groups=np.array(what), group_name="digit")


def draw(images: Any) -> str:
    """8×8 images side by side, as text.

    Examples
    --------
    >>> print(draw(np.eye(8)[None] * 16).splitlines()[1])
      @@
    """
    lines = []
    for row in range(SIDE):
        cells = ("".join(SHADES[int(v * 9 / DARKEST)] * 2 for v in image[row]) for image in images)
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def demo(args: Namespace) -> int:
    """``mosaic demo``."""
    folder = Path(args.folder)
    with writing(args.folder):
        folder.mkdir(parents=True, exist_ok=True)
    for name in OWN:
        with writing(str(folder / name)):
            check_output(folder / name, args.force or _is_own(folder / name))
    warned: list[str] = []
    with digits_with_noise() as table:
        noise = int((table.groups == "noise").sum())
        if not args.json:
            write(f"{table.n - noise:,} digits and {noise} images of noise. Nothing is said about which is which.\n")
        with Bar(args.quiet or args.json) as bar, warnings_as(warned), bar.listening():
            work = Work(args, table, bar, warned)
            started = time.perf_counter()
            model = MOSAIC(K, verbose=bar.verbose).fit(table.X)
            seconds = time.perf_counter() - started
            answer = Answer.of(work, model, bound=True)
            bar.say("report")
            picks, page = str(folder / "picks.csv"), str(folder / "report.html")
            with writing(picks):
                write_rows(picks, answer.picks, force=True)
            with writing(page):
                write_report(model, page, table=table, title=TITLE, command="mosaic demo", force=True)
            answer.outputs.update(picks=picks, report=page)
        caught = int((table.groups[model.is_outlier_] == "noise").sum())
        if args.json:
            found = {"n_noise": noise, "n_noise_found": caught, "folder": args.folder}
            write_json(answer.to_json("mosaic/demo/1") | found)
        else:
            _write(work, model, answer, seconds, noise, caught)
    return 0


def _write(work: Work, model: MOSAIC, answer: Answer, seconds: float, noise: int, caught: int) -> None:
    """For people: pictures of the first, the outliers, why, and the certificate."""
    table, picks = work.table, model.representative_indices_
    shown = picks[: max(1, min(DRAWN, width() // (2 * SIDE + 2)))]
    write(f"{len(picks)} representatives in {seconds:.1f} s, the first {len(shown)}:\n")
    write(draw(table.X[shown].reshape(-1, SIDE, SIDE)))
    numbers = [pick.stands_for for pick in answer.summary.representatives or []]
    labels = (f"{table.groups[row]}, for {numbers[rank]}" for rank, row in enumerate(shown))
    write("  ".join(f"{label:<{2 * SIDE}}" for label in labels).rstrip() + "\n")
    found = answer.summary.n_outliers
    write(f"{found} outliers found: {caught} of {noise} images of noise, {found - caught} digits.")
    odd = np.flatnonzero(model.is_outlier_)
    for row in [*odd[-1:].tolist(), int(picks[0])]:
        told = explanation_of(work, model, row)
        write_wrapped(f"{told['called']}: {told['reason']}", "  ")
    write()
    write_wrapped(str(model.certificate_))
    write_notes(answer.notes)
    write(f"\nLook at {answer.outputs['report']}; the picks are in {answer.outputs['picks']}.")


def _is_own(file: Path) -> bool:
    """Whether an earlier demo has written this file."""
    end, first, last = OWN[file.name]
    try:
        with file.open("rb") as stream:
            head, found, _ = stream.read(HEAD).partition(end)
    except OSError:
        return False
    return bool(found) and head.startswith(first) and head.rstrip().endswith(last)
