"""Input pipelines beside tf.data, torch's DataLoader with Pillow, and MindSpore: rows for each second of processor time.

    .venv/bin/python bench/data.py [--workers 2] [--rounds 5] [--peers PYTHON] [--mindspore PYTHON]

Three cases: JPEG files of 500 x 375 to random-resized-crop 224, flip, normalise, CHW in batches of 32; CIFAR records in batches of
128; MindRecord rows of 10 KB in random order. Each program runs in a process of its own, in turn, and tells what it and its workers used.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MEAN, STD = [123.7, 116.3, 103.5], [58.4, 57.1, 57.4]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", default=".venv-peers/bin/python", help="Python with torch and Pillow")
    parser.add_argument("--mindspore", default=".venv-mindspore/bin/python", help="Python with MindSpore")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--data", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        case, program = arguments.one.split("/")
        print(json.dumps(measured(PROGRAMS[case][program](Path(arguments.data), arguments.workers))))
        return
    pythons = {"cairn": sys.executable, "tf.data": sys.executable, "torch": arguments.peers, "mindspore": arguments.mindspore}
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        for case, programs in PROGRAMS.items():
            compare(case, {name: pythons[name] for name in programs if os.path.exists(pythons[name])}, folder, arguments)


def compare(case, programs, folder, arguments):
    rates = {name: [] for name in programs}
    for _ in range(arguments.rounds):
        for name in list(rates):
            command = [programs[name], __file__, "--one", f"{case}/{name}", "--data", folder, "--workers", str(arguments.workers)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{case}: {name} does not run here: {(done.stderr.strip().splitlines() or ['no reason told'])[-1][:120]}")
                del rates[name]
                continue
            rates[name].append(json.loads(done.stdout.strip().splitlines()[-1]))
    ours = statistics.median(each["rows_per_cpu_s"] for each in rates["cairn"])
    for name, runs in rates.items():
        rate, wall = (statistics.median(each[key] for each in runs) for key in ("rows_per_cpu_s", "rows_per_s"))
        print(f"{case:12} {name:10} {rate:10.0f} rows / s of processor  {wall:10.0f} rows / s  {ours / rate:6.2f} x")


def measured(rows, least=3.0):
    """Rates of a generator of row counts, after its first tenth of a second."""
    total, begin = 0, None
    for count in rows:
        if begin is None:
            begin = time.monotonic(), used()
            continue
        total += count
        if time.monotonic() - begin[0] > least:
            break
    wall = time.monotonic() - begin[0]
    rows.close()
    return {"rows_per_s": total / wall, "rows_per_cpu_s": total / (used() - begin[1])}


def used():
    """Seconds of processor of this process and of the children that have ended."""
    return sum(getattr(resource.getrusage(who), part) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN) for part in ("ru_utime", "ru_stime"))


def prepare_images(folder):
    """200 JPEG files in folder/jpeg/a."""
    import numpy as np
    import tensorflow as tf

    rng = np.random.RandomState(0)
    (folder / "jpeg" / "a").mkdir(parents=True)
    y, x = np.mgrid[0:375, 0:500]
    for number in range(200):
        waves = [128 + 90 * np.sin(x / rng.uniform(5, 60) + y / rng.uniform(5, 60)) for _ in range(3)]
        image = np.clip(np.stack(waves, -1) + rng.randn(375, 500, 3) * 8, 0, 255).astype(np.uint8)
        (folder / "jpeg" / "a" / f"{number}.jpg").write_bytes(tf.io.encode_jpeg(image, quality=90).numpy())


def prepare(folder):
    import numpy as np

    from cairn import data

    prepare_images(folder)
    rng = np.random.RandomState(0)
    for number in range(1, 6):
        rng.randint(0, 10, (10000, 3073)).astype(np.uint8).tofile(folder / f"data_batch_{number}.bin")
    writer = data.MindRecordWriter(folder / "rows", {"id": ("int64", None), "data": ("bytes", None)}, index=["id"])
    for number in range(20000):
        writer.write({"id": np.int64(number), "data": rng.randint(0, 256, 10240).astype(np.uint8)})
    writer.commit()


def cairn_jpeg(folder, workers):
    from cairn import data
    from cairn.data import transforms as t

    chain = [t.random_crop_decode_resize(224), t.random_horizontal_flip(), t.normalize(MEAN, STD), t.hwc2chw()]
    rows = data.image_folder(folder / "jpeg", shuffle=True).map(chain, "image").repeat().batch(32).iterate(workers)
    for row in rows:
        yield len(row["image"])


def tf_jpeg(folder, workers):
    import tensorflow as tf

    def load(path):
        file = tf.io.read_file(path)
        begin, size, _ = tf.image.sample_distorted_bounding_box(tf.image.extract_jpeg_shape(file), tf.zeros([1, 0, 4]), 0,
                                                                0.1, (0.75, 4 / 3), (0.08, 1.0), 10, True)  # fmt: skip
        window = tf.stack([begin[0], begin[1], size[0], size[1]])
        image = tf.image.resize(tf.image.decode_and_crop_jpeg(file, window, 3), (224, 224))
        image = (tf.image.random_flip_left_right(image) - MEAN) / STD
        return tf.transpose(image, (2, 0, 1))

    tf.config.threading.set_inter_op_parallelism_threads(workers)
    files = [str(path) for path in sorted((folder / "jpeg" / "a").iterdir())]
    rows = tf.data.Dataset.from_tensor_slices(files).shuffle(200).repeat().map(load, workers).batch(32).prefetch(2)
    for row in rows.as_numpy_iterator():
        yield len(row)


def torch_jpeg(folder, workers):
    import math
    import random

    import numpy as np
    import torch
    from PIL import Image

    files = sorted((folder / "jpeg" / "a").iterdir())
    mean, std = (np.array(each, np.float32).reshape(3, 1, 1) for each in (MEAN, STD))

    class Files(torch.utils.data.Dataset):
        def __len__(self):
            return 1 << 20

        def __getitem__(self, index):
            image = Image.open(files[index % len(files)]).convert("RGB")
            width, height = image.size
            for _ in range(10):
                area, shape = random.uniform(0.08, 1) * width * height, math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
                across, down = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
                if across <= width and down <= height:
                    break
            else:
                across, down = width, height
            left, top = random.randint(0, width - across), random.randint(0, height - down)
            image = image.resize((224, 224), Image.BILINEAR, (left, top, left + across, top + down))
            if random.random() < 0.5:
                image = image.transpose(Image.FLIP_LEFT_RIGHT)
            return torch.from_numpy((np.asarray(image).transpose(2, 0, 1) - mean) / std)

    torch.set_num_threads(1)
    for batch in torch.utils.data.DataLoader(Files(), 32, shuffle=True, num_workers=0):  # so that its time is all in one process
        yield len(batch)


def mindspore_jpeg(folder, workers):
    import mindspore.dataset as ds
    from mindspore.dataset import vision

    chain = [vision.RandomCropDecodeResize(224), vision.RandomHorizontalFlip(), vision.Normalize(MEAN, STD), vision.HWC2CHW()]
    rows = ds.ImageFolderDataset(str(folder / "jpeg"), num_parallel_workers=workers).repeat(1000)
    rows = rows.map(chain, "image", num_parallel_workers=workers).batch(32, num_parallel_workers=1)
    for row in rows.create_tuple_iterator(num_epochs=1, output_numpy=True):
        yield len(row[0])


def cairn_cifar(folder, workers):
    from cairn import data

    for row in data.cifar10(folder, shuffle=True).repeat().batch(128).iterate(workers):
        yield len(row["image"])


def tf_cifar(folder, workers):
    import tensorflow as tf

    def split(record):
        values = tf.io.decode_raw(record, tf.uint8)
        return tf.transpose(tf.reshape(values[1:], (3, 32, 32)), (1, 2, 0)), values[0]

    tf.config.threading.set_inter_op_parallelism_threads(workers)
    files = [str(folder / f"data_batch_{number}.bin") for number in range(1, 6)]
    rows = tf.data.FixedLengthRecordDataset(files, 3073).shuffle(10000).repeat().map(split, workers).batch(128).prefetch(2)
    for row in rows.as_numpy_iterator():
        yield len(row[0])


def mindspore_cifar(folder, workers):
    import mindspore.dataset as ds

    rows = ds.Cifar10Dataset(str(folder), "train", num_parallel_workers=workers).repeat(1000).batch(128, num_parallel_workers=1)
    for row in rows.create_tuple_iterator(num_epochs=1, output_numpy=True):
        yield len(row[0])


def cairn_records(folder, workers):
    from cairn import data

    for row in data.mindrecord(folder / "rows", shuffle=True).repeat().batch(32).iterate(workers):
        yield len(row["id"])


def mindspore_records(folder, workers):
    import mindspore.dataset as ds

    rows = ds.MindDataset(str(folder / "rows"), shuffle=True, num_parallel_workers=workers).repeat(1000).batch(32, num_parallel_workers=1)
    for row in rows.create_tuple_iterator(num_epochs=1, output_numpy=True):
        yield len(row[0])


PROGRAMS = {
    "jpeg": {"cairn": cairn_jpeg, "tf.data": tf_jpeg, "torch": torch_jpeg, "mindspore": mindspore_jpeg},
    "cifar": {"cairn": cairn_cifar, "tf.data": tf_cifar, "mindspore": mindspore_cifar},
    "mindrecord": {"cairn": cairn_records, "mindspore": mindspore_records},
}

if __name__ == "__main__":
    main()
