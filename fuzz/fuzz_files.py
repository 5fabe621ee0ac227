"""Fuzz the files that the command line reads. Every case runs in a forked child with limits of memory and time.

    OPENBLAS_NUM_THREADS=1 python fuzz_files.py --cases 600 --seconds 480 --out found.jsonl     # mutated files, all kinds
    OPENBLAS_NUM_THREADS=1 python fuzz_files.py --special                                        # files made by hand
    OPENBLAS_NUM_THREADS=1 python fuzz_files.py --kind .mosaic --cases 300                       # saved models, asked to predict
    OPENBLAS_NUM_THREADS=1 python fuzz_files.py --case 123 --keep folder                         # one case again, keep its file

An answer is right if the exit code is 0 and the outputs are whole, or 2 to 6 with one line of words on stderr, no traceback, no
output, nothing temporary left and the input as it was. All else is a DEFECT: exit code 1 ("a fault of ours"), a crash, a
hang, a traceback, leftovers.
"""

import collections
import csv
import gzip
import importlib
import io
import json
import os
import pickle
import re
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import zipfile
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import cases
import numpy as np
import scipy.sparse as sp

LIMIT_S, LIMIT_BYTES = 25, 4 << 30


# ------------------------------------------------------------------ whole files


def bases(folder):
    """Write a file of each kind, and a saved model."""
    import pyarrow as pa
    import pyarrow.feather as pf
    import pyarrow.parquet as pq

    import mosaic

    folder.mkdir()
    X = np.random.default_rng(0).normal(size=(40, 4))
    ids = [f"r{i}" for i in range(40)]
    t = pa.table({"id": ids, **{c: X[:, j] for j, c in enumerate("abcd")}, "text": ["some, text"] * 40})
    numbers = [[ids[i], *(f"{v:.6g}" for v in X[i])] for i in range(40)]
    text = "id,a,b,c,d,text\n" + "".join(",".join(row) + ',"some, text"\n' for row in numbers)
    (folder / "a.csv").write_text(text)
    (folder / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    (folder / "a.tsv").write_text("".join("\t".join(row) + "\n" for row in numbers))
    rows = [{"id": ids[i], **dict(zip("abcd", X[i].tolist(), strict=True)), "t": {"u": [1]}} for i in range(40)]
    (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(t, folder / "a.parquet")
    pq.write_table(t, folder / "b.parquet", compression="gzip", row_group_size=10, use_dictionary=False)
    pf.write_feather(t, folder / "a.feather")
    np.save(folder / "a.npy", X)
    np.savez(folder / "a.npz", X=X, y=np.arange(40))
    np.savez_compressed(folder / "b.npz", X=X)
    sp.save_npz(folder / "c.npz", sp.csr_matrix(X * (X > 0)))
    if find_spec("anndata"):
        import anndata

        anndata.AnnData(X=sp.csr_matrix(np.abs(X * (X > 0))), obs={"g": ["a", "b"] * 20}).write_h5ad(folder / "a.h5ad")
        anndata.AnnData(X=X).write_h5ad(folder / "b.h5ad")
    if find_spec("zarr"):
        import zarr

        zarr.create_array(str(folder / "a.zarr"), shape=X.shape, chunks=(10, 4), dtype="f8")[:] = X
    mosaic.MOSAIC(3).fit(str(folder / "a.csv")).save(folder / "a.mosaic")


# ------------------------------------------------------------------ mutations
TOKENS = [
    b'"', b'""', b"\n", b"\r", b"\r\n", b",", b"\t", b"\0", b"\xef\xbb\xbf", b"\xff\xfe", b"nan", b"inf", b"-inf", b"1e999",
    b"1e-999", b"9" * 400, b"0x10", b"1_000", b"1,5", b"\xc3\x28", b"\xe9", b"{", b"}", b"[", b"null", b"NaN", b"Infinity", b"-",
    b"+", b"\x1b[31m", b"\xe2\x80\xa8", b"=1+1", b"'", b"\\", b"[" * 3000, b"#", b"%", b"a" * 5000, b"\x85", b" ", b"1 2",
    b"true", b"--",
]  # fmt: skip
TEXTS = (".csv", ".tsv", ".jsonl", ".json")


def mutate(rng, data, text):
    b = bytearray(data)
    for _ in range(int(rng.choice([1, 1, 1, 2, 3, 8]))):
        how = rng.choice(["cut", "flip", "set", "insert", "delete", "zero", "double", "swap", "number"])
        at = int(rng.integers(len(b))) if b else 0
        if rng.random() < 0.3:
            at = min(at, 200)
        if how == "cut":
            b = b[:at]
        elif how == "flip" and b:
            b[at] ^= 1 << int(rng.integers(8))
        elif how == "set" and b:
            b[at] = int(rng.choice([0, 1, 0x7F, 0x80, 0xFF, 0x22, 0x2C]))
        elif how == "insert":
            token = TOKENS[int(rng.integers(len(TOKENS)))]
            b[at:at] = token if text or rng.random() < 0.3 else rng.bytes(int(rng.integers(1, 9)))
        elif how == "delete":
            del b[at : at + int(rng.integers(1, 50))]
        elif how == "zero":
            e = min(at + int(rng.integers(1, 64)), len(b))
            b[at:e] = bytes(e - at)
        elif how == "double":
            b[at:at] = b[at : at + int(rng.integers(1, 200))]
        elif how == "swap" and len(b) > 2:
            o = int(rng.integers(len(b)))
            b[at], b[o] = b[o], b[at]
        elif how == "number" and len(b) > 8 and not text:
            v = int(rng.choice([0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1]))
            b[at : at + 8] = struct.pack("<Q", v)[: len(b[at : at + 8])]
    return bytes(b)


def mutated(rng, base, target):
    if base.is_dir():
        shutil.copytree(base, target)
        files = sorted(p for p in target.rglob("*") if p.is_file())
        f = files[int(rng.integers(len(files)))]
        f.write_bytes(mutate(rng, f.read_bytes(), f.suffix == ".json"))
        if rng.random() < 0.1:
            f.unlink()
        return
    data = base.read_bytes()
    if zipfile.is_zipfile(base) and rng.random() < 0.6:  # inside, with right checksums
        out = io.BytesIO()
        with zipfile.ZipFile(base) as z, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as o:
            names = z.namelist()
            hit = names[int(rng.integers(len(names)))]
            for name in names:
                inner = z.read(name)
                o.writestr(name, mutate(rng, inner, False) if name == hit else inner)
        target.write_bytes(out.getvalue())
        return
    if base.suffix == ".gz" and rng.random() < 0.5:
        target.write_bytes(gzip.compress(mutate(rng, gzip.decompress(data), True)))
        return
    target.write_bytes(mutate(rng, data, base.suffix in TEXTS))


# ------------------------------------------------------------------ one run
def run(words, cwd, limit=LIMIT_S):
    """Exit code (negative: signal; "hang": too long), words on stderr, seconds, peak MiB of ``mosaic words`` in a child."""
    out, err, tmp = cwd / ".stdout", cwd / ".stderr", cwd / ".tmp"
    tmp.mkdir()
    started = time.monotonic()
    pid = os.fork()
    if not pid:
        code = 99
        try:
            os.setsid()
            os.chdir(cwd)
            for fd, path in ((1, out), (2, err)):
                os.dup2(os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), fd)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.environ["TMPDIR"] = str(tmp)
            tempfile.tempdir = None
            resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb", closefd=False))
            sys.stderr = io.TextIOWrapper(os.fdopen(2, "wb", closefd=False), line_buffering=True)
            sys.argv = ["mosaic", *words]
            from mosaic.cli import main

            code = main(list(words)) or 0
            sys.stdout.flush()
        except SystemExit as e:
            code = e.code if isinstance(e.code, int) else 0 if e.code is None else 98
        except BaseException:
            os.write(2, traceback.format_exc().encode())
            code = 97
        os._exit(code)
    while time.monotonic() - started < limit:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            break
        time.sleep(0.005)
    else:
        os.killpg(pid, signal.SIGKILL)
        _, _, usage = os.wait4(pid, 0)
        code = "hang"
    return code, err.read_text("utf-8", "replace"), time.monotonic() - started, usage.ru_maxrss // 1024


def judge(cwd, code, text, outputs):
    """What is wrong with a run."""
    faults = []
    if code == "hang":
        faults.append("hang")
    elif code < 0:
        faults.append(f"killed by {signal.Signals(-code).name}")
    elif code in (1, 97, 98, 99):
        faults.append(f"exit code {code}: " + " | ".join(text.strip().splitlines()[-2:])[:300])
    elif code >= 2:
        told = re.findall(r"^mosaic(?: select| outliers| predict)?: error", text, re.MULTILINE)
        if len(told) != 1:
            faults.append(f"{len(told)} lines of error: {text[-200:]!r}")
        if any((ord(c) < 32 and c not in "\n\t") or ord(c) == 127 for c in text):
            faults.append("control characters on stderr")
        if text.count("\n") > 4 or len(text) > 3000:
            faults.append(f"{text.count(chr(10))} lines of {len(text)} characters on stderr")
    faults += [f"on stderr: {line[:160]}" for line in text.splitlines() if "Warning:" in line or "Traceback (most" in line][:1]
    there = [o for o in outputs if (cwd / o).exists()]
    if code == 0 and len(there) < len(outputs):
        faults.append(f"done, and no {set(outputs) - set(there)}")
    if code != 0 and there == outputs:  # of several, those before the one that failed are complete
        faults.append(f"failed, and left {there}")
    found = [p for p in cwd.rglob("*") if p.name.startswith(".mosaic-") or p.suffix == ".part" or p.parent.name == ".tmp"]
    if found:
        faults.append(f"left behind {[p.name for p in found[:3]]}")
    if code == 0 and "out.csv" in there:
        with (cwd / "out.csv").open(newline="", encoding="utf-8") as f:
            delimiter = csv.Sniffer().sniff(f.readline(), ",;\t|").delimiter  # that of the input
            f.seek(0)
            rows = list(csv.reader(f, delimiter=delimiter))
        if not rows or not {"mosaic_rank", "mosaic_score", "representative_row"} & {*rows[0]}:
            faults.append("out.csv has no mosaic columns")
        elif "mosaic_rank" in rows[0] and len(rows) - 1 != 3:
            faults.append(f"{len(rows) - 1} picks instead of 3")
        elif any(len(r) != len(rows[0]) for r in rows):
            faults.append("rows of out.csv have different lengths")
    return faults


def case(number, files, keep=None):
    """Run the case of this number; what it was and how it ended."""
    rng = np.random.default_rng([9, number])
    base = files[int(rng.integers(len(files)))]
    with tempfile.TemporaryDirectory(prefix="fz") as folder:
        cwd, name = Path(folder), base.name
        mutated(rng, base, cwd / name)
        before = (cwd / name).read_bytes() if (cwd / name).is_file() else None
        words, outputs = ["select", name, "-k", "3", "-o", "out.csv", "--report", "r.html", "-q"], ["out.csv", "r.html"]
        if base.suffix == ".mosaic":
            shutil.copy(base.with_name("a.csv"), cwd / "a.csv")
            words, outputs = ["predict", name, "a.csv", "-o", "out.csv", "-q"], ["out.csv"]
        elif rng.random() >= 0.8:
            words, outputs = ["outliers", name, "-o", "out.csv", "-q", "--all"], ["out.csv"]
        code, said, seconds, peak = run(words, cwd)
        faults = judge(cwd, code, said, outputs)
        if before is not None and (cwd / name).read_bytes() != before:
            faults.append("the input was changed")
        if keep:
            shutil.copytree(cwd, keep, dirs_exist_ok=True)
    outcome, detail = ("DEFECT", f"{name}: {'; '.join(faults)}") if faults else (f"exit code {code}", said.strip()[-300:])
    label = {"case": number, "file": name, "words": words[0], "peak": peak, "seconds": round(seconds, 2)}
    return label | {"outcome": outcome, "detail": detail}


# ------------------------------------------------------------------ files made by hand
class Evil:
    def __reduce__(self):
        return (os.system, ("touch PWNED",))


def saved(A):
    """The bytes of a .npy file."""
    file = io.BytesIO()
    np.save(file, A, allow_pickle=True)
    return file.getvalue()


def npy_header(shape, descr="<f8", extra=b""):
    h = str({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    h += b" " * (63 - (len(h) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(h)) + h + extra


def specials(d):
    """By name, a function that makes the file in d and gives its name."""
    X = np.random.default_rng(1).normal(size=(30, 3))
    S = sp.csr_matrix(X * (X > 0))
    body = "".join(",".join(f"{v:.5g}" for v in r) + "\n" for r in X)
    evil = saved(np.array([[Evil()]], dtype=object))

    def put(name, data):
        (d / name).write_bytes(data.encode() if isinstance(data, str) else data)
        return name

    def npz(**members):
        with zipfile.ZipFile(d / "x.npz", "w", zipfile.ZIP_DEFLATED) as z:
            for name, data in members.items():
                z.writestr(f"{name}.npy", data)
        return "x.npz"

    def sparse(**changes):
        parts = {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": np.array(S.shape), "format": np.array(b"csr")}
        np.savez(d / "x.npz", **parts | changes)
        return "x.npz"

    def h5ad(change):
        import anndata
        import h5py

        anndata.AnnData(X=sp.csr_matrix(np.abs(X))).write_h5ad(d / "x.h5ad")
        with h5py.File(d / "x.h5ad", "r+") as f:
            change(f, h5py)
        return "x.h5ad"

    def replaced(f, h5py, external):
        del f["X"]
        if external:
            f["X"] = h5py.ExternalLink("/etc/passwd", "/")
        else:
            f.create_dataset("X", shape=(10**9, 1000), chunks=(1000, 1000), dtype="f8")

    def zarr_huge():
        import zarr

        zarr.create_array(str(d / "x.zarr"), shape=(10**12, 3), chunks=(10**6, 3), dtype="f8")
        return "x.zarr"

    def made(make, name, *more):
        make(*more, d / name)
        return name

    return {
        # NumPy
        "npy 1e12 rows": lambda: put("x.npy", npy_header((10**12, 3), extra=X.tobytes())),
        "npy shape overflows int64": lambda: put("x.npy", npy_header((2**32, 2**32), extra=X.tobytes())),
        "npy negative shape": lambda: put("x.npy", npy_header((-30, 3), extra=X.tobytes())),
        "npy header with code": lambda: put("x.npy", npy_header((30, 3)).replace(b"order': False", b"order': 1+1 ")),
        "npy header 4 GB": lambda: put("x.npy", b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1) + b"{"),
        "npy pickle": lambda: put("x.npy", evil),
        "npy object dtype": lambda: put("x.npy", npy_header((30, 3), "|O", pickle.dumps(Evil()))),
        "npz pickle member": lambda: npz(X=evil),
        "npz pickle beside": lambda: npz(X=saved(X), y=saved(np.array([Evil()] * 30, dtype=object))),
        "npz 1e12 rows": lambda: npz(X=npy_header((10**12, 3), extra=X.tobytes())),
        "npz bomb 6 GB of zeros": lambda: npz(X=npy_header((25_000_000, 4)) + bytes(800_000_000)),
        "npz sparse indices out of range": lambda: sparse(indices=np.full(S.nnz, 10**6, np.int32)),
        "npz sparse indices negative": lambda: sparse(indices=np.full(S.nnz, -7, np.int32)),
        "npz sparse indptr wrong": lambda: sparse(indptr=np.r_[0, np.full(30, 10**6)].astype(np.int32)),
        "npz sparse shape 1e12": lambda: sparse(shape=np.array([10**12, 10**12])),
        "npz sparse format pickled": lambda: sparse(format=np.array(Evil(), dtype=object)),
        # tables
        "csv 1e5 columns": lambda: put("x.csv", ",".join(map(str, range(100_000))) + ("\n" + ",".join(["1.5"] * 100_000)) * 5),
        "csv line of 200 MB": lambda: put("x.csv", b"a,b,t\n1,2,x\n2,3,y\n4,1," + b"z" * 200_000_000 + b"\n5,2,x\n3,3,x\n"),
        "csv one line no newline 100 MB": lambda: put("x.csv", b"1" * 100_000_000),
        "csv quote never closed 50 MB": lambda: put("x.csv", b'a,b\n1,"' + b"2\n" * 25_000_000),
        "csv UTF-16": lambda: put("x.csv", ("a,b,c\n" + body).encode("utf-16")),
        "csv NUL": lambda: put("x.csv", "a,b,c\n" + body + "1,\x002,3\n"),
        "csv latin-1 late": lambda: put("x.csv", b"a,b,t\n" + b"1,2,x\n" * 300000 + b"3,4,\xe9\n"),
        "csv ragged": lambda: put("x.csv", "a,b,c\n" + body + "1,2\n"),
        "csv empty": lambda: put("x.csv", ""),
        "csv only header": lambda: put("x.csv", "a,b\n"),
        "csv inf nan": lambda: put("x.csv", "a,b,c\n" + body + "inf,2,3\nnan,1,2\n"),
        "csv huge finite": lambda: put("x.csv", "a,b,c\n" + body + "1e308,2,3\n-1e308,1,2\n"),
        "csv gz bomb 300 MB": lambda: put("x.csv.gz", gzip.compress(b"a,b\n") + gzip.compress(b"1,2\n" * 25_000_000, 9) * 3),
        "csv gz truncated": lambda: put("x.csv.gz", gzip.compress(("a,b,c\n" + body * 50).encode())[:-100]),
        "jsonl deep objects": lambda: put("x.jsonl", ('{"a":' * 3000 + "1" + "}" * 3000 + "\n") * 3),
        "jsonl huge int": lambda: put("x.jsonl", '{"a": 1, "b": 2}\n' * 5 + '{"a": ' + "9" * 5000 + ', "b": 1}\n'),
        "jsonl types change": lambda: put("x.jsonl", '{"a": 1, "b": 2}\n{"a": "x", "b": 1}\n{"a": [1], "b": 4}\n'),
        # h5ad, zarr
        "h5ad indices out of range": lambda: h5ad(lambda f, _: f["X/indices"].__setitem__(slice(None), 10**6)),
        "h5ad indptr wrong": lambda: h5ad(lambda f, _: f["X/indptr"].__setitem__(1, 2**31 - 1)),
        "h5ad shape 1e12": lambda: h5ad(lambda f, _: f["X"].attrs.__setitem__("shape", np.array([10**12, 3]))),
        "h5ad external link": lambda: h5ad(lambda f, h5py: replaced(f, h5py, True)),
        "h5ad 1e12 never written": lambda: h5ad(lambda f, h5py: replaced(f, h5py, False)),
        "zarr 1e12 never written": zarr_huge,
        # no plain files
        "fifo": lambda: made(os.mkfifo, "x.csv"),
        "folder empty": lambda: made(os.mkdir, "x"),
        "dev zero": lambda: made(os.symlink, "x.csv", "/dev/zero"),
        "link to itself": lambda: made(os.symlink, "x.csv", "x.csv"),
        "link to nothing": lambda: made(os.symlink, "x.csv", "gone.csv"),
        "unknown ending": lambda: put("x.xyz", body),
    }


def special(only):
    """All files made by hand, or those whose name contains one of these parts."""
    counts = collections.Counter()
    for name in specials(Path(".")):
        if not any(part in name for part in only.split(",")):
            continue
        with tempfile.TemporaryDirectory(prefix="fz") as folder:
            cwd = Path(folder)
            try:
                file = specials(cwd)[name]()
            except ImportError as e:
                print(f"skip  {name}: {e}")
                continue
            code, said, seconds, peak = run(["select", file, "-k", "3", "-o", "out.csv", "--report", "r.html", "-q"], cwd)
            faults = judge(cwd, code, said, ["out.csv", "r.html"])
            faults += ["CODE OF A PICKLE HAS RUN"] * (cwd / "PWNED").exists() + [f"peak {peak} MiB"] * (peak > 3000)
        outcome = "DEFECT" if faults else "ok"
        counts[outcome] += 1
        print(f"{outcome:6s} {name:36s} rc={code} {seconds:5.1f}s {peak:5d}MiB  {faults or said.strip()[:170]}", flush=True)
    print(dict(counts))
    return bool(counts["DEFECT"])


def main():
    p = cases.parser(__doc__, 300)
    p.add_argument("--keep", help="a folder for the files of --case")
    p.add_argument("--kind", help="only files whose name ends so")
    p.add_argument("--special", nargs="?", const="", default=None)
    a = p.parse_args()
    # Imported here once, so that children need not.
    for module in ("anndata", "h5py", "jinja2", "PIL.Image", "zarr", "mosaic.cli", "mosaic.show"):
        importlib.import_module(module)
    for module in ("csv", "feather", "json", "parquet"):
        importlib.import_module(f"pyarrow.{module}")
    if a.special is not None:
        return special(a.special)
    with tempfile.TemporaryDirectory() as folder:
        pid = os.fork()  # pyarrow's threads shall not be in the parent of the forks
        if not pid:
            bases(Path(folder) / "base")
            os._exit(0)
        os.waitpid(pid, 0)
        files = sorted((Path(folder) / "base").iterdir())
        # Saved models are cases of their own, so that others keep their numbers.
        files = [f for f in files if (f.name.endswith(a.kind) if a.kind else f.suffix != ".mosaic")]
        return cases.run(lambda number, say=False: case(number, files, a.keep if say else None), a)


if __name__ == "__main__":
    sys.exit(main())
