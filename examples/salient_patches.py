"""Salient patches: what a photograph is made of, and what stands out in it.

What you learn here:

- patches of a photograph are rows; the representatives show what most of it is made of;
- patches that few others look like are often the object, as the paper says: outliers can be what you look for;
- scores (``effective_count_``) say more than decisions, and ``contamination`` says how many rows to set aside.

The photograph is one of MSRA-B, with a mask drawn by people, where ``msra_b_100_originals.zip`` is in the folder of real data;
otherwise it is scikit-learn's flower, whose mask is "clearly more red than green". Both are easy cases. Over twenty photographs
the mean AUC of MOSAIC's detector was 0.80 (``docs/results.md``): large objects, and those like the rest, are not found.
Pillow is needed.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
from _shared import out_folder, real_data, write_answer
from PIL import Image
from sklearn.datasets import load_sample_image
from sklearn.metrics import roc_auc_score

from mosaic import MOSAIC

PHOTOGRAPH, SIDE, SHADES = "0_11_11298", 8, "@%#*+=-:. "
#: Share of the photograph that the object may take.
SHARE = 0.25

folder = out_folder("salient_patches", __doc__)


def cut(pixels: np.ndarray) -> np.ndarray:
    """Rows of SIDE × SIDE patches, which do not overlap."""
    height, width, colours = pixels.shape
    blocks = pixels.reshape(height // SIDE, SIDE, width // SIDE, SIDE, colours)
    return blocks.swapaxes(1, 2).reshape(-1, SIDE * SIDE * colours)


# 1. A photograph, and which of its pixels belong to the object; the latter is for checking only.
photographs = real_data("msra_b_100_originals.zip")
if photographs is not None:
    print(f"Data: photograph {PHOTOGRAPH} of MSRA-B.")
    with zipfile.ZipFile(photographs) as archive:
        files = {Path(name).name: name for name in archive.namelist()}
        with archive.open(files[f"{PHOTOGRAPH}.jpg"]) as photo, archive.open(files[f"{PHOTOGRAPH}.png"]) as drawn:
            photograph = np.asarray(Image.open(photo).convert("RGB"), float)
            mask = np.asarray(Image.open(drawn).convert("L")) > 127
else:
    print("Data: scikit-learn's flower, in place of MSRA-B.")
    flower = load_sample_image("flower.jpg").astype(float)[:416, :640]
    photograph = flower.reshape(208, 2, 320, 2, 3).mean(axis=(1, 3))
    mask = photograph[:, :, 0] - photograph[:, :, 1] > 40
rows, columns = photograph.shape[0] // SIDE, photograph.shape[1] // SIDE
photograph, mask = photograph[: rows * SIDE, : columns * SIDE], mask[: rows * SIDE, : columns * SIDE]
X = cut(photograph) / 255
is_object = cut(mask[:, :, None].astype(float)).mean(axis=1) > 0.5
print(f"{len(X)} patches of {SIDE}×{SIDE} pixels, {is_object.sum()} of them on the object.\n")

# 2. Twenty patches that stand for the rest, when the quarter that stands out most is set aside.
model = MOSAIC(20, contamination=SHARE).fit(X)
picks, found = model.representative_indices_, model.is_outlier_
print(f"Of 20 representatives, {is_object[picks].sum()} are on the object.")
print(f"{found.sum()} patches are set aside; {is_object[found].sum()} of them are on the object, of {is_object.sum()}.")
print(f"  {model.explain(int(model.effective_count_.argmin()))}")

# 3. Scores instead of decisions: the fewer patches look like a patch, the more it stands out.
salience = -np.log(model.effective_count_)
print(f"AUC of the scores against the mask: {roc_auc_score(is_object, salience):.3f}.\n")
levels = np.argsort(np.argsort(salience)) * len(SHADES) // len(salience)
for line in levels.reshape(rows, columns):
    print("".join(SHADES[len(SHADES) - 1 - level] for level in line))

place = pd.DataFrame({"line": np.arange(len(X)) // columns, "column": np.arange(len(X)) % columns})
images = X.reshape(-1, SIDE, SIDE, 3)
write_answer(model, folder, "What a photograph is made of", images=images, columns=place)
