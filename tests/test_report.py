"""The facts in the page of a report: what it shows at every k and threshold is what the model says."""

import base64
import hashlib
import json
import pickle
import re
import zlib
from collections import Counter
from io import BytesIO

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.manifold import trustworthiness

from mosaic import MOSAIC, MOSAICOutlierDetector, Paper, datasets, read
from mosaic.arrays.blocks import BLOCK_ENTRIES
from mosaic.exceptions import InvalidInputError
from mosaic.facts import Facts
from mosaic.facts import facts as facts_module
from mosaic.rows.images import thumbnails
from mosaic.show import page_columns, report_html, write_report
from sources import open_source

pytest.importorskip("jinja2")

BLOBS = datasets.blobs_with_gross_outliers()


def facts_in(page):
    return json.loads(zlib.decompress(base64.b64decode(re.search(r'id="facts"[^>]*>(.*?)</script>', page, re.S)[1])))


def facts_of(model, **about):
    return facts_in(report_html(model, **about))


def unpacked(text, kind):
    return np.frombuffer(base64.b64decode(text), f"<{kind}")


def labels_at(facts, k):
    """Rank of the representative of each shown point at k, as the page computes it."""
    ranks, end = unpacked(facts["map"]["history"], "u2"), unpacked(facts["map"]["history_end"], "u4")
    starts = np.concatenate([[0], end[:-1]])
    return np.array([ranks[a:b][ranks[a:b] < k][-1] for a, b in zip(starts, end, strict=True)])


@pytest.fixture(scope="module")
def model():
    return MOSAIC(20).fit(BLOBS.X)


@pytest.fixture(scope="module")
def facts(model):
    return facts_of(model)


def test_the_ranking_begins_with_the_representatives(model, facts):
    rows = [entry["row"] for entry in facts["ranking"]]
    assert rows[:20] == model.representative_indices_.tolist()
    assert ["would come next" in entry["reason"] for entry in facts["ranking"]] == [False] * 20 + [True] * 20
    assert len(set(rows)) == len(rows) == 40
    assert facts["coverage"][19] == pytest.approx(model.coverage_, abs=1e-5)
    assert facts["coverage"] == sorted(facts["coverage"])
    assert not np.isin(rows, np.flatnonzero(model.is_outlier_)).any()
    paper = facts_of(MOSAIC(algorithm=Paper(alpha=20.0)).fit(BLOBS.X), certificate=False)
    assert len(paper["ranking"]) == paper["k"]
    assert paper["suggested"] is None


def test_threshold_is_an_edge_and_bins_and_the_lowest_tell_outliers(model, facts):
    bins, outliers = facts["bins"], model.is_outlier_
    assert bins["edges"][bins["threshold"]] == pytest.approx(model.outlier_threshold_, rel=1e-5)
    assert sum(bins["rows"][: bins["threshold"]]) == outliers.sum() == 8
    assert sum(bins["rows"]) == 400
    rows, odd = unpacked(facts["map"]["row"], "u4"), unpacked(facts["map"]["bin"], "u1") < bins["threshold"]
    assert (odd == outliers[rows]).all()
    found = np.bincount(labels_at(facts, 20)[~odd], minlength=20)
    assert found.tolist() == [entry["stands_for"] for entry in facts["ranking"][:20]]
    counts = [entry["count"] for entry in facts["lowest"]]
    assert counts == sorted(counts)
    assert counts[0] < 1.05
    assert {entry["row"] for entry in facts["lowest"][:8]} == set(np.flatnonzero(outliers).tolist())
    assert facts["lowest"][0]["reason"] == ""  # columns have no names


def test_the_coverage_of_every_k_stands_beside_what_no_k_rows_exceed(model, facts):
    bounds = np.array(facts["bound"])
    assert len(bounds) == 40
    assert (bounds >= facts["coverage"]).all()
    assert model.coverage_ <= bounds[19] < model.coverage_ + 0.02
    shown = [float(text.removesuffix(" %")) / 100 for text in facts["texts"]["bounds"]]
    assert all(bound <= told < bound + 0.001 for bound, told in zip(bounds, shown, strict=True) if told)
    share = f"{100 * model.coverage_:.1f} % of at most {facts['texts']['bounds'][19]}"
    assert facts["texts"]["sentence"].startswith(f"**20 representatives** of 400 rows, coverage **{share}**;")


