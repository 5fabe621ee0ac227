"""Fuzz the Python API of mosaic. Each case is made from its number alone, so that every finding can be run again.

    OPENBLAS_NUM_THREADS=1 python fuzz/fuzz_api.py --start 0 --cases 3000 --seconds 480 --out found.jsonl
    OPENBLAS_NUM_THREADS=1 python fuzz/fuzz_api.py --case 1234            # one case, with its traceback

Outcomes: ok, refused (an error of the library, or ValueError/TypeError of scikit-learn's validation), warned, and DEFECT: any
other exception, a RuntimeWarning, more than 20 seconds, a broken invariant, or memory beyond the limit. With a defect, the exit
status is 1.

Data has the sizes of all floats and comes in all kinds of containers; three quarters of the cases have legal settings only, so
that they go deep. Besides what is true of every fit, some cases check that rows times a power of two give the same answer, that
rows far outside have no representative, that metrics are numbers, and that a saved model answers as before.
"""

# ruff: noqa: T201

import argparse
import collections
import copy
import json
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
import scipy.sparse as sp

import mosaic

LIMIT_S = 20


class Hang(BaseException):
    """A case took too long."""


class BrokenInvariantError(AssertionError):
    """An answer contradicts itself."""


def need(ok, words):
    """Raise an error with these words unless the statement is true."""
    if not ok:
        raise BrokenInvariantError(words)


#: How often data is of each kind, and in each form.
KINDS = {
    "normal": 0.16, "blobs": 0.12, "constant": 0.04, "dup": 0.09, "collinear": 0.07, "tiny": 0.05, "denormal": 0.05, "huge": 0.05,
    "hugest": 0.05, "mixedscale": 0.06, "zero": 0.02, "onezero": 0.03, "ints": 0.07, "nan": 0.02, "inf": 0.02, "offset": 0.03,
    "heavy": 0.03, "near": 0.02, "onehot": 0.01, "onehuge": 0.01
}  # fmt: skip
FORMS = {
    "array": 0.2, "f32": 0.08, "f16": 0.03, "fortran": 0.04, "neg": 0.04, "readonly": 0.04, "list": 0.04, "int": 0.08,
    "bool": 0.02, "object": 0.02, "complex": 0.01, "datetime": 0.01, "str": 0.01, "1d": 0.01, "3d": 0.01, "0d": 0.01,
    "empty": 0.01, "emptycols": 0.01, "masked": 0.02, "matrix": 0.02, "sparse": 0.1, "pandas": 0.06, "polars": 0.03,
    "longdouble": 0.01, "pyarrow": 0.01, "structured": 0.01, "strided": 0.02, "bigendian": 0.01, "mixed": 0.04
}  # fmt: skip
#: Forms that no fit takes.
REFUSED_FORMS = ("complex", "datetime", "str", "1d", "3d", "0d", "empty", "emptycols", "structured")


