"""Faces under many lights and photos with a salient object: what is read, and how it is judged."""

import io
import zipfile

import numpy as np
import pytest
from PIL import Image
from sklearn.metrics import roc_auc_score

from experiments.datasets import Case, Picture, five_subjects, patches, picture, pictures
from experiments.judge import judge_light, judge_saliency, judge_selection
from experiments.methods import Picks

pytestmark = pytest.mark.slow


def encoded(pixels, kind):
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind)
    return buffer.getvalue()


@pytest.fixture
def photos(put):
    """Photos "b", "a" and "c" of 20 × 27 pixels, grey 80, 40 and 120, with the object at the upper left."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, level in (("b", 80), ("a", 40), ("c", 120)):
            mask = np.zeros((20, 27), np.uint8)
            mask[:8, :12], mask[12:, 20:] = 128, 127  # 127 is a soft edge, outside
            archive.writestr(f"{name}.png", encoded(mask, "PNG"))
            archive.writestr(f"{name}.jpg", encoded(np.full((20, 27, 3), level, np.uint8), "JPEG"))
    put(pictures.FILE, buffer.getvalue())


@pytest.fixture
def people(put):
    """Seven subjects, 1 … 7, with six faces each: two lit from the left, two straight, two from the right."""
    X = np.full((42, 4, 6), 100, np.uint8)
    X[0::3, :, 3:], X[2::3, :, :3] = 20, 20
    X[:, 0, 0] += np.arange(42, dtype=np.uint8)  # no two alike
    return np.load(put("yaleb_32x32.npz", X=X, y=np.repeat(np.arange(1, 8, dtype=np.uint8), 6)))


def photo(mask):
    """A picture of which only the mask matters."""
    mask = np.asarray(mask, bool)
    grid = (mask.shape[0] // 8, mask.shape[1] // 8)
    return Picture("by hand", np.zeros((grid[0] * grid[1], 192)), grid, mask, np.zeros((*mask.shape, 3), np.uint8))


def lit(brightness, y):
    """Faces of 2 × 2 pixels: (left, right) brightness of each, and their subjects."""
    X = np.array([[left, right, left, right] for left, right in brightness], float)
    return Case("by hand", X, np.asarray(y), np.zeros(len(X), bool), X[:0], np.asarray(y)[:0], np.arange(len(X)), (2, 2))


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
    task = five_subjects(0)
    subjects, counts = np.unique(task.y, return_counts=True)
    assert (len(subjects), set(counts)) == (5, {6})
    np.testing.assert_array_equal(task.X, people["X"].reshape(42, -1)[task.rows] / 255)
    np.testing.assert_array_equal(task.y, people["y"][task.rows])
    assert (task.image_shape, len(task.X_test), task.is_outlier.any()) == ((4, 6), 0, False)
    assert judge_selection(task, [0, 1])["accuracy_1nn"] is None


def test_light_is_from_the_side_beyond_a_quarter():
    # a = (L − R) / (L + R) is 1/4 for 5 : 3, which is straight still.
    case = lit([(5, 3), (5.1, 3), (3, 5), (3, 5.1), (0, 0)], [0, 0, 0, 0, 0])
    assert judge_light(case, [0, 2, 4])["lights_hit"] == 1
    assert judge_light(case, [0, 1])["lights_hit"] == 2
    assert judge_light(case, [1, 2, 3])["lights_hit"] == 3


def test_groups_of_light_count_those_without_a_pick():
    # Subject 0 has all three lights, subject 1 two, subject 2 one.
    case = lit([(9, 1), (1, 1), (1, 9), (9, 1), (1, 1), (1, 1)], [0, 0, 0, 1, 1, 2])
    assert judge_light(case, [0, 1, 2, 3])["light_groups_hit"] == 4 / 6
    assert judge_light(case, Picks(np.arange(6)))["light_groups_hit"] == 1.0


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