def test_many_points_are_thinned_and_all_low_ones_shown(monkeypatch):
    monkeypatch.setattr(facts_module, "MOST_POINTS", 400)
    model = MOSAIC(10).fit(datasets.swiss_roll(3000))
    facts = facts_of(model, certificate=False)
    shown = unpacked(facts["map"]["row"], "u4")
    assert facts["map"]["n"] == len(shown) == 400
    assert facts["map"]["of"] == 3000
    assert np.isin(model.representative_indices_, shown).all()
    assert np.isin(np.argsort(model.effective_count_)[:100], shown).all()
    edge = facts["bins"]["edges"][facts["map"]["low_complete"]]
    assert np.isin(np.flatnonzero(model.effective_count_ < edge), shown).all()
    assert sum(facts["bins"]["rows"]) == 3000  # numbers are those of all


@pytest.fixture(scope="module")
def crowd():
    """More rows than a fit decides with, and thirty-four far from all others, which no sample has all of."""
    X = np.random.default_rng(0).normal(size=(17_000, 3))
    X[::500] *= 1000.0
    return X


def test_all_outliers_of_many_rows_are_on_the_page_and_their_number_is_no_estimate(crowd):
    model = MOSAIC(5).fit(crowd)
    page = report_html(model, certificate=False)
    facts, outliers = facts_in(page), np.flatnonzero(model.is_outlier_)
    assert facts["scaled"]
    assert set(range(0, 17_000, 500)) <= set(outliers.tolist())
    listed = [item for item in facts["lowest"] if item["bin"] < facts["bins"]["threshold"]]
    assert sorted(item["row"] for item in listed) == outliers.tolist()
    np.testing.assert_allclose([item["count"] for item in listed], np.sort(model.effective_count_[outliers]), rtol=1e-3)
    assert np.isin(outliers, unpacked(facts["map"]["row"], "u4")).all()
    assert sum(facts["bins"]["rows"][: facts["bins"]["threshold"]]) == facts["n_outliers"] == len(outliers)
    assert sum(entry["stands_for"] for entry in facts["ranking"]) == pytest.approx(17_000 - len(outliers), abs=5)
    assert f"; **{len(outliers)} outliers** set aside." in facts["texts"]["sentence"]
    assert "Outliers were looked for among all rows" in page


@pytest.mark.usefixtures("by_passes")
def test_a_page_that_cannot_look_at_all_rows_says_that_it_has_a_sample(crowd):
    model = pickle.loads(pickle.dumps(MOSAIC(5).fit(open_source(crowd))))
    page = report_html(model, certificate=False)
    facts = facts_in(page)
    listed = [item for item in facts["lowest"] if item["bin"] < facts["bins"]["threshold"]]
    assert len(listed) < facts["n_outliers"]
    assert (facts["is_estimate"], facts["has_lowest"], facts["bins"]["exact"]) == (True, False, 0)
    assert f"**about {facts['n_outliers']} outliers**" in facts["texts"]["sentence"]
    assert "This page has a sample." in page


