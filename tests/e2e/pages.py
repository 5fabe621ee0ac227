"""Invented facts whose every number is known, and the page of some facts in a browser, as a hand uses it."""

import base64
import csv
import io
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

#: Strings that would do harm if they were more than text; all must be readable on the page.
HOSTILE = {
    "script": "</script><script>window.pwned=1</script>",
    "handler": '"><img src=x onerror="window.pwned=2">',
    "template": "{{7*7}} ${7*7} <%= 7*7 %>",
    "direction": "abc\u202efdp.exe",
    "nothing": "null",
    "long": "long " * 1000,
    "formula": '=HYPERLINK("http://example.invalid","x")',
    "comment": "<!--<script>",
    "lines": 'two\nlines\u2028and, "more"',
}


def packed(values: Any, kind: str) -> str:
    return base64.b64encode(np.asarray(values).astype(f"<{kind}").tobytes()).decode()


def unpacked(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), f"<{kind}")


def coded(texts: list[str]) -> dict[str, Any]:
    """A column of the map: its distinct texts and the place of each row's text among them."""
    distinct = list(dict.fromkeys(texts))
    return {
        "texts": distinct,
        "missing": [distinct.index(text) for text in ("", "NA", "n/a", "-") if text in distinct],
        "codes": packed([distinct.index(text) for text in texts], "u2"),
        "bytes": 2,
    }


def without_representatives(facts: dict[str, Any]) -> dict[str, Any]:
    """The same of a detector: no representatives, and outliers are reported."""
    n = facts["map"]["n"]
    facts["map"] |= {"history": "", "history_end": packed(np.zeros(n), "u4")}
    facts["settings"] |= {"sentences": [], "parameters": [], "command": None}
    facts["proof"] = "Not computed."
    return facts | {
        "title": "20 outliers among 600 rows", "k": 0, "outliers": "report", "ranking": [], "coverage": [], "bound": None,
        "suggested": None,
        "moves": [],
    }  # fmt: skip


def with_two_layouts(facts: dict[str, Any]) -> dict[str, Any]:
    """The same, where the map has the points by their neighbours and, mirrored, along principal axes."""
    shown = facts["map"]
    other = {name: shown[name] for name in ("range", "n_outside", "y")}
    other |= {"method": "principal axes of the features", "axes": ["principal axis 1", "principal axis 2"]}
    facts["map"] |= {
        "method": "neighbours", "axes": [], "other": other | {"x": packed(65535 - unpacked(shown["x"], "u2").astype(int), "u2")},
    }  # fmt: skip
    return facts


def with_columns(facts: dict[str, Any], columns: dict[str, list[str]]) -> dict[str, Any]:
    """The same with other columns, by name the text of each row; all of them are compared."""
    places = list(range(len(columns)))
    facts |= {"columns": list(columns), "n_compared": len(columns), "places": places}
    facts["map_columns"] = [coded(texts) for texts in columns.values()]
    for item in [*facts["ranking"], *facts["lowest"]]:
        item["cells"] = [texts[item["row"]] for texts in columns.values()]
    return facts


def with_causes(facts: dict[str, Any]) -> dict[str, Any]:
    """The same, where rows are odd in their height, in the spelling of their kind, or in both columns of numbers together."""
    causes = (("height", [1]), ("spelling of kind", [2]), ("width with height", [0, 1]))
    for place, item in enumerate(facts["lowest"]):
        item["cause"], item["faults"] = causes[(place > 0) + (place > 9)]
    return facts


class World(NamedTuple):
    """Invented data: the facts about it, distances of its n points to the ranked, and the bins of their counts."""

    facts: dict[str, Any]
    distance: np.ndarray
    bins: np.ndarray

    def struck(self, k: int, threshold: int) -> list[bool]:
        """Which of the first k are outliers at this threshold."""
        return [pick["bin"] < threshold and not pick["safe"] for pick in self.facts["ranking"][:k]]

    def stands_for(self, k: int, threshold: int = 8) -> list[int]:
        """Rows whose nearest of those that are left is this one, for each of the first k; outliers are with nobody."""
        distance = np.where(self.struck(k, threshold), np.inf, self.distance[:, :k])
        safe = unpacked(self.facts["map"]["safe"], "u1") if self.facts["map"]["safe"] else np.zeros(len(self.bins))
        belongs = (self.bins >= threshold) | (safe == 1)
        rows = np.bincount(distance.argmin(axis=1)[belongs], minlength=k)
        return [int(number) for number in rows * ~np.array(self.struck(k, threshold))]


