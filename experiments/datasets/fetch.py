"""Getting files that are public: written under a temporary name, compared with their SHA-256, then renamed.

Only sets whose address is certain are in ``SOURCES``. The others must be put into the folder by hand.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

import numpy as np

from experiments.datasets import convert, files
from experiments.datasets.real import ADBENCH, real_sets
from mosaic.exceptions import InvalidInputError, MosaicError

#: Called with the bytes that have come and those that will come in all, if the server says.
Progress = Callable[[int, int | None], None]
#: Seconds without a byte before a server counts as silent.
PATIENCE = 30.0


class DownloadError(MosaicError, OSError):
    """A file did not come. The message says why; nothing of it is left on the disk."""


@dataclass(frozen=True)
class Source:
    """Addresses of a set and what makes our arrays of the files; without a conversion the one file is ours."""

    urls: tuple[str, ...]
    convert: Callable[[Sequence[Path]], files.Arrays] | None = None


def download(url: str, target: Path, sha256: str | None, *, progress: bool | Progress = True) -> Path:
    """The file at an address, as ``target``; if that is there and right already, nothing is done.

    Whatever goes wrong, Ctrl-C included, the target is as before and no part of the file is left: calling again starts
    from the beginning.

    Parameters
    ----------
    url : http or https; redirections are followed
    target : where to put it; its folder is made
    sha256 : of the file, in hexadecimal digits. None accepts anything: then the caller checks what is made of it
    progress : True writes to the standard error; or a function of the bytes so far and in all (None if unknown)

    Raises
    ------
    DownloadError : no network, no such file, the connection broke, or the file is another one
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise InvalidInputError(f"url must start with http:// or https://; got {url!r}.")
    target = Path(target)
    if sha256 is not None and target.is_file() and files.sha256_of(target) == sha256:
        return target
    report = progress if callable(progress) else _Line(target.name) if progress else _silent
    with _replacing(target) as part:
        found = _transfer(url, part, report)
        if sha256 is not None and found != sha256.lower():
            raise DownloadError(
                f"{url} is not the file that was expected: its SHA-256 is {found}, expected {sha256}. It has been "
                "discarded; the file may have changed at its source, or been damaged on its way."
            )
    return target


def fetch(name: str, folder: Path | None = None, *, progress: bool | Progress = True) -> Path:
    """Download a set of ``SOURCES`` into the folder (that of MOSAIC_DATA), convert it, and check what came out.

    Returns
    -------
    The path of the file that ``load(name)`` reads
    """
    source = sources().get(name)
    if source is None:
        raise InvalidInputError(
            f"no public address is known for {name!r}; known are {', '.join(sources())}. "
            f"Put the file into {files.data_folder()} by hand."
        )
    file = real_sets()[name].file
    entry, target = files.checksums()[file], (folder or files.data_folder()) / file
    if source.convert is None:
        return download(source.urls[0], target, entry["sha256"], progress=progress)
    _make_folder(target.parent)
    with tempfile.TemporaryDirectory(prefix=f".{target.stem}-", dir=target.parent) as scratch:
        paths = [Path(scratch) / str(k) for k in range(len(source.urls))]
        for url, path in zip(source.urls, paths, strict=True):
            download(url, path, None, progress=progress)
        arrays = source.convert(paths)
    problems = files.differences(arrays, entry, hashes=True)
    if problems:
        raise DownloadError(f"{', '.join(source.urls)}: what was made of it is not {file}: {'; '.join(problems)}.")
    with _replacing(target) as part, part.open("wb") as out:
        np.savez_compressed(out, allow_pickle=False, **arrays)
    return target


