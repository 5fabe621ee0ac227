"""The facts in the page of a report: what it shows at every k and threshold is what the model says."""

from __future__ import annotations

import base64
import json
import pickle
import re
import zlib

import numpy as np
import pytest

import mosaic
from mosaic import MOSAIC, MOSAICOutlierDetector, Paper, Sketch, datasets
from mosaic.arrays.blocks import BLOCK_ENTRIES
from mosaic.exceptions import InvalidInputError
from mosaic.facts import Facts, ranks
from mosaic.facts import facts as facts_module
from mosaic.metrics import unexplained, unexplained_along
from mosaic.rows.images import thumbnails
from mosaic.show import page_columns, report_html, write_report

pytest.importorskip("jinja2")


def facts_of(model, **about):
    """The facts in the page."""
    return facts_in(report_html(model, **about))


def facts_in(page):
    return json.loads(zlib.decompress(base64.b64decode(re.search(r'id="facts"[^>]*>(.*?)</script>', page, re.S)[1])))


def unpacked(text, kind):
    return np.frombuffer(base64.b64decode(text), f"<{kind}")


def labels_at(facts, k):
    """Rank of the representative of each shown point at k, as the page computes it."""
    ranks, end = unpacked(facts["map"]["history"], "u2"), unpacked(facts["map"]["history_end"], "u4")
    starts = np.concatenate([[0], end[:-1]])
    return np.array([ranks[a:b][ranks[a:b] < k][-1] for a, b in zip(starts, end, strict=True)])


@pytest.fixture(scope="module")
def blobs():
    return datasets.blobs_with_gross_outliers()


@pytest.fixture(scope="module")
def model(blobs):
    return MOSAIC(20).fit(blobs.X)


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


def test_stands_for_is_moves_less_the_outliers(model, facts):
    odd = unpacked(facts["map"]["bin"], "u1") < facts["bins"]["threshold"]
    found = np.bincount(labels_at(facts, 20)[~odd], minlength=20)
    assert found.tolist() == [entry["stands_for"] for entry in facts["ranking"][:20]]


def test_threshold_is_an_edge_and_bins_tell_outliers(model, facts):
    bins = facts["bins"]
    assert bins["edges"][bins["threshold"]] == pytest.approx(model.outlier_threshold_, rel=1e-5)
    assert sum(bins["rows"][: bins["threshold"]]) == model.is_outlier_.sum() == 8
    assert sum(bins["rows"]) == 400
    rows, of = unpacked(facts["map"]["row"], "u4"), unpacked(facts["map"]["bin"], "u1")
    assert ((of < bins["threshold"]) == model.is_outlier_[rows]).all()


def test_lowest_come_lowest_first_and_hold_all_outliers(model, facts):
    counts = [entry["count"] for entry in facts["lowest"]]
    assert counts == sorted(counts)
    assert {entry["row"] for entry in facts["lowest"][:8]} == set(np.flatnonzero(model.is_outlier_).tolist())
    assert facts["lowest"][0]["reason"] == ""  # columns have no names
    assert facts["lowest"][0]["count"] < 1.05


def test_excess_is_proven_for_every_k(model, facts):
    excesses = facts["certificate"]["excesses"]
    assert len(excesses) == 40
    assert excesses[19] == pytest.approx(model.certificate_.excess, rel=1e-2)
    # The bound holds for all sets of k rows, whichever way they are chosen.
    kernel, bounds = model.selection_.kernel, model.certificate_.bounds
    for k in (3, 12, 30):
        best = mosaic.path(model.selection_.kernel.X, max_representatives=k).indices
        other = unexplained(kernel, best, bounds.ridge).sum()
        assert other >= bounds.at(k)


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


def test_must_include_rows_are_never_outliers_of_the_page(blobs):
    odd = int(np.flatnonzero(blobs.is_outlier)[0])
    model = MOSAIC(20).fit(blobs.X, must_include=[odd])
    facts = facts_of(model, certificate=False)
    first, bins = facts["ranking"][0], facts["bins"]
    assert (first["row"], first["safe"], first["reason"]) == (odd, True, "must be included.")
    assert first["bin"] < bins["threshold"]
    assert (bins["must"], bins["grouped"]) == (1, 0)
    low = np.array(bins["rows"]) - np.array(bins["safe"])
    assert low[: bins["threshold"]].sum() == model.is_outlier_.sum() == facts["n_outliers"] == 7
    assert odd not in [entry["row"] for entry in facts["lowest"]]


