import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from sklearn.datasets import make_swiss_roll
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from cli_runs import COLUMNS, write_points
from mosaic import MOSAIC, MOSAICOutlierDetector, datasets
from sources import never_load

# The same drawn examples every time, so that nobody's change fails by luck; ``make test-all`` draws new ones.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("random", derandomize=False, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("MOSAIC_EXAMPLES", "fixed"))


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """Several workers with several threads each slow one another down a hundredfold on small matrices."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def by_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of tables, memory maps and sources are read in passes, however few they are."""
    never_load(monkeypatch)


@pytest.fixture(scope="session")
def model() -> MOSAIC:
    """Fitted to 392 points in the plane and 8 gross outliers."""
    return MOSAIC(12).fit(datasets.blobs_with_gross_outliers().X)


@pytest.fixture(scope="session")
def detector() -> MOSAICOutlierDetector:
    """Fitted to the same points."""
    return MOSAICOutlierDetector().fit(datasets.blobs_with_gross_outliers().X)


@pytest.fixture(scope="session")
def roll() -> np.ndarray:
    """A small swiss roll, standardised."""
    X = make_swiss_roll(120, random_state=0)[0]
    return (X - X.mean(axis=0)) / X.std()


@pytest.fixture(scope="session")
def roll_kernel(roll: np.ndarray) -> np.ndarray:
    return rbf_kernel(roll, gamma=2.0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a command is run: a folder with the files of the examples in its help."""
    write_points(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    return tmp_path


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go."""
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    return tmp_path / "scratch"
