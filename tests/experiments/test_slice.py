"""One small run of the experiments from end to end: runs, resumed, and the pages made of them."""

from experiments.job import Job
from experiments.paper import page
from experiments.run import read, run_all


def test_runs_become_pages(tmp_path, monkeypatch):
    jobs = [
        Job("robustness", "robustness", method, "sphere/10", "uniform", 0.5, 40, 5, 0)
        for method in ("MOSAIC", "MOSAIC (paper)", "SMRS", "SSM")
    ]
    assert run_all(jobs[:2], workers=1, folder=tmp_path, quiet=True) == 2
    assert run_all(jobs, workers=1, folder=tmp_path, quiet=True) == 2
    lines = list(read(tmp_path))
    assert {line["method"] for line in lines} == {job.method for job in jobs}
    assert all(0 <= line["verdict"]["outlier_share"] <= 1 for line in lines)
    page.main(["--folder", str(tmp_path), "--out", str(tmp_path / "results.md"), "--slice", "small"])
    first = next(row for row in (tmp_path / "results.md").read_text().splitlines() if "#claim-1)" in row)
    assert "no runs" not in first
    assert "| 10 dimensions |" in (tmp_path / "results-details.md").read_text()
