"""demo: select from handwritten digits with images of noise among them, without a file of your own."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike
from sklearn.datasets import load_digits

from mosaic import datasets
from mosaic.cli.commands import answer_of, show_selected
from mosaic.cli.run import opened
from mosaic.cli.terminal import write
from mosaic.estimators import MOSAIC
from mosaic.facts import Facts
from mosaic.rows import check_output
from mosaic.rows.images import thumbnails
from mosaic.rows.rows import InMemory, Rows

#: Number of representatives, and of digits for one image of noise.
K, PER_NOISE = 20, 20


class Digits(Rows):
    """Pictures of 8 × 8 pixels in memory, as if they were a file."""

    def pictures(self, rows: ArrayLike, side: int = 64) -> list[bytes] | None:
        """Dark digits on a light background, as PNG."""
        paper = 1.0 - self.X.reshape(-1, 8, 8)[np.asarray(rows, np.intp)] / 16.0
        return thumbnails(list(paper), side)


def digits_with_noise() -> Digits:
    """The handwritten digits of scikit-learn, and one image of noise for every twenty of them."""
    digits = load_digits()
    n = len(digits.data)
    noise = datasets.noise_images(n // PER_NOISE, digits.data)
    what = [str(label) for label in digits.target] + ["noise"] * len(noise)
    names = [f"digit-{i:04d}" for i in range(n)] + [f"noise-{i:02d}" for i in range(len(noise))]
    X, records = np.vstack([digits.data, noise]), InMemory(pa.table({"image": names, "digit": what}))
    found = Digits(Path("digits"), "handwritten digits and noise", X, records, id_name="image", group_name="digit")
    found.groups = np.array(what)
    return found


def demo(args: Namespace) -> int:
    """``mosaic demo``."""
    folder = Path(args.folder)
    folder.mkdir(parents=True, exist_ok=True)
    args.force |= args.folder == "mosaic-demo"  # files of an earlier demo are replaced
    args.title = "Digits with noise among them"
    picks, page = str(folder / "picks.csv"), str(folder / "report.html")
    for path in (picks, page):
        check_output(path, args.force)
    with opened(args, lambda bar: digits_with_noise()) as run:
        model = MOSAIC(K).fit(run.table.X)
        facts = Facts(model, run.table)
        answer, rows = answer_of(run, facts, bound=True)
        run.write_rows("picks", picks, rows)
        run.write_page(facts, page)
    is_noise = run.table.groups == "noise"
    noise, found, n = int(is_noise.sum()), int(is_noise[model.is_outlier_].sum()), int(model.is_outlier_.sum())

    def show() -> None:
        write(f"{len(is_noise) - noise:,} digits and {noise} images of noise. MOSAIC is not told which is which.\n")
        if answer:
            show_selected(run, answer)
        write(f"\n{n} outliers found: {found} of {noise} images of noise, {n - found} digits. Look at {page}.")

    return run.finish(show, **answer, n_noise=noise, n_noise_found=found, folder=args.folder)