def test_paper_mode_ranks_only_the_representatives(blobs):
    facts = facts_of(MOSAIC(algorithm=Paper(alpha=20.0)).fit(blobs.X), certificate=False)
    assert len(facts["ranking"]) == facts["k"]
    assert facts["suggested"] is None


def test_many_groups_are_shown_as_the_largest_and_the_others(blobs):
    model = MOSAIC(5).fit(blobs.X)
    groups = facts_of(model, groups=[f"g{i % 100}" for i in range(400)], certificate=False)["groups"]
    assert len(groups["labels"]) == 41
    assert groups["labels"][-1] == "60 others"
    assert sum(groups["rows"]) == 400


def test_gross_outliers_do_not_flatten_the_map():
    X = datasets.swiss_roll(300)
    X[0] = 1e6
    facts = facts_of(MOSAIC(10).fit(X), certificate=False)
    axes, rows = facts["map"]["other"], unpacked(facts["map"]["row"], "u4")
    assert (facts["map"]["method"], axes["method"]) == ("neighbours", "principal axes of the features")
    assert axes["n_outside"] == 1
    for view in (facts["map"], axes):
        assert unpacked(view["x"], "u2")[rows != 0].std() > 5000


@pytest.fixture(scope="module")
def by_passes():
    X = datasets.swiss_roll(3000).astype(np.float32)
    X[7] = 900.0
    return MOSAIC(10, algorithm=Sketch(n_initial=100)).fit(X)


def test_a_fit_by_passes_is_reported_in_rows_of_the_data_and_a_copy_of_it_without_a_proof(by_passes):
    copied = facts_of(pickle.loads(pickle.dumps(by_passes)))
    assert copied["certificate"]["excess"] is None
    assert any("There is no certificate" in note for note in copied["settings"]["notes"])
    facts = facts_of(by_passes)
    assert facts["scaled"]
    assert [entry["row"] for entry in facts["ranking"][:10]] == by_passes.representative_indices_.tolist()
    assert facts["certificate"]["excess"] is not None
    assert facts["certificate"]["excesses"] is None
    page = report_html(by_passes, facts=Facts(by_passes, outliers_only=True))
    found = facts_in(page)
    assert (found["scaled"], found["k"]) == (True, 0)
    assert "The page shows a sample of" in page
    assert sum(facts["bins"]["rows"]) == sum(found["bins"]["rows"]) == pytest.approx(3000, rel=1e-3)


def test_report_is_the_same_byte_for_byte_and_is_replaced_only_by_force(blobs, model, tmp_path):
    page = report_html(model)
    assert page == report_html(MOSAIC(20).fit(blobs.X))
    path = write_report(model, tmp_path / "report.html")
    assert path.read_text("utf-8") == page
    with pytest.raises(Exception, match="force"):
        write_report(model, path)
    write_report(model, path, force=True, title="Another <title>")
    assert "<title>Another &lt;title&gt;" in path.read_text("utf-8")


def test_hostile_strings_remain_text(model):
    evil = "</script><script>alert(1)</script>\u2028<!--"
    page = report_html(model, names=[evil] * 400, columns={evil: [evil] * 400}, groups=[evil] * 400, title=evil, command=evil)
    assert "<script>alert(1)" not in page
    held = facts_in(page)
    assert held["title"] == held["settings"]["command"] == evil
    assert page.count("<script") == page.count("</script>") == 2


def test_policy_allows_exactly_the_page_s_own_style_and_program(model):
    import hashlib

    page = report_html(model)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1].replace("&#39;", "'")
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    css = re.search(r"<style>(.*?)</style>", page, re.S)[1]
    js = re.search(r'<script(?: type="module")?>(.*?)</script>', page, re.S)[1]
    for text in (css, js):
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy


def test_bad_arguments_are_refused(blobs, model):
    with pytest.raises(InvalidInputError, match="names must have one entry for each of 400 rows; got 3"):
        report_html(model, names=["a", "b", "c"])
    with pytest.raises(InvalidInputError, match="height × width"):
        report_html(model, images=np.zeros((400, 5)))


@pytest.fixture(scope="module")
def twins(blobs):
    """The first 150 rows once more, and fifty of them a third time."""
    return np.vstack([blobs.X, blobs.X[:100], blobs.X[:50]])


def test_of_equal_rows_the_chosen_one_is_shown(twins):
    model = MOSAIC(20).fit(twins, must_include=[410, 30])
    facts = facts_of(model, certificate=False)
    rows = [entry["row"] for entry in facts["ranking"][:20]]
    assert rows == model.representative_indices_.tolist()
    assert rows[:2] == [410, 30]
    assert np.isin(rows, unpacked(facts["map"]["row"], "u4")).all()
    assert sum(entry["stands_for"] for entry in facts["ranking"]) == (model.labels_ >= 0).sum()


