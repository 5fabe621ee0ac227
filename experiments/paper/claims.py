"""What the paper claims: the words that say so, how they are read and why, and the rule by which runs decide.

Sections are counted as the paper prints them. No claim is without a sentence; sentences that say the same share one entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from experiments.items import DETECTION_RIVALS, SCALABLE
from experiments.paper import rules, running_time
from experiments.paper._lines import F1_INLIER, Line
from experiments.paper.rules import SELECTION_RIVALS, Found

Rule = Callable[[Sequence[Line]], Found]


@dataclass(frozen=True, eq=False)
class Claim:
    """One claim.

    Attributes
    ----------
    text : in our words
    sentences : section → the words that decide
    reading : how these are understood, and why
    rule : when it holds
    decide : the rule, as a function of the lines
    item : whose runs decide
    why : one sentence that says why MOSAIC() is behind, shown where it is
    """

    text: str
    sentences: Mapping[str, str]
    reading: str
    rule: str
    decide: Rule
    item: str
    why: str = ""


@dataclass(frozen=True, eq=False)
class Proven:
    """A claim that no run decides: mathematics, with the page that has the proof or the example against it."""

    text: str
    sentences: Mapping[str, str]
    status: str
    words: str


SUBSTANTIALLY = {
    "5.2": "substantially outperforms the other approaches as the number of outliers increase",
    "5.2, Fig. 2": "substantially outperforms the other approaches under various outlier types",
    "Abstract": "exhibiting remarkable robustness to various outlier types",
    "1.1": "considerable superiority [...] tolerating random and structured outliers",
}
SUPERIORITY = "considerable superiority [...] including classification and clustering tasks"
HIGH = (
    "The figure's measure is not named: here the share of outliers among 20 picks of 300 inliers and the outliers. The ambient "
    'dimension is not named either, only that the space is "high-dimensional" and outliers are uniform in it: 10, 20, 50 and '
    "100, each a reading. In 3 dimensions, which the words exclude, much noise lies on or beside the manifold; shown beside."
)
FEWER = (
    "In each dimension, mean over the ratios 0.1 to 1: at most half of the share of every other method of the paper "
    f"({', '.join(SELECTION_RIVALS)}). Settings are those with the fewest outliers on another draw, for everybody."
)
DIMENSION = (
    "The table names neither the dimension nor the positive class. Its others end near 0.3 at five outliers per inlier, which "
    "is what calling everything an inlier gives (0.286): inliers are positive. 5, 7, 10 and 20 dimensions are readings."
)
SETTINGS = (
    'Section 5 says "the best parameter is chosen over the validation set", Section 5.4 of the others "their parameters are set '
    "as suggested by the authors\": both are readings. Where settings are chosen, everybody's bandwidths go down to narrow ones."
)
SHARES = (
    "equal shares are not what it looks for: it covers pixels, in which light counts more than the person; `groups` with "
    '`quotas="equal"` asks for them'
)
MAJORITY = "where outliers are the majority, their counts are no lower than those of inliers, and it has no settings to choose"
WIDE = "outliers are rejected by one wide similarity, in which noise between the folds of a surface resembles many rows"

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "Sphere: fewest outliers among the picks.",
        {
            **SUBSTANTIALLY,
            "5.2 on Fig. 2a": "random points in the ambient space of the Sphere [...] embedded n a high-dimensional space",
        },
        HIGH,
        FEWER,
        partial(rules.fewer_outliers, name="sphere"),
        "robustness",
        WIDE,
    ),
    Claim(
        "Trefoil: the same.",
        {
            **SUBSTANTIALLY,
            "5.2 on Fig. 2b": "uniformly random points in the ambient space of the [...] Trefoil Knots datasets",
        },
        HIGH,
        FEWER,
        partial(rules.fewer_outliers, name="trefoil"),
        "robustness",
        WIDE,
    ),
    Claim(
        "Swiss roll with repetitive outliers: the same.",
        {
            **SUBSTANTIALLY,
            "5.2 on Fig. 2c": "we set 0.1 of the n2 uniformly random outliers to be repetitive points",
        },
        f"A tenth of the outliers are copies of others. {HIGH}",
        FEWER,
        partial(rules.fewer_outliers, name="swiss_roll"),
        "robustness",
        WIDE,
    ),
    Claim(
        "Frey faces with natural images: the same.",
        {**SUBSTANTIALLY, "5.2 on Fig. 2d": "n2 random natural images [...] resize them to match Frey Face images"},
        "Images are those of CIFAR-10 and BSDS500; 300 of the faces, 20 picks. Nothing else is open.",
        "Mean over the ratios 0.1 to 1: at most half of the share of every other method of the paper.",
        partial(rules.fewer_outliers, name="frey"),
        "robustness",
        "from one photograph to four faces on, it takes the photographs for a sparse group, which it cannot tell from noise, and "
        "rejects none; told their share (`contamination`), 0 to 5 % of its picks are photographs",
    ),
    Claim(
        "Picks are descriptive, diverse and clean at once.",
        {
            "Abstract": "superiority in achieving the desired characteristics of a representative subset all at once",
            "6": "selection of descriptive and diverse representatives, while rejecting disruptive information",
        },
        "Descriptive: the share of the inliers that the picks explain; diverse: how little of a pick the others express "
        "(redundancy); clean: the share of outliers. On the three manifolds with outliers.",
        "In each of 10 to 100 dimensions: the best mean rank over the three measures and the three manifolds among the paper's "
        "methods.",
        rules.all_at_once,
        "robustness",
        WIDE,
    ),
    Claim(
        "Of five subjects, equally many faces.",
        {
            "5.1": "an almost equal number of samples out of each cluster",
            "5.1, Fig. 1": "chosen adequately form each cluster",
        },
        "The figure has three rows of five faces: 15 picks, of all pictures of five subjects drawn at random.",
        f"Every subject is picked in every run, and the mean class balance is at least {rules.BALANCED} (1 is equal).",
        rules.equal_shares,
        "faces",
        SHARES,
    ),
    Claim(
        "Each under light from right, ahead and left.",
        {
            "5.1": "different emphasis of right, straight, and left side of the faces",
            "5.1, Fig. 1": "right, straight, and left from top to bottom",
        },
        "The paper looks at one draw. Its files have no angles: here light is told by the brightness of the halves of a picture.",
        "In every run all 15 pairs of subject and light are picked.",
        rules.every_light,
        "faces",
        SHARES,
    ),
    Claim(
        "Better than others in clustering.",
        {"1.1": SUPERIORITY},
        'The experiment under the heading "Clustering Applications" is that with faces, which shows no other method.',
        "Class balance and share of (subject, light) above those of every other method of the paper.",
        rules.fairest,
        "faces",
        SHARES,
    ),
    Claim(
        "Classifiers taught by the picks are the best.",
        {
            "1.1": SUPERIORITY,
            "5": "for several classification tasks using the obtained representatives for both synthetic and real data",
        },
        "No set, classifier, number of picks or figure is in the text. Ours: USPS, MNIST, ISOLET, Extended Yale, digits; 1-NN "
        "and linear SVM; k = 10, 30, 100: six readings, means over the sets.",
        "The mean accuracy is above that of every other method of the paper.",
        partial(rules.accuracy, rivals=SELECTION_RIVALS),
        "classification",
        "K-medoids minimises the very distances that 1-NN uses; MOSAIC() covers similarities, and keeps doubtful rows for last",
    ),
    Claim(
        "More accurate than SSM.",
        {"5.3": "outperforms this method with regards to other performance metrics (e.g., classification accuracy)"},
        "As above.",
        "The mean accuracy is above that of SSM.",
        partial(rules.accuracy, rivals=("SSM",)),
        "classification",
    ),
    Claim(
        "The scalable variant loses little accuracy.",
        {"5.3": "does not compromise much accuracy in order to earn this speedup"},
        "The same runs. Of 600 rows 200 are candidates, 20 are added in each of three rounds; the text states no numbers.",
        f"It loses at most {rules.LITTLE} against the method on all points, mean over all runs that both have.",
        rules.little_lost,
        "classification",
    ),
    Claim(
        "A generic solver is much slower than the ADMM.",
        {
            "5.3": "the Sedumi solver [...] is significantly slower than the ADMM algorithm",
            "3": "ADMM or FISTA-based algorithm [...] which considerable reduces the computational costs",
        },
        "Clarabel under CVXPY in place of SeDuMi under CVX: interior point, too. Points are patches of MSRA-B photographs; both "
        "go to a proven gap of 10⁻³.",
        f"At least {running_time.MUCH:g} times the seconds, at the largest number of points that both can do.",
        partial(rules.slower, hero=running_time.ADMM, rivals=(running_time.GENERIC,)),
        "running_time",
    ),
    Claim(
        "The scalable variant saves much time.",
        {
            "Abstract": "shown to bring about substantial speedups",
            "5.3": "its substantial saving in computational time",
        },
        'Against the ADMM on all points, which the figure shows ("the developed ADMM-based and scalable algorithm").',
        f"The ADMM takes at least {running_time.MUCH:g} times the seconds, at the largest number of points that can be compared.",
        partial(rules.slower, hero=SCALABLE, rivals=(running_time.ADMM,)),
        "running_time",
    ),
    Claim(
        "Much faster than all others but SSM.",
        {
            "5.3": "runs extremely faster than the others, except for SSM",
            "1.1": "considerable superiority [...] and algorithm running time",
            "6": "offers substantial speedups compared to other methods",
        },
        '"Our algorithm" may be the scalable one, of which the sentences before speak, or the ADMM: two readings. Patches of '
        "photographs, 20 picks; the text states neither.",
        f"SMRS, DS3, K-medoids and M-kmeans take at least {running_time.MUCH:g} times the seconds, each at the largest common "
        "number of points.",
        partial(rules.all_slower, heroes=(SCALABLE, running_time.ADMM), rivals=running_time.RIVALS),
        "running_time",
    ),
    Claim(
        "SSM takes about as long.",
        {"5.3": "except for SSM, which exhibits similar running times"},
        "As above. SSM is here a pivoted Cholesky factorisation of k steps.",
        f"Neither takes {running_time.MUCH:g} times the seconds of the other.",
        partial(rules.as_fast, heroes=(SCALABLE, running_time.ADMM), rival=running_time.SIMILAR),
        "running_time",
    ),
    Claim(
        "Odd patches are those of the salient object.",
        {"5.4.1": "properly match the visually salient regions of the images"},
        "The paper shows examples it chose, and no number. Here the first 20 of 100 photographs, 8 × 8 patches, scored within "
        "each.",
        f"Mean AUC of patches against the mask at least {rules.MATCH}; below {rules.NO_MATCH} it fails, between it is open.",
        rules.matches,
        "saliency",
        "a large object resembles many of its own patches, and MOSAIC() reads that as belonging",
    ),
    Claim(
        "Outliers have a higher OP than inliers.",
        {"2.4": "inliers [...] resulting in lower OP values"},
        "In all cases of the two experiments on detection.",
        "AUC of OP above ½ in every case.",
        rules.separates,
        "f1_table, structured",
        MAJORITY,
    ),
    Claim(
        "Natural images among Frey faces: the best detector.",
        {"5.4.2": "steadily outperforms all other algorithms in the case of [...] Frey Face"},
        f"The figure names neither ratios nor measure: ratios 0.1 to 5; AUC, and F1 with either class positive. {SETTINGS}",
        f"Strictly better than {', '.join(DETECTION_RIVALS)} at every ratio.",
        partial(rules.detection, item="structured", measures=rules.STRUCTURED_MEASURES, sets={"": "frey"}),
        "structured",
        MAJORITY,
    ),
    Claim(
        "There FDR is second, and falls behind.",
        {"5.4.2": "FDR has the second place [...] its performance deteriorates when the number of outliers grow"},
        "FDR's definition could not be found. The surrogate's numbers say nothing about it.",
        "Cannot be decided.",
        rules.second,
        "structured",
    ),
    Claim(
        "F1 table: highest at every ratio.",
        {
            "1.1": "remarkably outperforms other state-of-the-art outlier detection methods",
            "6": "remarkably robust to challenging outlier settings such as large number of simple outliers and structured ones",
        },
        f"Table 1, whose first row is bold throughout. {DIMENSION} {SETTINGS}",
        f"F1 at the best threshold strictly above that of {', '.join(DETECTION_RIVALS)} at every ratio.",
        partial(rules.detection, item="f1_table", measures=(F1_INLIER,), sets=rules.table_sets()),
        "f1_table",
        WIDE,
    ),
    Claim(
        "F1 table: the others lose track.",
        {"5.4.2": "all other methods lose track of the outliers when their number increases"},
        f"{DIMENSION} {SETTINGS}",
        "From ratio 1 to 5 the F1 of each of the others falls by more than that of the paper's method.",
        rules.falls,
        "f1_table",
        WIDE,
    ),
    Claim(
        "F1 table: its numbers.",
        {"5.4.2, Table 1": "0.930, 0.889, 0.851, 0.816, 0.796"},
        f"{DIMENSION} Settings are chosen on another draw.",
        f"All five within {rules.NEAR}.",
        rules.as_printed,
        "f1_table",
    ),
    Claim(
        "F1 table: the numbers of L1-KPCA.",
        {"5.4.2, Table 1": "0.907, 0.741, 0.601, 0.509, 0.309"},
        f"FDR and RML, whose rows the table has, too, are surrogates here. {DIMENSION} {SETTINGS}",
        f"All five within {rules.NEAR}.",
        partial(rules.as_printed, method="L1-KPCA", defaults=True),
        "f1_table",
    ),
)  # fmt: skip

PROVEN: tuple[Proven, ...] = (
    Proven(
        "The solution is a global optimum, whatever one starts from.",
        {"1.1": "yields a global optimum independent of the initialization"},
        "proved",
        "The program is convex; every solution comes with a bound on its distance from the optimum "
        "([certificate](math/certificate.md)). Algorithm 3 starts from random candidates and depends on them.",
    ),
    Proven(
        "Minimising the ℓ1,∞ program is maximising the coverage of the data.",
        {"4, Theorem 1": "equivalent to maximizing the coverage of the whole collection"},
        "not as stated",
        "There is an inequality, and an example against the equivalence; the program covers by a zonotope "
        "([coverage](math/coverage.md)).",
    ),
    Proven(
        "Non-zero rows are the extreme points.",
        {"4, Theorem 2": "one-to-one correspondence to these extreme points"},
        "one half",
        "Rows go to extreme points only; not every extreme point gets one ([coverage](math/coverage.md)).",
    ),
    Proven(
        "OP is the probability to be an outlier.",
        {"2.4": "we calculate its probability to be an outlier"},
        "in name",
        "It lies between 0 and 1, since ‖r‖₁/‖r‖_∞ is between 1 and n; no frequency of outliers follows from it.",
    ),
    Proven(
        "It is the first that handles manifolds, outliers, several criteria and interpretation at once.",
        {"1.1": "the first manifold learning approach that addresses all the aforementioned shortcomings at once"},
        "not examined",
        "A statement about the literature.",
    ),
    Proven(
        "The scalable variant costs O(r^1.373 ⌈r/P⌉).",
        {"3.1": "reduces the complexity to O(r^1.373 ⌈r/P⌉), where r << n"},
        "not as stated",
        "Algorithm 3 keeps n × r numbers and looks at the error of all n rows in each round, which cannot cost less than n r.",
    ),
)  # fmt: skip
