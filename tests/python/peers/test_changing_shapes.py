"""One model, four threads, other sizes in each run: results are torch's, and memory stays within the bound of plans. Runs in .venv-peers.

CAIRN_ENDURANCE is how many seconds each net runs; CAIRN_TEST_ALL takes ten minutes in all."""

import itertools
import os
import random
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import cairn

PLANS = 16 << 20  # bytes of plans kept
SECONDS = float(os.environ.get("CAIRN_ENDURANCE", 200 if os.environ.get("CAIRN_TEST_ALL") == "1" else 0))
RUNS = 400  # at least, of all threads


class Pixels(nn.Module):
    """Images of any size."""

    def __init__(self):
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.Conv2d(8, 16, 1), nn.ReLU(),
        )  # fmt: skip
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        return self.head(self.convolutions(x).mean((2, 3)))

    @staticmethod
    def example(draw):
        return torch.randn(draw(1, 4), 3, draw(8, 40), draw(8, 40))


class Words(nn.Module):
    """Texts of any length, in turns."""

    def __init__(self):
        super().__init__()
        self.table, self.cell, self.head = nn.Embedding(50, 12), nn.GRU(12, 16, batch_first=True), nn.Linear(16, 5)

    def forward(self, x):
        return self.head(self.cell(self.table(x))[0].mean(1))

    @staticmethod
    def example(draw):
        return torch.randint(0, 50, (draw(1, 5), draw(1, 40)))


class Attention(nn.Module):
    """Rows of any number that look at each other."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.norm = nn.Linear(24, 24), nn.Linear(24, 24), nn.Linear(24, 24), nn.LayerNorm(24)

    def forward(self, x):
        weights = torch.softmax(self.query(x) @ self.key(x).transpose(1, 2) / 24**0.5, -1)
        return self.norm(x + weights @ self.value(x))

    @staticmethod
    def example(draw):
        return torch.randn(draw(1, 4), draw(1, 70), 24)


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("net", [Pixels, Words, Attention])
def test_threads_that_change_sizes_in_each_run(net, tmp_path, monkeypatch):
    monkeypatch.setenv("CAIRN_PLAN_MEMORY", str(PLANS))
    torch.manual_seed(1)
    torch.set_num_threads(1)
    module, file = net().eval(), tmp_path / "net.onnx"
    example = net.example(random.Random(0).randint)
    axes = {"x": {axis: f"d{axis}" for axis in range(example.dim()) if not (axis == 1 and example.dim() == 4)}}
    if net is Attention:
        del axes["x"][2]
    torch.onnx.export(module, (example,), file, dynamo=False, input_names=["x"], output_names=["y"], dynamic_axes=axes)
    model = cairn.load(file, threads=2)

    end, runs, wrong, held = time.monotonic() + SECONDS, itertools.count(), [], []

    def work(seed):
        try:
            draw = random.Random(seed).randint
            for turn in runs:
                if (turn >= RUNS and time.monotonic() > end) or wrong:
                    return
                x = net.example(draw)
                with torch.no_grad():
                    wanted = module(x).numpy()
                found = model.run({"x": x.numpy()})["y"]
                if found.shape != wanted.shape or not np.allclose(found, wanted, rtol=1e-4, atol=1e-5):
                    wrong.append((tuple(x.shape), float(np.abs(found - wanted).max()) if found.shape == wanted.shape else found.shape))
                if turn % 100 == 0:
                    held.append(resident())
        except BaseException as error:
            wrong.append(repr(error))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    early = max(held[: max(3, len(held) // 5)])
    assert held[-1] <= early + PLANS + (64 << 20)
