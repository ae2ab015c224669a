"""How long compiling takes: no cache on disk is needed for it."""

import os
import sys
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bench"))

import mindspore_nets  # noqa: E402


@pytest.mark.long  # a time
@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE], ids=["graph", "eager"])
def test_the_training_step_of_resnet_50_is_compiled_within_half_a_second(mode):
    ms.set_context(mode=mode)
    net, loss, optimizer = mindspore_nets.parts("resnet32")
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer)
    step.set_train()
    x, y = Tensor(np.random.rand(2, 3, 32, 32).astype(np.float32)), Tensor(np.array([3, 7], np.int32))

    def user_seconds():
        before = os.times().user
        step(x, y)
        return os.times().user - before

    first = user_seconds()
    later = min(user_seconds() for _ in range(3))
    assert first - later < 0.5, (first, later)
