"""The reports of `cairn migrate` are what other tools take them for: SARIF's fixes give the migrated script, the spreadsheet and the
CSV file hold every use, the page is whole."""

import csv
import json
import xml.etree.ElementTree as xml
import zipfile
from html.parser import HTMLParser

import pytest

SCRIPT = """\
# -*- coding: utf-8 -*-
import os, horovod.tensorflow as hvd
import tensorflow as tf
from tensorflow.contrib import gan

name = "größe 🙂"; y = tf.nn.dropout(x, rate=1 - keep)
with tf.device("/gpu:0"):
    s = tf.Session(
        target=name,  # <here>
    )
print(hvd.rank(), os.name, gan.gan_model)
"""
SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
VOID = {"meta", "input", "br", "link", "img", "hr"}


@pytest.fixture
def reports(command, tmp_path):
    """(folder of the reports, the migrated script)"""
    (tmp_path / "train.py").write_text(SCRIPT)
    done = command("cairn", "migrate", "train.py", "-o", "out", "--report", "reports", "--quiet")
    assert done.returncode == 1, done.stderr
    return tmp_path / "reports", (tmp_path / "out" / "train.py").read_text()


def offset(text, line, column):
    """SARIF counts columns in UTF-16 units here."""
    lines = text.splitlines(keepends=True)
    units = lines[line - 1].encode("utf-16-le") if line <= len(lines) else b""
    return sum(map(len, lines[: line - 1])) + len(units[: 2 * (column - 1)].decode("utf-16-le"))


def test_the_fixes_of_sarif_give_the_migrated_script(reports):
    folder, migrated = reports
    sarif = json.loads((folder / "report.sarif").read_text())
    assert sarif["version"] == "2.1.0" and "sarif-2.1.0" in sarif["$schema"]
    (run,) = sarif["runs"]
    assert run["columnKind"] == "utf16CodeUnits"
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    replacements = []
    for result in run["results"]:
        assert result["ruleId"] in rules and result["level"] in ("none", "note", "warning", "error") and result["message"]["text"]
        for fix in result.get("fixes", []):
            for change in fix["artifactChanges"]:
                assert change["artifactLocation"]["uri"] == "train.py"
                replacements += change["replacements"]
    assert "missing-api" in {result["ruleId"] for result in run["results"]}
    text = SCRIPT
    for replacement in sorted(replacements, key=lambda r: -region(r)[0]):
        begin, end = region(replacement)
        text = text[:begin] + replacement.get("insertedContent", {}).get("text", "") + text[end:]
    # The line of imports belongs to all changes together and to none of the results.
    (imports,) = [line for line in migrated.splitlines(keepends=True) if "npu_bridge" in line]
    assert text == migrated.replace(imports, "")


def region(replacement):
    place = replacement["deletedRegion"]
    begin = offset(SCRIPT, place["startLine"], place["startColumn"])
    return begin, offset(SCRIPT, place["endLine"], place["endColumn"])


def test_the_spreadsheet_has_the_known_columns_and_a_row_for_each_use(reports):
    folder, _ = reports
    uses = [use for file in json.loads((folder / "report.json").read_text())["files"] for use in file["references"]]
    with zipfile.ZipFile(folder / "report.xlsx") as book:
        assert book.testzip() is None
        sheet = xml.parse(book.open("xl/worksheets/sheet1.xml"))
    rows = [["".join(part.text or "" for part in cell.iter() if part.tag in (SHEET + "t", SHEET + "v")) for cell in row] for row in sheet.iter(SHEET + "row")]
    assert rows[0][:7] == ["序号", "脚本文件名", "代码行", "模块名", "API名", "工具迁移API支持度", "说明"]
    assert len(rows) - 1 == len(uses) > 5
    names = {row[4] for row in rows[1:]}
    assert {"tf.Session", "tf.nn.dropout", "hvd.rank", "tf.contrib.gan.gan_model"} <= names


def test_the_csv_file_has_one_width_and_the_page_is_whole(reports):
    folder, _ = reports
    with open(folder / "report.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert {len(row) for row in rows} == {9} and {row[0] for row in rows[1:]} == {"change", "finding", "reference"}
    page = Page()
    page.feed((folder / "report.html").read_text())
    assert page.open == [] and page.scripts == 1
    assert "größe 🙂" in page.text and "# <here>" in page.text


class Page(HTMLParser):
    """Elements that are open, and the text."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.scripts = [], "", 0

    def handle_starttag(self, tag, attributes):
        assert not any(name in ("src", "href") for name, _ in attributes)  # nothing from outside
        self.scripts += tag == "script"
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
