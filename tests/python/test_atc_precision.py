"""Which operators the precision options of atc lower, and how they round."""

import json

import numpy as np
import pytest
from atc_models import DENSE, WEIGHTS, X, convert, exact, output  # noqa: F401


def half(x):
    return np.asarray(x, np.float32).astype(np.float16).astype(np.float32)


def brain(x):
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)


def expected_of(mode):
    lower = brain if "bf" in mode else half
    product = lower(X) @ lower(WEIGHTS)
    if mode in ("force_fp16", "fp16"):
        return half(np.log1p(half(np.exp(half(product)))))
    if mode in ("cube_fp16in_fp32out",):
        return np.log1p(np.exp(product))
    if mode in ("allow_fp32_to_fp16",):
        return np.log1p(np.exp(half(product)))
    if mode.startswith(("allow_mix", "mixed")):  # exp follows the product, log1p is on the black list
        return np.log1p(lower(np.exp(lower(product))))
    return exact(X)


@pytest.mark.parametrize(
    "option",
    ["precision_mode=" + mode for mode in ["force_fp16", "force_fp32", "cube_fp16in_fp32out", "allow_fp32_to_fp16",
     "allow_mix_precision", "allow_mix_precision_bf16", "must_keep_origin_dtype", "allow_fp32_to_bf16"]]
    + ["precision_mode_v2=" + mode for mode in ["fp16", "origin", "mixed_float16", "mixed_bfloat16"]],
)  # fmt: skip
def test_each_precision_mode_rounds_where_it_says(convert, output, option):
    convert(DENSE, "--" + option)
    mode = option.split("=")[1]
    found, expected = output(x=X)["y"], expected_of(mode)
    # A value next to a rounding boundary may fall on the other side: few elements, one unit of the lower type.
    near = np.isclose(found, expected, rtol=2e-6, atol=1e-6)
    unit = 0.0098 if "bf" in mode else 0.0012
    assert near.mean() > 0.96, (found[~near], expected[~near])
    np.testing.assert_allclose(found, expected, rtol=unit, atol=unit)
    if mode not in ("must_keep_origin_dtype", "origin", "force_fp32", "allow_fp32_to_bf16"):
        assert not np.allclose(found, exact(X), rtol=2e-6, atol=1e-6)


def test_lists_change_what_is_lowered(convert, output, tmp_path):
    lists = {"black-list": {"to-add": ["MatMulV2"], "to-remove": ["Log"]}, "white-list": {"to-add": ["Exp"]}}
    (tmp_path / "mix.json").write_text(json.dumps(lists))
    convert(DENSE, "--precision_mode=allow_mix_precision", "--modify_mixlist=mix.json")
    expected = half(np.log1p(half(np.exp(half(X @ WEIGHTS)))))
    assert np.isclose(output(x=X)["y"], expected, rtol=2e-6).mean() > 0.96
    convert(DENSE, "--precision_mode=force_fp16", "--modify_mixlist=mix.json", fails="E10001")


@pytest.mark.parametrize(
    "option, text",
    [
        ("keep_dtype", "dense/MatMul\n"),
        ("keep_dtype", "OpType::MatMulV2\n"),
        ("op_precision_mode", "[ByOpType]\nMatMul=high_precision\n"),
        ("op_precision_mode", "[ByNodeName]\ndense/MatMul = enable_float_32_execution\n"),
    ],
)
def test_kept_operators_stay_in_f32(convert, output, tmp_path, option, text):
    (tmp_path / "keep.cfg").write_text(text)
    convert(DENSE, "--precision_mode=force_fp16", f"--{option}=keep.cfg")
    kept = half(np.log1p(half(np.exp(half(X @ WEIGHTS)))))
    lowered = expected_of("force_fp16")
    found = output(x=X)["y"]
    assert np.isclose(found, kept, rtol=2e-6).mean() > np.isclose(found, lowered, rtol=2e-6).mean()


def test_entries_that_fit_nothing_are_told(convert, tmp_path):
    (tmp_path / "keep.cfg").write_text("no/such/node\nOpType::Conv9D\n")
    said = convert(DENSE, "--precision_mode=force_fp16", "--keep_dtype=keep.cfg", fails="E10003")
    assert "no/such/node, OpType::Conv9D" in said
    convert(DENSE, "--precision_mode=force_fp16", "--keep_dtype=missing.cfg", fails="E10410")
    assert "--keep_dtype has no effect" in convert(DENSE, "--keep_dtype=keep.cfg")
    said = convert(DENSE, "--precision_mode=force_fp16", "--op_select_implmode=high_precision",
                   "--optypelist_for_implmode=Gelu,Exp")  # fmt: skip
    assert "OpType::Gelu has no effect" in said and "Exp" not in said


def test_types_of_one_operator_are_as_asked(convert, output, tmp_path):
    (tmp_path / "types.cfg").write_text("OpType::Exp:InputDtype:float16,OutputDtype:float32\n")
    convert(DENSE, "--customize_dtypes=types.cfg")
    np.testing.assert_allclose(output(x=X)["y"], np.log1p(np.exp(half(X @ WEIGHTS))), rtol=2e-3)
    assert not np.allclose(output(x=X)["y"], exact(X), rtol=2e-6)
    (tmp_path / "types.cfg").write_text("OpType::Exp:InputDtype:int8\n")
    convert(DENSE, "--customize_dtypes=types.cfg", fails="E10001")
