"""Convolutions, pools, resizes: NCHW tensors over rows that see NHWC; the layout pass removes the transposes in graphs."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics.basic import cast, ints, nptype, number, part, reshape

_LAST, _FIRST = {4: [0, 2, 3, 1], 5: [0, 2, 3, 4, 1]}, {4: [0, 3, 1, 2], 5: [0, 4, 1, 2, 3]}


def channels_last(x):
    return core.transpose(x, permutation=_LAST[len(x.shape)])


def channels_first(x):
    return core.transpose(x, permutation=_FIRST[len(x.shape)])


def _kernel(w):
    """OIHW (OIDHW) as the rows' HWIO (DHWIO)."""
    return core.transpose(w, permutation=[*range(2, len(w.shape)), 1, 0])


def _window(pad_mode, pads, strides, dilations=None):
    options = {"strides": list(strides), "padding": {"pad": "explicit"}.get(pad_mode, pad_mode)}
    if pad_mode == "pad":
        options["pads"] = list(pads)
    if dilations is not None:
        options["dilations"] = list(dilations)
    return options


def conv(x, w, pad_mode, pads, strides, dilations, groups, data_format="NCHW"):
    """2-D or 3-D convolution; weight [out, in/groups, ...], or with the channels last for NHWC."""
    row = core.conv2d if len(x.shape) == 4 else core.conv3d
    last = data_format in ("NHWC", "NDHWC")
    kernel = core.transpose(w, permutation=[*range(1, len(w.shape)), 0]) if last else _kernel(w)
    out = row(x if last else channels_last(x), kernel, groups=groups, **_window(pad_mode, pads, strides, dilations))
    return out if last else channels_first(out)


def depthwise_conv(x, w, pad_mode, pads, strides, dilations):
    """Weight [multiplier, channels, height, width]."""
    multiplier, channels, height, width = w.shape
    kernel = reshape(core.transpose(w, permutation=[2, 3, 1, 0]), (height, width, 1, channels * multiplier))
    out = core.conv2d(channels_last(x), kernel, groups=channels, **_window(pad_mode, pads, strides, dilations))
    return channels_first(out)


def conv_transposed(dy, w, shape, pad_mode, pads, strides, dilations, groups):
    """Gradient of conv by its image of that NCHW shape, also the transposed convolution."""
    row = core.conv2d_input_gradient if len(dy.shape) == 4 else core.conv3d_input_gradient
    target = ints([shape[0], *shape[2:], shape[1]])
    options = _window(pad_mode, pads, strides, dilations)
    return channels_first(row(channels_last(dy), _kernel(w), target, groups=groups, **options))


def conv_kernel_gradient(x, dy, shape, pad_mode, pads, strides, dilations, groups):
    """Gradient of conv by its weight of that OIHW shape."""
    row = core.conv2d_kernel_gradient if len(dy.shape) == 4 else core.conv3d_kernel_gradient
    target = ints([*shape[2:], shape[1], shape[0]])
    options = _window(pad_mode, pads, strides, dilations)
    kernel = row(channels_last(x), channels_last(dy), target, groups=groups, **options)
    rank = len(shape)
    return core.transpose(kernel, permutation=[rank - 1, rank - 2, *range(rank - 2)])


def transposed_size(size, kernel, stride, dilation, pad_mode, padding):
    """Length of the result of a transposed convolution along one axis; padding is that of both ends."""
    reach = dilation * (kernel - 1) + 1
    if pad_mode == "same":
        return size * stride
    return size * stride + (max(reach - stride, 0) if pad_mode == "valid" else reach - stride - padding)


def pool(kind, x, window, strides, pad_mode, data_format="NCHW", pads=None, **options):
    """Max or average pool ("max", "avg") of 2-D or 3-D images."""
    row = getattr(core, f"{kind}_pool{len(window)}d")
    last = data_format in ("NHWC", "NDHWC")
    out = row(x if last else channels_last(x), window=list(window), **_window(pad_mode, pads, strides), **options)
    return out if last else channels_first(out)


