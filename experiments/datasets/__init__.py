"""Real sets from a folder, synthetic manifolds, and the cases that are made of them.

The folder is that of the environment variable MOSAIC_DATA. What is read is compared with ``checksums.json`` first.
"""

from experiments.datasets.cases import Case, Splits, case, case_of_split, make_case, split
from experiments.datasets.faces import five_subjects
from experiments.datasets.files import MissingData, WrongData, data_folder
from experiments.datasets.pictures import Picture, patches, picture
from experiments.datasets.real import Dataset, load
from experiments.datasets.synthetic import draw

__all__ = [
    "Case",
    "Dataset",
    "MissingData",
    "Picture",
    "Splits",
    "WrongData",
    "case",
    "case_of_split",
    "data_folder",
    "draw",
    "five_subjects",
    "load",
    "make_case",
    "patches",
    "picture",
    "split",
]
