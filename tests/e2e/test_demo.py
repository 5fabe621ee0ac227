"""The demo runs as a user runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_demo_finds_the_noise_and_writes_a_picture(tmp_path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo.py"), str(tmp_path / "picture.png")],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg"},
    )
    picks = re.search(r"20 representatives in [\d.]+ s: (.*)\n", done.stdout)
    assert picks is not None
    assert len(picks[1].split(", ")) == 20
    assert "noise" not in picks[1]
    found = re.search(r"(\d+) outliers found: (\d+) of (\d+) images of noise, (\d+) digits", done.stdout)
    assert found is not None
    flagged, caught, noise, digits = map(int, found.groups())
    assert noise == 89
    assert caught >= 0.9 * noise
    assert digits <= 9
    assert flagged == caught + digits
    assert re.search(r"These 20 leave at most [\d.]+ % more unexplained than the best possible 20 would", done.stdout)
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert done.stderr == ""
