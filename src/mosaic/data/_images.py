"""Pictures in a folder or in a zip file: every picture is a row, its pixels are the numbers."""

from __future__ import annotations

import io
import os
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike

from mosaic._files import library, listed
from mosaic.data._arrays import refuse_columns
from mosaic.data._bytes import Progress
from mosaic.data._columns import ColumnChoices
from mosaic.data._faults import FileFault, readable
from mosaic.data._framed import group_values
from mosaic.data._spool import Spool
from mosaic.data.records import InMemory
from mosaic.data.table import Table
from mosaic.exceptions import InvalidInputError

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
#: Bytes of one packed picture that are unpacked at most; pixels are limited by Pillow.
LARGEST = 1 << 29
#: Pictures whose numbers are handed on together.
AT_ONCE = 256


class PictureTable(Table):
    """Pictures by their file names."""

    _album: Album

    def pictures(self, rows: ArrayLike, side: int = 64) -> list[bytes] | None:
        """The pictures themselves, made smaller where they are larger: PNG if they were small, otherwise JPEG."""
        return [self._album.thumbnail(self._album.names[number], side) for number in self.numbers(rows)]


class Album:
    """Names of pictures and a way to open them, in a folder or in a zip file. Nothing is unpacked to the disk."""

    def __init__(self, path: Path):
        self.path = path
        self._zip: zipfile.ZipFile | None = None
        if path.is_dir():
            files = sorted(file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())
            self.sizes = {name: (path / name).stat().st_size for name in files if not _hidden(name)}
        else:
            with readable(path, "It is damaged or no zip file. Pack it again."):
                self._zip = zipfile.ZipFile(path)
                entries = sorted((e for e in self._zip.infolist() if not e.is_dir()), key=lambda entry: entry.filename)
            self.sizes = {entry.filename: entry.file_size for entry in entries if not _hidden(entry.filename)}
        everything = list(self.sizes)
        self.names = [name for name in everything if PurePosixPath(name).suffix.lower() in PICTURES]
        self.others = len(everything) - len(self.names)
        if not self.names:
            self.close()
            inside = listed(everything[:20]) or "nothing"
            more = f" and {len(everything) - 20:,} more" if len(everything) > 20 else ""
            raise FileFault(
                path,
                f"holds no pictures, Parquet files or Zarr array, but {inside}{more}",
                f"Name one of the files, or a folder of pictures ({', '.join(PICTURES)}).",
            )

    def close(self) -> None:
        """Let go of the zip file."""
        if self._zip is not None:
            self._zip.close()

    def picture(self, name: str, draft: int | None = None) -> Any:
        """A picture, turned as its camera says, in grey or colour over white; whole pictures are decoded, or refused."""
        image, ops = library("PIL.Image", self.path), library("PIL.ImageOps", self.path)
        where = self.path / name if self._zip is None else f"{self.path}/{name}"
        try:
            with self._open(name) as stream, warnings.catch_warnings():
                warnings.simplefilter("error", image.DecompressionBombWarning)
                warnings.filterwarnings("ignore", category=UserWarning, module="PIL")
                opened = image.open(stream)
                if draft is not None:
                    opened.draft(None, (2 * draft, 2 * draft))
                return _plain(ops.exif_transpose(opened), image)
        except FileFault:
            raise
        except PermissionError as error:
            raise FileFault(
                where, "may not be read by you (permission denied)", "Ask its owner, or remove it."
            ) from error
        except (image.DecompressionBombError, image.DecompressionBombWarning) as error:
            raise FileFault(
                where, f"has more pixels than are safe to decode ({error})", "Make it smaller, or remove it."
            ) from error
        except Exception as error:
            said = " ".join(str(error).split()).rstrip(".")
            said = "cannot identify image file" if "cannot identify" in said else said
            raise FileFault(
                where, f"cannot be read as a picture ({said[:200]})", "It is damaged: copy it again, or remove it."
            ) from error

    def thumbnail(self, name: str, side: int) -> bytes:
        """A small picture as a file."""
        picture = self.picture(name, side)
        small = max(picture.size) <= side
        picture.thumbnail((side, side))
        stream = io.BytesIO()
        picture.save(stream, "PNG" if small else "JPEG", **({"optimize": True} if small else {"quality": 82}))
        return stream.getvalue()

    def _open(self, name: str) -> IO[bytes]:
        if self._zip is None:
            return (self.path / name).open("rb")
        entry = self._zip.getinfo(name)
        where = f"{self.path}/{name}"
        if entry.flag_bits & 1:
            raise FileFault(where, "is encrypted", "Pack the pictures again without a password.")
        if entry.file_size > LARGEST:
            raise FileFault(where, f"unpacks to {entry.file_size / 1e6:,.0f} MB", "Remove it from the zip file.")
        with self._zip.open(entry) as packed:
            return io.BytesIO(packed.read(LARGEST))


