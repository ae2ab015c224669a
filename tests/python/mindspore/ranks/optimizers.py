"""Each optimizer with its state spread over the ranks makes the steps that it makes without."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, context, nn
from mindspore.communication import get_rank, init

init()
context.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
MAKERS = {
    "Momentum": lambda p: nn.Momentum(p, 0.1, 0.9, weight_decay=0.01),
    "SGD": lambda p: nn.SGD(p, 0.1, momentum=0.9, nesterov=True),
    "Adam": lambda p: nn.Adam(p, nn.ExponentialDecayLR(0.1, 0.9, 2)),
    "AdamWeightDecay": lambda p: nn.AdamWeightDecay(p, 0.1, weight_decay=0.1),
    "Lamb": lambda p: nn.Lamb(p, 0.1),
    "LARS": lambda p: nn.LARS(nn.Momentum(p, 0.1, 0.9), 1e-8, 0.02),
    "RMSProp": lambda p: nn.RMSProp(p, 0.1, centered=True),
    "FTRL": lambda p: nn.FTRL(p),
    "Adagrad": lambda p: nn.Adagrad(p),
    "ProximalAdagrad": lambda p: nn.ProximalAdagrad(p),
    "Adadelta": lambda p: nn.Adadelta(p),
    "AdaMax": lambda p: nn.AdaMax(p),
    "ASGD": lambda p: nn.ASGD(p),
    "Rprop": lambda p: nn.Rprop(p),
    "AdaFactor": lambda p: nn.AdaFactor(p, learning_rate=0.1, relative_step=False),
}


def trained(make, spread, mode):
    context.set_context(mode=mode)
    context.set_auto_parallel_context(enable_parallel_optimizer=spread)
    ms.set_seed(1)
    net = nn.SequentialCell([nn.Dense(5, 4, weight_init="normal"), nn.Tanh(), nn.Dense(4, 3, weight_init="normal")])
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), make(net.trainable_params()))
    random = np.random.RandomState(get_rank())
    for _ in range(3):
        step(Tensor(random.rand(4, 5).astype(np.float32)), Tensor(random.rand(4, 3).astype(np.float32)))
    return [each.asnumpy().copy() for each in net.trainable_params()]


for name, make in MAKERS.items():
    plain = trained(make, False, ms.GRAPH_MODE)
    for mode in (ms.GRAPH_MODE, ms.PYNATIVE_MODE):
        for found, expected in zip(trained(make, True, mode), plain):
            np.testing.assert_allclose(found, expected, 1e-5, 1e-6, err_msg=name)
print("fine", len(MAKERS))
