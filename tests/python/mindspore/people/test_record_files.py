"""MindRecord files: what is wrong with arguments and files is said in MindSpore's words, pages go by category."""

import json
import os

import pytest
from mindspore.mindrecord import FileReader, FileWriter, MindPage, MRMGetMetaError, ParamValueError

SCHEMA = {"file_name": {"type": "string"}, "label": {"type": "int64"}, "data": {"type": "bytes"}}
LOST = "can not be found. Please check whether the mindrecord file exists and do not rename the mindrecord file."


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def create(count, name="rows"):
    writer = FileWriter(name, count)
    writer.add_schema(SCHEMA, "images")
    writer.add_index(["file_name", "label"])
    writer.write_raw_data([{"file_name": f"{i:03d}.jpg", "label": i % 3, "data": bytes([i]) * 20} for i in range(10)])
    writer.commit()


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: FileWriter("rows", None), "Parameter shard_num is None."),
        (lambda: FileWriter("rows", "20"), "Parameter shard_num's type is not int."),
        (lambda: FileWriter("rows", 4, 1), "Parameter overwrite's type is not bool."),
        (lambda: MindPage("rows", None), "Parameter num_consumer is None."),
        (lambda: FileReader("rows", "4"), "Parameter num_consumer is not int."),
    ],
)
def test_arguments(call, words):
    with pytest.raises(Exception, match=words):
        call()


def test_errors_have_classes():
    with pytest.raises(ParamValueError, match="Parameter shard_num's value: 1001 should between 1 and 1000."):
        FileWriter("rows", 1001)
    with pytest.raises(MRMGetMetaError, match="Failed to get meta info"):
        FileWriter("rows").add_index(["label"])
    with pytest.raises(Exception, match="Schema format is error"):
        FileWriter("rows").add_schema({"label": {"type": "str"}})


@pytest.mark.parametrize("removed, words", [("rows0", LOST), ("rows2", LOST), ("rows3.db", ".db exists and do not rename the mindrecord file and meta file.")])
@pytest.mark.parametrize("opened", [FileReader, MindPage])
def test_a_part_that_is_lost(removed, words, opened):
    create(4)
    os.remove(removed)
    with pytest.raises(RuntimeError) as error:
        opened("rows0")
    assert words in str(error.value)


@pytest.mark.parametrize(
    "file, words",
    [
        ("rows", "Invalid file, the size of mindrecord file header is larger than the upper limit."),
        ("rows.db", "Failed to execute the sql [ SELECT NAME from SHARD_NAME; ] while verifying meta file"),
    ],
)
def test_a_file_of_something_else(file, words):
    create(1)
    with open(file, "w", encoding="utf-8") as text:
        text.write("s" * 100)
    with pytest.raises(RuntimeError) as error:
        FileReader("rows")
    assert words in str(error.value)
    with pytest.raises(RuntimeError, match="Invalid file, mindrecord files already exist. Please check file path:"):
        FileWriter("rows")


def test_a_closed_file_has_no_rows():
    create(1)
    reader = FileReader("rows")
    assert len(list(reader.get_next())) == 10
    reader.close()
    assert not list(reader.get_next())


def test_pages_of_a_category():
    create(4)
    reader = MindPage("rows0")
    assert reader.candidate_fields == ["file_name", "label"]
    reader.category_field = "label"
    told = json.loads(reader.read_category_info())
    assert told == {"key": "label", "categories": [{"count": 4, "id": 0, "name": "0"}, {"count": 3, "id": 1, "name": "1"}, {"count": 3, "id": 2, "name": "2"}]}
    assert sorted(row["file_name"] for row in reader.read_at_page_by_id(0, 0, 10)) == ["000.jpg", "003.jpg", "006.jpg", "009.jpg"]
    first, second = (reader.read_at_page_by_name("1", page, 2) for page in (0, 1))
    assert sorted(row["file_name"] for row in first + second) == ["001.jpg", "004.jpg", "007.jpg"] and len(second) == 1
    for call in (lambda: reader.read_at_page_by_id(0, "0", 1), lambda: reader.read_at_page_by_name(1, 0, 1), lambda: reader.read_at_page_by_name("1", 0, "b")):
        with pytest.raises(ParamValueError):
            call()
    with pytest.raises(RuntimeError, match=r"Invalid data, category_id: 99 must be in the range \[0, 3\]."):
        reader.read_at_page_by_id(99, 0, 1)
    with pytest.raises(RuntimeError, match="category_name: abc.jpg could not found."):
        reader.read_at_page_by_name("abc.jpg", 0, 1)