def open_images(
    path: Path, choices: ColumnChoices, budget: float, size: int, colour: bool, progress: Progress | None
) -> Table:
    """Pictures of a folder, whatever folders they are in there, or of a zip file, in the order of their names.

    Every picture becomes size × size numbers from 0 (black) to 1 (white), in colour three times as many.
    """
    if not 1 <= size <= 4096:
        raise InvalidInputError(f"image_size must lie between 1 and 4096 pixels; got {size}.")
    pa = library("pyarrow", path)
    if choices.group not in (None, "folder"):
        raise FileFault(
            path, f"pictures have no column {choices.group!r} (--group)", "Use --group folder, or leave it out."
        )
    refuse_columns(path, replace(choices, group=None), "holds pictures, which have no columns")
    album = Album(path)
    try:
        files = [
            os.fsencode(name).decode("utf-8", "backslashreplace") for name in album.names
        ]  # some are not called in UTF-8
        folders = [str(PurePosixPath(name).parent) for name in files]
        table = pa.table({"file": files} | ({"folder": folders} if choices.group or set(folders) > {"."} else {}))
        notes = [f"{len(album.names):,} images resized to {size}×{size}, {'colour' if colour else 'grey'}."]
        if album.others:
            notes.append(f"Files that are no pictures were left out: {album.others:,}.")
        X, spool = (
            (np.zeros((len(album.names), 0)), None)
            if choices.elsewhere
            else _pixels(album, size, colour, budget, progress)
        )
        if choices.elsewhere:
            notes = notes[1:]
    except BaseException:
        album.close()
        raise

    def clean() -> None:
        album.close()
        if spool is not None:
            spool.close()

    kind = "images in a folder" if path.is_dir() else "images in a zip file"
    made = PictureTable(path, kind, X, InMemory(table), id_name="file", notes=notes, clean=clean)
    made._album = album
    if choices.group is not None:
        made.groups = group_values(table.column("folder"))
    return made


def _pixels(
    album: Album, size: int, colour: bool, budget: float, progress: Progress | None
) -> tuple[Any, Spool | None]:
    """Numbers of all pictures, in memory or in a temporary file."""
    n, width = len(album.names), size * size * (3 if colour else 1)
    need = 4.0 * n * width
    if need <= budget / 4:
        X = np.empty((n, width), np.float32)
        for start, rows in _blocks(album, size, colour, progress):
            X[start : start + len(rows)] = rows
        return X, None
    with Spool(album.path, width, np.float32, need) as spool:
        for _, rows in _blocks(album, size, colour, progress):
            spool.append(rows)
        return spool.mapped(), spool


def _blocks(album: Album, size: int, colour: bool, progress: Progress | None) -> Iterator[tuple[int, Any]]:
    image = library("PIL.Image", album.path)
    total, done = sum(album.sizes[name] for name in album.names), 0
    for start in range(0, len(album.names), AT_ONCE):
        rows = []
        for name in album.names[start : start + AT_ONCE]:
            picture = album.picture(name, size).convert("RGB" if colour else "L")
            resized = picture.resize((size, size), image.Resampling.LANCZOS, reducing_gap=3.0)
            rows.append(np.asarray(resized, np.float32).ravel() / np.float32(255))
            done += album.sizes[name]
            if progress is not None:
                progress(done, total)
        yield start, np.stack(rows)


def _plain(picture: Any, image: Any) -> Any:
    """Grey (L) or colour (RGB), what is transparent over white; pixels of more than 8 bits are made darker to fit."""
    if picture.mode == "F":
        raise ValueError("its pixels are floating-point numbers; save it with 8 or 16 bits")
    if picture.mode.startswith("I"):
        pixels = np.maximum(np.asarray(picture, np.int64), 0)
        # I;16 says how many bits there are; of I, which has room for 32, the largest value does.
        bits = 16 if picture.mode != "I" else max(8, 16 * (pixels.max() > 255), int(pixels.max()).bit_length())
        return image.fromarray((pixels >> (bits - 8)).astype(np.uint8))
    if picture.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in picture.info:
        over = picture.convert("RGBA")
        white = image.new("RGBA", over.size, "white")
        return image.alpha_composite(white, over).convert("RGB")
    return picture.convert("L" if picture.mode in ("1", "L") else "RGB")


def _hidden(name: str) -> bool:
    """Whether it was put there by a system and not by a person."""
    parts = PurePosixPath(name).parts
    return any(part in ("__MACOSX", "Thumbs.db") or (part[0] == "." and part != "..") for part in parts)
