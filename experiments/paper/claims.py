"""What the paper claims: the words that say so, how they are read and why, and the rule by which runs decide.

Sections are counted as the paper prints them. No claim is without a sentence; sentences that say the same share one entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from experiments.items import AMBIENT, DETECTED, DETECTION_RIVALS, SCALABLE, TABLE_AMBIENT
from experiments.paper import rules, running_time
from experiments.paper._lines import F1_INLIER, MEASURES, Line
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
    "The figure's measure is not named: here the share of outliers among 20 picks of 300 inliers and the outliers, mean over "
    'the ratios 0.1, 0.5 and 1. The ambient dimension is not named either, only that the space is "high-dimensional" and '
    f"outliers are uniform in it: {', '.join(map(str, sorted(AMBIENT)))}, each a reading. Settings are those with the fewest "
    "outliers on other draws, for everybody."
)
FEWER = f"at most half of the share of each of {', '.join(SELECTION_RIVALS)}"
DIMENSION = (
    "The table names neither the dimension nor the positive class nor the number of inliers. Its others end near 0.3 at five "
    "outliers per inlier, which is what calling everything an inlier gives (0.286): inliers are positive. Dimensions: "
    f"{', '.join(map(str, TABLE_AMBIENT))}. Inliers: {DETECTED}, as in our runs of Figure 2."
)
SETTINGS = (
    'Section 5 says "the best parameter is chosen over the validation set", Section 5.4 of the others "their parameters are set '
    "as suggested by the authors\": both are readings. Where settings are chosen, everybody's bandwidths go down to narrow ones."
)
TIMES = (
    "Two tables, of two kinds of points each: every rival by its own algorithm, with one stopping rule for all ADMMs; and the "
    "same programs by the fastest solvers we have, above 1000 points that of a factor of rank 500. Patches of photographs, and "
    "pictures; 20 picks; the text states neither."
)
SHARES = (
    "equal shares are not what it looks for: it covers pixels, in which light counts more than the person; "
    '`kernel="cosine"` leaves the light out, and `groups` with `quotas="equal"` asks for equal shares'
)
MAJORITY = "where outliers are the majority, their counts are no lower than those of inliers, and it has no settings to choose"
WIDE = "outliers are rejected by one wide similarity, in which noise between the folds of a surface resembles many rows"
MUCH = f"at least {running_time.MUCH:g} times the seconds at the largest n that can be compared"

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
        "as 1",
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
        "as 1",
        partial(rules.fewer_outliers, name="swiss_roll"),
        "robustness",
        WIDE,
    ),
    Claim(
        "Frey faces with natural images: the same.",
        {**SUBSTANTIALLY, "5.2 on Fig. 2d": "n2 random natural images [...] resize them to match Frey Face images"},
        "Images are those of CIFAR-10 and BSDS500; 300 of the faces, 20 picks. Nothing else is open.",
        "as 1",
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
        "(redundancy); clean: the share of outliers. On the three manifolds with outliers, ranked among the paper's methods in "
        "every run.",
        "the best mean rank over the three measures and the three manifolds",
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
        "The figure has three rows of five faces: 15 picks, of all pictures of five subjects drawn at random. Of 15 faces at "
        "random, too, almost equally many are of each subject: the claim says something where the method is better than that.",
        "class balance, and draws in which no subject is missed, above those of random picks",
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
        "all 15 pairs of subject and light in every run",
        rules.every_light,
        "faces",
        SHARES,
    ),
    Claim(
        "Better than others in clustering.",
        {"1.1": SUPERIORITY},
        'The experiment under the heading "Clustering Applications" is that with faces, which shows no other method.',
        "class balance, and share of (subject, light), above those of every other",
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
        "mean accuracy above that of every other",
        partial(rules.accuracy, rivals=SELECTION_RIVALS),
        "classification",
        "K-medoids minimises the very distances that 1-NN uses; MOSAIC() covers similarities, and keeps doubtful rows for last",
    ),
    Claim(
        "More accurate than SSM.",
        {"5.3": "outperforms this method with regards to other performance metrics (e.g., classification accuracy)"},
        "As above.",
        "mean accuracy above that of SSM",
        partial(rules.accuracy, rivals=("SSM",)),
        "classification",
        'with 10 picks `algorithm="paper"` is ahead by 0.01, its strength and bandwidth chosen on validation data; MOSAIC() has '
        "nothing to choose",
    ),
    Claim(
        "The scalable variant loses little accuracy.",
        {"5.3": "does not compromise much accuracy in order to earn this speedup"},
        "The same runs. Of 600 rows 100 are candidates, and in three rounds 10 are added twice; the text states no numbers.",
        f"at most {rules.LITTLE} less than on all points",
        rules.little_lost,
        "classification",
    ),
    Claim(
        "Refinement makes the candidates represent all points.",
        {"3.1": "This procedure is repeated for a few iterations to ensure high representability"},
        "The same runs, against as many candidates of which all are random: the errors e_j / k_jj of all points, their mean and "
        "the largest.",
        "errors below those with random candidates",
        rules.refined,
        "classification",
    ),
    Claim(
        "A generic solver is much slower than the ADMM.",
        {
            "5.3": "the Sedumi solver [...] is significantly slower than the ADMM algorithm",
            "3": "ADMM or FISTA-based algorithm [...] which considerable reduces the computational costs",
            "3, of generic solvers": "known not to scale well with the problem size",
        },
        "Clarabel under CVXPY in place of SeDuMi under CVX: interior point, too, to a tolerance of 10⁻³.",
        MUCH,
        partial(rules.slower, pairs={"": (running_time.ADMM, (running_time.GENERIC,))}),
        "running_time",
    ),
    Claim(
        "The scalable variant saves much time.",
        {
            "Abstract": "shown to bring about substantial speedups",
            "5.3": "its substantial saving in computational time",
            "1.1": "substantial speedup enabling the processing of large datasets",
        },
        f"Against the program on all points. {TIMES}",
        MUCH,
        partial(
            rules.slower,
            pairs={
                "as published": (running_time.ADMM_SCALABLE, (running_time.ADMM,)),
                "our solver": (SCALABLE, (running_time.HERO,)),
            },
        ),
        "running_time",
    ),
    Claim(
        "Much faster than all others but SSM.",
        {
            "5.3": "runs extremely faster than the others, except for SSM",
            "1.1": "considerable superiority [...] and algorithm running time",
            "6": "offers substantial speedups compared to other methods",
        },
        '"Our algorithm" may be the scalable one, of which the sentences before speak, or the one on all points: both are '
        f"readings. {TIMES}",
        f"SMRS, DS3, K-medoids and M-kmeans each take {MUCH}",
        partial(rules.slower, pairs=running_time.EACH),
        "running_time",
    ),
    Claim(
        "SSM takes about as long.",
        {"5.3": "except for SSM, which exhibits similar running times"},
        "As above. SSM is here a pivoted Cholesky factorisation of k steps.",
        f"neither takes {running_time.MUCH:g} times the seconds of the other",
        partial(rules.as_fast, pairs={name: (hero, (running_time.SIMILAR,)) for name, (hero, _) in running_time.EACH.items()}),
        "running_time",
    ),
    Claim(
        "Odd patches are those of the salient object.",
        {"5.4.1": "properly match the visually salient regions of the images"},
        "The paper shows examples it chose, and no number. Here the first 20 of 100 photographs, 8 × 8 patches, scored within "
        "each. Objects are mostly in the middle: a map of the centre looks at no picture.",
        "AUC of patches against the mask above that of a map of the centre",
        rules.matches,
        "saliency",
        "a large object resembles many of its own patches, and MOSAIC() reads that as belonging",
    ),
    Claim(
        "Outliers have a higher OP than inliers.",
        {"2.4": "inliers [...] resulting in lower OP values"},
        "In all cases of the two experiments on detection.",
        "AUC of OP above ½ in every case",
        rules.separates,
        "f1_table, structured",
        MAJORITY,
    ),
    Claim(
        "Outliers are represented mainly by themselves.",
        {"2.4": "outliers are unlikely to follow this pattern, by being reconstructed mainly by themselves"},
        "|r_jj| / Σ_i |r_ij|, the share of itself in the representation of an outlier, in all cases of the two experiments.",
        "more than ½ on average, in every case",
        rules.by_themselves,
        "f1_table, structured",
    ),
    Claim(
        "Repetitive outliers hardly take part in representing inliers.",
        {"5.2": "bear weak resemblance to the inliers in terms of their participation in the representation of the whole [...]"},
        "Σ_i |r_ji| over the inliers i, for outliers j that are there more than once, and for inliers j. Swiss roll.",
        "at most half of the part of an inlier",
        rules.weakly,
        "f1_table",
    ),
    Claim(
        "Natural images among Frey faces: the best detector.",
        {"5.4.2": "steadily outperforms all other algorithms in the case of [...] Frey Face"},
        f"The figure names neither ratios nor measure: ratios 0.1 to 5 of {DETECTED} faces; AUC, and F1 with either class "
        f"positive. {SETTINGS}",
        f"better than {', '.join(DETECTION_RIVALS)}, ratio by ratio",
        partial(rules.detection, item="structured", measures=MEASURES["structured"], sets={"": "frey"}, at_once=False),
        "structured",
        MAJORITY,
    ),
    Claim(
        "F1 table: highest at every ratio.",
        {
            "1.1": "remarkably outperforms other state-of-the-art outlier detection methods",
            "6": "remarkably robust to challenging outlier settings such as large number of simple outliers and structured ones",
        },
        f"Table 1, whose first row is bold throughout. {DIMENSION} {SETTINGS}",
        "F1 at the best threshold above the others' at every ratio that can tell",
        partial(rules.detection, item="f1_table", measures=(F1_INLIER,), sets=rules.table_sets(), at_once=True),
        "f1_table",
        WIDE,
    ),
    Claim(
        "F1 table: the others lose track.",
        {"5.4.2": "all other methods lose track of the outliers when their number increases"},
        f"{DIMENSION} {SETTINGS}",
        "from ratio 1 to 5 the others' F1 falls by more",
        rules.falls,
        "f1_table",
        WIDE,
    ),
    Claim(
        "F1 table: its numbers.",
        {"5.4.2, Table 1": "0.930, 0.889, 0.851, 0.816, 0.796"},
        f"{DIMENSION} Only one of them can be that of the table. Settings are chosen on other draws.",
        f"all five within {rules.NEAR}",
        rules.as_printed,
        "f1_table",
    ),
    Claim(
        "F1 table: the numbers of L1-KPCA.",
        {"5.4.2, Table 1": "0.907, 0.741, 0.601, 0.509, 0.309"},
        f"FDR and RML, whose rows the table has, too, are surrogates here. {DIMENSION} {SETTINGS}",
        f"all five within {rules.NEAR}",
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
        "Pruning keeps what is far apart in a metric.",
        {"2.3": "in terms of a metric called shared information distance"},
        "not as stated",
        "With similarities in place of information, k_xx + k_yy − 2 k_xy is the square of a distance, which is no metric. How "
        "far is far enough the text does not say; `diversity` is our rule.",
    ),
    Proven(
        "Rows of larger norm are the more influential ones.",
        {"2.2": "the ones corresponding to higher row-norms can be deemed as more influential ones"},
        "a definition",
        "Influence is that norm.",
    ),
    Proven(
        "Repeated outliers represent each other.",
        {"5.2": "makes the outliers representable by each other"},
        "proved",
        "One of equal points represents all of them, at the same value of the program ([variants](math/variants.md)).",
    ),
    Proven(
        "It captures non-linear structure.",
        {"1.1": "effectively captures non-linear behavior of data lying on manifold structures"},
        "in name",
        "The program sees points through the kernel only, as every kernel method does; what comes of it on manifolds is 1 to 5.",
    ),
    Proven(
        "It generalises the decomposition into low rank plus sparse.",
        {"1.1": "generalizing the low-rank plus sparse matrix decomposition principle to a comprehensive paradigm"},
        "in name",
        "Points are divided into two kinds; no matrix is written as a sum, and no theorem compares the two.",
    ),
    Proven(
        "OP is the probability to be an outlier.",
        {"2.4": "we calculate its probability to be an outlier"},
        "in name",
        "It lies between 0 and 1, since ‖r‖₁/‖r‖_∞ is between 1 and n; no frequency of outliers follows from it.",
    ),
    Proven(
        "Among natural images FDR is second, and falls behind.",
        {"5.4.2": "FDR has the second place [...] its performance deteriorates when the number of outliers grow"},
        "cannot be told",
        "FDR's definition could not be found; a stand-in's numbers say nothing about it.",
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
