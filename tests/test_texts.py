"""Columns of texts: a text that shares almost no words with the others is an outlier; clean texts are not."""

import inspect
import json

import numpy as np
import pandas as pd
import pytest

from cli_runs import run
from mosaic import MOSAIC, MOSAICOutlierDetector

JUNK = {
    "another script": "この関数は入力された配列の各要素について計算を行い、その結果を新しい配列として返します。",
    "another language": "Heute Morgen gingen wir auf den Markt, um frisches Gemüse und Brot für das Abendessen zu kaufen.",
    "keyboard noise": "asdkjh qwoeiu zxmcnb alskdj fghjkl qpwoei rutyei zmxncb vbnmqw dfgkjh sdlkfj wqeoiu",
    "one key": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "numbers": " ".join(str(number) for number in np.random.default_rng(0).integers(10**8, 10**9, 12)),
    "no word": "---- ==== **** ////",
}


def docstrings():
    """The first 25 words of the docstrings of NumPy, about 400."""
    found = (inspect.getdoc(getattr(np, name)) for name in dir(np) if not name.startswith("_"))
    return sorted({" ".join(text.split()[:25]) for text in found if text and len(text.split()) >= 20})


def texts(*more):
    return pd.DataFrame({"text": [*docstrings(), *more]})


def test_clean_texts_have_hardly_an_outlier():
    assert MOSAICOutlierDetector().fit(texts()).is_outlier_.mean() < 0.005


@pytest.mark.parametrize("kind", JUNK)
def test_a_text_that_shares_almost_no_word_with_others_is_an_outlier_that_quotes_it(kind):
    frame = texts(JUNK[kind])
    model = MOSAIC(5).fit(frame)
    assert np.flatnonzero(model.is_outlier_).tolist() == [len(frame) - 1]
    reason = model.explain(len(frame) - 1).reason
    assert JUNK[kind][:20] in reason
    assert "few of whose words are in other rows" in reason


def test_texts_unlike_all_others_are_unlike_one_another_and_their_copies_are_not():
    frame = texts(*JUNK.values())
    assert np.flatnonzero(MOSAICOutlierDetector().fit(frame).is_outlier_).tolist() == list(range(len(texts()), len(frame)))
    repeated = texts(*[JUNK["keyboard noise"]] * 20)
    assert not MOSAICOutlierDetector().fit(repeated).is_outlier_.any()


def test_new_texts_are_judged_by_the_words_of_the_fit():
    model = MOSAIC(5).fit(texts())
    new = pd.DataFrame({"text": [*docstrings()[::40], *JUNK.values(), None]})
    found = model.explain_new(new)
    assert found.is_outlier.tolist() == [False] * len(docstrings()[::40]) + [True] * (len(JUNK) + 1)


def test_a_language_without_spaces_is_compared_by_its_characters():
    """Sentences of twenty words of two characters each, and one in English."""
    rng = np.random.default_rng(0)
    words = ["".join(map(chr, pair)) for pair in rng.integers(0x4E00, 0x4F00, (60, 2)).tolist()]
    sentences = [" ".join("".join(rng.choice(words, 2)) for _ in range(10)) for _ in range(200)]
    frame = pd.DataFrame({"text": [*sentences, "It is a sentence of some other language, is it not?"]})
    model = MOSAICOutlierDetector().fit(frame)
    assert np.flatnonzero(model.is_outlier_).tolist() == [200]


def test_short_texts_are_compared_by_their_letters():
    rng = np.random.default_rng(0)
    first = ["Anna", "Bela", "Carlo", "Dora", "Emil", "Frida"]
    last = ["Bauer", "Rossi", "Novak", "Meyer", "Silva", "Lund", "Berg"]
    parts = (first, first, last, ["GmbH", "SpA", "AB"])
    names = [" ".join(rng.choice(some) for some in parts) for _ in range(150)]
    frame = pd.DataFrame({"size": rng.uniform(8, 12, 151), "owner": [*names, "xqzkvj wqpzx"]})
    model = MOSAIC(3).fit(frame)
    assert "text, by its letters: owner" in model.explain()[0]
    assert np.flatnonzero(model.is_outlier_).tolist() == [150]
    assert "few of whose letters are in other rows" in model.explain(150).reason


def test_a_saved_model_and_the_command_know_the_words(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    texts(JUNK["another script"]).to_csv("texts.csv", index=False)
    texts(JUNK["keyboard noise"]).to_csv("new.csv", index=False)
    answer = json.loads(run(capsys, "outliers", "texts.csv", "--save", "model.mosaic", "--json").out)
    assert [row["text"] for row in answer["rows"]] == [JUNK["another script"]]
    placed = json.loads(run(capsys, "predict", "model.mosaic", "new.csv", "--json").out)
    assert (placed["n_outliers"], placed["rows"][-1]["is_outlier"]) == (1, True)
