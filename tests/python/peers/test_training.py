"""Training by cairn.Trainer and `cairn train` goes as torch's goes: optimisers, losses, batch norms. Runs in .venv-peers."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import numpy_helper

import cairn

STEPS = 4


def export(net, x, path, training=False):
    net.train(training)
    mode = torch.onnx.TrainingMode.PRESERVE if training else torch.onnx.TrainingMode.EVAL
    torch.onnx.export(net, (x,), str(path), dynamo=False, training=mode, do_constant_folding=False,
                      input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "n"}})
    net.train()
    return path


def mlp():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))


def convolutional():
    torch.manual_seed(4)
    net = torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3, padding=1, bias=False), torch.nn.BatchNorm2d(4), torch.nn.ReLU(),
                              torch.nn.MaxPool2d(2), torch.nn.Conv2d(4, 5, 3), torch.nn.BatchNorm2d(5), torch.nn.ReLU(),
                              torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(5, 3))
    return net


class Fresh(torch.nn.Module):
    """Scales of 1, shifts of 0, layers that are copies: what exporters make one; a norm and a product used twice; a buffer."""

    def __init__(self, batch_norm=True, copies=True):
        super().__init__()
        torch.manual_seed(5)
        norm = torch.nn.BatchNorm2d if batch_norm else lambda channels: torch.nn.GroupNorm(2, channels)
        self.images = torch.nn.Sequential(torch.nn.Conv2d(2, 8, 3, bias=False), norm(8), torch.nn.Tanh(),
                                          torch.nn.Conv2d(8, 8, 3, bias=False), norm(8))
        self.shared_norm, self.shared = torch.nn.LayerNorm(8), torch.nn.Linear(8, 8)
        self.norms = torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.LayerNorm(8))
        self.scales = torch.nn.ParameterList(torch.nn.Parameter(torch.full((8,), 0.5)) for _ in range(2))
        self.register_buffer("places", torch.randn(1, 4, 8))
        layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        for part in [] if copies else (self.encoder.layers[1], self.shared_norm):
            for parameter in part.parameters():
                torch.nn.init.normal_(parameter, 0.1, 0.3)
        self.head = torch.nn.Linear(8, 3)

    def forward(self, x):
        x = self.images(x).flatten(2).transpose(1, 2) + self.places
        x = self.shared_norm(self.shared(torch.tanh(self.shared_norm(self.shared(x)))))
        x = x + self.scales[0] * self.norms[0](x)
        x = x + self.scales[1] * self.norms[1](x)
        return self.head(self.encoder(x).mean(1))


def train_torch(net, optimizer, loss, batches):
    losses = []
    for x, labels in batches:
        optimizer.zero_grad()
        value = loss(net(torch.from_numpy(x)), torch.from_numpy(labels))
        value.backward()
        optimizer.step()
        losses.append(float(value.detach()))
    return losses


def close(found, expected, tolerance, what):
    assert found.shape == expected.shape, what
    assert np.abs(found - expected).max() <= tolerance * max(np.abs(expected).max(), 1e-3), what


OPTIMIZERS = {
    "sgd": (dict(), lambda p: torch.optim.SGD(p, 0.1)),
    "momentum": (dict(optimizer="sgd", momentum=0.9), lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)),
    "nesterov": (dict(optimizer="sgd", momentum=0.9, nesterov=1, weight_decay=0.01),
                 lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.01)),
    "adam": (dict(optimizer="adam"), lambda p: torch.optim.Adam(p, 0.1)),
    "amsgrad": (dict(optimizer="adam", amsgrad=1), lambda p: torch.optim.Adam(p, 0.1, amsgrad=True)),
    "adamw": (dict(optimizer="adamw", weight_decay=0.05), lambda p: torch.optim.AdamW(p, 0.1, weight_decay=0.05)),
    "nadam": (dict(optimizer="nadam"), lambda p: torch.optim.NAdam(p, 0.1)),
    "adamax": (dict(optimizer="adamax"), lambda p: torch.optim.Adamax(p, 0.1)),
    "adagrad": (dict(optimizer="adagrad"), lambda p: torch.optim.Adagrad(p, 0.1)),
    "adadelta": (dict(optimizer="adadelta"), lambda p: torch.optim.Adadelta(p, 0.1)),
    # torch adds its epsilon outside the root, so it must not matter here.
    "rmsprop": (dict(optimizer="rmsprop", epsilon=1e-20, momentum=0.5),
                lambda p: torch.optim.RMSprop(p, 0.1, eps=1e-10, momentum=0.5)),
    "centered": (dict(optimizer="rmsprop", epsilon=1e-20, centered=1, rho=0.5),
                 lambda p: torch.optim.RMSprop(p, 0.1, eps=1e-10, centered=True, alpha=0.5)),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimiser_makes_the_steps_of_torch(name, tmp_path):
    options, make = OPTIMIZERS[name]
    net = mlp()
    random = np.random.default_rng(1)
    batches = [(random.normal(size=(5, 6)).astype(np.float32), random.integers(0, 3, 5)) for _ in range(STEPS)]
    trainer = cairn.Trainer(export(net, torch.zeros(2, 6), tmp_path / "m.onnx"), threads=1,
                            **{"optimizer": name, **options})
    expected = train_torch(net, make(net.parameters()), torch.nn.functional.cross_entropy, batches)
    found = [trainer.step(x, labels, 0.1)["loss"] for x, labels in batches]
    np.testing.assert_allclose(found, expected, rtol=2e-4)
    state = trainer.state()
    assert state["steps"] == STEPS
    for key, value in net.state_dict().items():
        close(state[key], value.numpy(), 1e-3, key)


LOSSES = {
    "cross_entropy": (torch.nn.CrossEntropyLoss(), "classes", {}),
    "smoothed": (torch.nn.CrossEntropyLoss(label_smoothing=0.2), "classes",
                 dict(loss="cross_entropy", loss_numbers={"smoothing": 0.2})),
    "probabilities": (torch.nn.CrossEntropyLoss(), "shares", dict(loss="cross_entropy", classes=False)),
    "nll": (torch.nn.NLLLoss(), "classes", {}),
    "binary_cross_entropy": (torch.nn.BCEWithLogitsLoss(), "bits", {}),
    "mse": (torch.nn.MSELoss(), "numbers", {}),
    "mae": (torch.nn.L1Loss(), "numbers", {}),
    "huber": (torch.nn.HuberLoss(delta=0.5), "numbers", dict(loss_numbers={"delta": 0.5})),
    "kl_divergence": (torch.nn.KLDivLoss(reduction="batchmean"), "shares", {}),
    "poisson": (torch.nn.PoissonNLLLoss(), "counts", {}),
    "squared_hinge": (lambda y, z: ((1 - y * z).clamp(min=0) ** 2).mean(), "signs", {}),
    "hinge": (lambda y, z: (1 - y * z).clamp(min=0).mean(), "signs", {}),
    "log_cosh": (lambda y, z: torch.log(torch.cosh(y - z)).mean(), "numbers", {}),
    "cosine": (lambda y, z: (1 - torch.nn.functional.cosine_similarity(y, z)).mean(), "numbers", {}),
}


def labels_of(kind, random):
    values = random.normal(size=(5, 3)).astype(np.float32)
    return {"classes": lambda: random.integers(0, 3, 5),
            "shares": lambda: np.exp(values) / np.exp(values).sum(-1, keepdims=True),
            "bits": lambda: (values > 0).astype(np.float32),
            "signs": lambda: np.sign(values),
            "counts": lambda: random.integers(0, 4, (5, 3)).astype(np.float32),
            "numbers": lambda: values}[kind]()


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_and_its_gradient_are_those_of_torch(name, tmp_path):
    loss, kind, options = LOSSES[name]
    net = mlp()
    random = np.random.default_rng(2)
    x, labels = random.normal(size=(5, 6)).astype(np.float32), labels_of(kind, random)
    trainer = cairn.Trainer(export(net, torch.zeros(2, 6), tmp_path / "m.onnx"), threads=1, **{"loss": name, **options})
    expected = train_torch(net, torch.optim.SGD(net.parameters(), 0.1), loss, [(x, labels)])
    before = trainer.evaluate(x, labels)["loss"]
    np.testing.assert_allclose([before, trainer.step(x, labels, 0.1)["loss"]], expected * 2, rtol=1e-5)
    for key, value in net.state_dict().items():
        close(trainer.state()[key], value.numpy(), 1e-5, key)


def export_fresh(net, how, x, path):
    if how in ("eval", "training"):
        return export(net, x, path, how == "training")
    net.eval()
    torch.onnx.export(net, (x,), str(path), dynamo=True, optimize=how == "optimized", external_data=False, verbose=False,
                      input_names=["x"], output_names=["y"], dynamic_shapes=({0: torch.export.Dim("n")},))
    net.train()
    return path


@pytest.mark.parametrize("how", ["eval", "training", "exported", "optimized"])
def test_a_fresh_network_trains_as_in_torch(how, tmp_path):
    # The optimizing exporter folds batch norms into convolutions, and what it made one of equal weights stays one.
    net, random = Fresh(how != "optimized", how != "optimized"), np.random.default_rng(6)
    batches = [(random.normal(size=(5, 2, 6, 6)).astype(np.float32), random.integers(0, 3, 5)) for _ in range(STEPS)]
    path = export_fresh(net, how, torch.zeros(2, 2, 6, 6), tmp_path / "m.onnx")
    frozen = {} if how in ("exported", "optimized") else {"freeze": ["places"]}  # those tell parameters from buffers
    trainer = cairn.Trainer(path, threads=1, optimizer="sgd", momentum=0.9, **frozen)
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    expected = train_torch(net, optimizer, torch.nn.functional.cross_entropy, batches)
    found = [trainer.step(x, labels, 0.1)["loss"] for x, labels in batches]
    np.testing.assert_allclose(found, expected, rtol=2e-5)
    state = trainer.state()
    for key, value in net.state_dict().items():
        if key in state:
            close(state[key], value.numpy(), 1e-3, key)
    trainer.save(tmp_path / "trained.onnx")
    trainer.save(tmp_path / "trained.om")
    onnx.checker.check_model(str(tmp_path / "trained.onnx"), full_check=True)
    net.eval()
    x = batches[0][0]
    expected = net(torch.from_numpy(x)).detach().numpy()
    close(*cairn.load(tmp_path / "trained.om").run(x).values(), expected, 1e-4, "om")
    if how != "training":  # else the file's batch norms are still in training form
        session = onnxruntime.InferenceSession(str(tmp_path / "trained.onnx"), providers=["CPUExecutionProvider"])
        close(session.run(None, {"x": x})[0], expected, 1e-4, "ONNX Runtime")


def test_batch_norms_that_the_exporter_folded_are_told(tmp_path):
    net = Fresh().images
    export_fresh(net, "optimized", torch.zeros(2, 2, 6, 6), tmp_path / "m.onnx")
    np.savez(tmp_path / "data.npz", x=np.ones((4, 2, 6, 6), np.float32), labels=np.ones((4, 8, 2, 2), np.float32))
    status, out, err = run(tmp_path / "m.onnx", "--data", tmp_path / "data.npz", "--loss", "mse", "--epochs", 1)
    assert status == 0 and "note: the exporter folded 2 batch norms into convolutions" in err, err


@pytest.mark.parametrize("training", [False, True], ids=["for inference", "for training"])
def test_batch_norms_use_and_keep_the_statistics_of_batches(training, tmp_path):
    net = convolutional()
    random = np.random.default_rng(3)
    batches = [(random.normal(size=(6, 2, 8, 8)).astype(np.float32), random.integers(0, 3, 6)) for _ in range(STEPS)]
    file = export(net, torch.zeros(2, 2, 8, 8), tmp_path / "m.onnx", training)
    trainer = cairn.Trainer(file, optimizer="sgd", momentum=0.9, threads=2)
    expected = train_torch(net, torch.optim.SGD(net.parameters(), 0.05, momentum=0.9),
                           torch.nn.functional.cross_entropy, batches)
    found = [trainer.step(x, labels, 0.05)["loss"] for x, labels in batches]
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    state = trainer.state()
    for key, value in net.state_dict().items():
        if not key.endswith("num_batches_tracked"):
            close(state[key], value.numpy(), 1e-3, key)
    # The trained file: the same network in ONNX and as .om, in inference.
    trainer.save(tmp_path / "trained.onnx")
    trainer.save(tmp_path / "trained.om")
    net.eval()
    with torch.no_grad():
        answer = net(torch.from_numpy(batches[0][0])).numpy()
    (found,) = cairn.load(tmp_path / "trained.om").run(batches[0][0]).values()
    close(found, answer, 1e-3, "om")
    if not training:  # else the file's batch norms are still in training form
        session = onnxruntime.InferenceSession(str(tmp_path / "trained.onnx"), providers=["CPUExecutionProvider"])
        close(session.run(None, {"x": batches[0][0]})[0], answer, 1e-3, "ONNX Runtime")


def test_the_written_file_differs_from_the_given_one_in_its_weights_alone(tmp_path):
    net = mlp()
    file = export(net, torch.zeros(2, 6), tmp_path / "m.onnx")
    trainer = cairn.Trainer(file, freeze=["0.*"])
    x = np.ones((4, 6), np.float32)
    trainer.step(x, np.arange(4) % 3, 0.5)
    trainer.save(tmp_path / "t.onnx")
    old, new = onnx.load(str(file)), onnx.load(str(tmp_path / "t.onnx"))
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in new.graph.initializer}
    changed = {tensor.name for tensor in old.graph.initializer
               if not np.array_equal(numpy_helper.to_array(tensor), values[tensor.name])}
    assert changed == {"2.weight", "2.bias"}
    for model in (old, new):
        del model.graph.initializer[:]
    assert old == new


def run(*arguments, folder=None):
    done = subprocess.run([str(cairn_program()), "train", *map(str, arguments)], capture_output=True, text=True, cwd=folder)
    return done.returncode, done.stdout, done.stderr


def cairn_program():
    return Path(sys.executable).parent / "cairn"


def step_trace(folder):
    subprocess.run([cairn_program(), "profile", "export", folder], check=True, capture_output=True)
    (path,) = Path(folder).glob("mindstudio_profiler_output/step_trace_*.csv")
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def digits(tmp_path):
    """A file of 60 examples that a small net can learn."""
    random = np.random.default_rng(5)
    labels = random.integers(0, 3, 60)
    x = random.normal(size=(60, 6)).astype(np.float32) + 2 * np.eye(6, dtype=np.float32)[labels]
    np.savez(tmp_path / "data.npz", x=x, labels=labels)
    np.savez(tmp_path / "numbers.npz", x=x * 100, labels=x[:, :3])
    export(mlp(), torch.zeros(2, 6), tmp_path / "m.onnx")
    return tmp_path


def test_the_command_trains_measures_and_writes(digits):
    status, out, err = run(digits / "m.onnx", "--data", digits / "data.npz", "--epochs", 8, "--batch", 8, "--lr", 0.1,
                           "--momentum", 0.9, "--split", 0.2, "--schedule", "cosine", "--warmup", 1, "--json", "-o",
                           digits / "t.onnx", "-o", digits / "t.om", "-o", digits / "t.npz")
    assert status == 0, err
    epochs = json.loads(out)["epochs"]
    assert [epoch["epoch"] for epoch in epochs] == list(range(1, 9))
    assert epochs[-1]["accuracy"] > 0.8 > epochs[0]["accuracy"]
    assert epochs[-1]["validation_loss"] < epochs[0]["validation_loss"]
    assert epochs[-1]["learning_rate"] < 0.01 < epochs[1]["learning_rate"] <= 0.1
    weights = np.load(digits / "t.npz")
    for tensor in onnx.load(str(digits / "t.onnx")).graph.initializer:
        assert np.array_equal(numpy_helper.to_array(tensor), weights[tensor.name])
    x = np.load(digits / "data.npz")["x"]
    answers = [list(cairn.load(digits / f"t.{ending}").run(x).values())[0] for ending in ("onnx", "om")]
    assert np.array_equal(*answers)
    assert (answers[0].argmax(-1) == np.load(digits / "data.npz")["labels"]).mean() > 0.8


def test_a_resumed_training_ends_where_one_in_one_go_does(digits):
    shared = [digits / "m.onnx", "--data", digits / "data.npz", "--batch", 16, "--optimizer", "adam", "--threads", 1]
    whole = run(*shared, "--epochs", 3, "-o", digits / "whole.npz")
    first = run(*shared, "--epochs", 2, "--checkpoint", digits / "c.npz")
    second = run(*shared, "--epochs", 3, "--resume", digits / "c.npz", "-o", digits / "parts.npz")
    assert (whole[0], first[0], second[0]) == (0, 0, 0), (whole, first, second)
    assert "epoch 3/3" in second[1] and "epoch 2/3" not in second[1]
    one, other = np.load(digits / "whole.npz"), np.load(digits / "parts.npz")
    for name in one.files:
        assert np.array_equal(one[name], other[name]), name


@pytest.mark.parametrize("change, sentence", [
    (["--loss", "cross_entrop"], "error: train: loss: none is called 'cross_entrop'; did you mean cross_entropy?"),
    (["--optimizer", "adm"], "error: train: optimizer: none is called 'adm'; did you mean adam?"),
    (["--set", "beta=1"], "error: train: sgd: has no number 'beta'"),
    (["--set", "beta"], "error: train: --set: 'beta' is not NAME=NUMBER"),
    (["--freeze", "x*"], "error: train: x*: no weight of the model has this name"),
    (["--labels", "z"], "has no array 'z'; --labels names another: labels, x"),
    (["-o", "t.pt"], "error: train: t.pt: has another ending than .onnx and .om"),
    (["--data", "numbers.npz", "--loss", "poisson", "--lr", "1e9"], "the loss is"),
    (["--loss", "mse"], "labels: is i64[60], the model takes"),
], ids=lambda value: value[-1] if isinstance(value, list) else "")
def test_a_fault_is_told_in_a_sentence(digits, change, sentence):
    data = [] if "--data" in change else ["--data", "data.npz"]
    status, out, err = run("m.onnx", *data, *change, folder=digits)
    assert status == 1 and sentence in err and len(err.splitlines()) == 1, err


def test_a_file_for_one_image_is_trained_in_batches(tmp_path):
    """Exporters fix the batch at the size of the example that they were given."""
    torch.onnx.export(mlp(), (torch.zeros(1, 6),), str(tmp_path / "m.onnx"), dynamo=False, input_names=["input"])
    random = np.random.default_rng(6)
    np.savez(tmp_path / "data.npz", images=random.normal(size=(20, 6)), labels=random.integers(0, 3, (20, 1)))
    status, out, err = run(tmp_path / "m.onnx", "--data", tmp_path / "data.npz", "--batch", 8, "--epochs", 1, "--json")
    assert status == 0, err
    assert json.loads(out)["steps"] == 3


def test_steps_of_a_trainer_run_on_fast_kernels(tmp_path, monkeypatch):
    """No step of a training of a convolutional net falls back to the reference kernels."""
    monkeypatch.setenv("CAIRN_REFERENCE_STEPS", str(tmp_path / "steps.tsv"))
    net = convolutional()
    random = np.random.default_rng(3)
    trainer = cairn.Trainer(export(net, torch.zeros(2, 2, 8, 8), tmp_path / "m.onnx"), optimizer="adam")
    trainer.step(random.normal(size=(6, 2, 8, 8)).astype(np.float32), random.integers(0, 3, 6), 0.1)
    steps = (tmp_path / "steps.tsv").read_text() if (tmp_path / "steps.tsv").exists() else ""
    assert "\n" not in steps.strip(), steps


def test_steps_of_a_trainer_are_recorded_and_dumped(tmp_path):
    trainer = cairn.Trainer(export(mlp(), torch.zeros(2, 6), tmp_path / "m.onnx"), optimizer="sgd")
    batch = np.ones((4, 6), np.float32), np.zeros(4, np.int64)
    with cairn.Profiler(output_path=tmp_path) as profiler, cairn.Dump(tmp_path / "dump", dump_data="stats") as dump:
        for _ in range(3):
            trainer.step(*batch, 0.1)
        trainer.evaluate(*batch)
    steps = step_trace(profiler.folder)
    assert [row["Model ID"] for row in steps] == ["1", "1", "1", "2"]
    assert all(float(row["Iteration Refresh(us)"]) > 0 for row in steps[:3])  # the update, behind the way back
    for model, runs in (("model", 3), ("model_evaluation", 1)):
        (path,) = Path(dump.folder).glob(f"{model}/*/statistic.csv")
        with open(path, newline="") as file:
            assert len({row["Step"] for row in csv.DictReader(file)}) == runs


def test_the_commands_training_is_recorded(digits):
    words = [cairn_program(), "train", digits / "m.onnx", "--data", digits / "data.npz", "-o", digits / "t.npz"]
    subprocess.run([cairn_program(), "profile", "-o", digits, "--", *words], check=True, capture_output=True)
    (folder,) = digits.glob("PROF_*")
    assert len(step_trace(folder)) == 2  # 60 examples


def test_dropout_acts_in_training_alone(tmp_path):
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        [helper.make_node("Dropout", ["x", "ratio"], ["d"], name="drop"), helper.make_node("MatMul", ["d", "w"], ["y"])],
        "graph", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 1])],
        [numpy_helper.from_array(np.float32(0.75), "ratio"), numpy_helper.from_array(np.ones((1, 1), np.float32), "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(tmp_path / "m.onnx"))
    x, zeros = np.ones((4000, 1), np.float32), np.zeros((4000, 1), np.float32)

    def losses(seed):
        trainer = cairn.Trainer(tmp_path / "m.onnx", loss="mse", seed=seed)
        assert trainer.evaluate(x, zeros)["loss"] == 1
        return [trainer.step(x, zeros, 0)["loss"] for _ in range(2)]

    first, again, other = losses(1), losses(1), losses(2)
    assert first == again and first[0] != first[1] and first != other
    assert all(abs(loss - 4) < 0.5 for loss in first + other)  # a quarter stays, four times as large
    (y,) = cairn.load(tmp_path / "m.onnx").run(x).values()
    assert np.array_equal(y, x)
