"""What feeding costs: a ResNet-50 training step on JPEG files read beside it, against the same step on one batch in memory.

    .venv/bin/python bench/feed.py [--rounds 5] [--steps 4] [--batch 32] [--threads 2] [--json FILE]

JPEG files of 500 x 375 to random-resized-crop 224, flip, normalise, CHW. Each side is a process of its own, in turn; a ratio is the
median over rounds of the fed step's time over the other's. Reading ahead before the first timed step is not counted; what is read
ahead in the end is, so that the ratio of processor time is an upper bound.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from data import MEAN, STD, prepare_images, used


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("rounds", 5), ("steps", 4), ("batch", 32), ("threads", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--json")
    parser.add_argument("--one", choices=("fed", "alone"), help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(steps(arguments)))
        return
    with tempfile.TemporaryDirectory() as folder:
        prepare_images(Path(folder))
        rounds = [{side: other_process(side, folder, arguments) for side in ("fed", "alone")} for _ in range(arguments.rounds)]
    ratios = {clock: statistics.median(each["fed"][clock] / each["alone"][clock] for each in rounds) for clock in ("wall_s", "cpu_s")}
    print(f"ResNet-50, batch {arguments.batch}: fed / alone {ratios['wall_s']:.3f} by wall, {ratios['cpu_s']:.3f} by processor time")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({"ratios": ratios, "rounds": rounds}, indent=1))


def other_process(side, folder, arguments):
    command = [sys.executable, __file__, "--one", side, "--data", folder]
    command += [word for name in ("steps", "batch", "threads") for word in (f"--{name}", str(getattr(arguments, name)))]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])


def steps(arguments):
    """Seconds of a step, the first two left out."""
    import cairn.ms  # noqa: F401  before mindspore is imported
    import mindspore as ms
    from mindspore_nets import ResNet50

    from cairn import data
    from cairn.data import transforms as t

    ms.set_seed(1)
    ms.context.set_context(mode=ms.context.GRAPH_MODE, device_target="CPU", max_device_memory="8GB")
    loss = ms.nn.WithLossCell(ResNet50(), ms.nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"))
    train = ms.nn.TrainOneStepCell(loss, ms.nn.Momentum(loss.trainable_params(), 0.01, 0.9))
    train.set_train()
    chain = [t.random_crop_decode_resize(224), t.random_horizontal_flip(), t.normalize(MEAN, STD), t.hwc2chw()]
    rows = data.image_folder(arguments.data / "jpeg", shuffle=True).map(chain, "image").repeat().batch(arguments.batch)
    rows = rows.iterate(arguments.threads)
    one = next(rows)
    if arguments.one == "alone":
        del rows
    for step in range(arguments.steps + 2):
        if step == 2:
            begin = time.monotonic(), used()
        row = one if arguments.one == "alone" else next(rows)
        train(ms.Tensor(row["image"]), ms.Tensor(row["label"].astype("int32"))).asnumpy()
    return {"wall_s": (time.monotonic() - begin[0]) / arguments.steps, "cpu_s": (used() - begin[1]) / arguments.steps}


if __name__ == "__main__":
    main()
