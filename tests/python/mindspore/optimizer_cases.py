"""Steps of optimizers on two parameters, with gradients that are told: run by the tests, and with the real package in a process."""

import numpy as np

NAMES, SHAPES = ("fc.weight", "bn.gamma"), ((3, 4), (4,))

# what makes an optimizer of the parameters p: those of the list are in the real package too
CASES = {
    "momentum": "nn.Momentum(p, 0.1, 0.9)",
    "momentum, decay and scale": "nn.Momentum(p, 0.1, 0.9, weight_decay=0.01, loss_scale=4.0)",
    "momentum, nesterov": "nn.Momentum(p, 0.1, 0.9, use_nesterov=True)",
    "momentum, list": "nn.Momentum(p, [0.1, 0.05, 0.02, 0.01, 0.005, 0.004, 0.003, 0.002, 0.001, 0.0005], 0.9)",
    "momentum, schedule": "nn.Momentum(p, nn.ExponentialDecayLR(0.1, 0.9, 4), 0.9)",
    "momentum, groups": "nn.Momentum([dict(params=p[:1], lr=0.05, weight_decay=0.1), dict(params=p[1:]), dict(order_params=p)], 0.1, 0.9)",
    "momentum, decay of a group": "nn.Momentum([dict(params=p[:1]), dict(params=p[1:], weight_decay=0.0)], 0.1, 0.9, weight_decay=0.1)",
    "momentum, centred": "nn.Momentum([dict(params=p[:1], grad_centralization=True), dict(params=p[1:])], 0.1, 0.9)",
    "sgd": "nn.SGD(p, 0.1)",
    "sgd, momentum": "nn.SGD(p, 0.1, momentum=0.9, dampening=0.1, weight_decay=0.01)",
    "sgd, nesterov": "nn.SGD(p, 0.1, momentum=0.9, nesterov=True)",
    "adam": "nn.Adam(p)",
    "adam, decay": "nn.Adam(p, 0.01, 0.8, 0.99, 1e-6, weight_decay=0.01, loss_scale=2.0)",
    "adam, nesterov": "nn.Adam(p, 0.01, use_nesterov=True)",
    "adam, amsgrad": "nn.Adam(p, 0.01, use_amsgrad=True)",
    "adam weight decay": "nn.AdamWeightDecay(p, 0.01, weight_decay=0.1)",
    "lamb": "nn.Lamb(p, 0.01, weight_decay=0.1)",
    "lars": "nn.LARS(nn.Momentum(p, 0.1, 0.9, weight_decay=0.01), epsilon=1e-5, coefficient=0.02)",
    "rmsprop": "nn.RMSProp(p, 0.01, momentum=0.5, epsilon=1e-6)",
    "rmsprop, centered": "nn.RMSProp(p, 0.01, centered=True, epsilon=1e-6)",
    "ftrl": "nn.FTRL(p, learning_rate=0.05, l1=0.01, l2=0.02)",
    "adagrad": "nn.Adagrad(p, learning_rate=0.05)",
    "proximal adagrad": "nn.ProximalAdagrad(p, learning_rate=0.05, l1=0.01, l2=0.02)",
    "adadelta": "nn.Adadelta(p, learning_rate=0.5)",
    "adamax": "nn.AdaMax(p, 0.01)",
    "asgd": "nn.ASGD(p, 0.05, lambd=0.01, t0=3.0)",
    "rprop": "nn.Rprop(p, 0.01)",
    "adafactor": "nn.AdaFactor(p)",
    "adafactor, plain": "nn.AdaFactor(p, 0.01, scale_parameter=False, relative_step=False)",
}


def begin():
    random = np.random.RandomState(3)
    return [random.normal(0, 1, shape).astype(np.float32) for shape in SHAPES]


def gradients(steps=10):
    random = np.random.RandomState(4)
    return [[random.normal(0, 1, shape).astype(np.float32) for shape in SHAPES] for _ in range(steps)]


def run(text, steps=10):
    """([values of the parameters after each step], the optimizer)"""
    import mindspore as ms
    from mindspore import nn

    p = [ms.Parameter(ms.Tensor(value), name=name) for value, name in zip(begin(), NAMES)]
    optimizer = eval(text, {"nn": nn, "p": p})
    made = []
    for step in gradients(steps):
        optimizer(tuple(ms.Tensor(each) for each in step))
        made.append([each.asnumpy().copy() for each in p])
    return made, optimizer


def main():
    import sys

    import mindspore

    mindspore.set_context(mode=mindspore.PYNATIVE_MODE, device_target="CPU")
    made = {}
    for name, text in CASES.items():
        try:
            for step, values in enumerate(run(text)[0]):
                made.update((f"{name}_{step}_{i}", each) for i, each in enumerate(values))
        except Exception as error:
            made[f"{name}_error"] = np.array(f"{type(error).__name__}: {error}"[:200])
    np.savez(sys.argv[1], **made)


if __name__ == "__main__":
    main()