def max_pool_places(x, window, strides, pad_mode, pads=None, **options):
    """Places of the largest elements inside each image plane (height * width), NCHW."""
    n, c, h, w = x.shape
    planes = reshape(x, (n * c, h, w, 1))
    places = core.max_pool2d_indices(planes, window=list(window), **_window(pad_mode, pads, strides), **options)
    offsets = np.arange(n * c, dtype=np.int64).reshape(-1, 1, 1, 1) * (h * w)
    inside = core.sub(places, offsets)
    return cast(reshape(inside, (n, c, *inside.shape[1:3])), np.int32)


def adaptive_edges(size, out):
    """Begin and end of each window of an adaptive pool."""
    return [(i * size // out, -(-(i + 1) * size // out)) for i in range(out)]


def adaptive_pool(kind, x, sizes):
    """Windows that cover each of the last axes in `sizes` parts; None keeps an axis."""
    reduce = core.reduce_mean if kind == "avg" else core.reduce_max
    rank = len(x.shape)
    for axis, out in zip(range(rank - len(sizes), rank), sizes):
        size = x.shape[axis]
        if out is None or out == size:
            continue
        if size % out == 0:
            shape = (*x.shape[:axis], out, size // out, *x.shape[axis + 1 :])
            x = reduce(reshape(x, shape), axes=[axis + 1], keep_dims=False)
        else:
            windows = [part(x, axis, a, b) for a, b in adaptive_edges(size, out)]
            x = core.concat(*[reduce(each, axes=[axis], keep_dims=True) for each in windows], axis=axis)
    return x


def resize(x, size, mode, align_corners=False, half_pixel=False, data_format="NCHW"):
    """2-D images at another size: nearest, bilinear, bicubic."""
    coordinates = "align_corners" if align_corners else "half_pixel" if half_pixel else "asymmetric"
    options = {"rounding": "half_up"} if mode == "nearest" and align_corners else {}
    if mode == "nearest" and half_pixel and not align_corners:
        options = {"rounding": "half_up"}
    last = data_format == "NHWC"
    out = core.resize2d(x if last else channels_last(x), ints(size), mode=mode, coordinates=coordinates, **options)
    return out if last else channels_first(out)


def blocks_to_depth(x, block):
    n, c, h, w = x.shape
    x = reshape(x, (n, c, h // block, block, w // block, block))
    x = core.transpose(x, permutation=[0, 3, 5, 1, 2, 4])
    return reshape(x, (n, c * block * block, h // block, w // block))


def depth_to_blocks(x, block):
    n, c, h, w = x.shape
    x = reshape(x, (n, block, block, c // (block * block), h, w))
    x = core.transpose(x, permutation=[0, 3, 4, 1, 5, 2])
    return reshape(x, (n, c // (block * block), h * block, w * block))


def space_to_batch(x, blocks, paddings):
    """Axes from 2 on (NCHW), or all those that `blocks` names behind the first two."""
    pads = [(0, 0), (0, 0), *[tuple(each) for each in paddings]]
    x = core.pad(x, ints(pads))
    n, c, *sizes = x.shape
    shape, inner = [n, c], []
    for size, block in zip(sizes, blocks):
        inner.append(len(shape) + 1)
        shape += [size // block, block]
    x = reshape(x, shape)
    rest = [axis for axis in range(2, len(shape)) if axis not in inner]
    x = core.transpose(x, permutation=[*inner, 0, 1, *rest])
    return reshape(x, (n * int(np.prod(blocks)), c, *[s // b for s, b in zip(sizes, blocks)]))


def batch_to_space(x, blocks, crops):
    n, c, *sizes = x.shape
    count = len(blocks)
    x = reshape(x, (*blocks, n // int(np.prod(blocks)), c, *sizes))
    order = [count, count + 1]
    for i in range(count):
        order += [count + 2 + i, i]
    x = core.transpose(x, permutation=order)
    x = reshape(x, (n // int(np.prod(blocks)), c, *[s * b for s, b in zip(sizes, blocks)]))
    for axis, (before, after) in enumerate(crops, 2):
        x = part(x, axis, before, x.shape[axis] - after)
    return x


def patches(x, window, strides, dilations, pads):
    """Columns [n, c, kernel height * kernel width, places] of NCHW images, pads (top, bottom, left, right)."""
    top, bottom, left, right = pads
    x = core.pad(x, ints([(0, 0), (0, 0), (top, bottom), (left, right)]))
    n, c, h, w = x.shape
    reach = [d * (k - 1) + 1 for k, d in zip(window, dilations)]
    out = [(size - r) // s + 1 for size, r, s in zip((h, w), reach, strides)]
    columns = []
    for i in range(window[0]):
        for j in range(window[1]):
            y0, x0 = i * dilations[0], j * dilations[1]
            rows = part(x, 2, y0, y0 + (out[0] - 1) * strides[0] + 1, strides[0])
            columns.append(reshape(part(rows, 3, x0, x0 + (out[1] - 1) * strides[1] + 1, strides[1]), (n, c, 1, -1)))
    return core.concat(*columns, axis=2)


def local_response(x, depth_radius, bias, alpha, beta):
    """x / (bias + alpha * sum of squares over neighbouring channels)^beta, NCHW."""
    channels = x.shape[1]
    padded = core.pad(core.square(x), ints([(0, 0), (depth_radius, depth_radius), (0, 0), (0, 0)]))
    total = part(padded, 1, 0, channels)
    for shift in range(1, 2 * depth_radius + 1):
        total = core.add(total, part(padded, 1, shift, shift + channels))
    scale = core.add(core.mul(total, number(alpha, x)), number(bias, x))
    return core.mul(x, core.pow(scale, number(-beta, x)))


def _crop_whole_pixels(image, boxes, index, size):
    """Boxes of whole pixels, whose parts are read at their middles; what lies outside is what follows in memory."""
    batch, height, width, channels = image.shape
    flat = cast(reshape(image, (batch * height * width, channels)), np.float32)

    def places(first, last, length, count):
        begin, end = (cast(cast(core.mul(part(boxes, 1, i, i + 1), number(length, boxes)), np.int64), nptype(boxes)) for i in (first, last))
        span = core.maximum(core.add(core.sub(end, begin), number(1, boxes)), number(1, boxes))
        middles = core.mul(number((np.arange(count) + 0.5) / count, boxes), span)
        at = core.clip(core.sub(middles, number(0.5, boxes)), low=0.0, high=float(np.finfo(np.float32).max))
        at = core.minimum(at, core.sub(span, number(1, boxes)))
        low = core.floor(at)
        return core.add(begin, low), core.minimum(core.add(begin, core.ceil(at)), core.add(begin, core.sub(span, number(1, boxes)))), core.sub(at, low)

    top, bottom, down = (reshape(each, (-1, size[0], 1)) for each in places(0, 2, height, size[0]))
    left, right, along = (reshape(each, (-1, 1, size[1])) for each in places(1, 3, width, size[1]))
    first = core.mul(reshape(cast(index, np.int64), (-1, 1, 1)), np.int64(height * width))

    def taken(row, column):
        at = core.add(core.add(core.mul(cast(row, np.int64), np.int64(width)), cast(column, np.int64)), first)
        at = core.maximum(core.minimum(at, np.int64(flat.shape[0] - 1)), np.int64(0))
        return core.gather(flat, at, axis=0)

    def mixed(a, b, share):
        return core.add(a, core.mul(core.sub(b, a), reshape(share, (*share.shape, 1))))

    return mixed(mixed(taken(top, left), taken(top, right), along), mixed(taken(bottom, left), taken(bottom, right), along), down)


def crop_and_resize(image, boxes, index, size, method="bilinear", outside=0.0):
    """NHWC images."""
    if method == "bilinear_v2":
        return _crop_whole_pixels(image, boxes, index, size)
    return core.crop_and_resize(
        image, boxes, index, ints(size), mode={"nearest": "nearest"}.get(method, "bilinear"), outside=float(outside)
    )


def mirror(x, paddings, mode):
    return core.pad(x, ints(paddings), mode=mode.lower())


def pad(x, paddings, value=0.0):
    kind = nptype(x).kind
    if any(each < 0 for pair in paddings for each in pair):
        cut = [slice(max(-a, 0), size - max(-b, 0)) for (a, b), size in zip(paddings, x.shape)]
        x = core.slice(x, ints([c.start for c in cut]), ints([c.stop for c in cut]))
        paddings = [(max(a, 0), max(b, 0)) for a, b in paddings]
    return core.pad(x, ints(paddings), value=float(value) if kind != "b" else float(bool(value)))
