"""What a notebook shows of an estimator, and what a program hears that listens to a fit."""

import re
import xml.etree.ElementTree as ElementTree
from html import unescape

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mosaic import MOSAIC, InvalidInputError, MOSAICOutlierDetector, MOSAICSampler, datasets
from mosaic.estimators import listening
from mosaic.text import at_most
from sources import open_source

BLOBS = datasets.blobs_with_gross_outliers()


@pytest.mark.parametrize("kind", [MOSAIC, MOSAICSampler])
def test_fitted_selector_shows_answer_and_picks_and_the_proof_once_it_is_known(kind):
    model = kind(20)
    assert "mosaic-card" not in model._repr_html_()
    html = model.fit(BLOBS.X)._repr_html_()
    assert "20 representatives of 400 rows, coverage 91.1 %; 8 outliers set aside." in html
    assert all(f">{row}</td>" in html for row in model.representative_indices_[:6])
    assert "and 14 more" in html
    assert "rovably" not in html  # nobody has asked for a proof, which takes time
    assert not model.selection_.is_proven
    assert "Not fitted" not in html
    assert model._repr_mimebundle_()["text/html"].startswith('<div class="mosaic-card"')
    assert f"Provably within {at_most(model.certificate_.gap)} of the best 20" in model._repr_html_()
    for outliers, told in (
        ("report", "; 8 outliers reported."),
        ("keep", f"coverage {100 * MOSAIC(5, outliers='keep').fit(BLOBS.X).coverage_:.1f} %.<"),
    ):
        assert told in kind(5, outliers=outliers).fit(BLOBS.X)._repr_html_()


def test_detector_shows_its_outliers_and_pipelines_and_plain_display_are_left_to_scikit_learn():
    detector = MOSAICOutlierDetector()
    assert "mosaic-card" not in detector._repr_html_()
    html = detector.fit(BLOBS.X)._repr_html_()
    assert "8 outliers among 400 rows." in html
    assert "and 2 more" in html
    assert "sk-estimator" in detector._repr_html_()
    pipeline = make_pipeline(StandardScaler(), MOSAIC(5)).fit(BLOBS.X)
    assert "mosaic-card" not in pipeline._repr_html_()
    assert not pipeline[-1].selection_.is_proven  # nothing was proven for the picture
    with config_context(display="text"):
        assert not hasattr(MOSAIC(5), "_repr_html_")


def text_of(thing):
    return " ".join(" ".join(ElementTree.fromstring(thing._repr_html_()).itertext()).split())


def test_tables_have_the_cells_of_picks_and_the_odd_cells_of_outliers(rng):
    pl = pytest.importorskip("polars")
    names = [f"C{i}" for i in range(200)]
    ages = rng.normal(40, 8, 200).round()
    others = dict(zip("abcdef", rng.normal(size=(6, 200)), strict=True))
    frame = pl.DataFrame({"id": names, "age": ages, "city": rng.choice(["Ulm", "Rome"], 200), **others})
    frame[17, "age"] = 999
    model = MOSAIC(8).fit(frame)
    facts = text_of(model.facts_)
    first = model.representative_indices_[0]
    assert f"C{first} {model.facts_.picks[0].stands_for} {ages[first]:.0f} '{frame['city'][int(first)]}'" in facts
    assert "and 2 more" in facts
    assert "1 C17 1 age 999" in facts
    assert " a f " not in facts  # six columns at most
    assert facts.startswith(str(model.facts_))
    assert "<td" in model._repr_html_()
    assert f"'{frame['city'][int(first)]}'" in unescape(model._repr_html_())
    assert "age 999" not in model._repr_html_()  # the card of a selector is about its picks
    assert re.search(r"age 999 \d+%", text_of(model.explain("C17")))
    detector = MOSAICOutlierDetector().fit(frame)
    assert "1 C17 1 age 999" in text_of(detector.facts_)
    assert "age 999" in detector._repr_html_()


@pytest.mark.usefixtures("by_passes")
def test_showing_facts_of_a_sample_makes_no_pass():
    model = MOSAIC(5).fit(open_source(datasets.swiss_roll(20_000).astype(np.float32)))
    assert "stands for" in text_of(model.facts_)
    assert model.selection_.is_estimated


@pytest.mark.parametrize("data", [BLOBS.X, csr_array(np.abs(BLOBS.X))], ids=["array", "CSR"])
def test_facts_of_rows_without_columns_show_themselves(data):
    assert "row stands for" in text_of(MOSAIC(5).fit(data).facts_)


