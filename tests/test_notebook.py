"""What a notebook shows of an estimator, and what a program hears that listens to a fit."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mosaic import MOSAIC, MOSAICOutlierDetector, MOSAICSampler, Sketch, datasets
from mosaic.estimators import listening


def card(model):
    return model._repr_html_()


@pytest.fixture(scope="module")
def blobs():
    return datasets.blobs_with_gross_outliers()


@pytest.mark.parametrize("kind", [MOSAIC, MOSAICSampler])
def test_fitted_selector_shows_answer_and_picks(blobs, kind):
    model = kind(20)
    before = model._repr_html_()
    assert "mosaic-card" not in before
    html = model.fit(blobs.X)._repr_html_()
    assert "20 representatives cover" in html
    assert "8 outliers set aside" in html
    assert "provably" not in html  # nobody has asked for a proof, which takes time
    assert not model.selection_.material.is_solved
    assert "Not fitted" not in html
    assert model._repr_mimebundle_()["text/html"].startswith('<div class="mosaic-card"')


@pytest.mark.parametrize(
    ("outliers", "told"), [("reject", "; 8 outliers set aside."), ("report", "; 8 outliers reported."), ("keep", "400 points.")]
)
def test_sentence_says_what_became_of_outliers(blobs, outliers, told):
    assert told in card(MOSAIC(5, outliers=outliers).fit(blobs.X))


def test_card_has_the_first_representatives_and_the_proof_once_it_is_known(blobs):
    model = MOSAIC(20).fit(blobs.X)
    assert all(f">{row}</td>" in card(model) for row in model.representative_indices_[:6])
    assert "and 14 more" in card(model)
    excess = 100 * model.certificate_.excess
    assert f"provably at most {excess:.2g} % more unexplained than by the best 20" in card(model)


def test_detector_shows_its_outliers(blobs):
    detector = MOSAICOutlierDetector()
    assert "mosaic-card" not in detector._repr_html_()
    html = card(detector.fit(blobs.X))
    assert "8 outliers among 400 points." in html
    assert "and 2 more" in html
    assert "sk-estimator" in detector._repr_html_()  # the diagram reads no attribute that solves a program
    assert not detector.selection_.material.is_solved


def test_names_of_rows_are_escaped():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(datasets.swiss_roll(60), index=[f"<script>alert({i})</script>" for i in range(60)], columns=list("abc"))
    html = card(MOSAIC(5).fit(X))
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert" in html


def test_pipelines_and_plain_display_are_left_to_scikit_learn(blobs):
    pipeline = make_pipeline(StandardScaler(), MOSAIC(5)).fit(blobs.X)
    assert "mosaic-card" not in pipeline._repr_html_()
    assert not pipeline[-1].selection_.material.is_solved  # nothing was solved for the picture
    with config_context(display="text"):
        assert not hasattr(MOSAIC(5), "_repr_html_")


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


def test_a_listener_hears_how_much_of_a_pass_is_done():
    shares = []
    with listening(lambda stage, text, share: shares.append(share)):
        MOSAIC(10, algorithm=Sketch(n_initial=100)).fit(datasets.swiss_roll(20_000).astype(np.float32))
    known = [share for share in shares if share is not None]
    assert all(0 <= share <= 1 for share in known)
    assert len(set(known)) > 2


def shown_things(frame):
    """Everything that shows itself in a notebook besides the estimators."""
    model, detector = MOSAIC(8).fit(frame), MOSAICOutlierDetector().fit(frame)
    odd, pick = int(np.flatnonzero(model.is_outlier_)[0]), int(model.representative_indices_[0])
    return {
        "representative": model.explain(pick),
        "outlier": model.explain(odd),
        "represented": model.explain(int(np.flatnonzero(model.labels_ == 0)[-1])),
        "decisions": model.explain(),
        "certificate": model.certificate_,
        "detected": detector.explain(odd),
    }


@pytest.fixture(scope="module")
def shown(blobs):
    pd = pytest.importorskip("pandas")
    names = [f"<script>{i}</script>" for i in range(len(blobs.X))]
    return shown_things(pd.DataFrame(blobs.X, columns=["<img src=x>", 'y" onload="z'], index=names))


WORDS = {
    "representative": "Chosen as number 1 of 8",
    "outlier": "Rejected as an outlier",
    "represented": "Not chosen",
    "decisions": "Bandwidth",
    "certificate": "than any other 8 would",
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


def test_the_certificate_says_that_its_bound_holds_with_and_without_constraints(blobs):
    free, bound = MOSAIC(8).fit(blobs.X), MOSAIC(8).fit(blobs.X, groups=[0, 1] * 200, quotas={0: 7, 1: 1})
    assert "with the constraints or without" not in str(free.certificate_)
    assert "than any other 8 would, constraints or not." in str(bound.certificate_)
    assert bound.certificate_.bound == pytest.approx(free.certificate_.bound)


def test_certificates_and_explanations_are_one_line_in_a_list(blobs):
    model, detector = MOSAIC(5).fit(blobs.X), MOSAICOutlierDetector().fit(blobs.X)
    for shown in (model.certificate_, detector.certificate_, model.explain(3), detector.explain(3)):
        assert repr([shown]) == f"[{shown}]"
        assert "\n" not in repr(shown)
