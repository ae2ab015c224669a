"""Random operators with seeds of their own: calls go on, set_seed() begins anew, checkpoints hold the place."""

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, context, nn, ops
from mindspore.nn.probability import distribution
from mindspore.ops import operations as P

CALLS = {
    "standard_normal": lambda: ops.standard_normal((8,), seed=3), "uniform": lambda: ops.uniform((8,), Tensor(0, ms.float32), Tensor(1, ms.float32), seed=3),
    "normal": lambda: ops.normal((8,), Tensor(0, ms.float32), Tensor(1, ms.float32), seed=3), "gamma": lambda: ops.gamma((8,), Tensor(2, ms.float32), Tensor(1, ms.float32), seed=3),
    "shuffle": lambda: ops.shuffle(Tensor(np.arange(64, dtype=np.float32)), seed=3),
    "Normal.sample": lambda: distribution.Normal(0.0, 1.0, seed=3, dtype=ms.float32).sample((8,)),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_calls_by_one_seed_go_on_and_set_seed_begins_anew(name):
    def three():
        ms.set_seed(5)
        return [CALLS[name]().asnumpy() for _ in range(3)]

    first, again = three(), three()
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first[0], first[1]) and not np.array_equal(first[1], first[2])


class Drawing(nn.Cell):
    def __init__(self):
        super().__init__()
        self.normal = P.StandardNormal(seed=7)

    def construct(self, x):
        return x + self.normal((4,)) + ops.uniform((4,), Tensor(0, ms.float32), Tensor(1, ms.float32), seed=9)


@pytest.mark.parametrize("mode", [context.GRAPH_MODE, context.PYNATIVE_MODE])
def test_a_checkpoint_holds_the_place_of_each_stream(mode, tmp_path):
    context.set_context(mode=mode)
    ms.set_seed(1)
    x, net, path = Tensor(np.zeros(4, np.float32)), Drawing(), str(tmp_path / "net.ckpt")
    net(x)
    ms.save_checkpoint(net, path)
    expected = [net(x).asnumpy() for _ in range(2)]
    other = Drawing()
    ms.load_param_into_net(other, ms.load_checkpoint(path))
    np.testing.assert_array_equal([other(x).asnumpy() for _ in range(2)], expected)
