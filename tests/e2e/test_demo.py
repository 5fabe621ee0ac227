"""The demo runs as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_demo_prints_the_certificate():
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo.py")],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert "Encoding of 1,797 points by " in done.stdout
    assert "provably within" in done.stdout
    assert "any at all: at least 1" in done.stdout
    assert done.stderr == ""
