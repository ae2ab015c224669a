"""Scripts of PyTorch, migrated: they run on the engine and their losses and layers are those of PyTorch."""

import json
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from cairn.ms import port, torch_weights

SCRIPTS = Path(__file__).parent / "torch_scripts"
ROOT = Path(__file__).resolve().parents[3]
TORCH = ROOT / ".venv-peers" / "bin" / "python"
QUICK = {"saved_log_probs", "losses_in_layers", "module_dictionary", "heat_equation", "handed_loss", "mlp", "dcgan", "lbfgs", "sparse_adam", "kept_gradients", "more_optimizers", "random_parts", "conv_autoencoder", "schedules", "states", "layer_makers", "more_forms", "loader_rows", "uncalled_network"}
NAMES = [
    pytest.param(name, marks=[] if name in QUICK else pytest.mark.long)
    for name in sorted(path.stem for path in SCRIPTS.glob("*.py"))
]
LEFT = {"sparse_adam": "NotImplementedError: torch.optim.SparseAdam has to be rewritten by hand: use nn.Adam"}  # refused by name


def ported(script, folder):
    words = [sys.executable, "-m", "cairn.ms.port", "--to", "mindspore", script, "-o", folder, "--torch", TORCH, "--json"]
    return subprocess.run([str(word) for word in words], capture_output=True, text=True)


@pytest.mark.skipif(not TORCH.exists(), reason="no .venv-peers with PyTorch")
@pytest.mark.parametrize("name", NAMES)
def test_a_migrated_script_computes_what_pytorch_computes(name, tmp_path):
    done = ported(SCRIPTS / f"{name}.py", tmp_path / "port")
    if name in LEFT:
        assert done.returncode == 3 and LEFT[name] in done.stderr
        return
    assert done.returncode == 0, done.stderr + done.stdout[-2000:]
    result = json.loads(done.stdout)
    assert result["equal"] and len(result["steps"]) >= 3 and result["layers_compared"] == len(result["layers"])


def test_a_folder_without_a_program_lists_those_it_may_be(tmp_path):
    (tmp_path / "net.py").write_text("import torch\n")
    (tmp_path / "train.py").write_text("from net import torch\nif __name__ == '__main__':\n    pass\n")
    done = ported(tmp_path, tmp_path / "port")
    assert done.returncode == 2 and "--main names it: train.py" in done.stderr
    (tmp_path / "train.py").write_text("import net\n")
    assert port.programs(tmp_path) == ["train.py"]


def test_an_unequal_run_names_the_first_layer_that_differs():
    layers = {f"layer:{i}:0:{name}:1": np.full(3, float(i + 1)) for i, name in enumerate(("conv", "norm", "fc"))}
    expected = {"losses": np.array([1.0, 0.5]), **layers}
    found = {**expected, "losses": np.array([1.2, 0.5]), "missing": np.array([]), "layer:1:0:norm:1": np.ones(3)}
    result = port.judged(expected, found)
    assert not result["equal"] and "the first layer that differs is norm" in " ".join(result["reasons"])
    assert port.judged(expected, {**expected, "missing": np.array([])})["equal"]


def test_a_gradient_that_is_lost_makes_a_run_unequal():
    expected = {"losses": np.array([1.0]), "grad:0:0:fc.weight": np.array(0.5), "grad:0:0:fc.bias": np.array(0.0)}
    found = {**expected, "missing": np.array([])}
    assert port.judged(expected, found)["equal"]
    result = port.judged(expected, {**found, "grad:0:0:fc.weight": np.array(0.0)})
    assert not result["equal"] and "step 0 gives fc.weight no gradient here" in result["reasons"][0]


def written(path, pickled, storages=()):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("net/data.pkl", pickled)
        for key, data in storages:
            archive.writestr(f"net/data/{key}", data)


