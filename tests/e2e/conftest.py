"""A browser for a module, and pages in it: one that tests share, and pages of any facts."""

import os
import shutil

import pytest

from e2e.pages import Report, invented


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        assert "MOSAIC_BROWSER" not in os.environ, "a browser is required here: apt-get install chromium"
        pytest.skip("no chromium on this machine: apt-get install chromium")
    # Module by module: while it runs, nothing else in this process can have an event loop.
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(browser, tmp_path):
    """Open the page of some facts. At the end there must be no error, no console message and no request besides the page."""
    reports = []

    def opened(facts, **options):
        reports.append(Report(browser, facts, tmp_path / f"report-{len(reports)}.html", **options))
        return reports[-1]

    yield opened
    for report in reports:
        report.context.close()
        assert not report.heard, report.heard


@pytest.fixture(scope="module")
def shared(browser, tmp_path_factory):
    report = Report(browser, invented(), tmp_path_factory.mktemp("shared") / "report.html")
    yield report
    report.context.close()


@pytest.fixture
def page(shared):
    """The page of the invented facts, as if it had just been opened; its facts must be left as they are."""
    shared.evaluate("localStorage.clear()")
    shared.mouse.move(5, 5)
    shared.open()
    yield shared
    assert not shared.heard, shared.heard
