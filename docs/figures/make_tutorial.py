"""The pictures of docs/tutorial.md: run the code of the page and keep what it draws. ``python docs/figures/make_tutorial.py``"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

FIGURES = Path(__file__).resolve().parent
sys.path.insert(0, str(FIGURES.parents[1] / "tests"))

import matplotlib  # noqa: E402

from doc_blocks import blocks_of, run_blocks  # noqa: E402

matplotlib.use("Agg")
page = FIGURES.parent / "tutorial.md"
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    run_blocks(blocks_of(page.read_text(encoding="utf-8")), Path(folder), page.name)
    for name in ("customers.png", "sphere.png"):
        shutil.copy(name, FIGURES / name)
