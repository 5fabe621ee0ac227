"""Faces under many lights and photos with a salient object: what is read, how it is judged, what the page says of it."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
from PIL import Image
from sklearn.metrics import roc_auc_score

from experiments.datasets import Case, Picture, files, five_subjects, patches, picture, pictures
from experiments.judge import judge_light, judge_saliency, judge_selection
from experiments.methods import Picks
from experiments.paper import faces, saliency
from experiments.paper._figures import LARGEST

pytestmark = pytest.mark.slow

TIER = {"MOSAIC": "ours", "MOSAIC (paper)": "ours", "SMRS": "paper", "K-medoids": "paper"}


@pytest.fixture
def photos(folder, monkeypatch):
    """Photos "b", "a" and "c" of 20 × 27 pixels, grey 80, 40 and 120, with the object at the upper left."""
    with zipfile.ZipFile(folder / pictures.FILE, "w") as archive:
        for name, level in (("b", 80), ("a", 40), ("c", 120)):
            mask = np.zeros((20, 27), np.uint8)
            mask[:8, :12], mask[12:, 20:] = 128, 127  # 127 is a soft edge, outside
            archive.writestr(f"{name}.png", encoded(mask, "PNG"))
            archive.writestr(f"{name}.jpg", encoded(np.full((20, 27, 3), level, np.uint8), "JPEG"))
    known = {pictures.FILE: files.sha256_of(folder / pictures.FILE)}
    monkeypatch.setattr(files, "checksums", lambda: known)
    return folder


@pytest.fixture
def people(folder, monkeypatch):
    """Seven subjects, 1 … 7, with six faces each: two lit from the left, two straight, two from the right."""
    X = np.full((42, 4, 6), 100, np.uint8)
    X[0::3, :, 3:], X[2::3, :, :3] = 20, 20
    X[:, 0, 0] += np.arange(42, dtype=np.uint8)  # no two alike
    np.savez(folder / "yaleb_32x32.npz", X=X, y=np.repeat(np.arange(1, 8, dtype=np.uint8), 6))
    described = files.sha256_of(folder / "yaleb_32x32.npz")
    monkeypatch.setattr(files, "checksums", lambda: {"yaleb_32x32.npz": described})
    return folder


def encoded(pixels, kind):
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind)
    return buffer.getvalue()


def photo(mask):
    """A picture of which only the mask matters."""
    mask = np.asarray(mask, bool)
    grid = (mask.shape[0] // 8, mask.shape[1] // 8)
    return Picture("by hand", np.zeros((grid[0] * grid[1], 192)), grid, mask, np.zeros((*mask.shape, 3), np.uint8))


def lit(brightness, y, is_outlier=None):
    """Faces of 2 × 2 pixels: (left, right) brightness of each, and their subjects."""
    X = np.array([[left, right, left, right] for left, right in brightness], float)
    clean = np.zeros(len(X), bool) if is_outlier is None else np.asarray(is_outlier, bool)
    return Case("by hand", X, np.asarray(y), clean, X[:0], np.asarray(y)[:0], np.arange(len(X)), (2, 2))


def line(item, method, seed=0, k=None, rest=None, **numbers):
    dataset = {"faces": "yaleb/5", "saliency": "msra_b"}[item]
    job = {"item": item, "task": item, "method": method, "dataset": dataset, "contamination": None, "ratio": 0.0}
    job |= {"n": None, "k": k, "seed": seed, "tier": TIER.get(method, "peer"), "settings": {}, **(rest or {})}
    return job if "cannot" in job else {**job, "verdict": numbers}


def faces_line(method, seed=0, k=15, *, balance=0.95, subjects=5, lights=3, rows=()):
    numbers = {"class_balance": balance, "classes_hit": subjects, "classes": 5, "lights_hit": lights, "n_picks": k}
    numbers |= {"smallest_share_of_a_subject": 0.1, "largest_share_of_a_subject": 0.3, "light_groups_hit": 0.6}
    return line("faces", method, seed, k, {"rows": list(rows)}, accuracy_1nn=None, **numbers)


def saliency_line(method, number=0, auc=0.7, values=None):
    numbers = {"auc": auc, "f_best": 0.5, "mae": 0.2}
    return line("saliency", method, number, None, {} if values is None else {"map": values}, **numbers)


def row_of(table, method):
    (found,) = (text for text in table.splitlines() if text.startswith(f"| {method} |"))
    return [cell.strip() for cell in found.strip("|").split("|")][1:]


# Photos


def test_partial_patches_are_dropped_and_the_mask_is_that_of_the_area_left(photos):
    found = picture(1)
    assert (found.grid, found.X.shape, len(found.X)) == ((2, 3), (6, 192), 6)
    assert found.mask.shape == (16, 24)
    assert found.image.shape == (16, 24, 3)
    assert found.mask[:8, :12].all()
    assert found.mask.sum() == 96  # a mask of 127 is no object
    assert found.object_pixels.tolist() == [64, 32, 0, 0, 0, 0]


def test_patches_go_row_by_row_of_the_grid_and_of_the_pixels():
    pixels = np.arange(16 * 24 * 3).reshape(16, 24, 3)
    expected = [pixels[i : i + 8, j : j + 8].ravel() for i in (0, 8) for j in (0, 8, 16)]
    np.testing.assert_array_equal(pictures.cut(pixels), expected)


def test_patches_are_drawn_without_replacement_from_all_photos(photos):
    task = patches(18, seed=1)
    assert sorted(task.rows) == list(range(18))
    levels = np.array([40, 80, 120])[task.rows // 6]  # rows count through the photos by name
    np.testing.assert_allclose(task.X, np.repeat(levels[:, None], 192, axis=1) / 255, atol=2 / 255)
    assert not task.is_outlier.any()
    assert (task.y, task.image_shape, len(task.X_test)) == (None, (8, 8, 3), 0)


# Faces


def test_five_subjects_come_with_all_their_faces_and_their_rows_in_the_set(people):
    task, everything = five_subjects(0), np.load(people / "yaleb_32x32.npz")
    subjects, counts = np.unique(task.y, return_counts=True)
    assert (len(subjects), set(counts)) == (5, {6})
    np.testing.assert_array_equal(task.X, everything["X"].reshape(42, -1)[task.rows] / 255)
    np.testing.assert_array_equal(task.y, everything["y"][task.rows])
    assert (task.image_shape, len(task.X_test), task.is_outlier.any()) == ((4, 6), 0, False)
    assert judge_selection(task, [0, 1])["accuracy_1nn"] is None


def test_light_is_from_the_side_beyond_a_quarter():
    # a = (L − R) / (L + R) is 1/4 for 5 : 3, which is straight still.
    case = lit([(5, 3), (5.1, 3), (3, 5), (3, 5.1), (0, 0)], [0, 0, 0, 0, 0])
    assert judge_light(case, [0, 2, 4])["lights_hit"] == 1
    assert judge_light(case, [0, 1])["lights_hit"] == 2
    assert judge_light(case, [1, 2, 3])["lights_hit"] == 3


def test_light_groups_hit_is_the_share_of_those_that_there_are():
    # Subject 0 has all three lights, subject 1 two.
    case = lit([(9, 1), (1, 1), (1, 9), (9, 1), (1, 1), (1, 1)], [0, 0, 0, 1, 1, 1])
    assert judge_light(case, [0, 3])["light_groups_hit"] == 2 / 5
    assert judge_light(case, [4, 5])["light_groups_hit"] == 1 / 5
    assert judge_light(case, Picks(np.arange(6)))["light_groups_hit"] == 1.0


def test_shares_of_subjects_count_those_without_a_pick():
    case = lit([(1, 1)] * 6, [0, 0, 0, 1, 1, 2])
    verdict = judge_light(case, [0, 1, 2, 3])
    assert (verdict["smallest_share_of_a_subject"], verdict["largest_share_of_a_subject"]) == (0.0, 0.75)
    assert judge_light(case, [0, 3, 5])["smallest_share_of_a_subject"] == 1 / 3


# Saliency


def f_beta(chosen, mask):
    """Pixel by pixel, from the definition."""
    hits = int((chosen & mask).sum())
    precision, recall = hits / int(chosen.sum()), hits / int(mask.sum())
    return 1.3 * precision * recall / (0.3 * precision + recall) if hits else 0.0


@pytest.mark.parametrize("levels", [3, 1000])
def test_saliency_is_that_of_counting_pixels(rng, levels):
    task = photo(rng.random((24, 32)) < rng.random((24, 1)))
    values = rng.integers(0, levels, 12) * 0.7 - 5.0
    verdict = judge_saliency(task, values)
    s = np.kron(((values - values.min()) / (values.max() - values.min())).reshape(3, 4), np.ones((8, 8)))
    blocks = [task.mask[8 * i : 8 * i + 8, 8 * j : 8 * j + 8].sum() for i in range(3) for j in range(4)]
    assert verdict["auc"] == pytest.approx(roc_auc_score(np.array(blocks) > 32, values))
    assert verdict["mae"] == pytest.approx(np.abs(s - task.mask).mean())
    assert verdict["f_best"] == pytest.approx(max(f_beta(s >= t, task.mask) for t in np.unique(s)))


# The page


def test_table_of_faces_has_means_over_seeds_and_leaves_out_what_nobody_has():
    lines = [faces_line("MOSAIC", s, balance=b) for s, b in enumerate((0.9, 1.0))]
    lines += [faces_line("SMRS", s, balance=0.5) for s in range(2)]
    lines += [line("faces", "K-medoids", s, 15, {"cannot": "too large"}) for s in range(2)]
    text = faces.parts(lines)[1]
    assert "1-NN" not in text
    assert row_of(text, "MOSAIC")[3] == "**0.950 ± 0.071**"
    assert row_of(text, "SMRS")[3] == "0.500 ± 0.000"
    assert set(row_of(text, "K-medoids")) == {"—<sup>1</sup>"}


def test_figure_of_faces_shows_a_strip_for_each_method(people, tmp_path):
    lines = [faces_line("MOSAIC", rows=[0, 1, 7, 40]), faces_line("MOSAIC", 1, rows=[3])]
    one = faces.figure(lines, tmp_path / "one.png")
    lines.append(faces_line("SMRS", rows=[5, 6]))
    two = faces.figure(lines, tmp_path / "two.png")
    assert one is not None
    assert two is not None
    with Image.open(one) as first, Image.open(two) as second:
        height = 4 + 2 * faces.FRAME + faces.HEAD
        assert (first.height, second.height) == (height + faces.MARGIN, 2 * height + faces.MARGIN)
        colours = {colour for _, colour in second.convert("RGB").getcolors(1 << 20)}
    assert set(faces.FRAMES[:3]) <= colours  # three subjects, three frames
    assert two.stat().st_size <= LARGEST
    assert faces.figure(lines, tmp_path / "again.png").read_bytes() == two.read_bytes()


def test_table_of_saliency_has_means_over_pictures_and_less_error_is_better():
    lines = [saliency_line("MOSAIC", n, auc) for n, auc in enumerate((0.6, 0.8))]
    worse = [saliency_line("LOF", n, 0.5) for n in range(2)]
    for entry in worse:
        entry["verdict"]["mae"] = 0.9
    text = saliency.parts([*lines, *worse])[1]
    assert row_of(text, "MOSAIC")[0] == "**0.700 ± 0.141**"
    assert row_of(text, "MOSAIC")[2] == "**0.200 ± 0.000**"
    assert row_of(text, "LOF")[2] == "0.900 ± 0.000"


def test_figure_of_saliency_shows_ours_and_the_best_other_method(photos, tmp_path):
    lines = [saliency_line("MOSAIC", n, values=[0, 1, 0, 0, 0, 0.5]) for n in range(2)]
    lines += [saliency_line("LOF", n, 0.6, values=[3.0] * 6) for n in range(2)]
    lines += [saliency_line("SMRS", n, 0.9, values=[5, 7, 7, 7, 7, 7]) for n in range(2)]
    path = saliency.figure(lines, tmp_path / "maps.png")
    assert path is not None
    step, below = 3 * saliency.ZOOM + saliency.GAP, 2 * saliency.ZOOM + saliency.GAP
    with Image.open(path) as image:
        pixels = np.asarray(image.convert("L"))
    assert pixels.shape == (saliency.HEAD + 2 * below - saliency.GAP, 4 * step - saliency.GAP)
    for number in range(2):
        top = saliency.HEAD + number * below + 1
        patch = [[pixels[top, column * step + saliency.ZOOM * j + 1] for j in range(3)] for column in (1, 2, 3)]
        # Mask: all of the first patch, half of the second. MOSAIC: the second. SMRS, not LOF: all but the first.
        assert np.array(patch).tolist() == [[255, pytest.approx(128, abs=6), 0], [0, 255, 0], [0, 255, 255]]
    assert path.stat().st_size <= saliency.LARGEST
