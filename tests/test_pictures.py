"""Folders of pictures: those that cannot be read are findings, and reasons name the nearest pick."""

import json

import numpy as np
import pytest

import mosaic
from cli_runs import run
from mosaic import MOSAIC, SelectionWarning

Image = pytest.importorskip("PIL.Image")


def test_pictures_that_cannot_be_read_are_left_out_named_and_told_by_the_exit_code(tmp_path, monkeypatch, capsys):
    """Thirty pictures of two kinds, one of noise, and two files that are none."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    (tmp_path / "album").mkdir()
    ramp = np.tile(np.linspace(40, 215, 48), (48, 1))
    for i in range(30):
        picture = (ramp if i % 2 else ramp.T) + rng.normal(0, 6, (48, 48))
        Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(tmp_path / f"album/p{i:02d}.png")
    blocks = np.kron(rng.integers(0, 256, (8, 8)), np.ones((6, 6)))
    Image.fromarray(blocks.astype(np.uint8)).save(tmp_path / "album/noise.png")
    (tmp_path / "album/broken.png").write_bytes(b"no picture")
    (tmp_path / "album/cut.png").write_bytes((tmp_path / "album/p00.png").read_bytes()[:200])
    ran = run(capsys, "select", "album", "-k", "2", "--json")
    assert (ran.code, "cannot be read: broken.png, cut.png" in ran.err) == (7, True)
    answer = json.loads(ran.out)
    assert answer["file"]["rows"] == 31
    assert sorted(answer["file"]["unreadable"]) == ["broken.png", "cut.png"]
    assert any("2 of 33 pictures: broken.png (cannot identify image file), cut.png" in note for note in answer["notes"])
    assert len({int(pick["name"][1:3]) % 2 for pick in answer["picks"]}) == 2
    for name in ("broken.png", "cut.png"):
        (tmp_path / "album" / name).unlink()
    assert run(capsys, "select", "album", "-k", "2", "-o", "picks.csv", "-q").code == 0
    told = run(capsys, "explain", "album", "noise.png", "-k", "2").out
    assert "an outlier" in told
    assert "The representative nearest to it is p" in told
    for file in tmp_path.glob("album/*.png"):
        file.write_bytes(b"no picture")
    refused = run(capsys, "select", "album", "-k", "2")
    assert (refused.code, "cannot be read as a picture" in refused.err) == (3, True)


def test_pictures_of_one_colour_or_noise_are_outliers_however_many_and_new_ones_as_well(tmp_path, monkeypatch, capsys):
    """A hundred ramps and four pictures each that are black, white, grey, and noise, sharp or nearly averaged away."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for folder in ("album", "new"):
        (tmp_path / folder).mkdir()

    def save(name, pixels):
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(tmp_path / f"{name}.png")

    across = np.tile(np.linspace(40, 215, 64), (64, 1))
    for i in range(100):
        save(f"album/p{i:02d}", np.roll(across if i % 2 else across.T, rng.integers(64)) + rng.normal(0, 9, (64, 64)))
    for i in range(4):
        for name, level in {"black": 0, "white": 255, "grey": 128}.items():
            save(f"album/{name}{i}", np.full((64, 64), level))
        save(f"album/sharp{i}", rng.integers(0, 256, (32, 32)))
        save(f"album/faint{i}", rng.integers(0, 256, (300, 300)))
    save("new/black", np.zeros((64, 64)))
    save("new/ramp", across)
    answer = json.loads(run(capsys, "select", "album", "-k", "8", "--json", "--save", "model.mosaic").out)
    assert answer["outliers"]["n"] == 20
    assert {pick["name"][0] for pick in answer["picks"]} == {"p"}
    assert any("black0.png (one colour)" in note and "sharp3.png (noise)" in note for note in answer["notes"])
    placed = json.loads(run(capsys, "predict", "model.mosaic", "new", "--json").out)
    assert {row["name"]: row["is_outlier"] for row in placed["rows"]} == {"black.png": True, "ramp.png": False}


def test_where_most_pictures_are_noise_noise_is_what_is_usual(tmp_path):
    rng = np.random.default_rng(0)
    for i in range(40):
        Image.fromarray(rng.integers(0, 256, (16, 16)).astype(np.uint8)).save(tmp_path / f"p{i:02d}.png")
    model = MOSAIC(4).fit(tmp_path)
    assert not model.is_outlier_.any()
    assert len(model.representative_indices_) == 4


def test_pictures_that_cannot_be_read_are_told_in_python(tmp_path):
    Image.fromarray(np.tile(np.arange(16, dtype=np.uint8), (16, 1))).save(tmp_path / "whole.png")
    (tmp_path / "broken.png").write_bytes(b"no picture")
    with pytest.warns(SelectionWarning, match="1 of 2 pictures: broken.png"):
        assert mosaic.read(tmp_path).n == 1
