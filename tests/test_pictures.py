"""Folders of pictures: those that cannot be read are findings, and reasons name the nearest pick."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cli_runs import run

Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def folder(tmp_path, monkeypatch):
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
    return tmp_path


def test_pictures_that_cannot_be_read_are_left_out_named_and_told_by_the_exit_code(folder, capsys):
    ran = run(capsys, "select", "album", "-k", "2", "--json")
    assert ran.code == 7
    answer = json.loads(ran.out)
    assert answer["file"]["rows"] == 31
    assert sorted(answer["file"]["unreadable"]) == ["broken.png", "cut.png"]
    assert any("2 of 33 pictures: broken.png (cannot identify image file), cut.png" in note for note in answer["notes"])
    assert len({int(pick["name"][1:3]) % 2 for pick in answer["picks"]}) == 2
    for name in ("broken.png", "cut.png"):
        (folder / "album" / name).unlink()
    assert run(capsys, "select", "album", "-k", "2", "--json").code == 0


def test_a_folder_without_a_picture_that_can_be_read_is_refused(folder, capsys):
    for file in folder.glob("album/*.png"):
        if file.name not in ("broken.png", "cut.png"):
            file.unlink()
    ran = run(capsys, "select", "album", "-k", "2")
    assert ran.code == 3
    assert "cannot be read as a picture" in ran.err


def test_the_reason_of_an_odd_picture_names_the_nearest_pick(folder, capsys):
    ran = run(capsys, "explain", "album", "noise.png", "-k", "2")
    assert "an outlier" in ran.out
    assert "The representative nearest to it is p" in ran.out