def test_columns_at_fault_come_first_whatever_their_number_and_their_cells_are_marked():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 30)).round(3), columns=[f"c{j}" for j in range(30)])
    frame["note"] = "n"
    for row, column in enumerate(range(10, 26)):
        frame.loc[row, f"c{column}"] = 1000.0 + row
    numbers = frame.drop(columns="note")
    facts = facts_of(MOSAIC(5).fit(numbers), columns=frame, certificate=False)
    assert set(facts["columns"][:16]) == {f"c{column}" for column in range(10, 26)}
    assert len(facts["columns"]) == 16
    for item in facts["lowest"][:16]:
        assert facts["columns"][item["faults"][0]] == f"c{10 + item['row']}"
        assert item["cells"][item["faults"][0]] == str(1000 + item["row"])
    assert facts["left_out"] == "This page and the files that it saves have 16 of 31 columns, those at fault in outliers first."
    plain = facts_of(MOSAIC(5, outliers="keep").fit(numbers), columns=frame, certificate=False)
    assert plain["columns"] == [f"c{j}" for j in range(12)]
    assert plain["left_out"] == "This page and the files that it saves have 12 of 31 columns."
    page = report_html(MOSAIC(5).fit(numbers), columns=frame, certificate=False)
    cell = facts["lowest"][0]["cells"][facts["lowest"][0]["faults"][0]]
    assert f'<td class="fault"><bdi class="clip">{cell}</bdi></td>' in page  # without JavaScript, too


def test_texts_that_the_fit_takes_as_missing_are_missing_on_the_page():
    gaps = ["NA", "n/a", "-", "", None]
    pd = pytest.importorskip("pandas")
    columns = pd.DataFrame({"visits": [gaps[row % 5] if row % 8 == 0 else str(row % 7) for row in range(400)]})
    column = facts_of(MOSAIC(5).fit(BLOBS.X), columns=columns, certificate=False)["map_columns"][0]
    assert {column["texts"][code] for code in column["missing"]} == {"NA", "n/a", "-", ""}
    codes = unpacked(column["codes"], f"u{column['bytes']}")
    assert np.isin(codes, column["missing"]).sum() == 50


def test_rows_that_must_be_included_are_never_outliers_and_those_without_weight_have_no_representative():
    odd, weights = int(np.flatnonzero(BLOBS.is_outlier)[0]), np.arange(400) % 2
    weights[odd] = 1
    model = MOSAIC(20).fit(BLOBS.X, must_include=[odd], sample_weight=weights)
    facts = facts_of(model, groups=np.where(weights, "odd", "even"), certificate=False)
    first, bins = facts["ranking"][0], facts["bins"]
    assert (first["row"], first["safe"], first["reason"]) == (odd, True, "must be included.")
    assert first["bin"] < bins["threshold"]
    assert (bins["must"], bins["grouped"]) == (1, 0)
    low = np.array(bins["rows"]) - np.array(bins["safe"])
    assert low[: bins["threshold"]].sum() == model.is_outlier_.sum() == facts["n_outliers"] == 7
    assert odd not in [entry["row"] for entry in facts["lowest"]]
    assert facts["n"] == sum(bins["rows"]) == 400
    assert sum(entry["stands_for"] for entry in facts["ranking"]) == (model.labels_[weights > 0] >= 0).sum()
    absent = 400 - weights.sum()
    assert facts["groups"]["rows"] == [400 - absent, absent]
    assert any(f"{absent} rows without weight were not compared with others." in note for note in facts["settings"]["notes"])


def test_gross_outliers_do_not_flatten_the_map():
    X = datasets.swiss_roll(300)
    X[0] = 1e6
    facts = facts_of(MOSAIC(10).fit(X), certificate=False)
    axes, rows = facts["map"]["other"], unpacked(facts["map"]["row"], "u4")
    assert (facts["map"]["method"], axes["method"]) == ("neighbours", "principal axes of the features")
    assert axes["n_outside"] == 1
    for view in (facts["map"], axes):
        assert unpacked(view["x"], "u2")[rows != 0].std() > 5000


@pytest.mark.usefixtures("by_passes")
def test_a_fit_by_passes_is_reported_in_rows_of_the_data_and_a_copy_of_it_as_well():
    by_passes = MOSAIC(10).fit(open_source(datasets.swiss_roll(3000).astype(np.float32)))
    copied = facts_of(pickle.loads(pickle.dumps(by_passes)))
    facts = facts_of(by_passes)
    assert copied["proof"] == facts["proof"]
    assert facts["scaled"]
    assert [entry["row"] for entry in facts["ranking"][:10]] == by_passes.representative_indices_.tolist()
    assert facts["bound"] is None
    page = report_html(by_passes, facts=Facts(by_passes, outliers_only=True))
    found = facts_in(page)
    assert (found["scaled"], found["k"]) == (True, 0)
    assert "of the others this page has a sample." in page
    assert sum(facts["bins"]["rows"]) == sum(found["bins"]["rows"]) == pytest.approx(3000, rel=1e-3)


