"""The paper's Algorithm 3: solve with few candidates, add the points that are represented worst as candidates, solve again.

With r candidates S, only their rows of R may differ from zero. K̂ = K_c K_s⁻¹ K_cᵀ is what they express of the kernel, and its
factor F = K_c L⁻ᵀ, K_s = L Lᵀ, has r columns: the program is the one with K̂ and the candidates S, plus lam/2 · tr(K − K̂).

Notes
-----
1. The paper draws candidates among all rows. Equal rows are one point here, and the r points are drawn among these.
2. "Add back" is read as: the r̂ points with the largest errors among those that are no candidates yet.
3. A multiple of the critical strength means that of K̂ in the first round, for all points; the strength stays the same.
4. The certificate is about the program of Algorithm 1, where every point may have a row. K ⪰ K̂, so the dual value of K̂ bounds it:
   s = min(1/max_j z_j, …) with the scores z_j of *all* points. It cannot tell a good choice of candidates from a weak bound.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mosaic.arrays.blocks import FloatArray, IntArray, in_blocks
from mosaic.program.encoding import DesignRows, Encoding
from mosaic.program.solve import Program, lower_bound


def encode_with_few(
    program: Program,
    candidates: IntArray,
    n_added: int,
    n_rounds: int,
    alpha: float | None,
    lam: float | None,
) -> Encoding:
    """The encoding of the last of ``n_rounds`` (the paper's I), which begin with some candidates and add ``n_added`` (r̂) each."""
    posed = program.pose(0.0, candidates)
    lam = posed.strength(alpha, lam)
    lam_crit = posed.lam_crit
    _, encoding = program.solve(posed.restrict(candidates), lam)
    for _ in range(n_rounds - 1):
        error = misrepresentation(encoding)
        error[candidates] = -np.inf
        worst = np.argsort(-error, kind="stable")[: min(n_added, len(error) - len(candidates))]
        candidates = np.union1d(candidates, worst)
        posed = program.pose(0.0, candidates)
        _, encoding = program.solve(posed.restrict(candidates), lam)
    assert isinstance(encoding.member_rows, DesignRows)
    first = encoding.certificate
    problem = posed.problem.with_lam(lam)
    dual = lower_bound(problem, encoding.member_rows.eta, encoding.members)
    certificate = replace(first, dual=min(dual, first.primal))
    return replace(encoding, alpha=lam / lam_crit, certificate=certificate)


def misrepresentation(encoding: Encoding) -> FloatArray:
    """e_j = k_jj − 2 k_jᵀ r_j + r_jᵀ K_s r_j for every point j, r_j the column of R with its coefficients."""
    kernel = encoding.kernel
    members = encoding.members
    rows = encoding.member_rows
    K_s = kernel.block(members, members)
    errors = np.array(kernel.diagonal(), np.float64)

    def compute(points: slice) -> None:
        R = rows.part(slice(None), points)
        errors[points] += ((K_s @ R - 2.0 * kernel.block(points, members).T) * R).sum(axis=0)

    in_blocks(compute, kernel.n, max(len(members), 1))
    return errors