def invented(**size: int) -> dict[str, Any]:
    """The facts of an invented world."""
    return world(**size).facts


def world(n: int = 600, k: int = 12, max_k: int = 30, seed: int = 0, n_bins: int = 40) -> World:
    """N points in the plane: three crowds, and one in thirty on its own."""
    rng = np.random.default_rng(seed)
    n_odd = n // 30
    centres = np.array([[0.0, 0.0], [4.0, 1.0], [1.5, 4.0]])
    crowd = rng.integers(0, 3, n)
    points = centres[crowd] + rng.normal(size=(n, 2)) * np.array([0.9, 0.6])
    odd = np.sort(rng.choice(n, n_odd, replace=False))
    points[odd] = rng.uniform([-4, -3], [8, 7], (n_odd, 2))
    counts = np.exp(rng.normal(3.2, 0.5, n))
    counts[odd] = rng.uniform(1.0, 1.9, n_odd)

    log_edges = np.log(2.0) + np.arange(-8, n_bins - 7) * np.log(counts.max() / 2.0) / (n_bins - 8.001)
    edges, threshold = np.exp(log_edges), 8
    edges[0] = min(edges[0], 1.0)
    bins = np.clip(np.searchsorted(edges, counts, "right") - 1, 0, n_bins - 1)
    belonging = np.flatnonzero(bins >= threshold)

    ranked = _farthest(points, belonging, max_k)
    # One of the picks has so low a count that it is the first to go when the threshold rises.
    bins[ranked[2]], counts[ranked[2]] = threshold, float(edges[threshold] * 1.001)
    distance = np.linalg.norm(points[:, None] - points[ranked][None], axis=2)
    distance[ranked, np.arange(max_k)] = -1.0
    moves, history, end, nearest = _changes(distance)
    is_outlier = bins < threshold
    label = distance[:, :k].argmin(axis=1)
    low = np.argsort(counts, kind="stable")[:60]
    names = [f"item-{i:04d}" for i in range(n)]

    def entry(row: int, reason: str) -> dict[str, Any]:
        cells = [f"{points[row, 0]:.2f}", f"{points[row, 1]:.2f}", f"kind {crowd[row]}"]
        return {
            "row": int(row), "name": names[row], "full": None, "reason": reason, "count": round(float(counts[row]), 4),
            "bin": int(bins[row]), "safe": False, "copies": 1, "group": int(crowd[row]), "picture": None,
            "cells": cells, "faults": [], "cause": "",
        }  # fmt: skip

    ranking = []
    for j, row in enumerate(ranked):
        members = [int(i) for i in nearest[j] if i != row][:6]
        ranking.append(
            entry(row, f"It adds most to the {j} before it.")
            | {
                "stands_for": int((label[~is_outlier] == j).sum()) if j < k else 0,
                "members": [{"row": i, "name": names[i], "picture": None} for i in members],
            }
        )
    table = np.zeros((3, n_bins), int)
    np.add.at(table, (crowd, bins), 1)
    shares = 1 - 0.75 * np.exp(-np.arange(max_k) / 6)
    x0, y0 = points.min(axis=0)
    x1, y1 = points.max(axis=0)
    grid = np.round(65535 * (points - [x0, y0]) / [x1 - x0, y1 - y0])
    facts = {
        "title": f"{k} representatives of {n:,} rows", "file": {"name": "items.csv", "kind": "CSV file"},
        "n": n, "n_features": 2, "k": k, "n_outliers": int(is_outlier.sum()), "outliers": "reject",
        "scaled": False, "is_estimate": False, "has_lowest": True,
        "ranking": ranking, "columns": ["width", "height", "kind"], "n_compared": 3, "places": [0, 1, 2],
        "compared_with": 128, "static_cells": True, "static_rows": 300, "left_out": "",
        "map_columns": [
            coded([f"{x:.2f}" for x in points[:, 0]]),
            coded([f"{y:.2f}" for y in points[:, 1]]),
            coded([f"kind {c}" for c in crowd]),
        ],
        "coverage": shares.round(5).tolist(), "bound": (0.3 + 0.7 * shares).tolist(), "suggested": 7, "moves": moves,
        "bins": {
            "edges": edges.tolist(), "rows": np.bincount(bins, minlength=n_bins).tolist(), "safe": [0] * n_bins,
            "threshold": threshold, "exact": n_bins, "grouped": 0, "must": 0,
        },
        "lowest": [entry(row, f"width {points[row, 0]:.2f}, usual -1 to 5.") | {"members": []} for row in low],
        "map": {
            "method": "features", "axes": ["width", "height"], "other": None, "n": n, "of": n, "n_outside": 0,
            "range": [float(x0), float(x1), float(y0), float(y1)],
            "x": packed(grid[:, 0], "u2"), "y": packed(grid[:, 1], "u2"), "row": packed(np.arange(n), "u4"),
            "bin": packed(bins, "u1"), "safe": None, "copies": None, "group": packed(crowd, "i2"), "names": names,
            "history": packed(history, "u2"), "history_end": packed(end, "u4"), "low_complete": n_bins,
        },
        "groups": {
            "column": "kind", "labels": ["kind 0", "kind 1", "kind 2"],
            "rows": table.sum(axis=1).tolist(), "low": table.tolist(), "is_estimate": False,
        },
        "proof": f"Provably within 2.8 % of the best {k}.",
        "settings": {
            "sentences": ["The bandwidth was chosen for 12 representatives."],
            "parameters": [["n_representatives", str(k)], ["kernel", '"rbf"']],
            "versions": [["mosaic", "0.0"], ["numpy", "2.0"]],
            "seed": "0",
            "command": f"mosaic select items.csv -k {k} --report report.html",
            "notes": ["Column 'id' names the rows."],
        },
    }  # fmt: skip
    return World(facts, distance, bins)


