"""The sum of a 16-bit image in a mixed precision mode: it is exact and no step of it is slow, and modify_mixlist rules over it."""

import json
from pathlib import Path

import numpy as np
from tensorflow_adapter import run_python

SCRIPT = Path(__file__).parent / "door" / "mixed_sum.py"


def half(values):
    return np.asarray(values, np.float64).astype(np.float16)


def test_a_sum_in_mixed_precision_has_fast_kernels_and_follows_its_list(tmp_path):
    steps = tmp_path / "steps"
    done = run_python([SCRIPT, tmp_path], "cairn", CAIRN_REFERENCE_STEPS=str(steps))
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    image = half(np.random.RandomState(0).rand(256 * 256, 3)).astype(np.float64)  # as the convolution hands it on
    for mode in ("mixed", "listed"):  # the sum is taken of 16-bit numbers, but not in 16 bits
        np.testing.assert_allclose(found[mode], image.sum(0), rtol=1e-6)
    assert found["narrow"] == half(image.sum(0)).astype(float).tolist() != found["mixed"]
    assert found["plain"] != found["mixed"]
    assert not steps.exists(), steps.read_text()