def test_groups_count_every_copy_for_its_own_group(twins):
    labels = np.array(["a"] * 400 + ["b"] * 150)
    model = MOSAIC(20).fit(twins, groups=labels, quotas="equal")
    facts = facts_of(model, certificate=False)
    groups = facts["groups"]
    assert dict(zip(groups["labels"], groups["rows"], strict=True)) == {"a": 400, "b": 150}
    picked = [groups["labels"][entry["group"]] for entry in facts["ranking"][:20]]
    assert picked == labels[model.representative_indices_].tolist()
    low = np.array(groups["low"])[:, : facts["bins"]["threshold"]].sum(axis=1)
    assert low.tolist() == [model.is_outlier_[labels == label].sum() for label in groups["labels"]]


def test_rows_without_weight_are_looked_at_and_have_no_representative(blobs):
    weights = np.arange(400) % 2
    model = MOSAIC(10).fit(blobs.X, sample_weight=weights)
    facts = facts_of(model, groups=np.where(weights, "odd", "even"), certificate=False)
    counted = weights > 0
    assert facts["n"] == sum(facts["bins"]["rows"]) == 400
    assert facts["n_outliers"] == model.is_outlier_.sum()
    assert sum(entry["stands_for"] for entry in facts["ranking"]) == (model.labels_[counted] >= 0).sum()
    assert facts["groups"]["rows"] == [200, 200]
    assert any("200 rows without weight were not compared with others." in note for note in facts["settings"]["notes"])


def test_coverage_of_a_sample_is_that_of_the_model_at_k(monkeypatch, model, facts):
    monkeypatch.setattr(ranks, "MOST_MULTIPLICATIONS", 0)
    coverage = Facts(model).ranking.coverage
    assert coverage[19] == pytest.approx(model.coverage_, abs=1e-5)
    assert coverage.tolist() == sorted(coverage)
    assert len(coverage) == len(facts["coverage"])


def test_groups_that_are_protected_keep_their_counts(blobs):
    rng = np.random.default_rng(0)
    X = np.vstack([blobs.X, [60.0, 60.0] + 0.3 * rng.normal(size=(7, 2)), [[-70.0, 50.0]]])
    model = MOSAIC(10, min_group=3).fit(X)
    facts = facts_of(model, certificate=False)
    bins = facts["bins"]
    assert bins["grouped"] == sum(bins["safe"]) == model.selection_.protected.sum() > 0
    assert not model.is_outlier_[400:407].any()
    assert facts["n_outliers"] == model.is_outlier_.sum()
    rows, of, safe = (unpacked(facts["map"][part], kind) for part, kind in (("row", "u4"), ("bin", "u1"), ("safe", "u1")))
    edges = np.array(bins["edges"])
    counts = model.effective_count_[rows]
    assert (counts >= edges[of] * (1 - 1e-5)).all()
    assert (safe[np.argsort(rows)] == model.selection_.protected).all()


def test_an_excess_above_a_hundred_percent_is_not_mentioned(blobs):
    model = MOSAIC(1, kernel="linear", outliers="keep").fit(blobs.X)
    assert model.certificate_.excess > 1
    assert "provably" not in model.facts_.sentence
    assert "e+" not in str(model.certificate_)


def test_polars_and_arrow_columns_are_taken_and_arrays_refused(model):
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    values = {"who": [f"p{i}" for i in range(400)], "x": [None, *range(1, 400)]}
    row = int(model.representative_indices_[0])
    for frame in (pl.DataFrame(values), pa.table(values), values):
        facts = facts_of(model, columns=frame, certificate=False)
        assert facts["columns"] == ["who", "x"]
        assert facts["ranking"][0]["cells"] == [f"p{row}", str(row)]
    with pytest.raises(InvalidInputError, match="columns must be a dataframe"):
        report_html(model, columns=np.zeros((400, 2)))


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
@pytest.mark.parametrize("n", [3000, 25_000])
def test_no_columns_names_or_pictures_make_the_page_large(n):
    X = datasets.swiss_roll(n)
    noise = np.random.default_rng(0).integers(0, 256, (n, 48, 48, 3)).astype(np.uint8)
    columns = {f"text {j}": [("<&>" * 100) + str(i) for i in range(n)] for j in range(12)}
    names = [f"{i}<" * 30 for i in range(n)]
    page = report_html(MOSAIC(500).fit(X), names=names, columns=columns, images=noise, certificate=False)
    assert len(page.encode()) < 1_500_000
    pictures = [entry["picture"] for entry in facts_in(page)["ranking"]]
    assert pictures[0].startswith("data:image/png;base64,")
    assert pictures[-1] is None  # they stop where they would be too many bytes