def _farthest(points: np.ndarray, allowed: np.ndarray, number: int) -> np.ndarray:
    middle = np.linalg.norm(points[allowed] - points[allowed].mean(axis=0), axis=1)
    chosen = [int(allowed[middle.argmin()])]
    distance = np.full(len(points), np.inf)
    for _ in range(number - 1):
        distance = np.minimum(distance, np.linalg.norm(points - points[chosen[-1]], axis=1))
        chosen.append(int(allowed[distance[allowed].argmax()]))
    return np.array(chosen)


def _changes(distance: np.ndarray) -> tuple[list[list[list[int]]], list[int], list[int], list[np.ndarray]]:
    """Who takes over whom at every rank, by walking along it point by point."""
    max_k = distance.shape[1]
    moves: list[dict[int, int]] = [{} for _ in range(max_k)]
    history, end = [], []
    for row in distance:
        holder, best = -1, np.inf
        for j, value in enumerate(row):
            if value < best:
                moves[j][holder] = moves[j].get(holder, 0) + 1
                holder, best = j, value
                history.append(j)
        end.append(len(history))
    nearest = [np.argsort(distance[:, j], kind="stable")[:7] for j in range(max_k)]
    return [[list(move) for move in taken.items()] for taken in moves], history, end, nearest


def doubled(facts: dict[str, Any]) -> dict[str, Any]:
    """The same, where every row is there twice: the map has each once."""
    facts |= {"n": 2 * facts["n"], "n_outliers": 2 * facts["n_outliers"]}
    facts["moves"] = [[[before, 2 * rows] for before, rows in taken] for taken in facts["moves"]]
    facts["bins"]["rows"] = [2 * rows for rows in facts["bins"]["rows"]]
    facts["map"]["copies"] = packed(np.full(facts["map"]["n"], 2), "u4")
    for item in [*facts["ranking"], *facts["lowest"]]:
        item["copies"] = 2
    for pick in facts["ranking"]:
        pick["stands_for"] *= 2
    return facts


def protected(invention: World, grouped: list[int], must: list[int]) -> dict[str, Any]:
    """The facts, where these rows are never outliers: they are a group, or had to be included."""
    facts, bins = invention.facts, invention.bins
    safe = np.isin(np.arange(len(bins)), [*grouped, *must])
    facts["map"]["safe"] = packed(safe, "u1")
    facts["bins"]["safe"] = np.bincount(bins[safe], minlength=len(facts["bins"]["rows"])).tolist()
    facts["bins"] |= {"grouped": len(grouped), "must": len(must)}
    for group, low in enumerate(facts["groups"]["low"]):
        for row in np.flatnonzero(safe & (unpacked(facts["map"]["group"], "i2") == group)):
            low[bins[row]] -= 1
    facts["n_outliers"] -= int(safe[bins < facts["bins"]["threshold"]].sum())
    for item in [*facts["ranking"], *facts["lowest"]]:
        item["safe"] = bool(safe[item["row"]])
    rows = invention.stands_for(facts["k"], facts["bins"]["threshold"])
    for pick, number in zip(facts["ranking"], rows, strict=False):
        pick["stands_for"] = number
    return facts


