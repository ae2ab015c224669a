"""Keys of a session's entry that act in the passes of the TensorFlow door: precision modes and their lists."""

from pathlib import Path

import numpy as np
import pytest
from test_tensorflow_door import case  # noqa: F401

SETTINGS = Path(__file__).parent / "door" / "settings.py"


def bfloat(x):
    """Rounded to the nearest of 8 bits, ties to even."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return (((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) << 16).astype(np.uint32).view(np.float32)


def half(x):
    return np.asarray(x, np.float32).astype(np.float16).astype(np.float32)


def test_precision_modes_and_lists_act(case, tmp_path):  # noqa: F811
    found, _ = case("precision", tmp_path, script=SETTINGS)
    random = np.random.RandomState(0)
    w, x = random.randn(32, 24).astype(np.float32), random.randn(16, 32).astype(np.float32)
    np.testing.assert_allclose(found["none"], x @ w, rtol=0, atol=1e-5)
    assert found["origin"] == found["none"] == found["listed"]
    np.testing.assert_allclose(found["mixed"], half(half(x) @ half(w)), rtol=1e-3, atol=1e-5)
    assert (half(found["mixed"]) == np.array(found["mixed"], np.float32)).all()
    np.testing.assert_allclose(found["bfloat"], bfloat(bfloat(x) @ bfloat(w)), rtol=8e-3, atol=1e-5)
    assert (bfloat(found["bfloat"]) == np.array(found["bfloat"], np.float32)).all()
    assert found["mixed"] != found["none"]
    np.testing.assert_allclose(found["custom"], half(x) @ half(w), rtol=1e-5, atol=1e-5)
    assert found["kept"] == [found["none"]] * 2  # by keep_dtype_scope


@pytest.mark.parametrize(
    "name, text",
    [
        ("unknown", "precision_mode: is allow_everything, which is no mode"),
        ("missing", "modify_mixlist: /nowhere/lists.json cannot be read"),
        ("odd", "MatMul::InputDtype:int8: 'int8' is not float32, float16 or bfloat16"),
        ("broken", "'black-list' is not black-list, white-list or gray-list"),
    ],
)
def test_a_wrong_precision_key_is_told(case, tmp_path, name, text):  # noqa: F811
    kind, told = case("precision", tmp_path, script=SETTINGS)[0][name]
    assert kind == "InvalidArgumentError" and text in told


def test_deterministic_convolutions_keep_to_the_definition(case):  # noqa: F811
    assert case("infinity", 1, script=SETTINGS)[0] == [0, 9 * 64]  # by Winograd's method all of a tile are no numbers
    assert sum(case("infinity", 0, script=SETTINGS)[0]) >= 9 * 64


@pytest.mark.parametrize("mode", [0, 1])
def test_frozen_variables_are_constants_for_inference_alone(case, mode):  # noqa: F811
    found, report = case("frozen", mode, script=SETTINGS)
    assert found["before"] == [[2.0] * 8] * 2
    assert found["after"] == [[2.0 if mode == 0 else 5.0] * 8] * 2
    assert found["other"] == [[5.0] * 8] * 3
    assert found["read"] == [5.0] * 8 and found["counts"] == [0.0, 0.0]
    assert not report["run_by_tensorflow"] and max(graph["numeric_on_engine"] for graph in report["graphs"]) > 0


def test_training_in_mixed_precision_follows_full_precision(case):  # noqa: F811
    full, mixed = (np.array(case("training", mode, script=SETTINGS)[0]) for mode in ("none", "allow_mix_precision"))
    assert (full != mixed).any()
    np.testing.assert_allclose(mixed, full, rtol=0, atol=5e-2)
    assert mixed[-1] < 0.9 * mixed[0]


def test_losses_of_convolutions_in_16_bits_follow_full_precision_within_the_spread_of_seeds(case):  # noqa: F811
    full = np.array([case("convolutions", "none", str(seed), script=SETTINGS)[0] for seed in range(3)])
    spread = full.std(axis=0)
    for mode, unit in (("allow_mix_precision_fp16", 2**-11), ("allow_mix_precision_bf16", 2**-8)):
        mixed = np.array(case("convolutions", mode, "0", script=SETTINGS)[0])
        assert 0 < np.abs(mixed[0] - full[0, 0]) < 8 * unit  # before any step: rounding alone
        assert (np.abs(mixed - full[0]) < spread).all(), (mixed, full, spread)
        assert mixed[-1] < 0.8 * mixed[0]