def values(rng, n, d):
    """The kind of the data, and the data, n × d."""
    kind = rng.choice(list(KINDS), p=list(KINDS.values()))
    A = rng.normal(size=(n, d))
    if kind == "blobs":
        A = A * 0.1 + rng.normal(size=(4, d))[rng.integers(0, 4, n)] * 3
    elif kind == "constant":
        A[:] = rng.choice([0.0, 1.0, -3.5, 1e10, 1e-10])
    elif kind == "dup":
        A = A[rng.integers(0, max(n // 3, 1), n)]
    elif kind == "collinear":
        A = np.outer(A[:, 0], A[0]) + (rng.random() < 0.5) * 1e-12 * A
    elif kind == "tiny":
        A *= 10.0 ** -rng.integers(20, 170)
    elif kind == "denormal":
        A *= 10.0 ** -rng.integers(150, 320)
    elif kind == "huge":
        A *= 10.0 ** rng.integers(20, 150)
    elif kind == "hugest":
        A *= 10.0 ** rng.integers(150, 307)
    elif kind == "mixedscale":
        A *= 10.0 ** rng.integers(-30, 30, d)
    elif kind == "zero":
        A[:] = 0
    elif kind == "onezero":
        A[0] = 0
    elif kind == "ints":
        A = np.round(A * 3)
    elif kind == "nan":
        A[rng.integers(n), rng.integers(d)] = np.nan
    elif kind == "inf":
        A[rng.integers(n), rng.integers(d)] = rng.choice([np.inf, -np.inf])
    elif kind == "offset":
        A += 1e8
    elif kind == "heavy":
        A = rng.standard_cauchy(size=(n, d)) ** 3
    elif kind == "onehuge":
        A[0] *= 10.0 ** rng.integers(20, 307)
    elif kind == "near":
        A = 1.0 + A * 1e-15
    elif kind == "onehot":
        A = np.eye(d)[rng.integers(0, d, n)]
    return str(kind), A


def container(rng, A):
    """The data in one of the forms that users have: its name, and the object."""
    form = rng.choice(list(FORMS), p=list(FORMS.values()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if form == "array":
            return "array", A
        if form == "f32":
            return "f32", A.astype(np.float32)
        if form == "f16":
            return "f16", A.astype(np.float16)
        if form == "longdouble":
            return form, A.astype(np.longdouble)
        if form == "bigendian":
            return form, A.astype(">f8")
        if form == "fortran":
            return form, np.asfortranarray(A)
        if form == "neg":
            return form, A[::-1, ::-1]
        if form == "strided":
            big = np.zeros((2 * A.shape[0], 3 * A.shape[1]))
            big[::2, ::3] = A
            return form, big[::2, ::3]
        if form == "readonly":
            B = A.copy()
            B.flags.writeable = False
            return form, B
        if form == "list":
            return form, A.tolist()
        if form == "int":
            t = rng.choice(["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
            info = np.iinfo(t)
            C = (
                rng.integers(info.min, info.max, A.shape, dtype=t, endpoint=True)
                if rng.random() < 0.3
                else np.nan_to_num(np.clip(A * 3, -100, 100)).astype(t)
            )
            return f"int:{t}", C
        if form == "bool":
            return form, A > 0
        if form == "object":
            return form, A.astype(object)
        if form == "complex":
            return form, A.astype(complex)
        if form == "datetime":
            return form, np.nan_to_num(np.clip(A, -9, 9)).astype("i8").astype("datetime64[s]")
        if form == "str":
            return form, A.astype(str)
        if form == "1d":
            return form, A[:, 0]
        if form == "3d":
            return form, A[:, :, None]
        if form == "0d":
            return form, np.float64(A[0, 0])
        if form == "empty":
            return form, A[:0]
        if form == "emptycols":
            return form, A[:, :0]
        if form == "masked":
            return form, np.ma.masked_array(A, mask=rng.random(A.shape) < (0 if rng.random() < 0.3 else 0.1))
        if form == "matrix":
            return form, np.matrix(A)
        if form == "structured":
            return form, np.array([tuple(r) for r in A], dtype=[(f"c{i}", float) for i in range(A.shape[1])])
        if form == "sparse":
            B = A * (rng.random(A.shape) < rng.choice([0.0, 0.1, 0.5, 1.0]))
            fmt = str(rng.choice(["csr", "csc", "coo", "lil", "dok", "dia", "bsr"]))
            cls = rng.choice(["array", "matrix"])
            S = getattr(sp, f"{fmt}_{cls}")(B)
            if fmt in ("csr", "csc"):
                if rng.random() < 0.3 and S.nnz:
                    S.data[rng.integers(S.nnz)] = 0.0
                if rng.random() < 0.3:
                    S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
            if fmt == "coo" and S.nnz and rng.random() < 0.5:  # entries given twice
                r, c = S.coords if hasattr(S, "coords") else (S.row, S.col)
                S = type(S)((np.r_[S.data, S.data], (np.r_[r, r], np.r_[c, c])), shape=S.shape)
            if fmt == "csr" and rng.random() < 0.2 and S.nnz:
                S = S.astype(rng.choice([np.float32, np.int8 if np.abs(S.data).max() < 100 else np.float32]))
            return f"sparse:{fmt}_{cls}", S
        if form == "mixed":
            return "mixed", mixed_frame(rng, A)
        if form == "pandas":
            import pandas as pd

            F = pd.DataFrame(A, columns=[f"c{i}" for i in range(A.shape[1])])
            how = rng.choice(["plain", "index", "cat", "nullable", "dupcols", "intcols", "text", "na"])
            if how == "index":
                F.index = rng.permutation(len(F)) + 7
            elif how == "cat":
                F["c0"] = pd.Categorical((F["c0"] > 0).astype(str))
            elif how == "nullable":
                F = F.convert_dtypes()
            elif how == "dupcols":
                F.columns = ["a"] * A.shape[1]
            elif how == "intcols":
                F.columns = range(A.shape[1])
            elif how == "text":
                F["t"] = "x"
            elif how == "na":
                F = F.convert_dtypes()
                F.iloc[0, 0] = pd.NA
            return f"pandas:{how}", F
        if form == "polars":
            import polars as pl

            F = pl.DataFrame({f"c{i}": A[:, i] for i in range(A.shape[1])})
            if rng.random() < 0.3:
                F = F.with_columns(pl.lit(None, dtype=pl.Float64).alias("c0"))
            return form, F.lazy() if rng.random() < 0.1 else F
        if form == "pyarrow":
            import pyarrow as pa

            return form, pa.table({f"c{i}": A[:, i] for i in range(A.shape[1])})
    raise RuntimeError(form)


def mixed_frame(rng, A):
    """A data frame with columns of numbers, words, dates and truth values; some cells are missing."""
    import pandas as pd

    n = len(A)
    frame = pd.DataFrame({f"n{j}": A[:, j] for j in range(min(A.shape[1], 4))})
    frame["word"] = np.array(["red", "green", "blue"])[rng.integers(0, 3, n)]
    frame["kind"] = pd.Categorical(np.array(list("ab"))[rng.integers(0, 2, n)])
    frame["flag"] = rng.random(n) < 0.5
    frame["day"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1000, n), unit="D")
    frame["note"] = [f"a note of {k} words " * int(k) for k in rng.integers(0, 5, n)]
    frame = frame[list(rng.permutation(frame.columns)[: int(rng.integers(1, len(frame.columns) + 1))])]
    if rng.random() < 0.4:
        frame = frame.mask(rng.random(frame.shape) < 0.1)
    return frame


JUNK = [
    None,
    "x",
    "",
    -1,
    0,
    -0.5,
    float("nan"),
    float("inf"),
    1e308,
    1e-308,
    True,
    [],
    {},
    (1,),
    b"a",
    10**30,
    np.float32(2),
    2.5,
]


LEGAL = {"only": True}  # most cases are made of legal parts, so that they go deep


def pick(rng, legal):
    """One of the legal values, or of those that no parameter takes."""
    pool = JUNK if not LEGAL["only"] and rng.random() < 0.2 else legal
    return pool[int(rng.integers(len(pool)))]


KERNELS = ["rbf"] * 8 + [
    "laplacian",
    "laplacian",
    "polynomial",
    "polynomial",
    "linear",
    "linear",
    "cosine",
    "cosine",
    "diffusion",
    "diffusion",
    "precomputed",
]


def common(rng, s, n):
    """Settings that all estimators and ``solve`` share."""

    def maybe(name, legal, p=0.25):
        if rng.random() < p:
            s[name] = pick(rng, legal)

    maybe("kernel", KERNELS, 0.5)
    maybe(
        "gamma",
        [
            "auto",
            "scale",
            "median",
            1.0,
            1e-6,
            1e6,
            mosaic.EffectiveCount(3),
            mosaic.EffectiveCount(2.0),
            np.float32(0.5),
            1e-300,
            1e300,
        ],
    )
    maybe("degree", [1, 2, 3, 5, 20], 0.1)
    maybe("coef0", [0, 1.0, -1.0, 1e6], 0.1)
    maybe("n_neighbors", [1, 2, 5, n, n + 5], 0.1)
    maybe("alpha" if rng.random() < 0.5 else "lam", [1.1, 2.0, 10, 100.0, 1e6, 1e-3, 1e12, 1.0])
    maybe("solver", ["auto", "interior-point", "admm", "fista", "admm-paper"], 0.3)
    maybe("tol", [1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-9, 0.9, 5.0], 0.3)
    maybe("max_iter", [1, 2, 10, 1000], 0.15)
    maybe("max_rank", [1, 2, 5, 50, n], 0.2)
    maybe("memory_budget", [1e9, 1e5, 1e6, 100, 10**12], 0.1)
    maybe("random_state", [0, 1, 2**32 - 1, None, np.random.default_rng(3), np.random.RandomState(2)], 0.2)
    return s


def selector_settings(rng, n):
    """Settings of ``MOSAIC``."""
    s = common(rng, {}, n)

    def maybe(name, legal, p=0.15):
        if rng.random() < p:
            s[name] = pick(rng, legal)

    maybe(
        "n_representatives",
        [1, 2, 3, max(n // 2, 1), n, n + 1, 0.1, 0.5, 1.0, "auto", np.int64(2), np.float64(0.3), 1e-9],
        0.75,
    )
    maybe("coverage", [0.1, 0.5, 0.9, 0.999, 1.0], 0.08)
    maybe("min_support", [1, 2, 5.5, n, 10 * n], 0.08)
    maybe("scale", ["auto", True, False])
    maybe("diffusion_time", [1, 2, 5, 50], 0.1)
    maybe("outliers", ["reject", "keep", "report"])
    maybe("contamination", ["auto", 0.01, 0.1, 0.3, 0.5, 0.9, 1e-9])
    maybe("min_group", [1, 2, 3.5, n])
    maybe("diversity", ["auto", 0, 0.1, 0.5, 0.9, 1.0, 1e-6])
    maybe("mode", ["auto", "paper"], 0.2)
    maybe("op_threshold", [0.1, 0.5, 0.9, 0.99, 0, 1], 0.08)
    maybe("warm_start", [True, False], 0.1)
    maybe("strategy", ["auto", "exact", "low-rank", "sketch"], 0.3)
    maybe("n_initial", [1, 2, 5, n, 500], 0.12)
    maybe("n_added", [0, 1, 2, n], 0.12)
    maybe("n_rounds", [0, 1, 2, 5], 0.12)
    maybe("n_jobs", [1, 2, -1, None], 0.08)
    return s


def wishes(rng, n, fit=True):
    """Arguments of ``fit`` besides the data."""
    w = {}
    if rng.random() < 0.25:
        w["sample_weight"] = [
            np.ones(n),
            np.zeros(n),
            rng.random(n),
            rng.integers(0, 3, n),
            -np.ones(n),
            np.full(n, np.nan),
            np.ones(n + 1),
            np.r_[1e300, np.ones(n - 1)],
            np.r_[1e-300, np.ones(n - 1)],
            rng.integers(0, 2, n).astype(bool),
            list(range(n)),
            1.0,
            np.full(n, 1e308),
            np.full(n, 1e-310),
            np.r_[1.0, np.zeros(n - 1)],
            ["a"] * n,
            np.ones((n, 1)),
            np.full(n, np.inf),
        ][int(rng.integers(18)) if not LEGAL["only"] else int(rng.choice([0, 2, 3, 7, 8, 9, 10, 12, 13, 14]))]
    for name, p in (("must_include", 0.1), ("candidates", 0.1), ("exclude", 0.1 if fit else 0)):
        if rng.random() < p:
            w[name] = [
                [0],
                [0, 0],
                list(range(n // 2 + 1)),
                [n],
                [-1],
                [],
                np.zeros(n, bool),
                np.ones(n, bool),
                rng.random(n) < 0.5,
                [0.0],
                [1.5],
                ["a"],
                np.array([0], np.uint8),
                np.ones(n + 1, bool),
                0,
                {0},
                range(n),
            ][int(rng.integers(17)) if not LEGAL["only"] else int(rng.choice([0, 2, 7, 8, 12, 16]))]
    if fit and rng.random() < 0.12:
        w["groups"] = [
            rng.integers(0, 3, n),
            np.array(list("abc"))[rng.integers(0, 3, n)],
            [None] * n,
            np.full(n, np.nan),
            rng.integers(0, 2, n + 1),
            [("a", 1)] * n,
            rng.random(n),
            np.array(["a", 1] * n, object)[:n],
        ][int(rng.integers(8)) if not LEGAL["only"] else int(rng.integers(2))]
        if rng.random() < 0.6:
            w["quotas"] = [
                "equal",
                "proportional",
                {0: 1},
                {"a": 1, "b": 1},
                {"a": 0.5},
                {0: 1, 1: 1, 2: 1},
                {0: -1},
                {},
                3,
                "x",
                {0: True},
                {"a": float("nan")},
            ][int(rng.integers(12)) if not LEGAL["only"] else int(rng.integers(2))]
    if not fit and rng.random() < 0.1:
        w["cost"] = [
            np.ones(n),
            rng.random(n) + 0.1,
            np.zeros(n),
            np.full(n, 1e-300),
            np.full(n, 1e300),
            np.full(n, np.nan),
            np.r_[1e8, np.ones(n - 1)],
        ][int(rng.integers(7)) if not LEGAL["only"] else int(rng.choice([0, 1, 6]))]
    return w


def finite(obj, *names):
    """Check that attributes hold finite numbers."""
    for name in names:
        v = np.asarray(getattr(obj, name), float)
        need(np.isfinite(v).all(), f"{name} is not finite: {v.ravel()[:4]}")


def n_of(X):
    """Number of rows."""
    return X.shape[0] if hasattr(X, "shape") else len(X)


def check_selector(m, X, s, w, rng):
    """Check what is true of every choice."""
    n = n_of(X)
    i = np.asarray(m.representative_indices_)
    need(i.ndim == 1 and i.dtype.kind in "iu", f"indices {i.dtype} {i.shape}")
    need(len(i) > 0, "nothing chosen")
    need(len(set(i.tolist())) == len(i), f"indices repeat: {i}")
    need((i >= 0).all() and (i < n).all(), f"indices out of range: {i}")
    need(m.n_representatives_ == len(i), "n_representatives_ is not their number")
    k = s.get("n_representatives", "auto")
    if (
        s.get("mode", "auto") == "auto"
        and isinstance(k, (int, np.integer))
        and not isinstance(k, bool)
        and s.get("coverage") is None
        and s.get("min_support") is None
    ):
        need(len(i) == k, f"asked for {k}, got {len(i)}")
    finite(
        m,
        "influence_",
        "effective_count_",
        "outlier_probability_",
        "representation_error_",
        "coverage_",
        "alpha_",
        "lam_",
    )
    op = np.asarray(m.outlier_probability_)
    need((op >= -1e-9).all() and (op <= 1 + 1e-9).all(), f"outlier probability {op.min()} … {op.max()}")
    e = np.asarray(m.representation_error_)
    need((e >= -1e-9).all() and (e <= 1 + 1e-6).all(), f"representation error {e.min()} … {e.max()}")
    need(-1e-9 <= m.coverage_ <= 1 + 1e-9, f"coverage {m.coverage_}")
    need((np.asarray(m.influence_) >= 0).all(), "negative influence")
    L = np.asarray(m.labels_)
    need(L.shape == (n,) and (L >= -1).all() and (len(i) > L).all(), "labels out of range")
    need(len(m.is_outlier_) == n, "is_outlier_ has another length")
    if s.get("strategy") != "sketch" and "sample_weight" not in w:
        need((L[i] == np.arange(len(i))).all(), f"a representative does not stand for itself: {L[i]}")
    if s.get("outliers", "reject") == "reject" and s.get("mode", "auto") == "auto" and "must_include" not in w:
        need(not np.asarray(m.is_outlier_)[i].any(), f"an outlier was chosen: {i[np.asarray(m.is_outlier_)[i]]}")
    for name in ("must_include", "exclude", "candidates"):
        if name in w:
            raw = w[name]
            rows = (
                np.flatnonzero(raw)
                if getattr(np.asarray(list(raw) if isinstance(raw, (set, range)) else raw), "dtype", None) == np.bool_
                else np.atleast_1d(np.asarray(list(raw) if isinstance(raw, (set, range)) else raw)).astype(int)
            )
            chosen = set(i.tolist())
            if name == "must_include":
                need(set(rows.tolist()) <= chosen, "must_include is missing")
            elif name == "exclude":
                need(not (set(rows.tolist()) & chosen), "an excluded row was chosen")
            elif "must_include" not in w:
                need(chosen <= set(rows.tolist()), "a row that is no candidate was chosen")
    c = m.certificate_
    for name in ("gap", "kernel_error", "error", "bound"):
        v = getattr(c, name)
        need(np.isfinite(v), f"certificate.{name} = {v}")
    need(c.gap >= -1e-9, f"gap {c.gap} < 0")
    need(c.kernel_error >= -1e-12, f"kernel_error {c.kernel_error}")
    need(
        c.error >= c.bound * (1 - 1e-6) - 1e-12 * max(abs(c.bound), abs(c.error)),
        f"error {c.error} is below the bound {c.bound}",
    )
    str(c), repr(m), str(m.explain()), str(m.explain(int(i[0]))), str(m.explain(int(rng.integers(n))))
    if isinstance(m, mosaic.MOSAIC) and s.get("kernel") not in ("precomputed",):
        P = m.predict(X)
        need(P.shape == (n,) and (P >= -1).all() and (len(i) > P).all(), "predict out of range")
        if s.get("strategy") != "sketch" and s.get("kernel") != "diffusion":
            need((P[i] == np.arange(len(i))).all() or "sample_weight" in w, f"predict of the representatives: {P[i]}")
        T = m.transform(X)
        need(T.shape == (n, len(i)) and np.isfinite(T).all(), "transform")
        need(np.isfinite(m.score_samples(X)).all(), "score_samples is not finite")
        q = m.score(X)
        need(np.isfinite(q) and -1e-9 <= q <= 1 + 1e-9, f"score {q}")
        check_elsewhere(m, X, s, w, rng)
    picked = m.select(X)
    need(n_of(picked) == len(i), "select gives another number of rows")
    need(m.get_support().sum() == len(i), "get_support")


def check_elsewhere(m, X, s, w, rng):
    """Check answers for rows far outside, for rows in another unit, by the metrics, and of a saved model."""
    n, chance = n_of(X), rng.random()
    kernel = s.get("kernel", "rbf")
    if kernel in ("rbf", "laplacian", "diffusion", "cosine") and isinstance(X, np.ndarray) and X.dtype == np.float64:
        far = np.where(np.asarray(X[:1]) >= 0, 1.0, -1.0) * 10.0 ** rng.integers(100, 308)
        need(m.predict(far).shape == (1,) and np.isfinite(m.score_samples(far)).all(), "far rows")
        need(np.isfinite(m.transform(far)).all(), "transform of far rows")
    if chance < 0.15 and isinstance(s.get("gamma", "auto"), str) and "random_state" not in s:
        check_other_unit(m, X, s, w, rng)
    if chance > 0.9:
        chosen, similarity = np.arange(len(m.selection_.chosen)), m.selection_.chosen_kernel
        share = mosaic.metrics.explained_share(similarity, chosen[:1])
        need(-1e-9 <= share <= 1 + 1e-9, f"explained share {share}")
        need(np.isfinite(mosaic.metrics.hausdorff_radius(similarity, chosen[:1])), "hausdorff radius")
        need(0 <= mosaic.metrics.diversity(similarity, chosen) <= 2, "diversity")
        need(0 <= mosaic.metrics.redundancy(similarity, chosen) <= 1, "redundancy")
    if hasattr(m, "save") and hasattr(mosaic, "load") and chance < 0.1:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.mosaic")
            m.save(path)
            other = mosaic.load(path)
        need(np.array_equal(m.predict(X), other.predict(X)), "a saved model predicts otherwise")
        need(n == n_of(X), "saving changed the data")


def check_other_unit(m, X, s, w, rng):
    """Check that rows times a power of two have the same representatives."""
    ordinary = isinstance(X, np.ndarray) and X.dtype == np.float64 and s.get("mode", "auto") == "auto"
    sizes = np.abs(X[X != 0]) if ordinary else np.zeros(0)
    if (
        not sizes.size
        or sizes.min() < 1e-10
        or sizes.max() > 1e10
        or s.get("kernel", "rbf") not in ("rbf", "laplacian", "cosine")
    ):
        return
    other = mosaic.MOSAIC(**s).fit(X * 2.0 ** int(rng.integers(-900, 900)), **copy.deepcopy(w))
    same = np.array_equal(other.representative_indices_, m.representative_indices_)
    need(same, f"in another unit: {other.representative_indices_}, not {m.representative_indices_}")


def check_detector(m, X, s):
    """Check what is true of every detector."""
    n = n_of(X)
    finite(m, "effective_count_", "outlier_probability_", "alpha_", "lam_")
    need(len(m.is_outlier_) == n, "is_outlier_ length")
    need(m.certificate_.gap >= -1e-9 and np.isfinite(m.certificate_.gap), f"gap {m.certificate_.gap}")
    str(m.certificate_), repr(m), str(m.explain()) if hasattr(m, "explain") else None
    if s.get("kernel") == "precomputed":
        return
    sc = m.score_samples(X)
    need(np.isfinite(sc).all() and sc.shape == (n,), "score_samples is not finite")
    need(np.allclose(m.decision_function(X), sc - m.offset_), "decision_function")
    P = m.predict(X)
    need(set(np.unique(P)) <= {-1, 1}, f"predict {np.unique(P)}")


def check_encoding(e, X, s, w):
    """Check an encoding against its own program, computed anew."""
    n = n_of(X)
    need(np.isfinite(e.influence).all() and (e.influence >= 0).all() and e.influence.shape == (n,), "influence")
    c = e.certificate
    need(
        np.isfinite([c.primal, c.dual, c.scale, c.gap, c.kernel_error]).all(),
        f"certificate {c.primal} {c.dual} {c.scale} {c.gap}",
    )
    need(c.gap >= -1e-9, f"gap {c.gap} < 0")
    need(np.isfinite(e.effective_count).all() and (e.effective_count >= 1 - 1e-9).all(), "effective counts")
    need(np.isfinite(e.representation_error).all(), "representation_error")
    str(c), repr(e)
    R = e.rows(np.arange(n))
    need(np.isfinite(R).all(), "rows are not finite")
    if (not w and s.get("kernel") != "precomputed") or not w:
        g = e.groups
        K = np.asarray(e.kernel.block(np.arange(e.kernel.n), np.arange(e.kernel.n)), float)[np.ix_(g.group, g.group)]
        A = np.eye(n) - R
        norm = np.linalg.norm(R, axis=1) if e.row_norm == "l2" else np.abs(R).max(axis=1)
        value = 0.5 * e.lam * np.einsum("ij,ik,kj->", A, K, A) + norm.sum()
        slack = 1e-6 * max(abs(value), abs(c.primal), abs(c.scale)) + 1e-12
        need(
            value <= c.primal + slack,
            f"certificate says primal {c.primal:.9g}, it is {value:.9g} (scale {c.scale:.3g})",
        )
        need(value >= c.dual - slack, f"certificate says dual {c.dual:.9g}, above the value {value:.9g}")


def frozen(X):
    """Copies of the arrays of the data."""
    try:
        if sp.issparse(X):
            return [
                getattr(X, a).copy()
                for a in ("data", "indices", "indptr", "row", "col")
                if hasattr(X, a) and isinstance(getattr(X, a), np.ndarray)
            ]
        if isinstance(X, np.ndarray):
            return [X.copy()]
    except Exception:
        pass
    return []


def same_frozen(a, b):
    """Whether arrays are as they were."""
    return len(a) == len(b) and all(
        x.shape == y.shape and x.dtype == y.dtype and x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True)
    )


def case(number, say=False):
    """Run the case of this number; what it was and how it ended."""
    rng = np.random.default_rng([8, number])
    LEGAL["only"] = bool(rng.random() < 0.75)
    n, d = int(rng.integers(1, 61)) if rng.random() < 0.8 else int(rng.integers(1, 4)), int(rng.integers(1, 21))
    kind, A = values(rng, n, d)
    target = str(
        rng.choice(["MOSAIC", "Sampler", "Detector", "solve", "path", "estimate"], p=[0.38, 0.06, 0.2, 0.2, 0.08, 0.08])
    )
    if target in ("MOSAIC", "Sampler"):
        s, w = selector_settings(rng, n), wishes(rng, n)
    elif target == "Detector":
        s = common(rng, {}, n)
        if rng.random() < 0.3:
            s["contamination"] = pick(rng, ["auto", 0.01, 0.1, 0.5, 1e-9])
        if rng.random() < 0.2:
            s["min_group"] = pick(rng, [1, 2, 5, n])
        if rng.random() < 0.2:
            s["max_samples"] = pick(rng, [1, 2, 10, 1000])
        if rng.random() < 0.2:
            s["scale"] = pick(rng, [True, False, "auto"])
        w = {k: v for k, v in wishes(rng, n).items() if k == "sample_weight"}
    elif target == "solve":
        s, w = common(rng, {}, n), wishes(rng, n, fit=False)
        if isinstance(s.get("gamma"), str) and s["gamma"] == "auto":
            s["gamma"] = "scale"
        if rng.random() < 0.05 and n <= 12:
            s["solver"] = "reference"
            s.pop("tol", None)
        if rng.random() < 0.15:
            s["row_norm"] = pick(rng, ["l2", "linf"])
            n = min(n, 25)
            A = A[:n]
            w = {}
    elif target == "path":
        s, w = selector_settings(rng, n), {}
        for name in ("n_representatives", "coverage", "min_support"):
            s.pop(name, None)
        s["max_representatives"] = pick(rng, [1, 2, 5, n, 100])
    else:
        s, w = selector_settings(rng, n), {}
    if isinstance(s.get("kernel"), str) and s["kernel"] == "precomputed" and rng.random() < 0.8:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            A = A @ A.T
    if s.get("tol") == 1e-9 and s.get("solver") in ("admm", "fista", "admm-paper"):
        s["max_iter"] = 200
    form, X = container(rng, A)
    while LEGAL["only"] and form.split(":")[0] in REFUSED_FORMS:
        form, X = container(rng, A)
    label = {
        "case": number,
        "target": target,
        "n": n,
        "d": d,
        "data": kind,
        "form": form,
        "settings": {k: repr(v)[:60] for k, v in s.items()},
        "wishes": {k: repr(v)[:80] for k, v in w.items()},
    }
    before = frozen(X)

    def work():
        if target in ("MOSAIC", "Sampler"):
            m = (mosaic.MOSAIC if target == "MOSAIC" else mosaic.MOSAICSampler)(**s)
            m.fit(X, **copy.deepcopy(w))
            check_selector(m, X, s, w, rng)
        elif target == "Detector":
            m = mosaic.MOSAICOutlierDetector(**s)
            m.fit(X, **copy.deepcopy(w))
            check_detector(m, X, s)
        elif target == "solve":
            check_encoding(mosaic.solve(X, **s, **copy.deepcopy(w)), X, s, w)
        elif target == "path":
            c = mosaic.path(X, **s)
            need(len(set(c.indices.tolist())) == len(c.indices), "indices of the path repeat")
            need(np.isfinite(c.similarity).all() and np.isfinite(c.coverage).all(), "the path is not finite")
            need((np.diff(c.coverage) >= -1e-9).all(), "the coverage falls")
            need(1 <= c.knee <= len(c.indices), f"knee {c.knee} of {len(c.indices)}")
            repr(c)
        else:
            q = mosaic.estimate(X, **s)
            str(q)
            for name in ("memory", "seconds", "rank"):
                v = getattr(q, name, 1.0)
                need(np.isfinite(float(v)) and float(v) >= 0, f"estimate.{name} = {v}")

    def on_alarm(*_):
        raise Hang

    signal.signal(signal.SIGALRM, on_alarm)
    signal.alarm(LIMIT_S)
    started = time.perf_counter()
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                work()
                outcome, detail = "ok", ""
            except mosaic.MosaicError as error:
                outcome, detail = "refused", f"{type(error).__name__}: {error}"
                if "\n" in str(error) or not str(error).strip():
                    outcome, detail = "DEFECT", f"message: {detail}"
            except BrokenInvariantError as error:
                outcome, detail = "DEFECT", f"invariant: {error}"
            except Hang:
                outcome, detail = "DEFECT", f"hang: over {LIMIT_S} s"
            except (ValueError, TypeError, Exception) as error:
                where = list(traceback.extract_tb(error.__traceback__))
                last = where[-1].filename
                inside = [f for f in where if f"{os.sep}mosaic{os.sep}" in f.filename]
                at = f"{os.path.basename(inside[-1].filename)}:{inside[-1].lineno}" if inside else ""
                clear = isinstance(error, (ValueError, TypeError)) and (
                    ("sklearn" in last and "validation" in last) or "_param" in last
                )
                outcome = "refused" if clear else "DEFECT"
                place = f"[{at}; {os.path.basename(last)}:{where[-1].lineno}]"
                detail = f"{'sklearn' if clear else 'exception'}: {type(error).__name__}: {str(error)[:200]} {place}"
                if say:
                    traceback.print_exc()
            noisy = [x for x in seen if issubclass(x.category, RuntimeWarning)]
            other = [x for x in seen if not issubclass(x.category, (RuntimeWarning, mosaic.ConvergenceWarning))]
            if noisy and outcome != "DEFECT":
                x = noisy[0]
                detail = f"RuntimeWarning ({outcome}): {x.message} [{os.path.basename(x.filename)}:{x.lineno}]"
                outcome = "DEFECT"
            if other and outcome == "ok":
                x = other[0]
                outcome, detail = (
                    "warned",
                    f"{x.category.__name__}: {str(x.message)[:150]} [{os.path.basename(x.filename)}:{x.lineno}]",
                )
    except Hang:
        outcome, detail = "DEFECT", f"hang: over {LIMIT_S} s"
    finally:
        signal.alarm(0)
    if outcome != "DEFECT" and not same_frozen(before, frozen(X)):
        outcome, detail = "DEFECT", "invariant: the caller's X was changed"
    label |= {"outcome": outcome, "detail": detail, "seconds": round(time.perf_counter() - started, 3)}
    return label


def main():
    """Run many cases, or one."""
    p = argparse.ArgumentParser()
    p.add_argument("--start", type=int, default=0)
    p.add_argument("--cases", type=int, default=1000)
    p.add_argument("--seconds", type=float, default=480)
    p.add_argument("--case", type=int)
    p.add_argument("--out", default="fuzz_api.jsonl")
    a = p.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    if a.case is not None:
        print(json.dumps(case(a.case, say=True), indent=1, default=str))
        return 0
    counts, kinds, end = collections.Counter(), collections.defaultdict(list), time.monotonic() + a.seconds
    done = 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with open(a.out, "a") as out:
        for number in range(a.start, a.start + a.cases):
            if time.monotonic() > end:
                break
            r = case(number)
            now = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            if now - peak > 400_000:
                r["outcome"], r["detail"] = "DEFECT", f"memory: peak rose by {(now - peak) // 1024} MiB; " + r["detail"]
            peak = max(peak, now)
            done += 1
            counts[r["outcome"]] += 1
            if r["outcome"] in ("DEFECT", "warned") or r["seconds"] > 5:
                key = re.sub(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?", "#", r["detail"].split(" [")[0])[:90] + (
                    " [" + r["detail"].split(" [")[1] if " [" in r["detail"] else ""
                )
                kinds[f"{r['outcome']} {key}"].append(number)
            out.write(json.dumps(r, default=str) + "\n")
    print(done, "cases", dict(counts), "peak MiB", peak // 1024)
    for key, numbers in sorted(kinds.items(), key=lambda x: -len(x[1])):
        print(f"{len(numbers):5d}  {key}   e.g. {numbers[:4]}")
    return int(counts["DEFECT"] > 0)


if __name__ == "__main__":
    sys.exit(main())
