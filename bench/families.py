"""Families of operators one by one: Cairn against ONNX Runtime and torch: ./dev bench --families [WORDS ...] [--sizes 1,4,16]
[--threads 1] [--rounds 3] [--json FILE].

Each layer is exported by torch, run at each size of its first dim, and compared. Times are processor time of one call through the
Python API, the fastest of a round; a ratio is the median over rounds of Cairn's time over that of the faster peer: below 1 Cairn is
faster. What runs on the engine `reference` is named. The exit status is 1 where results differ.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

import cairn

warnings.filterwarnings("ignore")


class Call(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *values):
        return self.function(*values)


class First(nn.Module):
    """The first result of a layer that has several."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, *values):
        return self.layer(*values)[0]


def interpolate(**options):
    return Call(lambda x: F.interpolate(x, **options))


IMAGE, VOLUME, TOKENS, ROWS = (64, 56, 56), (16, 16, 28, 28), (197, 192), (1000,)
# By family: name, layer, shape of each input behind its first dim; "classes": indices below 1000 in that shape.
CASES = {
    "convolutions": [
        ("7x7, stride 2", lambda: nn.Conv2d(3, 64, 7, 2, 3), (3, 224, 224)),
        ("patches 16x16", lambda: nn.Conv2d(3, 192, 16, 16), (3, 224, 224)),
        ("1x1", lambda: nn.Conv2d(64, 256, 1), IMAGE),
        ("3x3", lambda: nn.Conv2d(64, 64, 3, padding=1), IMAGE),
        ("3x3, dilation 4", lambda: nn.Conv2d(64, 64, 3, padding=4, dilation=4), IMAGE),
        ("1x7", lambda: nn.Conv2d(64, 64, (1, 7), padding=(0, 3)), IMAGE),
        ("8 groups", lambda: nn.Conv2d(64, 64, 3, padding=1, groups=8), IMAGE),
        ("depthwise 3x3", lambda: nn.Conv2d(64, 64, 3, padding=1, groups=64), IMAGE),
        ("depthwise 5x5, stride 2", lambda: nn.Conv2d(64, 64, 5, 2, 2, groups=64), IMAGE),
        ("depthwise, multiplier 2", lambda: nn.Conv2d(64, 128, 3, padding=1, groups=64), IMAGE),
        ("1 dim", lambda: nn.Conv1d(64, 128, 9, padding=4), (64, 400)),
        ("3 dims", lambda: nn.Conv3d(16, 32, 3, padding=1), VOLUME),
        ("transposed", lambda: nn.ConvTranspose2d(64, 32, 4, 2, 1), (64, 28, 28)),
    ],
    "pools and resizes": [
        ("max 3x3, stride 2", lambda: nn.MaxPool2d(3, 2, 1), IMAGE),
        ("average 3x3", lambda: nn.AvgPool2d(3, 1, 1), IMAGE),
        ("global average", lambda: nn.AdaptiveAvgPool2d(1), IMAGE),
        ("max, 3 dims", lambda: nn.MaxPool3d(2), VOLUME),
        ("average, 3 dims", lambda: nn.AvgPool3d(3, 1, 1), VOLUME),
        ("bilinear", lambda: interpolate(scale_factor=4, mode="bilinear"), (21, 33, 33)),
        ("bicubic", lambda: interpolate(scale_factor=2, mode="bicubic"), (8, 33, 33)),
        ("nearest", lambda: interpolate(scale_factor=2, mode="nearest"), (64, 28, 28)),
        ("sampling by a grid", lambda: Call(lambda x, g: F.grid_sample(x, g, align_corners=False)), (16, 32, 32), (32, 32, 2)),
    ],
    "norms": [
        ("layer", lambda: nn.LayerNorm(192), TOKENS),
        ("group", lambda: nn.GroupNorm(8, 64), IMAGE),
        ("instance", lambda: nn.InstanceNorm2d(64, affine=True), IMAGE),
        ("local response", lambda: nn.LocalResponseNorm(5), IMAGE),
        ("length", lambda: Call(lambda x: F.normalize(x, dim=-1)), TOKENS),
        ("softmax", lambda: nn.Softmax(-1), (12, 197, 197)),
        ("logarithm of softmax", lambda: nn.LogSoftmax(1), (21, 65, 65)),
    ],
    "element by element": [
        ("gelu", nn.GELU, TOKENS),
        ("gelu by tanh", lambda: nn.GELU(approximate="tanh"), TOKENS),
        ("silu", nn.SiLU, IMAGE),
        ("hardswish", nn.Hardswish, IMAGE),
        ("mish", nn.Mish, IMAGE),
        ("prelu", lambda: nn.PReLU(64), IMAGE),
        ("times channels", lambda: Call(torch.mul), IMAGE, (64, 1, 1)),
        ("times rows", lambda: Call(torch.mul), (5000, 8), (5000, 1)),
        ("mask", lambda: Call(lambda x: x.masked_fill(x > 1, -1e9)), (12, 197, 197)),
    ],
    "products": [
        ("dense 512x4096", lambda: nn.Linear(512, 4096), (512,)),
        ("dense of tokens", lambda: nn.Linear(192, 768), TOKENS),
        ("batched", lambda: Call(torch.matmul), (8, 64, 64), (8, 64, 64)),
        ("attention", lambda: First(nn.MultiheadAttention(192, 3, batch_first=True)), TOKENS, TOKENS, TOKENS),
        ("LSTM", lambda: First(nn.LSTM(64, 64, batch_first=True)), (50, 64)),
        ("GRU", lambda: First(nn.GRU(64, 64, batch_first=True)), (50, 64)),
        ("LSTM, both ways", lambda: First(nn.LSTM(64, 64, batch_first=True, bidirectional=True)), (50, 64)),
    ],
    "indices and order": [
        ("embedding", lambda: nn.Embedding(1000, 128), ("classes", 64)),
        ("elements by index", lambda: Call(lambda x, i: torch.gather(x, 1, i)), ROWS, ("classes", 100)),
        ("sums by index", lambda: Call(lambda x, i, y: x.scatter_add(1, i, y)), ROWS, ("classes", 500), (500,)),
        ("5 largest", lambda: Call(lambda x: torch.topk(x, 5)[0]), ROWS),
        ("sort", lambda: Call(lambda x: torch.sort(x)[0]), ROWS),
        ("place of the largest", lambda: Call(lambda x: x.argmax(1)), (21, 129, 129)),
        ("running sum", lambda: Call(lambda x: torch.cumsum(x, 1)), ROWS),
    ],
    "moves": [
        ("transpose", lambda: Call(lambda x: x.permute(0, 2, 3, 1).contiguous()), IMAGE),
        ("channels to pixels", lambda: nn.PixelShuffle(2), (64, 28, 28)),
        ("reflected border", lambda: nn.ReflectionPad2d(3), (16, 56, 56)),
        ("roll", lambda: Call(lambda x: torch.roll(x, (3, 3), (1, 2))), (56, 56, 96)),
        ("concat", lambda: Call(lambda a, b: torch.cat([a, b], 1)), IMAGE, IMAGE),
        ("slice", lambda: Call(lambda x: x[:, :, 1:-1, ::2].contiguous()), IMAGE),
    ],
}


