"""Copies: which of those that were planted ``mosaic dedup`` finds, and how many others, beside TF-IDF and exact tools.

Texts: some 2000 of five sentences of documentation, 400 of them repeated, changed in eight ways; the rules were chosen with
SciPy, scikit-learn and NumPy were looked at once. Tables: 3000 customers (chosen) or machines (looked at once), 200 repeated
with up to three of fifteen cells changed. Pictures: 300 faces (chosen) or photographs (looked at once), 120 repeated: turned,
mirrored, of another size, brighter, all compressed. Three draws; precision is of all rows that are named.
"""

from __future__ import annotations

from report import header, table, write  # sets the number of threads, so it comes before numpy

# isort: split
import contextlib
import inspect
import io
import json
import os
import re
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image
from sklearn.feature_extraction.text import TfidfVectorizer

from mosaic.cli import main as mosaic_command

DRAWS = 3
SCIPY = tuple(f"scipy.{part}" for part in ("stats", "signal", "optimize", "sparse"))
SKLEARN = tuple(
    f"sklearn.{part}" for part in ("linear_model", "cluster", "ensemble", "preprocessing", "metrics", "decomposition")
)
#: The half with which rules were chosen, and the one that was looked at once.
HALVES = {"texts": (SCIPY, (*SKLEARN, "numpy")), "tables": ("customers", "machines"), "pictures": ("faces", "photographs")}


def sentences(modules: tuple[str, ...]) -> list[str]:
    said = []
    for name in modules:
        module = import_module(name)
        found = [getattr(module, each) for each in module.__all__ if hasattr(module, each)]
        said += [inspect.getdoc(each) or "" for each in found]
        said += [
            inspect.getdoc(method) or ""
            for each in found
            if inspect.isclass(each)
            for method in vars(each).values()
            if callable(method)
        ]
    return list(
        dict.fromkeys(one for text in said for one in re.findall(r"[A-Z][a-z][^.:`>\[]{50,200}\.", re.sub(r"\s+", " ", text)))
    )