def test_report_is_the_same_byte_for_byte_and_is_replaced_only_by_force(model, tmp_path):
    page = report_html(model)
    assert page == report_html(MOSAIC(20).fit(BLOBS.X))
    path = write_report(model, tmp_path / "report.html")
    assert path.read_text("utf-8") == page
    with pytest.raises(Exception, match="force"):
        write_report(model, path)
    write_report(model, path, force=True, title="Another <title>")
    assert "<title>Another &lt;title&gt;" in path.read_text("utf-8")


def test_hostile_strings_remain_text_and_the_policy_allows_exactly_the_page_s_own_style_and_program(model):
    evil = "</script><script>alert(1)</script>\u2028<!--"
    columns = pytest.importorskip("pandas").DataFrame({evil: [evil] * 400})
    page = report_html(model, names=[evil] * 400, columns=columns, groups=[evil] * 400, title=evil, command=evil)
    assert "<script>alert(1)" not in page
    held = facts_in(page)
    assert held["title"] == held["settings"]["command"] == evil
    assert page.count("<script") == page.count("</script>") == 2
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1].replace("&#39;", "'")
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for part in (r"<style>(.*?)</style>", r'<script(?: type="module")?>(.*?)</script>'):
        text = re.search(part, page, re.S)[1]
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy


def test_of_equal_rows_the_chosen_one_is_shown_and_groups_count_every_copy_for_its_own_group():
    twins = np.vstack([BLOBS.X, BLOBS.X[:100], BLOBS.X[:50]])
    labels = np.array(["a"] * 400 + ["b"] * 150)
    model = MOSAIC(20).fit(twins, groups=labels, quotas="equal", must_include=[410, 30])
    facts = facts_of(model, certificate=False)
    rows, groups = [entry["row"] for entry in facts["ranking"][:20]], facts["groups"]
    assert rows == model.representative_indices_.tolist()
    assert rows[:2] == [410, 30]
    assert np.isin(rows, unpacked(facts["map"]["row"], "u4")).all()
    assert sum(entry["stands_for"] for entry in facts["ranking"]) == (model.labels_ >= 0).sum()
    assert dict(zip(groups["labels"], groups["rows"], strict=True)) == {"a": 400, "b": 150}
    assert [groups["labels"][entry["group"]] for entry in facts["ranking"][:20]] == labels[rows].tolist()
    low = np.array(groups["low"])[:, : facts["bins"]["threshold"]].sum(axis=1)
    assert low.tolist() == [model.is_outlier_[labels == label].sum() for label in groups["labels"]]
    many = facts_of(model, groups=[f"g{i % 100}" for i in range(550)], certificate=False)["groups"]
    assert (len(many["labels"]), many["labels"][-1], sum(many["rows"])) == (41, "60 others", 550)


def test_of_many_rows_the_numbers_of_a_page_agree_and_those_of_groups_are_of_all_rows(monkeypatch):
    monkeypatch.setattr("mosaic.choosing.plan.DECISION_SAMPLE", 600)
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(2950, 2)), 30.0 * rng.normal(size=(50, 2))])
    labels = rng.choice(["a", "b", "c"], 3000, p=[0.6, 0.399, 0.001])
    model = MOSAIC(10).fit(X, groups=labels)
    assert "given" in model.certificate_.details()  # before all outliers are known
    facts = facts_of(model, groups=labels)
    assert (facts["scaled"], facts["is_estimate"], facts["n_outliers"]) == (True, False, model.is_outlier_.sum())
    assert f"{3000 - facts['n_outliers']:,} rows that belong, given about {facts['n_outliers']} outliers" in facts["proof"]
    groups = facts["groups"]
    assert (dict(zip(groups["labels"], groups["rows"], strict=True)), groups["is_estimate"]) == (Counter(labels.tolist()), False)
    known = facts_of(model)["groups"]
    assert known["is_estimate"]
    assert sum(known["rows"]) == pytest.approx(3000, abs=1)


