"""A folder of pictures with bad files: 10 cannot be read, 10 are noise, 380 are good.

Data: Frey Face, or scikit-learn's digits, written as PNG files; cut-off, empty and mislabelled files among them; three draws.
Instead: isolation forest on the pixels of the files that Pillow can read, each opened in a try block; its own threshold.
"""

import tempfile
from pathlib import Path

import numpy as np
from _jobs import judge_each, mean_of_draws, mosaic_json, print_table, real_data
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.ensemble import IsolationForest


def write_folder(folder, seed):
    rng = np.random.default_rng(seed)
    frey = real_data("frey_faces.npz")
    good = np.load(frey)["X"] if frey else (load_digits().images * 15).astype(np.uint8)
    good = good[rng.choice(len(good), 390, replace=False)]
    good[380:] = rng.integers(good.min(), int(good.max()) + 1, good[380:].shape)
    for number, pixels in enumerate(good):
        name = "noise" if number >= 380 else "good"
        Image.fromarray(pixels).resize((32, 32)).save(folder / f"{name}{number:03d}.png")
    whole = (folder / "good000.png").read_bytes()
    for number in range(10):
        content = [whole[: len(whole) // 2], b"", b"<html>404 Not Found</html>"][number % 3]
        (folder / f"bad{number:03d}.png").write_bytes(content)


def by_mosaic(folder):
    told = mosaic_json("outliers", folder)
    return set(told["file"]["unreadable"]), {row["file"] for row in told["rows"]}


def by_forest(folder, seed):
    pixels, unreadable = {}, set()
    for path in sorted(folder.iterdir()):
        try:
            with Image.open(path) as picture:
                pixels[path.name] = np.asarray(picture.convert("L").resize((32, 32))).ravel()
        except OSError:
            unreadable.add(path.name)
    flags = IsolationForest(n_estimators=300, random_state=seed).fit_predict(list(pixels.values()))
    return unreadable, {name for name, flag in zip(pixels, flags, strict=True) if flag < 0}


@mean_of_draws
def figures(seed):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_folder(folder, seed)
        ways = {"MOSAIC": by_mosaic(folder), "isolation forest": by_forest(folder, seed)}

    def judge(found):
        unreadable, odd = found
        return {
            "unreadable found of 10": sum(file.startswith("bad") for file in unreadable),
            "noise found of 10": sum(file.startswith("noise") for file in odd),
            "good ones flagged": sum(file.startswith("good") for file in unreadable | odd),
        }

    return judge_each(ways, judge)


def main():
    print_table(__doc__, figures())


if __name__ == "__main__":
    main()