def thinned(facts: dict[str, Any], kept: np.ndarray, low_complete: int) -> dict[str, Any]:
    """The same, with only these rows on the map."""
    shown = facts["map"]
    kinds = {"x": "u2", "y": "u2", "row": "u4", "bin": "u1", "group": "i2"}
    for name, kind in kinds.items():
        shown[name] = packed(unpacked(shown[name], kind)[kept], kind)
    end = unpacked(shown["history_end"], "u4")
    parts = np.split(unpacked(shown["history"], "u2"), end[:-1])
    shown["history"] = packed(np.concatenate([parts[i] for i in kept]), "u2")
    shown["history_end"] = packed(np.cumsum([len(parts[i]) for i in kept]), "u4")
    shown["names"] = [shown["names"][i] for i in kept]
    for column in facts["map_columns"]:
        column["codes"] = packed(unpacked(column["codes"], "u2")[kept], "u2")
    shown |= {"n": len(kept), "low_complete": low_complete}
    return facts


def with_pictures(facts: dict[str, Any]) -> dict[str, Any]:
    """The same, where each listed row is a small picture."""
    from PIL import Image

    def painted(row: int) -> str:
        rng = np.random.default_rng(row)
        y, x = np.mgrid[:32, :32]
        waves = np.sin(x * rng.uniform(0.1, 0.5) + row) + np.cos(y * rng.uniform(0.1, 0.5))
        out = io.BytesIO()
        Image.fromarray(np.uint8(127 + 60 * waves)).save(out, "PNG")
        return f"data:image/png;base64,{base64.b64encode(out.getvalue()).decode()}"

    for item in [*facts["ranking"], *facts["lowest"]]:
        item["picture"] = painted(item["row"])
        for member in item.get("members", []):
            member["picture"] = painted(member["row"])
    return facts


def hostile(facts: dict[str, Any]) -> dict[str, Any]:
    """The same, where every text of the data is hostile."""
    evil = list(HOSTILE.values())
    for i, item in enumerate(facts["lowest"]):
        item["picture"] = evil[i % len(evil)]
    for i, item in enumerate([*facts["ranking"], *facts["lowest"]]):
        item["name"] = evil[i % len(evil)]
        item["reason"] = evil[(i + 1) % len(evil)]
        item["cause"], item["faults"] = evil[i % len(evil)][:80], [i % 3]
        item["cells"] = [evil[(i + j) % len(evil)] for j in range(3)]
        for member in item.get("members", []):
            member["name"] = evil[i % len(evil)]
    facts["map"]["names"] = [evil[i % len(evil)] for i in range(facts["map"]["n"])]
    facts["map"]["axes"] = [evil[0], evil[5]]
    facts["columns"] = evil[:3]
    facts["map_columns"] = [coded([evil[(i + j) % len(evil)] for i in range(facts["map"]["n"])]) for j in range(3)]
    facts["groups"]["labels"] = evil[3:6]
    facts["groups"]["column"] = evil[1]
    facts["file"] = {"name": evil[0] + evil[5], "kind": evil[1]}
    facts["title"] = evil[0]
    facts["settings"]["command"] = evil[1]
    facts["settings"]["notes"] = evil
    facts["settings"]["parameters"] = [[text, text] for text in evil]
    facts["proof"] = evil[2]
    return facts