@pytest.mark.usefixtures("by_passes")
def test_a_listener_hears_every_stage_and_nothing_is_written(capsys):
    heard = []
    with listening(lambda stage, text, share: heard.append((stage, text, share))):
        MOSAIC(10, verbose=True).fit(datasets.swiss_roll(300))
        MOSAICOutlierDetector(verbose=True).fit(datasets.swiss_roll(300))
    stages = [stage for stage, _, _ in heard]
    counting = ["similarities", "effective counts"]
    assert stages == [*counting, "choosing", "done", *counting, "done"]
    assert capsys.readouterr().err == ""
    before = len(heard)
    MOSAIC(10).fit(datasets.swiss_roll(300))
    assert len(heard) == before
    with listening(lambda stage, text, share: heard.append((stage, text, share))):
        MOSAIC(10).fit(open_source(datasets.swiss_roll(20_000).astype(np.float32)))
    shares = {share for _, _, share in heard[before:]} - {None}  # how much of a pass is done
    assert len(shares) > 2
    assert all(0 <= share <= 1 for share in shares)


class Heard(list):
    """A callback of scikit-learn that notes what it is told."""

    def setup(self, estimator, context):
        self.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context):
        self.append(f"end {context.task_name}")

    def teardown(self, estimator, context):
        self.append("teardown")


def test_callbacks_of_scikit_learn_hear_the_stages_of_a_fit_and_its_end_even_if_it_fails():
    pytest.importorskip("sklearn.callback")
    stages = ["similarities", "effective counts"]
    chosen = [f"{when} {stage}" for stage in [*stages, "choosing"] for when in ("begin", "end")]
    for kind, told in ((MOSAIC, chosen), (MOSAICSampler, chosen), (MOSAICOutlierDetector, chosen[:4])):
        heard = Heard()
        kind().set_callbacks(heard).fit(BLOBS.X)
        assert heard == ["setup", "begin fit", *told, "end fit", "teardown"]
    heard = Heard()
    failing = MOSAIC(5, gamma=-1).set_callbacks(heard)
    before = dict(vars(failing))
    with pytest.raises(InvalidInputError):
        failing.fit(BLOBS.X)
    assert heard[-1] == "teardown"
    assert "end fit" not in heard
    assert vars(failing) == before
    labelled = Heard()
    MOSAICSampler(20).set_callbacks(labelled).fit(BLOBS.X, BLOBS.X[:, 0] > 0)
    assert labelled == ["setup", "begin fit", "end fit", "teardown"]
    piped = make_pipeline(StandardScaler(), MOSAIC(5).set_callbacks(heard)).fit(BLOBS.X)  # nobody is warned of missing support
    assert len(piped[-1].representative_indices_) == 5


@pytest.fixture(scope="module")
def shown():
    """Everything that shows itself in a notebook besides the estimators, and the card of a model."""
    names = [f"<script>{i}</script>" for i in range(len(BLOBS.X))]
    frame = pytest.importorskip("pandas").DataFrame(BLOBS.X, columns=["<img src=x>", 'y" onload="z'], index=names)
    model, detector = MOSAIC(8).fit(frame), MOSAICOutlierDetector().fit(frame)
    odd, pick = int(np.flatnonzero(model.is_outlier_)[0]), int(model.representative_indices_[0])
    card = model._repr_html_()
    assert f"<script>{pick}" not in card
    assert f"&lt;script&gt;{pick}" in card
    return {
        "representative": model.explain(pick),
        "outlier": model.explain(odd),
        "represented": model.explain(int(np.flatnonzero(model.labels_ == 0)[-1])),
        "decisions": model.explain(),
        "certificate": model.certificate_,
        "detected": detector.explain(odd),
    }


WORDS = {
    "representative": "Chosen as number 1 of 8",
    "outlier": "Rejected as an outlier",
    "represented": "Not chosen",
    "decisions": "Bandwidth",
    "certificate": "Random choices are",
    "detected": "An outlier",
}


@pytest.mark.parametrize("thing", WORDS)
def test_results_show_themselves_escaped_and_without_scripts(shown, thing):
    html = shown[thing]._repr_html_()
    tree = ElementTree.fromstring(html)  # well formed
    assert WORDS[thing] in " ".join(tree.itertext())
    assert not {element.tag for element in tree.iter()} & {"script", "img", "link", "style"}
    assert not [key for element in tree.iter() for key in element.attrib if key.startswith("on")]
    colours = re.findall(r"color:|background|fill=\"(?!none|currentColor|#0b6e99)", html)
    assert not colours  # those of the page, light or dark
    assert len(html) < 20_000
    if thing != "decisions":
        assert repr([shown[thing]]) == f"[{shown[thing]}]"  # one line in a list
        assert "\n" not in repr(shown[thing])
