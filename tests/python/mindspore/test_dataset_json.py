"""Pipelines as JSON: serialize, deserialize, compare, and what a tuned pipeline is written as."""

import json

import mindspore.dataset as ds
import mindspore.dataset.transforms as transforms
import mindspore.dataset.vision as vision
import numpy as np
import pytest
from mindspore import dtype as mstype


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "lines.csv"
    path.write_text("".join(f"{i},{i * i}\n" for i in range(12)))
    return str(path)


def pipeline(path):
    rows = ds.CSVDataset([path], column_defaults=[0, 0.0], column_names=["number", "square"], shuffle=False)
    rows = rows.map(transforms.TypeCast(mstype.int32), ["square"]).map(transforms.OneHot(12), ["number"])
    return rows.skip(1).repeat(2).rename("square", "area").project(["area", "number"]).batch(4, drop_remainder=True)


def rows_of(dataset):
    return [{name: value.tolist() for name, value in row.items()} for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True)]


def test_a_pipeline_comes_back_from_a_file_and_from_a_dictionary(lines, tmp_path):
    file = str(tmp_path / "pipeline.json")
    first = pipeline(lines)
    told = ds.serialize(first, file)
    assert told["op_type"] == "Batch" and told == json.load(open(file, encoding="utf-8"))
    for second in (ds.deserialize(input_dict=told), ds.deserialize(json_filepath=file)):
        assert ds.compare(first, second) and rows_of(second) == rows_of(first)
    assert not ds.compare(first, first.take(1))


def test_images_samplers_and_words_come_back(tmp_path):
    ds.config.set_seed(3)
    for begin, size, magic in (("images-idx3", 28 * 28, 2051), ("labels-idx1", 1, 2049)):
        dims = (20, 28, 28) if size > 1 else (20,)
        head = np.array([magic, *dims], ">i4").tobytes()
        (tmp_path / f"t10k-{begin}-ubyte").write_bytes(head + bytes(i % 251 for i in range(20 * size)))
    sampler = ds.RandomSampler(num_samples=6)
    sampler.add_child(ds.SequentialSampler(start_index=4))
    first = ds.MnistDataset(str(tmp_path), sampler=sampler)
    first = first.map([vision.Resize((14, 14), vision.Inter.NEAREST), vision.RandomHorizontalFlip(0.5), vision.HWC2CHW()], ["image"]).shuffle(4)
    second = ds.deserialize(ds.serialize(first))
    assert ds.compare(first, second) and rows_of(first) == rows_of(second)


def test_zipped_pipelines_come_back(lines):
    left, right = pipeline(lines).project("area"), pipeline(lines).project("number")
    first = ds.zip((left, right)).concat(ds.zip((left, right)))
    assert rows_of(ds.deserialize(ds.serialize(first))) == rows_of(first)


def test_parts_of_a_script_are_named_and_refused(lines):
    generated = ds.GeneratorDataset(lambda: iter([(np.zeros(1),)]), ["a"]).shuffle(2)
    told = ds.serialize(generated)
    assert told["children"][0] == {"op_type": "GeneratorDataset", "python": True, "children": []}
    with pytest.raises(RuntimeError, match="GeneratorDataset is a part of the script"):
        ds.deserialize(told)

    def double(x):
        return 2 * x

    with pytest.raises(RuntimeError, match="double is a part of the script"):
        ds.deserialize(ds.serialize(pipeline(lines).map(double, ["area"])))
    with pytest.raises(ValueError, match="no module of mindspore.dataset"):
        ds.deserialize({"op_type": "system", "module": "os", "arguments": {}, "children": []})


def test_a_pipeline_that_is_tuned_is_written_when_it_ends(lines, tmp_path):
    before = ds.config.get_enable_autotune()
    ds.config.set_enable_autotune(True, str(tmp_path / "tuned"))
    try:
        rows_of(pipeline(lines))
    finally:
        ds.config.set_enable_autotune(before)
    told = json.load(open(tmp_path / "tuned_0.json", encoding="utf-8"))
    assert set(told) == {"remark", "summary", "tree"} and rows_of(ds.deserialize(told)) == rows_of(pipeline(lines))
    rows_of(pipeline(lines))
    assert len(list(tmp_path.glob("tuned*"))) == 1
