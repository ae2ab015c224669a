"""What people look at: the demo's page and the pages of a profile and of comparisons keep names, axes and the width of a telephone."""

import importlib.util
import re

import pytest
from conftest import ROOT


@pytest.fixture(scope="module")
def page():
    spec = importlib.util.spec_from_file_location("demo_page", ROOT / "examples" / "digits" / "page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def texts(svg):
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def test_each_box_of_the_demos_way_has_a_name_and_a_product(page):
    titles = set(re.findall(r'(?:stages|beside|exported)\.run\(\s*"(\w+)"', (ROOT / "examples/digits/demo.py").read_text()))
    assert {"train", "convert", "verify", "script"} < titles
    assert titles - {"script"} <= set(page.NAMES) and titles <= set(page.PRODUCTS)
    stages = [{"title": title, "command": "CAIRN_ENGINE=cairn cairn tf1", "seconds": 1} for title in sorted(titles)]
    shown = texts(page.workflow(stages))
    assert len(shown) == 3 * len(stages) and all(shown)


def test_the_bars_of_the_demo_stand_on_an_axis_of_round_numbers(page):
    for top, wanted in ((100, [0, 50, 100]), (7.3, [0, 2, 4, 6]), (0.042, [0, 0.02, 0.04])):
        assert page._ticks(top, 4) == pytest.approx(wanted)
    facts = {"accuracy": {"tensorflow": 0.9, "cairn": 0.91}, "images": 100}
    assert {"0 %", "50 %", "100 %"} < set(texts(page.accuracy(facts)))
    speed = {"rounds": [[2e-5, 1e-5]] * 3}
    assert {"0 us", "5 us", "20 us"} < set(texts(page.rounds(speed)))
    profile = {"steps": [{"step": "conv", "seconds": 4e-5, "kernel": "cpu/conv"}]}
    assert {"0 us", "10 us", "40 us"} < set(texts(page.steps(profile)))


PAGES = ["profile/page_text.h", "compare/report_page.h", "diff/page.h", "diff/truth_page.h", "quantize/page.h", "simulate/page.h"]


@pytest.mark.parametrize("source", PAGES)
def test_a_page_fits_a_narrow_screen_and_names_its_charts(source):
    text = (ROOT / "src" / source).read_text()
    assert 'name="viewport" content="width=device-width' in text
    for table in re.finditer(r"<table", text):  # wide ones scroll by themselves
        assert 'class="scroll"' in text[max(0, table.start() - 200) : table.start()], text[table.start() - 60 : table.end()]
    for place in re.findall(r'<div[^>]* id="(?:outputs|rows)"[^>]*>', text):  # where a script puts a table
        assert 'class="scroll"' in place, place
    charts = re.findall(r"<svg[^>]*>", text)
    for chart in charts:
        assert 'role="img"' in chart and "aria-label=" in chart, chart
    # Drawn as wide as it is shown: what is only scaled down to 420 pixels cannot be read.
    assert charts and ".clientWidth" in text and not any("viewBox" in chart for chart in charts)


def test_charts_of_a_profile_follow_the_width_and_have_round_ticks_and_labels():
    text = (ROOT / "src" / "profile" / "page_text.h").read_text()
    for name in ("iterations", "timeline", "memory"):
        body = text.split(f"\nfunction {name}()")[1].split("\nfunction ")[0]
        assert f'wide("{name}")' in body and "ticks(" in body, name
    for label in ("time of an iteration", "memory in use"):
        assert f'"{label}"' in text
    assert 'addEventListener("resize",charts)' in text
