"""Images with annotations: what MindSpore 2.10 reads of the same folders (data/annotated.json), and damaged files."""

import json
import os
import pathlib
import random
import sys

import mindspore.dataset as ds
import numpy as np
import pytest
from cairn import Error, data

HERE = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HERE))
import annotated_folders  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("annotated")
    annotated_folders.make(made)
    return made


def test_rows_and_classes_are_those_of_mindspore(folder):
    expected = json.loads((HERE / "data" / "annotated.json").read_text())
    for name, dataset in annotated_folders.pipelines(ds, folder).items():
        assert annotated_folders.described(dataset) == expected[name], name


@pytest.mark.long
def test_the_expected_rows_are_what_mindspore_gives(mindspore_itself, folder, tmp_path):
    mindspore_itself(annotated_folders.__file__, folder, tmp_path / "told.json")
    assert json.loads((tmp_path / "told.json").read_text()) == json.loads((HERE / "data" / "annotated.json").read_text())


def test_cairn_data_has_the_same_sources(folder):
    boxes = [row["bbox"].tolist() for row in data.coco(folder / "coco/images", folder / "coco/detection.json")]
    assert boxes[2] == [[0, 0, 96, 72]] and len(boxes) == 3
    assert [row["label"].shape for row in data.voc(folder / "voc", "Detection")] == [(1, 1), (3, 1), (2, 1)]
    assert sum(len(row["attr"]) for row in data.celeba(folder / "celeba", "train")) == 6
    labels = [row["label"].tolist() for row in data.manifest(folder / "manifest/all.manifest")]
    assert labels == [2, [1, 3], 0]


def test_a_missing_image_of_a_row_is_told_with_its_file(folder):
    rows = data.voc(folder / "voc", decode=True).iterate(epochs=1)
    target = folder / "voc/SegmentationClass/32.png"
    target.rename(target.with_suffix(".away"))
    try:
        with pytest.raises(Error, match=r"32\.jpg .*32\.png: cannot be read: No such file"):
            next(rows)
        assert next(rows)["target"].shape == (72, 96, 3)
    finally:
        target.with_suffix(".away").rename(target)


def readers(folder):
    read = data.annotated
    for task in ("Detection", "Stuff", "Keypoint", "Panoptic", "Captioning"):
        yield folder / f"coco/{task.lower()}.json", lambda path, task=task: read.read_coco("images", path, task)
    yield folder / "manifest/all.manifest", lambda path: read.read_manifest(path)
    yield folder / "celeba/list_attr_celeba.txt", lambda path: read.read_celeba(path.parent)
    yield folder / "voc/Annotations/33.xml", lambda path: read.read_voc(path.parents[1], "Detection")


def mutants(content, count, seed):
    """Bytes changed, cut out, doubled, and tokens of JSON replaced by others."""
    rng = random.Random(seed)
    tokens = [b"null", b"-1", b"1e999", b'"x"', b"[]", b"{}", b"true", b"[[[[", b"\xff", b"99999999999999999999", b"<", b"&#0;"]
    for _ in range(count):
        made = bytearray(content)
        for _ in range(rng.randint(1, 4)):
            at, length = rng.randrange(len(made) + 1), rng.randint(1, 8)
            kind = rng.randrange(4)
            made[at : at + (0 if kind == 3 else length)] = (bytes(rng.randrange(256) for _ in range(length)), b"", bytes(made[at : at + length]) * 2,
                                                            rng.choice(tokens))[kind]  # fmt: skip
        yield bytes(made[: rng.randrange(len(made) + 1)] if rng.random() < 0.1 else made)


@pytest.mark.parametrize("number", range(8))
def test_damaged_annotations_give_a_sentence_with_the_file(folder, number):
    path, read = list(readers(folder))[number]
    content, refused = path.read_bytes(), 0
    try:
        for mutant in mutants(content, 2000 if os.environ.get("CAIRN_TEST_ALL") == "1" else 200, number):
            path.write_bytes(mutant)
            try:
                read(path)
            except Error as error:
                assert str(path) in str(error) or str(path.parent.parent) in str(error), error
                assert "\n" not in str(error)
                refused += 1
    finally:
        path.write_bytes(content)
    assert refused > 20


def test_arguments_are_checked(folder):
    with pytest.raises(ValueError, match="task is not within the valid set"):
        ds.CocoDataset(str(folder / "coco/images"), str(folder / "coco/detection.json"), "Boxes")
    with pytest.raises(ValueError, match="does not exist"):
        ds.CocoDataset(str(folder / "coco/images"), str(folder / "none.json"))
    with pytest.raises(ValueError, match="class_indexing is not supported in Segmentation"):
        ds.VOCDataset(str(folder / "voc"), class_indexing={"a": 0})
    with pytest.raises(RuntimeError, match="bird"):
        ds.VOCDataset(str(folder / "voc"), "Detection", class_indexing={"bird": 0}).get_dataset_size()
    shards = [[row["attr"].tolist() for row in ds.CelebADataset(str(folder / "celeba"), num_shards=2, shard_id=shard, shuffle=False)
               .create_dict_iterator(num_epochs=1, output_numpy=True)] for shard in range(2)]  # fmt: skip
    assert np.array(shards).shape == (2, 2, 3) and shards[0] != shards[1]
