"""Near copies among texts: 60 of 460 texts repeat an earlier one with a few changes.

Data: texts of five sentences from scipy's documentation; copies lost words, have other letters, or a sentence more.
Instead: SemHash. Its model would be fetched from the network, so it gets an encoder of ours: TF-IDF reduced to 256 directions.
"""

import inspect
import re
import tempfile
from pathlib import Path

import numpy as np
import pandas
import scipy.signal
import scipy.stats
from _jobs import judge_each, mean_of_draws, mosaic_json, print_table
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

WAYS = ("words lost", "other letters", "a sentence more")


def sentences():
    said = [inspect.getdoc(getattr(module, name)) or "" for module in (scipy.stats, scipy.signal) for name in module.__all__]
    found = dict.fromkeys(re.sub(r"\s+", " ", one) for text in said for one in re.findall(r"[A-Z][a-z][^.:`>\[]{50,200}\.", text))
    return list(found)


def changed(text, way, rng, more):
    if way == 0:
        return " ".join(word for word in text.split() if rng.random() > 0.1)
    return text.upper().replace(",", ";") if way == 1 else f"{text} {more}"


def mosaic_dedup(texts):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "texts.csv"
        pandas.DataFrame({"text": texts}).to_csv(path, index=False)
        return {row["mosaic_row"] for row in mosaic_json("dedup", path)["copies"]}


def semhash_dedup(texts, seed):
    try:
        from semhash import SemHash
    except ImportError:
        return None
    encode = make_pipeline(TfidfVectorizer(), TruncatedSVD(256, random_state=seed)).fit(texts)
    model = type("Encoder", (), {"encode": lambda self, batch, **_: encode.transform(batch).astype(np.float32)})()
    copies = SemHash.from_records(texts, model=model).self_deduplicate().filtered
    return {texts.index(copy.record) for copy in copies}


@mean_of_draws
def figures(seed):
    rng = np.random.default_rng(seed)
    drawn = rng.permutation(sentences())
    originals = [" ".join(drawn[5 * i : 5 * i + 5]) for i in range(400)]
    repeated = rng.choice(400, 60, replace=False)
    copies = [changed(originals[row], i % 3, rng, drawn[-1 - i]) for i, row in enumerate(repeated)]
    texts = originals + copies
    ways = {"MOSAIC": mosaic_dedup(texts), "SemHash, TF-IDF encoder": semhash_dedup(texts, seed)}

    def judge(found):
        right = np.array([row in found for row in range(400, 460)])
        line = {"precision": right.sum() / max(len(found), 1), "recall": right.mean()}
        return line | {way: right[i::3].mean() for i, way in enumerate(WAYS)}

    return judge_each(ways, judge)


def main():
    print_table(__doc__, figures())


if __name__ == "__main__":
    main()