def test_columns_that_are_compared_come_first(blobs):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"code": [f"A-{i}" for i in range(400)], "x": blobs.X[:, 0], "note": "", "y": blobs.X[:, 1]})
    facts = facts_of(MOSAIC(5).fit(frame[["x", "y"]]), columns=frame, certificate=False)
    assert (facts["columns"], facts["n_compared"]) == (["x", "y", "code", "note"], 2)
    assert facts["places"] == [1, 3, 0, 2]
    assert facts["ranking"][0]["cells"][2] == f"A-{facts['ranking'][0]['row']}"
    assert "usual" in facts["lowest"][0]["reason"]
    assert "mean similarity" not in json.dumps(facts["ranking"])


def column_of(facts, c):
    """The texts of a column for each row on the map, by row."""
    column = facts["map_columns"][c]
    codes = unpacked(column["codes"], f"u{column['bytes']}")
    return dict(zip(unpacked(facts["map"]["row"], "u4").tolist(), [column["texts"][code] for code in codes], strict=True))


def test_every_point_on_the_map_has_its_cells(blobs):
    columns = {"x": blobs.X[:, 0], "level": ["a", "b", "b", None] * 100, "n": range(400), "flag": [True, False] * 200}
    facts = facts_of(MOSAIC(5).fit(blobs.X), columns=columns, certificate=False)
    assert column_of(facts, 0) == {row: f"{x:.6g}" for row, x in enumerate(blobs.X[:, 0])}
    assert column_of(facts, 1) == {row: ["a", "b", "b", ""][row % 4] for row in range(400)}
    assert facts["map_columns"][1]["texts"][0] == "b"  # the most frequent
    assert column_of(facts, 2) == {row: str(row) for row in range(400)}
    assert column_of(facts, 3)[7] == "False"
    listed = facts["ranking"][0]
    assert listed["cells"] == [column_of(facts, c)[listed["row"]] for c in range(4)]
    assert facts_of(MOSAIC(5).fit(blobs.X), certificate=False)["map_columns"] == []


def test_columns_of_the_map_lose_digits_and_then_the_largest_where_the_page_would_be_too_large(monkeypatch, blobs):
    model, texts = MOSAIC(5).fit(blobs.X), [f"a long note that is different {i**3}" for i in range(400)]
    columns = {"x": blobs.X[:, 0], "note": texts, "level": ["a", "b"] * 200}
    without = {name: part for name, part in facts_of(model, columns=columns, certificate=False).items() if name != "map_columns"}
    rest = 4 * len(zlib.compress(json.dumps(without).encode())) // 3
    monkeypatch.setattr(page_columns, "DATA_BYTES", rest + 4000)
    facts = facts_of(model, columns=columns, certificate=False)
    assert facts["map_columns"][1] is None
    assert column_of(facts, 0)[3] == f"{float(f'{blobs.X[3, 0]:.3g}'):.6g}"
    assert column_of(facts, 2)[3] == "b"
    assert facts["columns"] == ["x", "note", "level"]  # listed rows have all their cells


def test_a_saved_model_that_kept_some_cells_has_no_columns_on_its_map(monkeypatch, tmp_path):
    pytest.importorskip("pyarrow")
    from mosaic.rows import read, rows

    (tmp_path / "a.csv").write_text("a,b\n" + "\n".join(f"{x},{y}" for x, y in datasets.swiss_roll(100)[:, :2]))
    with read(tmp_path / "a.csv") as table:
        model = MOSAIC(5, outliers="keep").fit(table)
        whole = rows.SavedRows.of(table, model.selection_).as_rows(2, ["a", "b"])
        monkeypatch.setattr(rows, "MOST_CELLS", 40)
        part = rows.SavedRows.of(table, model.selection_).as_rows(2, ["a", "b"])
    assert None not in facts_of(model, facts=Facts(model, whole), certificate=False)["map_columns"]
    facts = facts_of(model, facts=Facts(model, part), certificate=False)
    assert facts["map_columns"] == [None, None]
    assert facts["ranking"][0]["cells"][0]


