"""Every case of every op row: the reference kernel against the row's oracle, an independent statement in Python."""

import itertools
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
DUMP = Path(os.environ.get("CAIRN_BUILD", ROOT / "build")) / "dump_op_cases"
# By Precision: units in the last place, of what at least, and the part of the largest element.
EXACT, ROUNDED, ACCUMULATE_F32 = range(3)
UNIT = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52}
NUMPY = {
    "bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8,
    "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f16": np.float16, "f32": np.float32, "f64": np.float64,
    "bf16": np.float32,
}  # fmt: skip


def widened(array, dtype):
    """16-bit floats as f32; bf16 comes as its bits."""
    if dtype == "bf16":
        return np.frombuffer((array.astype(np.uint32) * np.uint32(1 << 16)).tobytes(), np.float32).reshape(array.shape)
    return array.astype(np.float32) if dtype == "f16" else array


def narrowed(array, dtype):
    """What the elements are after rounding once to a 16-bit float."""
    array = np.asarray(array)
    if dtype == "f16":
        return array.astype(np.float16).astype(np.float32)
    if dtype == "bf16":
        import tensorflow as tf

        return tf.cast(tf.cast(array, tf.bfloat16), tf.float32).numpy()
    return array


def spatial_padding(x, kernel, padding, pads, fill):
    """x and the padding argument of TensorFlow; same_lower is same on the turned image, undone by the caller."""
    if padding == "explicit":
        borders = ((0, 0), (pads[0], pads[1]), (pads[2], pads[3]), (0, 0))
        return np.pad(x, borders, constant_values=fill), "VALID"
    return x, "VALID" if padding == "valid" else "SAME"


