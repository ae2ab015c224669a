"""Endless epochs over changing pipelines: memory, threads, processes and descriptors do not grow.

CAIRN_ENDURANCE is how many seconds it takes: 3600 for an hour."""

import gc
import os
import pathlib
import random
import time

import numpy as np
import pytest

import cairn
from cairn import data
from cairn.data import transforms as t

JPEG = (pathlib.Path(__file__).parent / "data" / "waves.jpg").read_bytes()


def doubled(x):
    return x * 2


class Source:
    def __len__(self):
        return 40

    def __getitem__(self, index):
        return np.random.randint(0, 255, (32 + index % 5, 40, 3)).astype(np.uint8), index


def sources(folder):
    yield lambda: data.image_folder(folder / "images", shuffle=True).map([t.random_crop_decode_resize(48), t.random_horizontal_flip()], "image")
    yield lambda: data.mindrecord(folder / "rows", shuffle=True)
    yield lambda: data.tfrecord(folder / "rows.tfrecord", {"x": (np.float32, [50]), "id": (np.int64, [])})
    yield lambda: data.generator(Source(), ["image", "label"], workers=2, processes=True)
    yield lambda: data.generator(Source(), ["image", "label"])
    yield lambda: data.slices({"x": np.arange(3000).reshape(60, 50), "id": np.arange(60)}).map(doubled, "x", workers=2)
    yield lambda: data.slices({"text": np.array(["some words here", "and more"] * 20), "id": np.arange(40)}).map(t.basic_tokenizer(True), "text").project(["id"])
    yield lambda: data.slices({"x": np.arange(3000).reshape(60, 50), "id": np.arange(60)}).cache(data.Cache(20_000, spill=True)).repeat(3)


def one_turn(make, rng):
    """An epoch or a part of one, left in one of the ways that there are."""
    dataset = make()
    if rng.random() < 0.5:
        dataset = dataset.shuffle(rng.randint(2, 50))
    if rng.random() < 0.3 and "id" in dataset.columns:
        dataset = dataset.filter(lambda id: int(id) % 7 != 0, "id")
    fixed = "label" not in dataset.columns or "image" not in dataset.columns or "random_crop" in str(make.__code__.co_names)
    if fixed:
        dataset = dataset.batch(rng.randint(1, 9))
    iterator = dataset.iterate(workers=rng.randint(0, 3), seed=rng.randrange(1000))
    how = rng.randrange(4)
    for number, _ in enumerate(iterator):
        if how == 0 and number == 3:
            break
    if how == 1:
        list(dataset.iterate(state=iterator.state(), epochs=1))
    elif how == 2:
        iterator.stop()


def held():
    """(resident bytes, threads, children, descriptors)."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    children = sum(len(pathlib.Path(f"/proc/self/task/{each}/children").read_text().split()) for each in os.listdir("/proc/self/task"))
    return pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir("/proc/self/task")), children, len(os.listdir("/proc/self/fd"))


def settled():
    """What is held when what ends by itself has ended."""
    for _ in range(100):
        gc.collect()
        now = held()
        if now[2] == 0:
            break
        time.sleep(0.05)
    time.sleep(0.1)
    return held()


@pytest.mark.long
def test_endless_epochs_over_changing_pipelines_hold_no_more_than_before(tmp_path):
    (tmp_path / "images" / "a").mkdir(parents=True)
    for number in range(30):
        (tmp_path / "images" / "a" / f"{number}.jpg").write_bytes(JPEG if number % 10 else JPEG[:400])
    rows = data.slices({"x": np.random.RandomState(0).rand(60, 50).astype(np.float32), "id": np.arange(60)})
    data.write_mindrecord(rows, tmp_path / "rows")
    data.write_tfrecord(rows, tmp_path / "rows.tfrecord")
    rng, makers = random.Random(0), list(sources(tmp_path))
    seconds, turns, faults = float(os.environ.get("CAIRN_ENDURANCE", "60")), 0, 0
    begin, marks = time.monotonic(), []
    while (passed := time.monotonic() - begin) < seconds:
        try:
            one_turn(rng.choice(makers), rng)
        except cairn.Error as error:
            assert ".jpg" in str(error)
            faults += 1
        turns += 1
        if passed > seconds * (len(marks) + 1) / 5 or turns == 60:
            marks.append(settled())
    marks.append(settled())
    assert turns > 50 and faults
    first, last = marks[min(1, len(marks) - 1)], marks[-1]
    assert last[1:] == first[1:], marks
    assert last[0] < first[0] * 1.1 + (8 << 20), marks
