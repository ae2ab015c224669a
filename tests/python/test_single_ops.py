"""cairn.ops: operators as functions on arrays, wherever their elements lie."""

import inspect
import threading

import numpy as np
import pytest

import cairn

F = np.float32


def counting(*dims, dtype=F):
    return np.arange(np.prod(dims), dtype=dtype).reshape(dims)


def test_functions_are_made_from_the_rows():
    assert "NHWC" in cairn.ops.conv2d.__doc__
    assert str(inspect.signature(cairn.ops.softmax)) == "(x, *, axis=-1, out=None)"
    assert {"add", "conv2d", "and_"} <= set(dir(cairn.ops))
    assert {row["name"] for row in cairn.ops()} >= {"add", "conv2d", "and"}
    with pytest.raises(AttributeError, match="no operator is called nothing"):
        cairn.ops.nothing


def test_numbers_lists_and_several_results():
    x = counting(4)
    np.testing.assert_array_equal(cairn.ops.add(x, 1), x + 1)
    np.testing.assert_array_equal(cairn.ops.concat([x, x], axis=0), np.concatenate([x, x]))
    np.testing.assert_array_equal(cairn.ops.concat(x, x, axis=0), np.concatenate([x, x]))
    np.testing.assert_array_equal(cairn.ops.broadcast_to(x, [3, 4]), np.broadcast_to(x, (3, 4)))
    np.testing.assert_array_equal(cairn.ops.reshape(x=x, shape=[2, 2]), x.reshape(2, 2))
    values, places = cairn.ops.top_k(x, 2)
    np.testing.assert_array_equal(values, [3, 2])
    np.testing.assert_array_equal(cairn.ops.non_zero(x), [[1], [2], [3]])
    assert cairn.ops.cast(x, dtype="i32").dtype == cairn.ops.cast(x, dtype=np.int32).dtype == np.int32
    np.testing.assert_array_equal(cairn.ops.and_(x > 0, x < 3), [0, 1, 1, 0])


VIEWS = {
    "transposed": lambda x: x.T,
    "reversed": lambda x: x[::-1],
    "every second": lambda x: x[:, ::2],
    "repeated": lambda x: np.broadcast_to(x[0], x.shape),
    "column": lambda x: x[:, 1:2],
    "all at once": lambda x: x.T[::-2, 1:],
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "float16"])
def test_views_are_read_and_written(name, dtype):
    for size in (6, 70, 130):
        x = (counting(size, size, dtype=np.int64) % 11).astype(dtype)
        view = VIEWS[name](x)
        other = np.ascontiguousarray(view[::-1])
        np.testing.assert_array_equal(cairn.ops.add(view, other), view + other)
        np.testing.assert_array_equal(cairn.ops.transpose(view, permutation=[1, 0]), view.T)
        np.testing.assert_array_equal(cairn.ops.reshape(view, [-1]), view.reshape(-1))
        np.testing.assert_array_equal(cairn.ops.reduce_max(view, axes=[0]), view.max(0))
        if not view.flags.writeable:
            continue
        expected = view + other
        assert cairn.ops.add(view, other, out=view) is view
        np.testing.assert_array_equal(view, expected)


def test_a_product_takes_views():
    a, b = np.random.default_rng(0).normal(size=(2, 40, 40)).astype(F)
    for x, y in ((a, b.T), (a.T, b), (a.T, b.T), (a[::2], b[:, 1:]), (a[:, :3], b[:3])):
        np.testing.assert_allclose(cairn.ops.matmul(x, y), x @ y, rtol=1e-4, atol=1e-4)
    assert '"strided"' in cairn._cairn._describe_op("matmul", [a, b.T], {})
    assert '"copied"' not in cairn._cairn._describe_op("add", [a.T, b], {})


def test_random_states_are_the_callers():
    state = np.array([7, 0, 0], np.uint64)
    after, first = cairn.ops.random_normal(state, [5])
    _, second = cairn.ops.random_normal(after, [5])
    _, again = cairn.ops.random_normal(state, [5])
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, second)


def test_lists():
    x = counting(3)
    made = cairn.ops.list_push(cairn.List([x, x + 1]), x + 2)
    assert len(made) == 3
    np.testing.assert_array_equal(made[-1], x + 2)
    np.testing.assert_array_equal(cairn.ops.list_stack(made), [x, x + 1, x + 2])
    with pytest.raises(IndexError):
        made[3]


def test_texts():
    np.testing.assert_array_equal(cairn.ops.text_length(["cairn", ""]), [5, 0])
    assert list(cairn.ops.text_join(["a", "b"], ["c", "d"], separator="-")) == [b"a-c", b"b-d"]


def test_mistakes_are_told():
    x = counting(4)
    for call, text in (
        (lambda: cairn.ops.add(x), "add: takes 2 inputs, found 1"),
        (lambda: cairn.ops.add(x, x, x), "add: takes 2 inputs, 3 are given"),
        (lambda: cairn.ops.add(x, x, axis=1), "add: has no input or attribute axis"),
        (lambda: cairn.ops.softmax(x, axis="last"), "softmax: attribute axis is of kind text, expected integer"),
        (lambda: cairn.ops.add(x, x, out=np.zeros(5, F)), r"add: output 0 is f32\[5\], the result is f32\[4\]"),
        (lambda: cairn.ops.add(x, x, x=x), "add: input x is given twice"),
        (lambda: cairn.ops.add(x, y=None), "add: input y is not given"),
    ):
        with pytest.raises(cairn.Error, match=text):
            call()
    frozen = counting(4)
    frozen.flags.writeable = False
    with pytest.raises((cairn.Error, TypeError)):
        cairn.ops.neg(x, out=frozen)


def test_threads_share_what_is_prepared():
    x = np.random.default_rng(0).normal(size=(64, 64)).astype(F)
    expected = cairn.ops.matmul(x, x)
    wrong = []

    def work():
        for _ in range(200):
            if not np.array_equal(cairn.ops.matmul(x, x), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