def test_page_of_a_detector_is_that_of_the_selector_without_representatives(blobs, model):
    detector = MOSAICOutlierDetector().fit(blobs.X)
    page = report_html(detector)
    assert page == report_html(MOSAICOutlierDetector().fit(blobs.X))
    found, of_selector = facts_in(page), facts_of(model)
    assert (found["title"], found["k"], found["ranking"]) == ("8 outliers among 400 points", 0, [])
    assert found["n_outliers"] == detector.is_outlier_.sum()
    assert found["bins"] == of_selector["bins"]
    assert found["map"]["x"] == of_selector["map"]["x"]
    assert [item["row"] for item in found["lowest"]] == [item["row"] for item in of_selector["lowest"]]
    assert len(found["lowest"]) == 300
    for part in ('id="picks"', 'id="number"', 'id="k-range"', 'id="proof"'):
        assert part not in page
    assert facts_of(model, facts=Facts(model, outliers_only=True))["lowest"] == found["lowest"]


def test_nearest_rows_that_belong_are_beside_outliers_without_columns(blobs):
    detector = MOSAICOutlierDetector().fit(blobs.X)
    first = facts_of(detector, images=np.zeros((400, 4, 4)))["lowest"][0]
    usual = np.flatnonzero(~detector.is_outlier_)
    distance = np.linalg.norm(blobs.X[usual] - blobs.X[first["row"]], axis=1)
    assert [member["row"] for member in first["members"]] == usual[np.argsort(distance)[:3]].tolist()
    assert all(member["picture"].startswith("data:image/png") for member in first["members"])


@pytest.mark.slow
def test_neighbour_map_keeps_more_neighbours_together_than_two_axes_and_never_changes():
    from sklearn.datasets import load_digits
    from sklearn.manifold import trustworthiness

    X = load_digits().data[:600]
    facts = facts_of(MOSAIC(10, outliers="keep").fit(X), certificate=False)
    rows = unpacked(facts["map"]["row"], "u4")
    kept = {
        view["method"]: trustworthiness(
            X[rows], np.column_stack([unpacked(view[axis], "u2") for axis in "xy"]).astype(float), n_neighbors=10
        )
        for view in (facts["map"], facts["map"]["other"])
    }
    assert kept["neighbours"] > 0.95 > 0.85 > kept["principal axes of the features"]
    assert facts["map"] == facts_of(MOSAIC(10, outliers="keep").fit(X), certificate=False)["map"]


def test_history_of_more_points_than_a_block_gives_the_nearest_of_any_prefix():
    model = MOSAIC(50, outliers="keep").fit(datasets.swiss_roll(3000))
    facts = facts_of(model, certificate=False)
    rows, points = unpacked(facts["map"]["row"], "u4"), model.selection_.material.points
    assert len(rows) * len(facts["ranking"]) > BLOCK_ENTRIES
    ranked = points.group[[entry["row"] for entry in facts["ranking"]]]
    K = model.selection_.kernel.block(points.group[rows], ranked)
    for k in (1, 30, 100):
        found = labels_at(facts, k)
        assert np.allclose(K[np.arange(3000), found], K[:, :k].max(axis=1), atol=1e-9)
    found = np.bincount(labels_at(facts, 50), minlength=50)
    assert found.tolist() == [entry["stands_for"] for entry in facts["ranking"][:50]]
    number = {int(row): i for i, row in enumerate(rows)}
    for j, entry in enumerate(facts["ranking"]):
        own = [number[member["row"]] for member in entry["members"]]
        assert (K[own, j] >= K[own, :j].max(axis=1, initial=0.0) - 1e-9).all()


def test_errors_along_a_ranking_are_those_of_each_prefix(model):
    kernel, weights = model.selection_.kernel, np.random.default_rng(0).random(400)
    ranked = np.array([5, 80, 3, 200, 7])
    along = unexplained_along(kernel, ranked, 0.3, weights)
    each = [weights @ unexplained(kernel, ranked[:k], 0.3) for k in range(1, 6)]
    assert along == pytest.approx(each, rel=1e-10)
    with pytest.raises(InvalidInputError, match="ridge"):
        unexplained_along(kernel, ranked, -0.1, weights)


def test_thumbnails_keep_shape_and_grey_levels():
    from io import BytesIO

    Image = pytest.importorskip("PIL.Image")
    small = Image.open(BytesIO(thumbnails([np.eye(8)], 64)[0]))
    assert small.size == (64, 64)
    assert np.unique(np.asarray(small)).tolist() == [0, 255]
    wide = Image.open(BytesIO(thumbnails([np.zeros((50, 200, 3), np.uint8)], 64)[0]))
    assert wide.size == (64, 16)
    one, two = (np.asarray(Image.open(BytesIO(p))) for p in thumbnails([-np.ones((4, 4)), 3 * np.eye(4)], 4))
    assert one.max() == 0
    assert np.unique(two).tolist() == [63, 255]