def _transfer(url: str, path: Path, report: Progress) -> str:
    """Write what is at the address to a file; the SHA-256 of it."""
    digest, done = hashlib.sha256(), 0
    try:
        with (
            urlopen(Request(url, headers={"User-Agent": "mosaic"}), timeout=PATIENCE) as answer,
            path.open("wb") as out,
        ):
            length = answer.headers.get("Content-Length")
            total = int(length) if length is not None and length.isdecimal() else None
            while chunk := answer.read(files.CHUNK):
                out.write(chunk)
                digest.update(chunk)
                done += len(chunk)
                report(done, total)
    except HTTPError as error:
        with error:  # it holds the connection
            hint = "The file has moved or is gone" if error.code in (404, 410) else "Try again later"
            raise DownloadError(f"{url} cannot be had: HTTP {error.code} {error.reason}. {hint}.") from error
    except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
        raise DownloadError(f"{url} broke off after {done} bytes: {_words(error)}. Try again.") from error
    except URLError as error:
        raise DownloadError(f"{url} cannot be reached: {_words(error.reason)}. Is there a network?") from error
    if total is not None and done != total:
        # http.client says nothing when a server hangs up early and the reader asks for pieces.
        raise DownloadError(f"{url} broke off after {done} of {total} bytes. Try again.")
    return digest.hexdigest()


@contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """A temporary path next to the target that takes its place if all goes well and vanishes otherwise."""
    _make_folder(target.parent)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}-", suffix=".part", dir=target.parent)
    os.close(handle)
    part = Path(name)
    try:
        yield part
        part.chmod(0o644)  # mkstemp lets nobody else read
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DownloadError(f"the folder {folder} cannot be made: {error}. Set MOSAIC_DATA to another.") from error
    if not os.access(folder, os.W_OK):
        raise DownloadError(f"the folder {folder} cannot be written to. Set {files.VARIABLE} to another.")


class _Line:
    """One line on the standard error, renewed at each per cent; nothing where that is no terminal."""

    def __init__(self, name: str) -> None:
        self.name, self.shown = name, -1

    def __call__(self, done: int, total: int | None) -> None:
        percent = 100 * done // total if total else done >> 20
        if percent == self.shown or not sys.stderr.isatty():
            return
        self.shown = percent
        text = f"{percent:3d} %" if total else f"{percent} MB"
        sys.stderr.write(f"\r{self.name}: {text}" + ("\n" if done == total else ""))
        sys.stderr.flush()


def _silent(done: int, total: int | None) -> None:
    pass


def _words(reason: Any) -> str:
    return str(reason) or type(reason).__name__


def _raw(repository: str, commit: str, path: str) -> str:
    """The address of a file of a GitHub repository at a commit."""
    return f"https://raw.githubusercontent.com/{repository}/{commit}/{quote(path)}"


def sources() -> dict[str, Source]:
    """``SOURCES`` and every ADBench set: those are kept in the repository as they are here, one folder for each group."""
    outliers = {}
    for name in real_sets():
        if name.startswith(ADBENCH):
            group, _, file = name.removeprefix(ADBENCH).rpartition("__")
            path = f"adbench/datasets/{group or 'Classical'}/{file}.npz"
            outliers[name] = Source((_raw("Minqi824/ADBench", "3dac8221", path),))
    return {**SOURCES} | outliers


_FEATURES = ("jundongl/scikit-feature", "48cffad4")
_DIGITS = ("unixpickle/mnistlite", "db3dfbff8c5fe395a3a9e713eab48d49e79ca160")
SOURCES: Mapping[str, Source] = MappingProxyType(
    {
        "frey": Source(
            (_raw("tauhidstanford/GSE", "0ebdc1622e4aa572ed3d9910aaf51bd76e89b40a", "frey_rawface.mat"),),
            convert.frey_faces,
        ),
        "yaleb": Source(
            (_raw("mdrobinson4/ece-483-assignments", "a5b801b4", "HW4_Mark_Robinson_UG/YaleB_32x32.mat"),),
            convert.upright_faces,
        ),
        "orl": Source(
            (_raw("panji1990/Deep-subspace-clustering-networks", "4aa83542", "Data/ORL_32x32.mat"),),
            convert.upright_faces,
        ),
        "isolet": Source((_raw(*_FEATURES, "skfeature/data/Isolet.mat"),), convert.isolet),
        "basehock": Source((_raw(*_FEATURES, "skfeature/data/BASEHOCK.mat"),), convert.term_counts),
        "pcmac": Source((_raw(*_FEATURES, "skfeature/data/PCMAC.mat"),), convert.term_counts),
        "mnist": Source(
            (
                _raw(*_DIGITS, "data/t10k-images-idx3-ubyte.gz"),
                _raw(*_DIGITS, "data/t10k-labels-idx1-ubyte.gz"),
            ),
            convert.mnist,
        ),
    }
)
