"""Whole networks answer what TensorFlow answers: keras.applications, layers of Keras, graphs of TensorFlow 1."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cairn

from conftest import BIN, ROOT

sys.path.insert(0, str(ROOT / "tests" / "models"))
STEP_TOLERANCE = 1e-5  # of the largest element of a step's result
SHARP = 1e-3  # of the spread: an allowed difference that says something
TOLERANCE = 1e-4  # of the spread over the batch, or 4 times what stock TensorFlow differs from itself

QUICK = ("MobileNet", "MobileNetV2", "MobileNetV3Small", "MobileNetV3Large", "EfficientNetB0", "EfficientNetV2B0", "DenseNet121",
         "ResNet50", "ResNet50V2", "ConvNeXtTiny", "RegNetX002", "RegNetY002", "VGG16", "InceptionV3", "Xception")  # fmt: skip
OTHER_SIZE = ("MobileNet", "MobileNetV2", "MobileNetV3Small", "EfficientNetB0", "EfficientNetV2B0", "DenseNet121", "ResNet50", "VGG16",
              "ConvNeXtTiny", "RegNetX002")  # fmt: skip
LARGE = {"ConvNeXtLarge": 10, "ConvNeXtXLarge": 18}  # GiB that TensorFlow needs to freeze them: many copies of the weights
NAMES = """ConvNeXtBase ConvNeXtLarge ConvNeXtSmall ConvNeXtTiny ConvNeXtXLarge DenseNet121 DenseNet169 DenseNet201 EfficientNetB0
EfficientNetB1 EfficientNetB2 EfficientNetB3 EfficientNetB4 EfficientNetB5 EfficientNetB6 EfficientNetB7 EfficientNetV2B0
EfficientNetV2B1 EfficientNetV2B2 EfficientNetV2B3 EfficientNetV2L EfficientNetV2M EfficientNetV2S InceptionResNetV2 InceptionV3
MobileNet MobileNetV2 MobileNetV3Large MobileNetV3Small NASNetLarge NASNetMobile RegNetX002 RegNetX004 RegNetX006 RegNetX008
RegNetX016 RegNetX032 RegNetX040 RegNetX064 RegNetX080 RegNetX120 RegNetX160 RegNetX320 RegNetY002 RegNetY004 RegNetY006 RegNetY008
RegNetY016 RegNetY032 RegNetY040 RegNetY064 RegNetY080 RegNetY120 RegNetY160 RegNetY320 ResNet101 ResNet101V2 ResNet152
ResNet152V2 ResNet50 ResNet50V2 ResNetRS101 ResNetRS152 ResNetRS200 ResNetRS270 ResNetRS350 ResNetRS420 ResNetRS50 VGG16 VGG19
Xception""".split()


def check(network):
    found = cairn.load(network.file, outputs=list(network.expected)).run(network.inputs)
    faults, sharp = [], 0
    for name, expected in network.expected.items():
        value = found[name]
        assert value.dtype == expected.dtype and value.shape == expected.shape, name
        if expected.dtype.kind != "f":
            assert (value == expected).all(), name
            continue
        spread = np.sqrt(np.var(np.asarray(expected, np.float64), axis=0 if len(expected) > 1 else None).mean())
        if name in network.outputs:
            assert spread > 0.02 * np.abs(expected).max(), f"{name} hardly depends on the input: {spread}"
        error = np.abs(np.asarray(value, np.float64) - expected).max(initial=0)
        allowed = max(TOLERANCE * spread, 4 * network.noise[name])
        sharp += allowed <= SHARP * spread
        if not error <= allowed:
            faults.append(f"{name}: {error:.2e} of a spread of {spread:.2e}, TensorFlow itself {network.noise[name]:.1e}")
    assert not faults, "\n".join(faults)
    check_provenance(network)
    fused = check_steps(network)
    assert fused or len(network.expected) <= 4, "a network without one fused step"
    # Deep networks of random weights blow rounding up; where TensorFlow differs from itself by much, nothing is compared.
    assert sharp >= min(2, len(network.expected)), "rounding alone changes nearly all that is compared"


def told(verb, network, *words):
    command = [BIN / "cairn", verb, network.file, "--json", "--out-nodes", ";".join(network.outputs), *words]
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert result.stdout, result.stderr
    return json.loads(result.stdout)


def check_provenance(network):
    """Every node of the file is present or removed for a reason; what no output depends on alone is dead."""
    import tensorflow as tf

    nodes = {node.name: node for node in tf.compat.v1.GraphDef.FromString(Path(network.file).read_bytes()).node}
    why = told("why", network)
    present = {source["name"] for step in why["steps"] for source in step["sources"]}
    present |= {source["name"] for source in why["without_step"]} | set(network.inputs)
    removed = {source["name"]: source["reason"] for source in why["removed"]}
    assert not nodes.keys() - present - removed.keys(), "lost"
    assert all(removed[name] == "fused" for name in present & removed.keys())
    needed, pending = set(), [name.split(":")[0] for name in network.outputs]
    while pending:
        name = pending.pop()
        if name not in needed:
            needed.add(name)
            inputs = nodes[name].input[:1] if nodes[name].op == "Switch" else nodes[name].input  # a known branch is taken
            pending += [input.split(":")[0] for input in inputs if not input.startswith("^")]
    dead = {name for name, reason in removed.items() if reason == "dead"}
    assert not dead & needed, f"said to be dead: {sorted(dead & needed)[:5]}"
    assert nodes.keys() - needed <= dead | present | removed.keys()


def check_steps(network):
    """Each step again, node by node on the reference engine."""
    steps = told("verify", network, "--steps", "--batch", 2)["steps"]
    worst = max(steps, key=lambda step: step["difference"], default={"difference": 0})
    assert worst["difference"] <= STEP_TOLERANCE, worst
    return any(step["nodes"] > 1 for step in steps)


def least_size(name):
    """Of a side that the network takes, but not below 64."""
    return 75 if name.startswith("Inception") else 71 if name == "Xception" else 64


@pytest.mark.parametrize("name", QUICK)
def test_an_application_of_keras(name, tmp_path):
    import networks

    check(networks.application(name, least_size(name), tmp_path / "frozen.pb"))


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in NAMES if name not in QUICK])
def test_every_other_application_of_keras(name, tmp_path):
    import networks

    available = int(re.search(r"MemAvailable: *(\d+)", Path("/proc/meminfo").read_text())[1]) / 2**20
    if available < LARGE.get(name, 0):
        pytest.skip(f"hardware: {LARGE[name]} GiB of free memory, {available:.1f} found")
    check(networks.application(name, least_size(name), tmp_path / "frozen.pb", apart=name in LARGE))


@pytest.mark.long
@pytest.mark.parametrize("name", OTHER_SIZE)
def test_an_application_of_keras_at_another_size(name, tmp_path):
    import networks

    check(networks.application(name, 128, tmp_path / "frozen.pb"))


def test_all_applications_are_named():
    import tensorflow as tf

    made = [name for name in dir(tf.keras.applications) if name[0].isupper()]
    assert sorted(made) == sorted(NAMES)


@pytest.mark.parametrize("kind", ("bert", "distilbert", "gpt2", "t5", "vit"))
def test_a_transformer(kind, tmp_path):
    import networks

    check(networks.transformer(kind, tmp_path / "frozen.pb"))


def test_layers_of_keras(tmp_path):
    import networks

    faults = []
    for name in networks.LAYERS:
        try:
            check(networks.layer(name, tmp_path / f"{name}.pb"))
        except (AssertionError, cairn.Error) as fault:
            faults.append(f"{name}: {fault}")
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("name", ("resnet_v2", "ssd_detection"))
def test_a_graph_of_tensorflow_1(name, tmp_path):
    import networks

    check(networks.graph(name, tmp_path / "frozen.pb"))
