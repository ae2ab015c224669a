"""Arrays of every kind go into a model in Python, and results outlive it."""

import gc

import cairn
import numpy as np
import pytest

TYPES = {"f32": "f4", "f64": "f8", "f16": "f2", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "u8": "u1", "u16": "u2", "bool": "?"}  # fmt: skip
SAME = """module @same {{
  func @main(%x: {0}[?a, ?b]) -> (%y: {0}[?b, ?a]) {{
    %y = transpose %x {{permutation = [1, 0]}} : {0}[?b, ?a]
    return %y
  }}
}}
"""
FORMS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "read only": lambda x: np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape),
    "every second": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "backwards": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "one row again": lambda x: np.broadcast_to(x[:1], x.shape),
    "part of a record": lambda x: np.rec.fromarrays([x, x], names="a,b").a,
    "subclass": lambda x: x.view(np.recarray),
    "list": lambda x: x.tolist(),
    "empty": lambda x: x[:0],
}


def model(tmp_path, dtype):
    path = tmp_path / "same.cairn"
    path.write_text(SAME.format(dtype))
    return cairn.load(path, threads=1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", TYPES)
def test_a_model_reads_arrays_of_every_form(tmp_path, dtype, form):
    same = model(tmp_path, dtype)
    given = FORMS[form]((np.arange(35) % 7 - 3 * (dtype[0] != "u")).astype(TYPES[dtype]).reshape(5, 7))
    expected = np.asarray(given, TYPES[dtype]).T
    for result in (same.run(given), same.run({"x": given})):
        assert result["y"].dtype == expected.dtype
        np.testing.assert_array_equal(result["y"], expected)


def test_results_outlive_the_model_and_are_the_callers(tmp_path):
    same = model(tmp_path, "f32")
    kept = [same.run(np.full((300, 20), i, np.float32))["y"] for i in range(10)]
    kept[0][:] = 77
    del same
    gc.collect()
    assert [float(y.max()) for y in kept] == [77, *range(1, 10)]
    assert all(y.flags.writeable and y.flags.c_contiguous for y in kept)


def test_arrays_of_other_byte_order_are_refused_in_a_sentence(tmp_path):
    with pytest.raises(cairn.Error, match="x: is no array of numbers in the CPU's memory"):
        model(tmp_path, "f32").run(np.zeros((2, 3), ">f4"))