class Report:
    """A page in the browser. What is done here is painted when it returns; messages, errors and other requests are kept."""

    def __init__(
        self, browser: Any, facts: dict[str, Any] | str, file: Path, width: int = 1280, height: int = 1400, **options: Any
    ):
        from mosaic.show.page import page_of

        file.write_text(facts if isinstance(facts, str) else page_of(facts), encoding="utf-8")
        self.facts: Any = facts
        self.url, self.heard = file.as_uri(), list[str]()
        self.context = browser.new_context(viewport={"width": width, "height": height}, **options)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.heard.append(f"console {message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.heard.append(f"error: {error}"))
        self.page.on("request", lambda request: self._note(request.url))
        self.runs = options.get("java_script_enabled", True)
        self.open()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.page, name)

    def _note(self, url: str) -> None:
        if url != self.url and not url.startswith(("data:", "blob:")):
            self.heard.append(f"request: {url}")

    def open(self) -> None:
        """As if for the first time, but for what the browser keeps."""
        self.page.goto("about:blank")
        self.page.goto(self.url)
        if self.runs:
            self.page.locator("html.js").wait_for(state="attached")
            self.settle()

    def settle(self) -> None:
        """Wait until all requested parts are painted."""
        self.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def until(self, expression: str) -> None:
        """Wait for what comes a little later, such as the end of a scroll. The page's policy forbids to wait by ``eval``."""
        for _ in range(300):
            if self.page.evaluate(expression):
                return
            self.page.wait_for_timeout(20)
        raise AssertionError(f"never came true: {expression}")

    def set(self, k: int | None = None, t: int | None = None) -> None:
        """Move the sliders of the number and of the threshold as a hand does."""
        for control, value in (("#k-range", k), ("#t-range", t)):
            if value is not None:
                self.page.locator(control).fill(str(value))
        self.settle()

    def click(self, selector: str, nth: int = 0) -> None:
        self.page.locator(selector).nth(nth).click()
        self.settle()

    def press(self, *keys: str, at: str | None = None) -> None:
        if at is not None:
            self.page.locator(at).focus()
        for key in keys:
            self.page.keyboard.press(key)
        self.settle()

    def point(self, row: int | None = None) -> None:
        """Move the pointer to a row on the map, or away from all."""
        self.show("#map")
        self.page.mouse.move(*(5, 5) if row is None else self.place_of(row))
        self.settle()

    def emulate(self, media: str) -> None:
        self.page.emulate_media(media=media)
        self.settle()

    def show(self, selector: str) -> None:
        self.page.locator(selector).scroll_into_view_if_needed()
        self.settle()

    def text(self, selector: str = "h1") -> str:
        """Text as it reads, with plain spaces."""
        found = self.page.locator(selector)
        is_drawn = found.evaluate("element => element instanceof SVGElement")
        return " ".join((found.text_content() if is_drawn else found.inner_text()).split())

    def texts(self, selector: str) -> list[str]:
        return list(self.page.locator(selector).all_inner_texts())

    def count(self, selector: str) -> int:
        return int(self.page.locator(selector).count())

    def hides(self, selector: str) -> bool:
        return bool(self.page.locator(selector).first.is_hidden())

    def attribute(self, selector: str, name: str, nth: int = 0) -> str:
        return str(self.page.locator(selector).nth(nth).get_attribute(name))

    def box(self, selector: str) -> dict[str, float]:
        return dict(self.page.locator(selector).first.bounding_box())

    def value(self, control: str) -> str:
        self.settle()
        return str(self.page.locator(control).input_value())

    def pixels(self) -> str:
        """The map as it is painted."""
        return str(self.page.evaluate("() => document.getElementById('map-points').toDataURL()"))

    def colour_at(self, place: tuple[float, float]) -> np.ndarray:
        """Mean red, green and blue around a place on the screen."""
        from PIL import Image

        picture = self.page.screenshot(clip={"x": place[0] - 1, "y": place[1] - 1, "width": 3, "height": 3})
        return np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"), float).mean(axis=(0, 1))

    def place_of(self, row: int) -> tuple[float, float]:
        """Where a row is on the screen, if the map shows the whole range, five per cent beyond it, on two scales."""
        grid = [unpacked(self.facts["map"][axis], "u2")[row] / 65535 for axis in "xy"]
        box = self.box("#map-points")
        share_x, share_y = ((value + 0.05) / 1.1 for value in grid)
        return box["x"] + share_x * box["width"], box["y"] + (1 - share_y) * box["height"]

    def stands_for(self) -> list[str]:
        """The third column of the table of picks, as far as it is shown."""
        texts = self.texts("#picks-list tbody tr:visible td:nth-child(3) > span:first-child")
        return [text.replace(",", "") for text in texts]

    def outliers(self) -> list[str]:
        """Names in the list of outliers."""
        return self.texts("#outliers-list .odd:not(.next) .link")

    def saved(self, button: str) -> tuple[str, str]:
        """Name and text of the file that a button saves."""
        with self.page.expect_download() as download:
            self.page.locator(button).click()
        return download.value.suggested_filename, download.value.path().read_bytes().decode("utf-8")

    def saved_rows(self, button: str) -> tuple[str, list[dict[str, str]]]:
        """Name and rows of the table that a button saves."""
        name, text = self.saved(button)
        return name, list(csv.DictReader(io.StringIO(text, newline="")))
