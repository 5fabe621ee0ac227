"""Draws the picture of the report in README.md: the page of ``mosaic demo``, which must have been run in this folder."""

from pathlib import Path
from shutil import which

from playwright.sync_api import sync_playwright

with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=which("chromium"), args=["--no-sandbox"])
    page = browser.new_page(viewport={"width": 1280, "height": 1560})
    page.goto(Path("mosaic-demo/report.html").resolve().as_uri())
    page.locator("#map").wait_for()
    page.screenshot(path=Path(__file__).with_name("report.png"))