def test_a_hostile_pickle_runs_nothing(tmp_path):
    import pickle

    class Hostile:
        def __reduce__(self):
            return eval, (f"open({str(tmp_path / 'ran')!r}, 'w')",)

    path = tmp_path / "net.pth"
    for made in (pickle.dumps(Hostile()), pickle.dumps({"w": Hostile()}, 2), b"cos\nsystem\n(S'true'\ntR.", b"", b"\x80\x02}"):
        written(path, made)
        with pytest.raises(torch_weights.Refused, match="net.pth"):
            torch_weights.read(path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.skipif(not TORCH.exists(), reason="no .venv-peers with PyTorch")
def test_weights_of_a_file_go_to_the_names_of_a_cell(tmp_path):
    make = f"""
import torch
from torch import nn
torch.manual_seed(0)
net = nn.ModuleDict({{"conv": nn.Conv2d(3, 4, 3), "norm": nn.BatchNorm2d(4), "table": nn.Embedding(5, 6), "ln": nn.LayerNorm(6),
                      "rnn": nn.LSTM(6, 2, bidirectional=True), "slope": nn.PReLU(), "small": nn.Linear(2, 3).half()}})
torch.save(net.state_dict(), {str(tmp_path / "net.pth")!r})
torch.save({{"epoch": 3, "state_dict": nn.DataParallel(net).state_dict()}}, {str(tmp_path / "more.pth")!r})
import numpy
numpy.savez({str(tmp_path / "net.npz")!r}, **{{k: v.numpy() for k, v in net.state_dict().items()}})
"""
    subprocess.run([TORCH, "-c", make], check=True)
    state = torch_weights.read(tmp_path / "net.pth")
    with np.load(tmp_path / "net.npz") as wanted:
        assert set(state) == set(wanted.files)
        assert all(np.array_equal(state[key], wanted[key]) and state[key].dtype == wanted[key].dtype for key in state)
    shapes = {"conv.weight": (4, 3, 3, 3), "conv.bias": (4,), "norm.gamma": (4,), "norm.beta": (4,), "norm.moving_mean": (4,),
              "norm.moving_variance": (4,), "table.embedding_table": (5, 6), "ln.gamma": (6,), "ln.beta": (6,), "slope.w": (1,),
              "small.weight": (3, 2), "small.bias": (3,)}  # fmt: skip
    shapes |= {key: value.shape for key, value in state.items() if key.startswith("rnn.")}
    for name in ("net.pth", "more.pth"):
        made, lost = torch_weights.mapped(torch_weights.read(tmp_path / name), shapes)
        assert not lost and {key: value.shape for key, value in made.items()} == shapes
    told, _ = torch_weights.mapped(state)  # without the cell: normalisations are told by what they hold
    assert {"norm.gamma", "norm.moving_variance", "ln.gamma", "conv.weight", "conv.bias"} <= set(told)
    data = (tmp_path / "net.pth").read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(200):  # damaged files get a sentence
        damaged = bytearray(data)
        for place in rng.integers(0, len(data), 4):
            damaged[place] = rng.integers(0, 256)
        (tmp_path / "bad.pth").write_bytes(bytes(damaged[: rng.integers(1, len(data))] if rng.random() < 0.3 else damaged))
        try:
            torch_weights.read(tmp_path / "bad.pth")
        except torch_weights.Refused:
            pass


def test_a_python_without_pytorch_is_told(tmp_path):
    (tmp_path / "train.py").write_text("import torch\n")
    done = subprocess.run([sys.executable, "-m", "cairn.ms.port", "--to", "mindspore", tmp_path / "train.py", "-o", tmp_path / "port"],
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 3
    assert done.stderr == f"error: port: {sys.executable} has no PyTorch; --torch PYTHON names one that has\n"


VISION = """
import torch
from torch import nn
from torchvision import datasets, models, transforms

networks = [models.resnet18(), models.resnext50_32x4d(weights=None), models.mobilenet_v2(pretrained=False), models.alexnet(num_classes=10)]
print([sum(p.numel() for p in net.parameters()) for net in networks])
model = models.resnet18()
model.fc = nn.Linear(model.fc.in_features, 3)
prepare = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5, 0.5, 0.5), (0.25, 0.25, 0.25))])
data = datasets.CIFAR10("data", train=True, download=True, transform=prepare)
loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
criterion = nn.CrossEntropyLoss()
model.train()
for x, y in loader:
    loss = criterion(model(x), y % 3)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(tuple(x.shape), round(float(x.mean()), 3), loss.item() < 10)
digits = datasets.MNIST("data", train=False, transform=transforms.ToTensor())
print(tuple(digits[1][0].shape), digits[1][1], len(digits))
"""


def test_data_and_networks_of_torchvision(tmp_path):
    """The files that torchvision keeps, its networks by their numbers of parameters, weights that are asked for by name."""
    rng, digits, images = np.random.default_rng(0), tmp_path / "data/MNIST/raw", tmp_path / "data/cifar-10-batches-py"
    digits.mkdir(parents=True)
    images.mkdir()
    for name in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]:
        rows = {"data": np.full((2, 3072), 191, np.uint8), "labels": rng.integers(0, 10, 2).tolist()}
        (images / name).write_bytes(pickle.dumps(rows))
    for kind in ("train", "t10k"):
        (digits / f"{kind}-images-idx3-ubyte").write_bytes(np.array([2051, 5, 28, 28], ">i4").tobytes() + bytes(5 * 784))
        (digits / f"{kind}-labels-idx1-ubyte").write_bytes(np.array([2049, 5], ">i4").tobytes() + bytes(range(5)))
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/train.py").write_text(VISION)
    (tmp_path / "torch/weights.py").write_text("from torchvision import models\nnet = models.resnet18(weights=models.ResNet18_Weights.DEFAULT)\n")
    cairn = Path(sys.executable).with_name("cairn")
    subprocess.run([cairn, "migrate", "--to", "mindspore", tmp_path / "torch", "-o", tmp_path / "ms"], check=True, capture_output=True)
    run = lambda name: subprocess.run([cairn, "ms", tmp_path / "ms" / name], cwd=tmp_path, capture_output=True, text=True)  # noqa: E731
    done = run("train.py")
    assert done.returncode == 0, done.stderr
    counts, batch, digit = done.stdout.splitlines()
    assert counts == "[11689512, 25028904, 3504872, 57044810]"
    assert batch == "(2, 3, 32, 32) 0.996 True" and digit == "(1, 28, 28) 1 5"
    assert "there is no resnet18.ckpt: cairn port --weights" in run("weights.py").stderr