def inputs_of(shapes, size):
    random = np.random.default_rng(7)
    for shape in shapes:
        if shape[0] == "classes":
            yield torch.from_numpy(random.integers(0, 1000, (size, *shape[1:])))
        else:
            yield torch.from_numpy(random.normal(size=(size, *shape)).astype(np.float32))


class Case:
    """A layer of one size on all sides."""

    def __init__(self, layer, shapes, size, threads, folder):
        torch.manual_seed(3)
        self.layer, self.values = layer().eval(), tuple(inputs_of(shapes, size))
        path, steps = folder / "layer.onnx", folder / "steps.tsv"
        names = [f"x{i}" for i in range(len(shapes))]
        torch.onnx.export(self.layer, self.values, str(path), dynamo=False, opset_version=18, input_names=names)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.feeds = {name: value.numpy() for name, value in zip(names, self.values, strict=True)}
        steps.unlink(missing_ok=True)
        os.environ["CAIRN_REFERENCE_STEPS"] = str(steps)
        self.model = cairn.load(path, threads=threads)
        self.arrays = list(self.feeds.values())
        self.runs = {"cairn": self.cairn, "onnxruntime": lambda: self.session.run(None, self.feeds), "torch": self.torch}
        (found,), (wanted,) = self.model.run(*self.arrays).values(), self.session.run(None, self.feeds)
        self.error = float(np.abs(np.subtract(found, wanted, dtype=np.float64)).max() / max(1e-30, np.abs(wanted).max()))
        self.reference = sorted({line.split("\t")[0] for line in steps.read_text().splitlines()}) if steps.exists() else []

    def cairn(self):
        return self.model.run(*self.arrays)

    def torch(self):
        with torch.inference_mode():
            return self.layer(*self.values)

    def round(self):
        """By side the processor time of a call."""
        return {side: fastest(run) for side, run in self.runs.items()}


def fastest(run, seconds=0.02):
    def spent(count):
        begin = time.process_time()
        for _ in range(count):
            run()
        return (time.process_time() - begin) / count

    run()
    count = max(1, int(seconds / 4 / max(1e-6, spent(1))))
    return min(spent(count) for _ in range(4))


def main():
    parser = argparse.ArgumentParser(prog="./dev bench --families", description=__doc__.split("\n\n")[0])
    parser.add_argument("words", nargs="*", help="only layers or families whose name holds one of them")
    parser.add_argument("--sizes", default="1,4,16", help="first dims (default %(default)s)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows = []
    print(f"{'layer':<34}{'size':>5}{'ratio':>8}{'cairn':>11}{'onnxruntime':>13}{'torch':>11}  error    on reference")
    with tempfile.TemporaryDirectory() as folder:
        for family, cases in CASES.items():
            for name, layer, *shapes in cases:
                if options.words and not any(word in f"{family} {name}" for word in options.words):
                    continue
                for size in map(int, options.sizes.split(",")):
                    case = Case(layer, shapes, size, options.threads, Path(folder))
                    rounds = [case.round() for _ in range(options.rounds)]
                    ratio = statistics.median(each["cairn"] / min(each["onnxruntime"], each["torch"]) for each in rounds)
                    times = {side: 1e6 * min(each[side] for each in rounds) for side in case.runs}
                    rows.append({"family": family, "layer": name, "size": size, "ratio": ratio, "us": times,
                                 "error": case.error, "reference": case.reference})  # fmt: skip
                    print(f"{family.split()[0] + ': ' + name:<34}{size:>5}{ratio:>8.2f}{times['cairn']:>8.0f} us"
                          f"{times['onnxruntime']:>10.0f} us{times['torch']:>8.0f} us  {case.error:.0e}  "
                          f"{' '.join(case.reference)}", flush=True)  # fmt: skip
    ratios = sorted(row["ratio"] for row in rows)
    above = sum(ratio > 1.1 for ratio in ratios)
    print(f"median {statistics.median(ratios):.2f}, worst {ratios[-1]:.2f}, above 1.1 {above} of {len(ratios)}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return int(any(row["error"] > 1e-4 for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
