"""Folders of pictures: those that cannot be read are findings, and reasons name the nearest pick."""

import json

import numpy as np
import pytest

from cli_runs import run

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
    assert ran.code == 7
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