def conv2d(x, kernel, strides, dilations, padding, pads, groups):
    import tensorflow as tf

    if padding == "same_lower":
        turned = conv2d(x[:, ::-1, ::-1], kernel[::-1, ::-1], strides, dilations, "same", pads, groups)
        return turned[:, ::-1, ::-1]
    x, padding = spatial_padding(x, kernel, padding, pads, 0)
    if x.shape[0] == 0 or min(x.shape[1] - kernel.shape[0], x.shape[2] - kernel.shape[1]) < 0 and padding == "VALID":
        rows, columns = ((x.shape[1 + i] - kernel.shape[i]) // strides[i] + 1 for i in (0, 1))
        return np.zeros((x.shape[0], rows, columns, kernel.shape[3]), x.dtype)
    parts = zip(np.split(x, groups, 3), np.split(kernel, groups, 3))
    return np.concatenate([tf.nn.conv2d(a, b, strides, padding, dilations=dilations).numpy() for a, b in parts], 3)


def pool2d(kind, x, window, strides, dilations, padding, pads, ceil_mode, count_padding):
    import tensorflow as tf

    def pool(image, kind):
        return tf.nn.pool(image, window, kind, strides, "VALID", dilations=dilations).numpy()

    if x.size == 0:
        rows, columns = ((x.shape[1 + i] - window[i]) // strides[i] + 1 for i in (0, 1))
        return np.zeros((x.shape[0], rows, columns, x.shape[3]), x.dtype)
    if padding == "same_lower":
        turned = pool2d(kind, x[:, ::-1, ::-1], window, strides, dilations, "same", pads, ceil_mode, count_padding)
        return turned[:, ::-1, ::-1]
    if padding == "same":
        return tf.nn.pool(x, window, kind, strides, "SAME", dilations=dilations).numpy()
    borders = [[0, 0], list(pads[:2]), list(pads[2:]), [0, 0]] if padding == "explicit" else [[0, 0]] * 4
    inside = np.pad(np.ones_like(x), borders, constant_values=1 if count_padding else 0)
    borders = np.array(borders)
    if ceil_mode:  # a partial last window: padding that never counts
        inside = np.pad(inside, [(0, 0), (0, strides[0] - 1), (0, strides[1] - 1), (0, 0)])
        borders += [[0, 0], [0, strides[0] - 1], [0, strides[1] - 1], [0, 0]]
    if kind == "MAX":
        least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
        return pool(np.pad(x, borders, constant_values=least).astype(np.float32), kind).astype(x.dtype)
    return pool(np.pad(x, borders), kind) / pool(inside, kind)


def spatial_steps(size, kernel, count, strides, dilations, padding, pads):
    """For each spatial dim: padding before, padded size, and for each tap the padded positions that windows put it on."""
    axes = []
    for a in range(len(size)):
        reach = (count[a] - 1) * strides[a] + (kernel[a] - 1) * dilations[a] + 1
        total = max(reach - size[a], 0)
        before = {"valid": 0, "same": total // 2, "same_lower": total - total // 2, "explicit": pads[2 * a]}[padding]
        last = (count[a] - 1) * strides[a] + 1
        taps = [slice(t * dilations[a], t * dilations[a] + last, strides[a]) for t in range(kernel[a])]
        axes.append((before, max(reach, before + size[a]), taps))
    return axes


def taps_of(x, kernel, count, strides, dilations, padding, pads):
    """x with zeros around it, where x lies in that, and the positions of each tap of the kernel."""
    axes = spatial_steps(x.shape[1:-1], kernel.shape, count, strides, dilations, padding, pads)
    inside = (slice(None), *(slice(axis[0], axis[0] + size) for axis, size in zip(axes, x.shape[1:-1])))
    padded = np.zeros((x.shape[0], *(axis[1] for axis in axes), x.shape[-1]))
    padded[inside] = x
    return padded, inside, list(itertools.product(*(enumerate(axis[2]) for axis in axes)))


def convolved(x, kernel, strides, dilations, padding, pads, groups):
    """One tap at a time over the whole padded volume."""
    count = []
    for a, size in enumerate(x.shape[1:-1]):
        around = sum(pads[2 * a : 2 * a + 2]) if padding == "explicit" else 0
        reach = (kernel.shape[a] - 1) * dilations[a] + 1
        count.append(-(-size // strides[a]) if padding.startswith("same") else (size + around - reach) // strides[a] + 1)
    y = np.zeros((x.shape[0], *count, kernel.shape[-1]))
    if y.size == 0:
        return y.astype(x.dtype)
    padded, _, taps = taps_of(x, kernel, count, strides, dilations, padding, pads)
    inputs, outputs = np.split(np.arange(x.shape[-1]), groups), np.split(np.arange(kernel.shape[-1]), groups)
    for tap in taps:
        at, places = tuple(i for i, _ in tap), (slice(None), *(place for _, place in tap))
        for c, o in zip(inputs, outputs):
            y[..., o] += padded[places][..., c] @ kernel[at][:, o].astype(np.float64)
    return y.astype(x.dtype)


def conv_gradients(x, kernel, dy, strides, dilations, padding, pads, groups):
    """By the image or volume and by the kernel, one tap at a time over the whole padded image."""
    dx, dkernel = np.zeros_like(x), np.zeros_like(kernel)
    if dy.size == 0:
        return dx, dkernel
    padded, inside, taps = taps_of(x, kernel, dy.shape[1:-1], strides, dilations, padding, pads)
    dpadded = np.zeros_like(padded)
    inputs, outputs = np.split(np.arange(x.shape[-1]), groups), np.split(np.arange(dy.shape[-1]), groups)
    for tap in taps:
        at, places = tuple(i for i, _ in tap), (slice(None), *(place for _, place in tap))
        for c, o in zip(inputs, outputs):
            dkernel[at][:, o] = padded[places][..., c].reshape(-1, len(c)).T @ dy[..., o].reshape(-1, len(o))
            dpadded[(*places, slice(c[0], c[-1] + 1))] += dy[..., o] @ kernel[at][:, o].astype(np.float64).T
    return dpadded[inside].astype(x.dtype), dkernel


def window_places(x, window, count, strides, dilations, padding, pads):
    """For each spatial dim and window: the taps inside the image, and how many lie inside the padded image."""
    positions = []
    for a, (before, _, taps) in enumerate(spatial_steps(x.shape[1:-1], window, count, strides, dilations, padding, pads)):
        size = x.shape[1 + a]
        after = pads[2 * a + 1] if padding == "explicit" else 0 if padding == "valid" else 1 << 30
        starts = [t.start - before + i * strides[a] for i in range(count[a]) for t in taps]
        grouped = np.reshape(starts, (count[a], window[a]))
        positions.append([([t for t in row if 0 <= t < size], sum(t < size + after for t in row)) for row in grouped])
    return positions


def pool_count(x, window, strides, dilations, padding, pads, ceil_mode=False):
    count = []
    for a, size in enumerate(x.shape[1:-1]):
        before, after = pads[2 * a : 2 * a + 2] if padding == "explicit" else (0, 0)
        last = size + before + after - (window[a] - 1) * dilations[a] - 1
        steps = -(-last // strides[a]) if ceil_mode else last // strides[a]
        steps -= ceil_mode and steps * strides[a] >= size + before
        count.append(-(-size // strides[a]) if padding.startswith("same") else steps + 1)
    return count


def pooled(kind, x, window, strides, dilations, padding, pads, ceil_mode, count_padding):
    """One window at a time."""
    count = pool_count(x, window, strides, dilations, padding, pads, ceil_mode)
    y = np.zeros((x.shape[0], *count, x.shape[-1]), x.dtype)
    places = window_places(x, window, count, strides, dilations, padding, pads) if y.size else []
    for at in np.ndindex(y.shape):
        rows = [places[a][i] for a, i in enumerate(at[1:-1])]
        values = x[at[0]][np.ix_(*(row for row, _ in rows))][..., at[-1]]
        mean = values.sum(dtype=np.float64) / (np.prod([padded for _, padded in rows]) if count_padding else values.size)
        y[at] = values.max() if kind == "MAX" else mean
    return y


def pool_places(x, window, strides, dilations, padding, pads):
    """Places in x of the windows' first largest elements."""
    count = pool_count(x, window, strides, dilations, padding, pads)
    y = np.zeros((x.shape[0], *count, x.shape[-1]), np.int64)
    places = window_places(x, window, count, strides, dilations, padding, pads)
    for at in np.ndindex(y.shape):
        taps = [(at[0], *tap, at[-1]) for tap in itertools.product(*(places[a][i][0] for a, i in enumerate(at[1:-1])))]
        y[at] = np.ravel_multi_index(taps[int(np.argmax([x[t] for t in taps]))], x.shape)
    return y


def pool_gradient(kind, x, dy, window, strides, dilations, padding, pads, count_padding, to_all=False):
    """One window at a time."""
    dx = np.zeros(x.shape)
    places = window_places(x, window, dy.shape[1:-1], strides, dilations, padding, pads) if dy.size else []
    for at in np.ndindex(dy.shape):
        rows = [places[a][i] for a, i in enumerate(at[1:-1])]
        taps = [(at[0], *tap, at[-1]) for tap in itertools.product(*(row for row, _ in rows))]
        if kind == "MAX":
            values = np.array([x[t] for t in taps])
            for i in np.flatnonzero(values == values.max()) if to_all else [np.argmax(values)]:
                dx[taps[int(i)]] += dy[at]
        for t in taps if kind == "AVG" else []:
            dx[t] += dy[at] / (np.prod([padded for _, padded in rows]) if count_padding else len(taps))
    return dx.astype(x.dtype)


def batch_norm_training(x, scale, offset, epsilon, axis):
    last = np.moveaxis(x, axis, -1).astype(np.float64)
    others = tuple(range(x.ndim - 1))
    mean, variance = last.mean(others), last.var(others)
    y = (last - mean) / np.sqrt(variance + epsilon) * scale + offset
    return np.moveaxis(y, -1, axis).astype(x.dtype), mean.astype(scale.dtype), variance.astype(scale.dtype)


def batch_norm_gradient(dy, x, scale, mean, variance, epsilon, axis):
    """The derivative of (x - m(x)) / sqrt(v(x) + epsilon) * scale + offset, with m and v taken as the given ones."""
    dy_last, x_last = (np.moveaxis(each, axis, -1).astype(np.float64) for each in (dy, x))
    others = tuple(range(x.ndim - 1))
    centred, power = x_last - mean, variance.astype(np.float64) + epsilon
    dscale, doffset = (dy_last * centred / np.sqrt(power)).sum(others), dy_last.sum(others)
    count = max(x_last[..., 0].size, 1)
    dx = scale / np.sqrt(power) * (dy_last - doffset / count - centred / power * (dy_last * centred).sum(others) / count)
    return np.moveaxis(dx, -1, axis).astype(x.dtype), dscale.astype(scale.dtype), doffset.astype(scale.dtype)


def cross_entropy(logits, labels):
    wide = logits.astype(np.float64)
    logs = wide - np.logaddexp.reduce(wide, -1, keepdims=True)
    loss = -np.where(labels == 0, 0, labels * logs).sum(-1)
    return loss.astype(logits.dtype), (np.exp(logs) - labels).astype(logits.dtype)


def ctc_loss(logits, places, labels, lengths, merge_repeated, collapse_repeated, ignore_longer):
    """TensorFlow's in f64, which rounds to f32 in between: no cases of f64."""
    import tensorflow as tf

    results = tf.raw_ops.CTCLoss(
        inputs=logits.astype(np.float64), labels_indices=places.astype(np.int64), labels_values=labels.astype(np.int32),
        sequence_length=lengths.astype(np.int32), preprocess_collapse_repeated=collapse_repeated,
        ctc_merge_repeated=merge_repeated, ignore_longer_outputs_than_inputs=ignore_longer)  # fmt: skip
    return tuple(result.numpy().astype(logits.dtype) for result in results)


def ctc_beam_search(logits, lengths, beam_width, top_paths, merge_repeated):
    import tensorflow as tf

    paths = np.full((top_paths, logits.shape[1], logits.shape[0]), -1, np.int64)
    if logits.shape[1] == 0:
        return paths, paths[:, :, 0], np.zeros((0, top_paths), logits.dtype)
    places, labels, _, scores = tf.raw_ops.CTCBeamSearchDecoder(
        inputs=logits, sequence_length=lengths.astype(np.int32), beam_width=beam_width, top_paths=top_paths, merge_repeated=merge_repeated)
    for path in range(top_paths):
        paths[path][tuple(places[path].numpy().T)] = labels[path].numpy()
    return paths, (paths >= 0).sum(-1), scores.numpy()


def segment_reduce(x, segments, count, mode, empty_is_zero):
    rows = x.reshape((segments.size,) + x.shape[segments.ndim :]).astype(np.float64 if x.dtype.kind == "f" else x.dtype)
    y = np.zeros((count,) + rows.shape[1:], rows.dtype)
    limits = np.finfo(x.dtype) if x.dtype.kind == "f" else np.iinfo(x.dtype)
    empty = 0 if empty_is_zero else {"prod": 1, "max": limits.min, "min": limits.max}.get(mode, 0)
    for segment in range(count):
        members = rows[segments.reshape(-1) == segment]
        divisor = {"mean": len(members), "sqrt_n": len(members) ** 0.5}.get(mode, 1)
        combined = {"prod": np.prod, "max": np.max, "min": np.min}.get(mode, np.sum)
        y[segment] = combined(members, 0) / divisor if len(members) and divisor != 1 else combined(members, 0) if len(members) else empty
    return y.astype(x.dtype)


def scatter_reduce(x, indices, updates, mode, padded):
    if padded:
        indices, updates = indices[indices >= 0], updates[indices >= 0]
    combined = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "min": np.minimum, "max": np.maximum}
    y = x.copy()
    combined[mode].at(y, indices, updates)
    return y


def scatter_elements(x, indices, updates, axis, mode):
    combined = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}.get(mode, lambda _, new: new)
    y = x.copy()
    for place in np.ndindex(indices.shape):
        to = list(place)
        to[axis % x.ndim] = indices[place]
        y[tuple(to)] = combined(y[tuple(to)], updates[place])
    return y


def philox(draw, rng, shape, dtype, reserve, each=1):
    """TensorFlow's stateless generator with explicit key and counter, and the state after it; `each`: counts for an element
    of four in a group that takes more than one."""
    more = {} if np.dtype(dtype).kind == "i" else {"dtype": dtype}
    y = draw(shape=shape, key=rng[:1], counter=rng[1:], alg=1, **more).numpy()
    group = 2 if np.dtype(dtype).itemsize == 8 else 4
    return moved(rng, y.size * reserve if reserve else -(-y.size // group) * (each * group if each > 1 else 1)), y


def moved(rng, counts):
    """The random state some counts later."""
    counter = int(rng[1]) + (int(rng[2]) << 64) + counts
    return np.array([rng[0], counter % 2**64, (counter >> 64) % 2**64], np.uint64)


def stateful(op, rng, **inputs):
    """What a fresh kernel of TensorFlow draws first; the seeds are the key and the high half of the counter."""
    import tensorflow as tf

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        return session.run(getattr(tf.raw_ops, op)(seed=int(rng[0]), seed2=int(rng[2]), **inputs))


def shuffle(rng, x):
    y = stateful("RandomShuffle", rng, value=x)
    return moved(rng, (x.shape[0] + 2) // 4 if x.size and x.shape[0] > 1 else 0), y


def categorical(rng, logits, count, dtype):
    y = stateful("Multinomial", rng, logits=logits, num_samples=count, output_dtype=dtype)
    return moved(rng, logits.shape[0] * -(-count // 4) * 8 * 256), y


def resize2d(x, size, mode, coordinates):
    import tensorflow as tf

    names = {"nearest": "ResizeNearestNeighbor", "bilinear": "ResizeBilinear", "bicubic": "ResizeBicubic"}
    if x.size == 0:
        return np.zeros((x.shape[0], *map(int, size), x.shape[3]), x.dtype)
    corners, half = coordinates == "align_corners", coordinates == "half_pixel"
    return getattr(tf.raw_ops, names[mode])(images=x, size=size, align_corners=corners, half_pixel_centers=half).numpy()


def dilation2d_places(x, kernel, strides, dilations, padding):
    """One window at a time."""
    import tensorflow as tf

    shape = tf.nn.dilation2d(x, kernel, [1, *strides, 1], padding.upper(), "NHWC", [1, *dilations, 1]).shape
    axes = spatial_steps(x.shape[1:3], kernel.shape, shape[1:3], strides, dilations, padding, [0] * 4)
    (top, _, _), (left, _, _) = axes
    places = np.full((2, *shape), -1, np.int64)
    for n, row, column, channel in np.ndindex(*shape):
        most = -np.inf
        for i, j in np.ndindex(*kernel.shape[:2]):
            h, w = row * strides[0] - top + i * dilations[0], column * strides[1] - left + j * dilations[1]
            if not (0 <= h < x.shape[1] and 0 <= w < x.shape[2]):
                continue
            total = x[n, h, w, channel] + kernel[i, j, channel]
            if total > most:
                most = total
                places[:, n, row, column, channel] = (
                    np.ravel_multi_index((n, h, w, channel), x.shape),
                    np.ravel_multi_index((i, j, channel), kernel.shape),
                )
    return tuple(places)


def resize2d_gradient(dy, shape, mode, coordinates):
    import tensorflow as tf

    if dy.size == 0:
        return np.zeros(shape, dy.dtype)
    names = {"nearest": "ResizeNearestNeighbor", "bilinear": "ResizeBilinear", "bicubic": "ResizeBicubic"}
    corners, half = coordinates == "align_corners", coordinates == "half_pixel"
    image = tf.zeros(shape, dy.dtype)
    with tf.GradientTape() as tape:
        tape.watch(image)
        y = getattr(tf.raw_ops, names[mode])(
            images=image, size=dy.shape[1:3], align_corners=corners, half_pixel_centers=half)  # fmt: skip
    return tape.gradient(y, image, tf.constant(dy)).numpy()


def non_max_suppression(boxes, scores, most, iou, least_score, sigma, pad):
    import tensorflow as tf

    indices, left, count = tf.raw_ops.NonMaxSuppressionV5(
        boxes=boxes, scores=scores, max_output_size=int(most), iou_threshold=iou, score_threshold=least_score,
        soft_nms_sigma=sigma, pad_to_max_output_size=pad)  # fmt: skip
    return indices.numpy().astype(np.int64), left.numpy(), np.int64(count.numpy())


def tree_ensemble(x, nodes, thresholds, roots, targets, weights, count, aggregate):
    compare = (np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal)
    y = np.zeros((len(x), count), x.dtype)
    for i, row in enumerate(x):
        found = {}
        for at in roots:
            while nodes[at][1] != 6:
                feature, mode, yes, no = nodes[at]
                at = yes if (mode & 8 and np.isnan(row[feature])) or compare[mode & 7](row[feature], thresholds[at]) else no
            for leaf in range(nodes[at][2], nodes[at][3]):
                found.setdefault(targets[leaf], []).append(weights[leaf])
        for target, list_ in found.items():
            y[i, target] = {"sum": sum, "min": min, "max": max}[aggregate](list_)
    return y


HELPERS = {
    each.__name__: each
    for each in (conv2d, pool2d, convolved, conv_gradients, pooled, pool_places, pool_gradient, batch_norm_training, batch_norm_gradient)
    + (cross_entropy, ctc_loss, ctc_beam_search, segment_reduce, scatter_reduce, scatter_elements, philox, shuffle, categorical, resize2d, resize2d_gradient, dilation2d_places, non_max_suppression, tree_ensemble)
} | {"np": np}


@pytest.fixture(scope="session")
def dumped(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cases")
    subprocess.run([DUMP, folder], check=True)
    return folder, json.loads((folder / "cases.json").read_text())


def load(folder, entry):
    return widened(np.load(folder / entry["file"]), entry["dtype"])


def attribute(folder, value):
    if "number" in value:
        return float(value["number"])
    return load(folder, value) if "file" in value else NUMPY[value["dtype"]]


def scope_of(folder, case):
    scope = {**HELPERS, "weights": None}  # an operand that may be left out
    if "tf." in case["expression"]:
        import tensorflow as tf

        scope["tf"] = tf
    for entry in case["inputs"]:
        value = load(folder, entry)
        if entry["variadic"]:
            scope.setdefault(entry["name"], []).append(value)
        else:
            scope[entry["name"]] = value
    for name, value in case["attributes"].items():
        if isinstance(value, dict):
            value = attribute(folder, value)
        scope[name] = value
    return scope


def problem(expected, actual, dtype, precision):
    """What differs, or nothing; the tolerances are those of src/ops/cases.h."""
    if NUMPY[dtype] != expected.dtype and dtype not in ("f16", "bf16"):
        return f"dtype {dtype}, the oracle says {expected.dtype}"
    if expected.shape != actual.shape:
        return f"shape {actual.shape}, the oracle says {expected.shape}"
    if dtype not in UNIT:
        return None if np.array_equal(expected, actual) else f"{actual}, the oracle says {expected}"
    expected, actual = narrowed(expected, dtype).astype(np.float64), actual.astype(np.float64)
    finite = np.isfinite(expected)
    magnitude = np.abs(np.where(finite, expected, 0))
    allowed = np.zeros_like(magnitude)
    if precision == ROUNDED:
        allowed = 8 * UNIT[dtype] * np.maximum(magnitude, 0.25)
    elif precision == ACCUMULATE_F32:
        allowed += (4 * UNIT[dtype] + (1e-13 if dtype == "f64" else 2e-6)) * max(1, magnitude.max(initial=0))
    with np.errstate(invalid="ignore"):
        same = (expected == actual) | (np.isnan(expected) & np.isnan(actual))
        close = same | finite & (np.abs(expected - actual) <= allowed)
    return None if close.all() else f"{actual[~close]}, the oracle says {expected[~close]}"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_reference_kernels_agree_with_their_oracles(dumped):
    folder, cases = dumped
    assert len(cases) > 300
    failures = []
    for case in cases:
        try:
            expected = eval(case["expression"], scope_of(folder, case))  # noqa: S307 - expressions of our own rows
        except Exception as error:  # noqa: BLE001 - listed with the case
            failures.append(f"{case['case']}: the oracle fails: {type(error).__name__}: {str(error)[:200]}")
            continue
        results = expected if isinstance(expected, tuple) else (expected,)
        assert len(results) == len(case["results"]), case["case"]
        for entry, result in zip(case["results"], results):
            found = problem(np.asarray(result), load(folder, entry), entry["dtype"], case["precision"])
            if found:
                failures.append(f"{case['case']}: {found}")
    assert not failures, "\n".join(failures)