def without_letters(text: str, rng: np.random.Generator) -> str:
    """Every twelfth word has two letters in each other's place."""
    words = text.split()
    for place in rng.choice(len(words), len(words) // 12, replace=False):
        if len(words[place]) > 3:
            words[place] = words[place][0] + words[place][2] + words[place][1] + words[place][3:]
    return " ".join(words)


#: Ways in which a text of sentences is changed: a function of text, random numbers, and another sentence.
WAYS = {
    "a tenth of the words lost": lambda text, rng, more: " ".join(w for w in text.split() if rng.random() > 0.1),
    "a fifth of the words lost": lambda text, rng, more: " ".join(w for w in text.split() if rng.random() > 0.2),
    "capitals and signs": lambda text, rng, more: text.upper().replace(",", ";").replace(".", " -"),
    "a sentence more": lambda text, rng, more: f"{text} {more}",
    "another sentence": lambda text, rng, more: f"{'.'.join(text.split('.')[:4])}. {more}",
    "sentences in another order": lambda text, rng, more: ". ".join(rng.permutation(text.rstrip(".").split(". "))),
    "letters changed": lambda text, rng, more: without_letters(text, rng),
    "cut after three fifths": lambda text, rng, more: text[: 3 * len(text) // 5],
}


def dedup(path: Path, *options: str) -> set[int]:
    with contextlib.redirect_stdout(io.StringIO()) as said:
        mosaic_command(["dedup", str(path), *options, "--json"])
    return {row["mosaic_row"] for row in json.loads(said.getvalue())["copies"]}


def by_cosine(texts: list[str], least: float) -> set[int]:
    X = TfidfVectorizer().fit_transform(texts)
    return {row for row in range(1, len(texts)) if (X[:row] @ X[row].T).max() >= least}


def texts(modules: tuple[str, ...], seed: int) -> tuple[list[str], dict[str, set[int]]]:
    rng = np.random.default_rng(seed)
    drawn = rng.permutation(sentences(modules))
    n = min(2000, len(drawn) // 5 - 100)
    originals = (
        [" ".join(drawn[rng.choice(len(drawn), 5, replace=False)]) for _ in range(2000)]
        if n < 1000
        else [" ".join(drawn[5 * i : 5 * i + 5]) for i in range(n)]
    )
    repeated = rng.choice(len(originals), 400, replace=False)
    copies, planted = [], {}
    for place, row in enumerate(repeated.tolist()):
        way = list(WAYS)[place % len(WAYS)]
        copies.append(WAYS[way](originals[row], rng, str(drawn[-1 - place])))
        planted.setdefault(way, set()).add(len(originals) + place)
    return originals + copies, planted


def customers(rng: np.random.Generator, n: int) -> pd.DataFrame:
    place = rng.integers(0, 6, n)
    return pd.DataFrame(
        {
            "customer_id": [f"K{i:05d}" for i in range(n)],
            "first": rng.choice(
                [
                    "Anna",
                    "Ben",
                    "Carla",
                    "David",
                    "Emma",
                    "Felix",
                    "Gina",
                    "Hugo",
                    "Ida",
                    "Jonas",
                    "Klara",
                    "Leo",
                    "Mia",
                    "Noah",
                    "Olga",
                    "Paul",
                ],
                n,
            ),
            "last": rng.choice(
                [
                    "Meyer",
                    "Rossi",
                    "Dubois",
                    "Nilsen",
                    "Novak",
                    "Garcia",
                    "Silva",
                    "Kim",
                    "Brown",
                    "Fischer",
                    "Weber",
                    "Lopez",
                    "Martin",
                    "Berg",
                ],
                n,
            ),
            "street": [f"{rng.choice(['Main', 'Oak', 'High', 'Mill'])} St {rng.integers(1, 200)}" for _ in range(n)],
            "city": np.array(["Berlin", "Paris", "Rome", "Oslo", "Vienna", "Porto"])[place],
            "country": np.array(["DE", "FR", "IT", "NO", "AT", "PT"])[place],
            "zip": [f"{10_000 + 1000 * p + rng.integers(0, 300)}" for p in place],
            "phone": [f"+49 {rng.integers(10**8, 10**9)}" for _ in range(n)],
            "email": [f"u{rng.integers(0, 10**6)}@x.org" for _ in range(n)],
            "born": (np.datetime64("1950-01-01") + rng.integers(0, 20_000, n)).astype(str),
            "segment": rng.choice(["basic", "plus", "premium"], n),
            "newsletter": rng.random(n) < 0.4,
            "orders": rng.poisson(5, n),
            "spent": np.exp(rng.normal(5, 1, n)).round(2),
            "joined": (np.datetime64("2019-01-01") + rng.integers(0, 1500, n)).astype(str),
            "channel": rng.choice(["web", "shop"], n),
        }
    )


def machines(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Many columns of few values, and of a machine several rows: fewer cells tell rows apart."""
    machine = rng.integers(0, 40, n)
    load = rng.uniform(size=n)
    return pd.DataFrame(
        {
            "record": np.arange(n) + 1,
            "machine": [f"M{i:02d}" for i in machine],
            "hall": np.array(list("ABCD"))[machine % 4],
            "maker": np.array(["Nord", "Sued", "West"])[machine % 3],
            "built": (2005 + machine % 15).astype(int),
            "shift": rng.choice(["early", "late", "night"], n),
            "day": (np.datetime64("2026-01-01") + rng.integers(0, 90, n)).astype(str),
            "speed": (600 + 900 * load + rng.normal(0, 15, n)).round(),
            "current": (5 + 20 * load**2 + rng.normal(0, 0.5, n)).round(1),
            "heat": (30 + 40 * load + rng.normal(0, 1, n)).round(1),
            "pressure": rng.normal(6, 0.4, n).round(1),
            "operator": rng.choice([f"OP{i}" for i in range(25)], n),
            "part": rng.choice(["bolt", "ring", "plate", "shaft", "gear"], n, p=[0.4, 0.3, 0.15, 0.1, 0.05]),
            "pieces": rng.poisson(300, n),
            "rejects": rng.poisson(2, n),
            "alarm": rng.random(n) < 0.05,
        }
    )


TABLES = {"customers": customers, "machines": machines}


def tables(name: str, seed: int) -> tuple[pd.DataFrame, dict[str, set[int]]]:
    rng = np.random.default_rng(seed)
    frame = TABLES[name](rng, 3000)
    key, *others = frame.columns
    repeated = rng.choice(len(frame), 200, replace=False)
    copies = frame.iloc[repeated].copy()
    copies[key] = [f"K9{i:04d}" for i in range(200)] if frame[key].dtype == object else np.arange(200) + 9001
    planted: dict[str, set[int]] = {}
    for place in range(200):
        for column in rng.choice(others, place % 4, replace=False):
            copies.iloc[place, copies.columns.get_loc(column)] = frame[column].iloc[rng.integers(len(frame))]
        planted.setdefault(f"{place % 4} of 15 cells", set()).add(3000 + place)
    return pd.concat([frame, copies], ignore_index=True), planted


TURNS = {
    "turned by a quarter": lambda picture: picture.transpose(Image.Transpose.ROTATE_90),
    "turned by a half": lambda picture: picture.transpose(Image.Transpose.ROTATE_180),
    "mirrored": lambda picture: picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
    "half the size": lambda picture: picture.resize((picture.width // 2, picture.height // 2)),
    "twice the size": lambda picture: picture.resize((2 * picture.width, 2 * picture.height)),
    "brighter": lambda picture: picture.point(lambda value: min(255, int(1.2 * value + 10))),
}


def pictures(name: str, seed: int, folder: Path) -> dict[str, set[str]]:
    rng = np.random.default_rng(seed)
    file = {"faces": "olivetti_64x64.npz", "photographs": "bsds500_trainval_64x64.npz"}[name]
    with np.load(Path(os.environ["MOSAIC_DATA"]) / file) as stored:
        X = stored[next(iter(stored))]
    X = X.reshape(len(X), 64, 64, -1)
    X = X / X.max() * 255
    chosen = rng.choice(len(X), 300, replace=False)
    found: dict[str, set[str]] = {}
    for place, row in enumerate(chosen.tolist()):
        picture = Image.fromarray(X[row].squeeze().astype(np.uint8))
        picture.save(folder / f"a{place:03d}.png")
        if place < 120:
            way = list(TURNS)[place % len(TURNS)]
            TURNS[way](picture).save(folder / f"b{place:03d}.jpg", quality=80)
            found.setdefault(way, set()).add(f"b{place:03d}.jpg")
    return found


def figures(what: str, half: Any) -> list[list[str]]:
    recalls: dict[str, list[float]] = {}
    for seed in range(DRAWS):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            if what == "pictures":
                planted: dict[str, Any] = pictures(half, seed, folder)
                with contextlib.redirect_stdout(io.StringIO()) as said:
                    mosaic_command(["dedup", str(folder), "--json"])
                answers = {"mosaic dedup": {row["file"] for row in json.loads(said.getvalue())["copies"]}}
            elif what == "tables":
                frame, planted = tables(half, seed)
                frame.to_csv(folder / "t.csv", index=False)
                exact = frame.drop(columns=frame.columns[0]).duplicated()
                answers = {"mosaic dedup": dedup(folder / "t.csv"), "pandas duplicated, without ids": set(np.flatnonzero(exact))}
            else:
                rows, planted = texts(half, seed)
                pd.DataFrame({"text": rows}).to_csv(folder / "t.csv", index=False)
                answers = {"mosaic dedup": dedup(folder / "t.csv")}
                answers |= {f"TF-IDF, cosine {least}": by_cosine(rows, least) for least in (0.9, 0.8, 0.6)}
        every = set().union(*planted.values())
        for tool, found in answers.items():
            line = [len(found & every) / max(len(found), 1), len(found & every) / len(every)]
            line += [len(found & rows) / len(rows) for rows in planted.values()]
            recalls.setdefault(tool, []).append(line)
    rows = [[tool, *(f"{value:.3f}" for value in np.mean(lines, axis=0))] for tool, lines in recalls.items()]
    return [["", "precision", "recall", *planted], *rows]


def main(asked: list[str]) -> None:
    text = [header("Copies", ("scikit-learn", "pandas", "pillow")), (__doc__ or "").partition("\n\n")[2]]
    for what, halves in HALVES.items():
        for place, half in enumerate(halves):
            if asked and f"{what}{place}" not in asked:
                continue
            if what == "pictures" and "MOSAIC_DATA" not in os.environ:
                print("pictures: left out, since MOSAIC_DATA does not say where they are")
                continue
            head, *rows = figures(what, half)
            told = table(head, rows)
            name = half if isinstance(half, str) else ", ".join(half)
            print(what, name, told, sep="\n", flush=True)
            text.append(f"## {what}: {name}\n\n{told}")
    if not asked:
        write("copies.md", "\n".join(text))


if __name__ == "__main__":
    main(sys.argv[1:])
