"""Training of a torch network from its ONNX file, torch against Cairn: python bench/training_onnx.py [--stem small]
[--batch 32] [--epochs 3] [--seeds 3] [--rounds 5] [--json FILE], in .venv-peers.

ResNet-18 on 32x32 images: scikit-learn's digits, repeated 4 times both ways on three channels. Both sides begin with the same
weights and see the same batches. Steps are timed in one process, in turns of a few steps each; a ratio is the median over rounds of
the fastest step of Cairn over that of torch, eager or compiled, whichever is faster: below 1 Cairn is faster.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

import cairn


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        same = stride == 1 and inputs == outputs
        self.down = None if same else nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + (x if self.down is None else self.down(x)))


def resnet18(stem="full", classes=10):
    """As in torchvision; with the small stem of CIFAR networks there is no pooling in front."""
    first = (nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
             if stem == "full" else nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()))
    blocks, inputs = [], 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        blocks += [Block(inputs, outputs, stride), Block(outputs, outputs, 1)]
        inputs = outputs
    net = nn.Sequential(first, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return net


def export(net, path):
    net.eval()
    torch.onnx.export(net, (torch.zeros(1, 3, 32, 32),), str(path), dynamo=False, do_constant_folding=False,
                      training=torch.onnx.TrainingMode.PRESERVE, input_names=["x"], output_names=["logits"],
                      dynamic_axes={"x": {0: "n"}})
    net.train()


def digits():
    from sklearn.datasets import load_digits

    data = load_digits()
    images = (data.images / 8 - 1).astype(np.float32).repeat(4, 1).repeat(4, 2)
    images = np.repeat(images[:, None], 3, 1)
    order = np.random.default_rng(0).permutation(len(images))
    test, train = order[:360], order[360:]
    return (images[train], data.target[train]), (images[test], data.target[test])


def torch_steps(net, rate, momentum):
    optimizer = torch.optim.SGD(net.parameters(), rate, momentum=momentum)

    def step(x, labels):
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(net(x), labels)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def timed(step, batches):
    times = []
    for batch in batches:
        begin = time.perf_counter()
        step(*batch)
        times.append(time.perf_counter() - begin)
    return min(times)


def compiled(net, rate, momentum, x, labels):
    """Steps of the compiled network, or why there are none."""
    try:
        step = torch_steps(torch.compile(net), rate, momentum)
        for _ in range(3):
            step(x, labels)
        return step, None
    except Exception as error:  # torch.compile needs a compiler that it likes
        return None, str(error).strip().splitlines()[0][:120]


def speed(arguments, folder, train):
    """Milliseconds a step of each side, and the ratio."""
    torch.manual_seed(0)
    net = resnet18(arguments.stem)
    export(net, folder / "net.onnx")
    x, labels = train[0][:arguments.batch], train[1][:arguments.batch]
    given = torch.from_numpy(x), torch.from_numpy(labels)
    trainer = cairn.Trainer(folder / "net.onnx", optimizer="sgd", momentum=0.9, threads=arguments.threads)
    sides = {"cairn": lambda *batch: trainer.step(*batch, arguments.rate), "eager": torch_steps(net, arguments.rate, 0.9)}
    reason = "not asked for"
    if arguments.compile:
        sides["compiled"], reason = compiled(resnet18(arguments.stem), arguments.rate, 0.9, *given)
        if reason:
            del sides["compiled"]
    batch = {name: (x, labels) if name == "cairn" else given for name in sides}
    for name, step in sides.items():
        timed(step, [batch[name]] * 2)
    rounds = [{name: timed(step, [batch[name]] * 4) for name, step in sides.items()} for _ in range(arguments.rounds)]
    result = {f"{name}_ms": statistics.median(each[name] for each in rounds) * 1e3 for name in sides}
    result["ratio"] = statistics.median(
        each["cairn"] / min(value for name, value in each.items() if name != "cairn") for each in rounds)
    return {**result, **({"compiled": reason} if reason else {})}


def accuracy(arguments, folder, train, test, seed):
    """Of both sides on the test examples after the same epochs."""
    torch.manual_seed(seed)
    net = resnet18(arguments.stem)
    file = folder / f"net{seed}.onnx"
    export(net, file)
    trainer = cairn.Trainer(file, optimizer="sgd", momentum=0.9, threads=arguments.threads, seed=seed)
    trainer.fit(*train, epochs=arguments.epochs, batch=arguments.batch, learning_rate=arguments.rate, seed=seed,
                keep_rest=False)
    step, order = torch_steps(net, arguments.rate, 0.9), np.random.default_rng(seed)
    for _ in range(arguments.epochs):
        places = order.permutation(len(train[0]))
        for i in range(len(places) // arguments.batch):
            part = places[i * arguments.batch:(i + 1) * arguments.batch]
            step(torch.from_numpy(train[0][part]), torch.from_numpy(train[1][part]))
    net.eval()
    with torch.no_grad():
        hits = (net(torch.from_numpy(test[0])).argmax(-1).numpy() == test[1]).mean()
    return {"cairn": trainer.evaluate(*test)["accuracy"], "torch": float(hits)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stem", choices=("full", "small"), default="full")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rate", type=float, default=0.02)
    parser.add_argument("--no-compile", dest="compile", action="store_false", help="eager torch alone")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    train, test = digits()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        result = {"speed": speed(arguments, folder, train) if arguments.rounds else None,
                  "accuracy": [accuracy(arguments, folder, train, test, seed) for seed in range(arguments.seeds)]}
    if result["speed"]:
        print("  ".join(f"{key} {value:.3f}" if isinstance(value, float) else f"{key}: {value}"
                        for key, value in result["speed"].items()))
    for side in ("cairn", "torch") if result["accuracy"] else ():
        values = [each[side] for each in result["accuracy"]]
        print(f"{side:6} accuracy {statistics.mean(values):.4f}, {min(values):.4f} to {max(values):.4f} over {len(values)} seeds")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
