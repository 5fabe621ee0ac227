"""demo: select from handwritten digits with images of noise among them, without a file of your own."""

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
from mosaic.cli.answers import DemoAnswer
from mosaic.cli.faults import writing
from mosaic.cli.run import opened
from mosaic.cli.select import answer_of
from mosaic.cli.terminal import width, write, write_end, write_wrapped
from mosaic.estimators import MOSAIC
from mosaic.facts import Facts
from mosaic.rows import check_output, write_rows
from mosaic.rows.images import thumbnails
from mosaic.rows.rows import InMemory, Rows
from mosaic.show import write_report

#: Number of representatives, and how many of them a terminal shows as pictures.
K, DRAWN = 20, 6
#: Number of digits for one image of noise.
PER_NOISE = 20
SIDE, DARKEST = 8, 16.0
SHADES = " .:-=+*#%@"
#: The folder of an earlier demo, whose files are replaced.
OWN_FOLDER = "mosaic-demo"


class Digits(Rows):
    """Pictures of 8 × 8 pixels in memory, as if they were a file."""

    def pictures(self, rows: ArrayLike, side: int = 64) -> list[bytes] | None:
        """Dark digits on a light background, as PNG."""
        paper = 1.0 - self.X.reshape(-1, SIDE, SIDE)[np.asarray(rows, np.intp)] / DARKEST
        return thumbnails(list(paper), side)


def digits_with_noise() -> Digits:
    """The handwritten digits of scikit-learn, and one image of noise for every twenty of them."""
    digits = load_digits()
    n = len(digits.data)
    noise = datasets.noise_images(n // PER_NOISE, digits.data)
    what = [str(label) for label in digits.target] + ["noise"] * len(noise)
    names = [f"digit-{i:04d}" for i in range(n)] + [f"noise-{i:02d}" for i in range(len(noise))]
    X = np.vstack([digits.data, noise])
    records = InMemory(pa.table({"image": names, "digit": what}))
    kind = "handwritten digits and noise"
    found = Digits(Path("digits"), kind, X, records, id_name="image", group_name="digit")
    found.groups = np.array(what)
    return found


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
    force = args.force or args.folder == OWN_FOLDER
    picks, page = str(folder / "picks.csv"), str(folder / "report.html")
    for path in (picks, page):
        with writing(path):
            check_output(path, force)
    table = digits_with_noise()
    noise = int((table.groups == "noise").sum())
    if not args.json:
        write(f"{table.n - noise:,} digits and {noise} images of noise. MOSAIC is not told which is which.\n")
    with opened(args, lambda bar: table) as run:
        started = time.perf_counter()
        model = MOSAIC(K, verbose=run.bar.verbose).fit(table.X)
        seconds = time.perf_counter() - started
        facts = Facts(model, table)
        answer, rows = answer_of(run, facts, bound=True)
        run.bar.update("report")
        with writing(picks):
            write_rows(picks, rows, force=force)
        with writing(page):
            about = {"title": "Digits with noise among them", "command": "mosaic demo"}
            write_report(model, page, facts=facts, force=force, **about)
        run.outputs.update(picks=picks, report=page)
    found = int((table.groups[model.is_outlier_] == "noise").sum())
    told = DemoAnswer(**vars(answer), n_noise=noise, n_noise_found=found, folder=args.folder)
    return run.finish(told, lambda answer: _write(answer, table, seconds))


def _write(answer: DemoAnswer, table: Digits, seconds: float) -> None:
    """Write to a terminal: pictures of the first picks, the outliers, two explanations, and the certificate."""
    n, shown = answer.outliers.n, answer.picks[: max(1, min(DRAWN, width() // (2 * SIDE + 2)))]
    write(f"{len(answer.picks)} representatives in {seconds:.1f} s, the first {len(shown)}:\n")
    write(draw(table.X[[pick.row for pick in shown]].reshape(-1, SIDE, SIDE)))
    labels = (f"{table.groups[pick.row]}, for {pick.stands_for}" for pick in shown)
    write("  ".join(f"{label:<{2 * SIDE}}" for label in labels).rstrip() + "\n")
    found = answer.n_noise_found
    write(f"{n} outliers found: {found} of {answer.n_noise} images of noise, {n - found} digits.")
    for explained in [*answer.outliers.lowest[:1], answer.picks[0]]:
        write_wrapped(str(explained), "  ")
    write()
    write_wrapped(answer.certificate.sentence)
    write_end(answer.notes, {})
    write(f"\nLook at {answer.outputs['report']}; the picks are in {answer.outputs['picks']}.")
