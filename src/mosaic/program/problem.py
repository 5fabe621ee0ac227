"""The program in design form: the only module with its formulas.

The program of the paper, with K = F Fᵀ and rows r_j of R, is

    P(R) = lam/2 · tr((I − R)ᵀ K (I − R)) + Σ_j ‖r_j‖₂ .

Two exact changes of variables (docs/math) make it small. Rotating the n targets into q coordinates, C = T Tᵀ, does not
change row norms (``RowProgram``, unknown W of n×q), and ‖w‖ = min_η ½(‖w‖²/η + η) leaves n scalars (``DesignProblem``):

    2φ(η) = tr(C M⁻¹) + 1ᵀη,   M = I/lam + Fᵀ diag(η) F,   E = M⁻¹ T = lam · (T − Fᵀ W),
    ∂(2φ)/∂η_j = 1 − v_j,      v_j = z_j² = ‖Eᵀ f_j‖²,      ∇²(2φ) = 2 (F M⁻¹ Fᵀ) ∘ (F M⁻¹ C M⁻¹ Fᵀ).

Certificate: θ = s·E with s = min(1/max_j z_j, lam⟨E,T⟩/‖E‖²) is dual feasible, D = s⟨E,T⟩ − s²‖E‖²/(2 lam) ≤ P.
Weights ω_i of targets, our addition, give the same program with C = Σ ω_i t_i t_iᵀ: solvers need not know of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mosaic.arrays import xp
from mosaic.arrays.blocks import PRODUCT_ENTRIES, FloatArray, IntArray, in_blocks, row_norms_squared
from mosaic.arrays.xp import (
    asarray_like,
    cholesky,
    on_host,
    rows_of,
    solve_lower,
    sum_of_squares,
    with_diagonal,
)
from mosaic.exceptions import InvalidInputError
from mosaic.program import RowNorm

#: Problems of up to this many candidates are solved whole (``working_set``) if their rank is at least a quarter of the number of
#: candidates: the support is then large, and a few steps on all candidates cost less than many rounds. Square ones keep K = F Fᵀ.
MOST_SOLVED_WHOLE = 4000


class PrimalDual(NamedTuple):
    """A value of the program and a lower bound for its optimum."""

    primal: float
    dual: float


class Evaluation(NamedTuple):
    """Value, gradient and Hessian of the design form at one η."""

    inner: float  # ⟨E, T⟩ = tr(C M⁻¹)
    fit: float  # ‖E‖² / lam
    v: FloatArray  # v_j = ‖Eᵀ f_j‖², in float64
    #: Computes the Hessian ½ ∇²(2φ) = Q ∘ V, in the precision of the problem. The last η of a run needs none.
    curvature: Callable[[], Any]


class DualPoint(NamedTuple):
    """E = M⁻¹ T with ⟨E, T⟩ and ‖E‖²/lam: enough to certify any set of candidates."""

    E: FloatArray
    inner: float
    fit: float


@dataclass(frozen=True)
class DesignProblem:
    """Candidates F (n×p), targets C = Σ ω t tᵀ (p×p), strength lam.

    ``square`` says that the targets are the candidates, C = FᵀF, which saves work. ``computed`` holds what no strength changes:
    T and ``grams``.
    """

    F: FloatArray
    C: FloatArray
    lam: float
    square: bool = False
    computed: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n(self) -> int:
        return int(self.F.shape[0])

    @property
    def p(self) -> int:
        return int(self.F.shape[1])

    @cached_property
    def scale(self) -> float:
        """P(0) = lam/2 · tr C: gaps are reported relative to it."""
        return 0.5 * self.lam * float(np.trace(self.C))

    @property
    def T(self) -> FloatArray:
        """T (p×q) with T Tᵀ = C, by Cholesky with pivoting, since C may be singular."""
        if "T" not in self.computed:
            self.computed["T"] = xp.pivoted_root(self.C)
        return self.computed["T"]  # type: ignore[no-any-return]

    @property
    def grams(self) -> tuple[FloatArray, FloatArray]:
        """K = F Fᵀ (n×n) and Y with Y Yᵀ = F C Fᵀ, for the candidate-space formulas."""
        if "grams" not in self.computed:
            K = self.F @ self.F.T
            self.computed["grams"] = K, K if self.square else _narrow(self.F @ self.T)
        return self.computed["grams"]  # type: ignore[no-any-return]

    def restrict(self, candidates: IntArray, *, for_steps: bool = False) -> DesignProblem:
        """Fewer candidates, in NumPy. With ``for_steps``, rows stay where they are, and what evaluations need is taken over."""
        is_double = isinstance(self.F, np.ndarray) and self.F.dtype == np.float64
        if is_double and np.array_equal(candidates, np.arange(self.n)):
            return self
        stays = for_steps and xp.is_on_device(self.F)
        rows = (
            xp.as_double(rows_of(self.F, candidates)) if stays else xp.host_rows(self.F, candidates)
        )
        small = DesignProblem(rows, self.C, self.lam, computed={"T": self.T})
        if for_steps and self.square and "grams" in self.computed and small.in_candidate_space:
            # F C Fᵀ = K K where the targets are the candidates of the whole.
            columns = self.grams[0][candidates]
            small.computed["grams"] = np.ascontiguousarray(columns[:, candidates]), _narrow(columns)
        return small

    def with_lam(self, lam: float) -> DesignProblem:
        return replace(self, lam=lam)

    @property
    def single(self) -> DesignProblem:
        """The same problem in single precision, for steps that prove nothing. Dividing F and T by s and multiplying lam by s²
        changes neither W nor any value; s = max |F| avoids overflow.
        """
        s = float(xp.namespace(self.F).max(abs(self.F))) or 1.0
        if self.in_candidate_space:
            K, Y = self.grams
            gram = xp.as_single(K / s**2)
            computed = {"grams": (gram, gram if Y is K else xp.as_single(Y / s**2))}
        else:
            computed = {"T": xp.as_single(self.T / s)}
        return DesignProblem(
            xp.as_single(self.F / s), self.C / s**2, self.lam * s**2, self.square, computed
        )

    @cached_property
    def in_candidate_space(self) -> bool:
        """Whether n×n formulas are cheaper than p×p ones. On a device they would save little."""
        # Candidates per feature. By operations the second would be higher, but products in feature space run faster.
        ratio = 2.0 if self.square else 1.25
        return self.n <= ratio * self.p and isinstance(self.F, np.ndarray)

    def evaluate(self, eta: FloatArray) -> Evaluation:
        """⟨E,T⟩, ‖E‖²/lam, v and the Hessian at η > 0, in the cheaper of two spaces."""
        eta = eta.astype(xp.numpy_dtype(self.F), copy=False)
        if self.in_candidate_space:
            return self._in_candidate_space(eta)
        return self._in_feature_space(eta)

    def _in_feature_space(self, eta: FloatArray) -> Evaluation:
        """M = L Lᵀ (p×p); X = L⁻¹Fᵀ, A = L⁻¹T, Y = AᵀX: Q = XᵀX, V = YᵀY, v = diag V, ⟨E,T⟩ = ‖A‖²."""
        L = cholesky(self._M(eta))
        X = solve_lower(L, self.F.T)
        A = solve_lower(L, xp.to_device_of(self.F, self.T))
        Y = A.T @ X
        v = row_norms_squared(Y.T).astype(np.float64)
        inner = sum_of_squares(A)
        fit = max(inner - float(eta @ v), 0.0)
        return Evaluation(inner, fit, v, lambda: (X.T @ X) * (Y.T @ Y))

    def _in_candidate_space(self, eta: FloatArray) -> Evaluation:
        """With d = √η and B = I + lam · diag(d) F Fᵀ diag(d) (n×n), by Woodbury's identity

        Q = diag(d)⁻¹ (I − B⁻¹) diag(d)⁻¹,   V = Z Zᵀ,   Z = lam · diag(d)⁻¹ B⁻¹ diag(d) Y,   Y Yᵀ = F C Fᵀ,
        ⟨E,T⟩ = lam · (tr C − Σ_j η_j z_jᵀ y_j),   ‖E‖²/lam = ⟨E,T⟩ − ηᵀv.
        In the square case Z = Q, which saves one product; but (I − B⁻¹)_jj / η_j cancels if lam η_j K_jj is tiny, so
        these rows are computed like those of Z (accurate enough for the Hessian, not for the certificate).
        """
        K, Y = self.grams
        d = np.sqrt(eta)
        B = (self.lam * d)[:, None] * K
        B *= d
        # The cube root of eps leaves two thirds of the digits.
        tiny = np.flatnonzero(np.diagonal(B) < np.cbrt(np.finfo(B.dtype).eps))
        Q = xp.inverse(with_diagonal(B, 1.0))
        exact = tiny if self.square else slice(None)
        Z: FloatArray = (Q[exact] * d) @ Y
        Z *= (self.lam / d[exact])[:, None]
        Q = with_diagonal(np.negative(Q, out=Q), 1.0)
        Q /= d[:, None]
        Q /= d
        if self.square:
            Q[tiny] = Z
            Q[:, tiny] = Z.T
            Z = Q
        v = row_norms_squared(Z).astype(np.float64)
        explained = float(eta @ np.einsum("ij,ij->i", Z, Y))
        inner = self.lam * (float(np.trace(self.C)) - explained)
        fit = max(inner - float(eta @ v), 0.0)
        return Evaluation(inner, fit, v, lambda: (Z @ Z.T) * Q)

    def _M(self, eta: FloatArray) -> Any:
        scaled = xp.to_device_of(self.F, np.sqrt(eta))[:, None] * self.F
        return with_diagonal(scaled.T @ scaled, 1.0 / self.lam)

    def solve_M(self, eta: FloatArray, B: FloatArray) -> Any:
        """M(η)⁻¹ B for any p×m right-hand side, where F is."""
        return xp.solve_with(cholesky(self._M(eta)), B)

    def dual_point(self, eta: FloatArray, members: IntArray | None = None) -> DualPoint:
        """E = M⁻¹T at η ≥ 0 of all candidates or of some members, where zeros are allowed."""
        used = np.flatnonzero(eta)
        E = self.lam * self.T
        if len(used):
            small = self.restrict(
                used if members is None else members[used], for_steps=xp.is_on_device(self.F)
            )
            E = on_host(small.solve_M(eta[used], xp.to_device_of(small.F, self.T)))
        return DualPoint(E, float(np.vdot(E, self.T)), sum_of_squares(E) / self.lam)

    def scores(self, E: FloatArray, candidates: FloatArray | None = None) -> FloatArray:
        """z_j = ‖Eᵀ f_j‖₂ for every candidate (or for the given rows of F), in double precision."""
        F = self.F if candidates is None else candidates
        Et = asarray_like(F, E).T
        z = np.empty(F.shape[0])

        def score(rows: slice) -> None:
            Y = Et @ rows_of(F, rows).T  # this order is fast for a factor stored by columns
            z[rows] = np.sqrt(row_norms_squared(Y.T).astype(np.float64))

        in_blocks(score, F.shape[0], self.p, PRODUCT_ENTRIES, on=F)
        return z


def primal_dual(inner: float, fit: float, penalty: float, largest_score: float) -> PrimalDual:
    """Primal ½ fit + Σ‖w_j‖, w_j = η_j Eᵀ f_j, and dual s·inner − s²·fit/2 with s = min(1/max z, inner/fit)."""
    s = feasible_scale(inner, fit, largest_score)
    return PrimalDual(0.5 * fit + penalty, s * inner - 0.5 * s * s * fit)


def feasible_scale(inner: float, fit: float, largest_score: float) -> float:
    """S = ⟨E,T⟩ lam/‖E‖², but no larger in size than 1/max_j z_j: the best multiple of E that is dual feasible, which is negative
    where first-order methods overshoot, far from the optimum.
    """
    top = 1.0 / largest_score if largest_score > 0 else np.inf
    best = inner / fit if fit > 0 else np.copysign(np.inf, inner) if inner else 0.0
    return float(min(max(best, -top), top))


def critical_lam(problem: DesignProblem, norm: RowNorm = "l2") -> float:
    """lam_crit = 1 / max_j ‖Tᵀ f_j‖, with ‖Tᵀ f_j‖ = ‖K_j‖₂ for the full program, ‖K_j‖₁ for ℓ_∞: up to it R = 0 is optimal."""
    F = problem.F
    if norm == "linf":
        lengths = np.abs(F @ F.T).sum(axis=1)
    elif problem.square and problem.in_candidate_space:
        lengths = np.sqrt(row_norms_squared(problem.grams[0]))
    else:
        lengths = problem.scores(problem.T)
    largest = float(lengths.max(initial=0.0))
    if largest == 0:
        raise InvalidInputError(
            "no candidate resembles any target, so no strength selects anything",
            "Check `candidates` and `kernel`.",
        )
    return 1.0 / largest


def weighted_gram(F: FloatArray, weights: FloatArray) -> FloatArray:
    """C = Σ_i ω_i f_i f_iᵀ in float64, also of a factor in float32: its root T would enlarge the rounding of single precision."""
    n, p = F.shape
    roots = xp.to_device_of(F, np.sqrt(weights))[:, None]

    def gram(rows: slice) -> FloatArray:
        block = xp.as_double(rows_of(F, rows)) * roots[rows]
        return on_host(block.T @ block)

    return sum(in_blocks(gram, n, p, 1 << 21, on=F), start=np.zeros((p, p)))


@dataclass(frozen=True)
class RowProgram:
    """min_W lam/2 ‖T − Fᵀ W‖²_F + Σ_j ‖w_j‖, for row norms ℓ₂ or ℓ_∞: the form for first-order methods.

    With T = Fᵀ (p×n) the unknown is R itself, as in the paper; with the T of ``DesignProblem`` it is smaller. The ℓ_∞
    norm changes under rotation, so its T must be Fᵀ. The dual norm (ℓ₂, ℓ₁) bounds the rows of F E, E = lam (T − FᵀW).
    """

    F: FloatArray
    T: FloatArray
    lam: float
    norm: RowNorm = "l2"

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.F.shape[0]), int(self.T.shape[1])

    @property
    def scale(self) -> float:
        return 0.5 * self.lam * sum_of_squares(self.T)  # P(0)

    @cached_property
    def FT(self) -> FloatArray:
        return np.asarray(self.F @ self.T)

    def apply_K(self, W: FloatArray) -> FloatArray:
        return np.asarray(self.F @ (self.F.T @ W))

    def row_norms(self, W: FloatArray) -> FloatArray:
        return np.sqrt(row_norms_squared(W)) if self.norm == "l2" else np.abs(W).max(axis=1)

    def bounds(self, W: FloatArray) -> PrimalDual:
        """Primal at W and dual at the best feasible multiple of E = lam (T − FᵀW)."""
        KW = self.apply_K(W)
        # ‖T − FᵀW‖² = ‖T‖² − 2⟨FT, W⟩ + ⟨W, KW⟩ and ⟨T − FᵀW, T⟩ = ‖T‖² − ⟨FT, W⟩
        TT = sum_of_squares(self.T)
        cross = float(np.vdot(self.FT, W))
        fit = self.lam * max(TT - 2.0 * cross + float(np.vdot(W, KW)), 0.0)
        inner = self.lam * (TT - cross)
        FE = self.lam * (self.FT - KW)
        z = np.sqrt(row_norms_squared(FE)) if self.norm == "l2" else np.abs(FE).sum(axis=1)
        return primal_dual(inner, fit, float(self.row_norms(W).sum()), float(z.max()))

    def prox(self, V: FloatArray, t: float) -> FloatArray:
        """argmin_W t Σ‖w_j‖ + ½‖W − V‖²: rows shrunk (ℓ₂), or clipped at the level that removes ℓ₁ mass t (ℓ_∞)."""
        if self.norm == "l2":
            norms = np.sqrt(row_norms_squared(V))
            keep = 1.0 - t / np.maximum(norms, t)  # 0 where norms ≤ t
            return V * keep[:, None]
        # The level a ≥ 0 with Σ_i (|v_i| − a)₊ = t, or 0 where ‖v‖₁ ≤ t: by Moreau's identity prox of t‖·‖_∞ is v minus its
        # projection on the ℓ₁ ball of radius t, which is clipping at a.
        sizes = -np.sort(-np.abs(V), axis=1)
        excess = np.cumsum(sizes, axis=1) - t
        number = np.arange(1, V.shape[1] + 1)
        level = np.maximum((excess / number).max(axis=1, keepdims=True), 0.0)
        return np.clip(V, -level, level)


def _narrow(Y: FloatArray) -> FloatArray:
    """Y, or a square matrix with the same Y Yᵀ if Y is more than twice as wide as high, which pays off in a step or two."""
    return np.asarray(np.linalg.qr(Y.T, mode="r")).T if Y.shape[1] > 2 * len(Y) else Y
