"""bpmn-js, as pages use it, imports models in a real Chromium: an error means that nobody would see a drawing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lxml import etree
from playwright.sync_api import Browser

NO_DRAWING = "no diagram to display"  # as bpmn-js says it
VENDOR = Path(__file__).parents[2] / "static" / "vendor"
IMPORT = """async (xml) => {
  const viewer = new BpmnJS({ container: document.getElementById('canvas') });
  try {
    const { warnings } = await viewer.importXML(xml);
    return { error: null, warnings: warnings.map((warning) => warning.message) };
  } catch (error) {
    return { error: error.message, warnings: (error.warnings || []).map((warning) => warning.message) };
  } finally {
    viewer.destroy();
  }
}"""


@dataclass(frozen=True)
class Imported:
    """What bpmn-js said. `error` None: it shows the model."""

    error: str | None
    warnings: tuple[str, ...]


def text_of(content: bytes) -> str:
    """A file as a browser decodes it; the declaration says how, so it must go."""
    root = etree.fromstring(content, etree.XMLParser(resolve_entities=False))
    return etree.tostring(root, encoding="unicode")


def import_all(browser: Browser, models: Mapping[str, str]) -> dict[str, Imported]:
    """Import each model, given as XML, in one page."""
    (script,) = VENDOR.glob("bpmn-js-*/bpmn-navigated-viewer.production.min.js")
    page = browser.new_page()
    try:
        page.set_content('<!doctype html><div id="canvas" style="width: 1000px; height: 800px"></div>')
        page.add_script_tag(path=script)
        said = {name: page.evaluate(IMPORT, xml) for name, xml in models.items()}
    finally:
        page.close()
    return {name: Imported(each["error"], tuple(each["warnings"])) for name, each in said.items()}