def test_notes_of_a_page_name_parameters_as_in_python(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "rows.csv"
    path.write_text("name,x,y\n" + "".join(f"n{i},{x},{y}\n" for i, (x, y) in enumerate(BLOBS.X)))
    rows = read(path)
    assert "`id`" in " ".join(rows.notes)
    model = MOSAIC(5).fit(rows)
    notes = facts_of(model, facts=Facts(model, rows))["settings"]["notes"]
    assert "Name another one with id" in " ".join(notes)
    assert "`" not in " ".join(notes)


def test_groups_that_are_protected_keep_their_counts():
    rng = np.random.default_rng(0)
    X = np.vstack([BLOBS.X, [60.0, 60.0] + 0.3 * rng.normal(size=(7, 2)), [[-70.0, 50.0]]])
    model = MOSAIC(10, min_group=3).fit(X)
    facts = facts_of(model, certificate=False)
    bins = facts["bins"]
    assert bins["grouped"] == sum(bins["safe"]) == model.selection_.protected.sum() > 0
    assert not model.is_outlier_[400:407].any()
    assert facts["n_outliers"] == model.is_outlier_.sum()
    rows, of, safe = (unpacked(facts["map"][part], kind) for part, kind in (("row", "u4"), ("bin", "u1"), ("safe", "u1")))
    assert (model.effective_count_[rows] >= np.array(bins["edges"])[of] * (1 - 1e-5)).all()
    assert (safe[np.argsort(rows)] == model.selection_.protected).all()


def test_columns_of_frames_and_files_are_shown_and_name_rows_as_in_a_fit(model, tmp_path):
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    values = {"who": [f"p{i}" for i in range(400)], "x": [None, *range(1, 400)]}
    row = int(model.representative_indices_[0])
    pl.DataFrame(values).write_csv(tmp_path / "rows.csv")
    for frame in (pl.DataFrame(values), pa.table(values), tmp_path / "rows.csv"):
        facts = facts_of(model, columns=frame, certificate=False)
        assert facts["columns"] == ["x"]
        assert (facts["ranking"][0]["name"], facts["ranking"][0]["cells"]) == (f"p{row}", [str(row)])
        named = facts_of(model, columns=frame, names=range(400), certificate=False)
        assert named["ranking"][0]["name"] == str(row)
        assert named["ranking"][0]["cells"] == [f"p{row}", str(row)]
    for bad, message in (
        ({"columns": values}, r"X is a dict. Pass a data frame: pandas\.DataFrame\(X\)"),
        ({"columns": np.zeros((300, 2))}, "columns must have one entry for each of 400 rows; got 300"),
        ({"names": ["a", "b", "c"]}, "names must have one entry for each of 400 rows; got 3"),
        ({"images": np.zeros((400, 5))}, "height × width"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            report_html(model, **bad)


def test_names_that_are_invalid_or_too_long_are_shortened_and_repaired(model, tmp_path):
    names = [f"bad\udcff/{'folder/' * 20}{i:04d}.png" for i in range(400)]
    facts = facts_of(model, names=names, certificate=False)
    first = facts["ranking"][0]
    assert len(first["name"]) <= 80
    assert first["name"].endswith(f"{first['row']:04d}.png")
    assert first["full"] == names[first["row"]].replace("\udcff", "?")
    odd = write_report(model, tmp_path / "odd.html", names=names, title="bad\udcff", certificate=False)
    assert "<title>bad?" in odd.read_text("utf-8")
    others = [None, float("nan"), "two\nlines  and\ttabs", *range(3, 400)]
    shown = facts_of(model, names=others, certificate=False)["map"]
    called = dict(zip(unpacked(shown["row"], "u4").tolist(), shown["names"], strict=True))
    assert [called[row] for row in range(4)] == ["0", "1", "two lines and tabs", "3"]


@pytest.mark.slow
def test_no_columns_names_or_pictures_make_the_page_large():
    n = 25_000
    noise = np.random.default_rng(0).integers(0, 256, (n, 48, 48, 3)).astype(np.uint8)
    pd = pytest.importorskip("pandas")
    columns = pd.DataFrame({f"text {j}": [("<&>" * 100) + str(i) for i in range(n)] for j in range(12)})
    names = [f"{i}<" * 30 for i in range(n)]
    page = report_html(MOSAIC(500).fit(datasets.swiss_roll(n)), names=names, columns=columns, images=noise, certificate=False)
    assert len(page.encode()) < 1_500_000
    pictures = [entry["picture"] for entry in facts_in(page)["ranking"]]
    assert pictures[0].startswith("data:image/png;base64,")
    assert pictures[-1] is None  # they stop where they would be too many bytes


def column_of(facts, c):
    column = facts["map_columns"][c]
    codes = unpacked(column["codes"], f"u{column['bytes']}")
    return dict(zip(unpacked(facts["map"]["row"], "u4").tolist(), [column["texts"][code] for code in codes], strict=True))


def test_every_point_on_the_map_has_its_cells_and_columns_that_are_compared_come_first():
    pd = pytest.importorskip("pandas")
    columns = pd.DataFrame(
        {"x": BLOBS.X[:, 0], "level": ["a", "b", "b", None] * 100, "n": range(400), "flag": [True, False] * 200}
    )
    facts = facts_of(MOSAIC(5).fit(BLOBS.X), columns=columns, certificate=False)
    assert column_of(facts, 0) == {row: f"{x:.6g}" for row, x in enumerate(BLOBS.X[:, 0])}
    assert column_of(facts, 1) == {row: ["a", "b", "b", ""][row % 4] for row in range(400)}
    assert facts["map_columns"][1]["texts"][0] == "b"  # the most frequent
    assert column_of(facts, 2) == {row: str(row) for row in range(400)}
    assert column_of(facts, 3)[7] == "False"
    listed = facts["ranking"][0]
    assert listed["cells"] == [column_of(facts, c)[listed["row"]] for c in range(4)]
    assert facts_of(MOSAIC(5).fit(BLOBS.X), certificate=False)["map_columns"] == []
    frame = pd.DataFrame({"code": [f"A-{i}" for i in range(400)], "x": BLOBS.X[:, 0], "note": "", "y": BLOBS.X[:, 1]})
    facts = facts_of(MOSAIC(5).fit(frame[["x", "y"]]), columns=frame, certificate=False)
    assert (facts["columns"], facts["n_compared"], facts["places"]) == (["x", "y", "note"], 2, [0, 2, 1])
    assert facts["ranking"][0]["name"] == f"A-{facts['ranking'][0]['row']}"
    assert "usual" in facts["lowest"][0]["reason"]
    assert "mean similarity" not in json.dumps(facts["ranking"])


def test_columns_of_the_map_lose_digits_and_then_the_largest_where_the_page_would_be_too_large(monkeypatch):
    model, texts = MOSAIC(5).fit(BLOBS.X), [f"a long note that is different {max(i, 1) ** 3}" for i in range(400)]
    columns = pytest.importorskip("pandas").DataFrame({"x": BLOBS.X[:, 0], "note": texts, "level": ["a", "b"] * 200})
    without = {name: part for name, part in facts_of(model, columns=columns, certificate=False).items() if name != "map_columns"}
    rest = 4 * len(zlib.compress(json.dumps(without).encode())) // 3
    monkeypatch.setattr(page_columns, "DATA_BYTES", rest + 4000)
    facts = facts_of(model, columns=columns, certificate=False)
    assert facts["map_columns"][1] is None
    assert column_of(facts, 0)[3] == f"{float(f'{BLOBS.X[3, 0]:.3g}'):.6g}"
    assert column_of(facts, 2)[3] == "b"
    assert facts["columns"] == ["x", "note", "level"]  # listed rows have all their cells


def test_a_saved_model_that_kept_some_cells_has_no_columns_on_its_map(monkeypatch, tmp_path):
    pytest.importorskip("pyarrow")
    from mosaic.rows import read, saved

    (tmp_path / "a.csv").write_text("a,b\n" + "\n".join(f"{x},{y}" for x, y in datasets.swiss_roll(100)[:, :2]))
    with read(tmp_path / "a.csv") as table:
        model = MOSAIC(5, outliers="keep").fit(table)
        whole = saved.SavedRows.of(table, model.selection_).as_rows()
        monkeypatch.setattr(saved, "MOST_CELLS", 40)
        part = saved.SavedRows.of(table, model.selection_).as_rows()
    assert None not in facts_of(model, facts=Facts(model, whole), certificate=False)["map_columns"]
    facts = facts_of(model, facts=Facts(model, part), certificate=False)
    assert facts["map_columns"] == [None, None]
    assert facts["ranking"][0]["cells"][0]


def test_page_of_a_detector_is_that_of_the_selector_without_representatives(model):
    detector = MOSAICOutlierDetector().fit(BLOBS.X)
    page = report_html(detector)
    assert page == report_html(MOSAICOutlierDetector().fit(BLOBS.X))
    found, of_selector = facts_in(page), facts_of(model)
    assert (found["title"], found["k"], found["ranking"]) == ("8 outliers among 400 rows", 0, [])
    assert found["n_outliers"] == detector.is_outlier_.sum()
    assert found["bins"] == of_selector["bins"]
    assert found["map"]["x"] == of_selector["map"]["x"]
    assert len(found["lowest"]) == 300
    for part in ('id="picks"', 'id="number"', 'id="k-range"', 'id="proof"'):
        assert part not in page
    assert facts_of(model, facts=Facts(model, outliers_only=True))["lowest"] == found["lowest"]
    first = facts_of(detector, images=np.zeros((400, 4, 4)))["lowest"][0]  # with the nearest rows that belong
    usual = np.flatnonzero(~detector.is_outlier_)
    distance = np.linalg.norm(BLOBS.X[usual] - BLOBS.X[first["row"]], axis=1)
    assert [member["row"] for member in first["members"]] == usual[np.argsort(distance)[:3]].tolist()
    assert all(member["picture"].startswith("data:image/png") for member in first["members"])


@pytest.mark.slow
def test_neighbour_map_keeps_more_neighbours_together_than_two_axes():
    X = load_digits().data[:600]
    shown = facts_of(MOSAIC(10, outliers="keep").fit(X), certificate=False)["map"]
    rows, kept = unpacked(shown["row"], "u4"), {}
    for view in (shown, shown["other"]):
        places = np.column_stack([unpacked(view[axis], "u2") for axis in "xy"]).astype(float)
        kept[view["method"]] = trustworthiness(X[rows], places, n_neighbors=10)
    assert kept["neighbours"] > 0.95 > 0.85 > kept["principal axes of the features"]


def test_history_of_more_points_than_a_block_gives_the_nearest_of_any_prefix():
    model = MOSAIC(50, outliers="keep").fit(datasets.swiss_roll(3000))
    facts = facts_of(model, certificate=False)
    rows, points = unpacked(facts["map"]["row"], "u4"), model.selection_.data.points
    assert len(rows) * len(facts["ranking"]) > BLOCK_ENTRIES
    ranked = points.point_of[[entry["row"] for entry in facts["ranking"]]]
    K = model.selection_.kernel.block(points.point_of[rows], ranked)
    for k in (1, 30, 100):
        found = labels_at(facts, k)
        assert np.allclose(K[np.arange(3000), found], K[:, :k].max(axis=1), atol=1e-9)
    found = np.bincount(labels_at(facts, 50), minlength=50)
    assert found.tolist() == [entry["stands_for"] for entry in facts["ranking"][:50]]
    number = {int(row): i for i, row in enumerate(rows)}
    for j, entry in enumerate(facts["ranking"]):
        own = [number[member["row"]] for member in entry["members"]]
        assert (K[own, j] >= K[own, :j].max(axis=1, initial=0.0) - 1e-9).all()


def test_thumbnails_keep_shape_and_grey_levels():
    Image = pytest.importorskip("PIL.Image")

    def shown(pictures, side):
        return [np.asarray(Image.open(BytesIO(picture))) for picture in thumbnails(pictures, side)]

    (small,), (wide,) = shown([np.eye(8)], 64), shown([np.zeros((50, 200, 3), np.uint8)], 64)
    assert (small.shape, wide.shape[:2]) == ((64, 64), (16, 64))
    assert np.unique(small).tolist() == [0, 255]
    one, two = shown([-np.ones((4, 4)), 3 * np.eye(4)], 4)
    assert (one.max(), np.unique(two).tolist()) == (0, [63, 255])


def test_picks_of_a_table_are_told_by_their_cells_on_the_page_and_not_by_the_names_of_others(tmp_path):
    rng = np.random.default_rng(0)
    place = rng.integers(0, 4, 400)
    columns = {f"m{j}": rng.normal(20 * place, 6).round(1) for j in range(10)}
    frame = pd.DataFrame({"name": [f"S{i:03d}" for i in range(400)], "site": np.array(list("ABCD"))[place], **columns})
    model = MOSAIC(6).fit(frame)
    write_report(model, tmp_path / "page.html", names=frame["name"])
    listed = (tmp_path / "page.html").read_text().partition('id="picks-list"')[2].partition("</table>")[0]
    assert "most like" not in listed
    told = [pick.reason.partition("; ")[2].partition(".")[0] for pick in model.facts_.picks]
    assert any("(about " in one for one in told)
    assert all(one.partition(",")[0].partition("'")[0] in listed for one in told)


def test_outliers_have_a_cause_that_a_list_can_count():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 9, 600).round(),
            "income": rng.normal(3000, 300, 600).round(),
            "height": rng.normal(170, 9, 600).round(),
            "country": rng.choice(["Germany", "France"], 600),
            "note": rng.choice(["paid", "open"], 600),
        }
    )
    frame.loc[3, "age"] = 999
    frame.loc[5, "country"] = "Gemany"
    frame.loc[7, ["age", "income", "height"]] = np.nan
    frame.loc[9, "note"] = "late and likely means trouble"  # the words of a reason, in a cell
    lowest = facts_of(MOSAIC(5).fit(frame), columns=frame, certificate=False)["lowest"]
    causes = {item["row"]: item["cause"] for item in lowest}
    assert [causes[row] for row in (3, 5, 7, 9)] == ["age", "spelling of country", "missing age", "note"]
    x, y = rng.normal(size=(2, 600))
    line = pd.DataFrame({"x": x, "y": x + y / 50})
    line.loc[0] = [1.0, -1.0]  # both are usual
    lowest = facts_of(MOSAIC(5).fit(line), columns=line, certificate=False)["lowest"]
    assert [item["cause"] for item in lowest if item["row"] == 0] in (["x with y"], ["y with x"])


def test_picks_of_numbers_are_described_as_low_medium_or_high():
    pd = pytest.importorskip("pandas")
    size = np.repeat([0.0, 50.0, 100.0], 200)
    frame = pd.DataFrame({"size": size, "twice": 2 * size})
    frame += np.random.default_rng(0).normal(size=(600, 2))
    model = MOSAIC(3, scale=False).fit(frame.to_numpy())
    assert "medium" not in model.explain(int(model.representative_indices_[0])).reason  # without names nothing is described
    model = MOSAIC(3).fit(frame)
    for row in model.representative_indices_.tolist():
        word = ["low", "medium", "high"][int(size[row] / 50)]
        assert f"{word} size (" in model.explain(row).reason
        assert f"{word} twice (" in model.explain(row).reason
