"""The training examples, on the engine and on stock TensorFlow from the same seed: the first loss, the later ones and the final
variables agree. Stock TensorFlow runs through the same TensorFlow 1 layer."""

import numpy as np
import pytest
from tensorflow_adapter import EXAMPLES, run_python

STEPS = 12
# What later steps may differ by, as a share of the largest value: rounding grows with training, and batch normalisation over few
# examples, adversaries and anchors make it grow fast.
QUICK = {
    "lenet_session": 1e-3,
    "bert_finetune": 1e-3,
    "wide_deep": 1e-3,
    "gcn": 1e-3,
    "ncf": 1e-3,
    "dcgan": 5e-2,
}
LONG = {
    "ctc_rnn": 1e-3,
    "data_py_func": 1e-2,
    "keras_fit": 1e-2,
    "monitored_session": 5e-2,
    "policy_gradient": 1e-3,
    "slim_resnet_v2": 2e-1,
    "tf2_loop": 1e-3,
    "train_evaluate": 1e-3,
    "triplet_queue": 1e-2,
    "unet": 1e-2,
    "yolo": 2e-1,
}
CASES = [*QUICK.items(), *[pytest.param(*case, marks=pytest.mark.long) for case in LONG.items()]]


def run(name, folder, engine, *arguments):
    """The losses and the final variables of one run."""
    file = folder / f"{name}-{engine}.npz"
    layer = [] if name == "tf2_loop" else ["-m", "cairn_tf1"]
    command = [*layer, EXAMPLES / f"{name}.py", f"--steps={STEPS}", "--dump-losses", file, "--output", file.with_suffix("")]
    done = run_python([*command, *arguments], engine)
    assert done.returncode == 0, done.stderr[-3000:]
    arrays = dict(np.load(file))
    return arrays.pop("losses"), arrays


def test_every_example_is_run():
    scripts = {path.stem for path in EXAMPLES.glob("*.py")} - {"common"}
    assert scripts == {*QUICK, *LONG, "resnet_estimator"}


@pytest.mark.parametrize("name, tolerance", CASES)
def test_an_example_trains_on_the_engine_as_on_tensorflow(name, tolerance, tmp_path):
    expected_losses, expected = run(name, tmp_path, "tensorflow")
    losses, variables = run(name, tmp_path, "cairn")
    assert len(losses) == len(expected_losses) == STEPS and np.isfinite(losses).all() and len(set(losses)) > STEPS // 2
    assert losses[0] == pytest.approx(expected_losses[0], rel=1e-4)
    np.testing.assert_allclose(losses, expected_losses, rtol=0, atol=tolerance * np.abs(expected_losses).max())
    assert variables.keys() == expected.keys()
    for variable, value in expected.items():
        assert_close(variable, variables[variable], value, tolerance)


def assert_close(variable, value, expected, tolerance):
    largest = np.abs(expected).max() if expected.size else 0
    # Weights that start at zero move by the optimizer's rate whatever the gradient's size, Adam's above all.
    worst = np.abs(value.astype(np.float64) - expected).max() if expected.size else 0
    assert worst <= tolerance * max(largest, 0.1), f"{variable}: differs by {worst:.2g}, largest value {largest:.2g}"


@pytest.mark.long
@pytest.mark.parametrize("loop", [1, 4])
def test_resnet_50_trains_on_the_engine_also_in_several_steps_a_run(loop, tmp_path):
    """Fifty layers of batch normalisation over 16 images: two runs of stock TensorFlow with one and two threads part as far."""
    expected, _ = run("resnet_estimator", tmp_path, "tensorflow")
    losses, variables = run("resnet_estimator", tmp_path, "cairn", f"--loop={loop}")
    assert len(losses) == STEPS // loop and int(variables["variable:global_step"]) == STEPS
    if loop == 1:
        assert losses[0] == pytest.approx(expected[0], rel=1e-4)
    assert losses.mean() == pytest.approx(expected[loop - 1 :: loop].mean(), rel=0.1)
