"""Deformable convolution, as gathers and a convolution of stock TensorFlow."""

import tensorflow.compat.v1 as tf


def deformable_conv2d(x, filter, offsets, strides=None, pads=None, data_format="NHWC", dilations=(1, 1, 1, 1), groups=1,
                      deformable_groups=1, modulated=True, name=None):  # fmt: skip
    """A convolution that reads each tap at its own shifted place (bilinear, zero outside) and weighs it by a mask. `offsets`
    [batch, out height, out width, deformable groups * kernel height * kernel width * 3] holds y shifts, x shifts, masks, each
    [groups, kernel height, kernel width]; `pads` is (top, bottom, left, right)."""
    if tf.executing_eagerly():
        raise RuntimeError("tf.deformable_conv2d() is not compatible with eager execution.")
    if modulated is not True:
        raise RuntimeError("tf.deformable_conv2d() only supports modulated is True currently")
    if groups != 1:
        raise RuntimeError("tf.deformable_conv2d() only supports groups is 1 currently")
    with tf.name_scope(name, "DeformableConv2D"):
        x, filter, offsets = (tf.convert_to_tensor(value) for value in (x, filter, offsets))
        first = data_format == "NCHW"
        if first:
            x, offsets = tf.transpose(x, [0, 2, 3, 1]), tf.transpose(offsets, [0, 2, 3, 1])
        h, w = data_format.find("H"), data_format.find("W")
        kernel = filter.shape.as_list()[:2]
        taps = _taps(x, offsets, kernel, (strides[h], strides[w]), pads, (dilations[h], dilations[w]), deformable_groups)
        y = tf.tensordot(taps, tf.reshape(filter, [-1, filter.shape.as_list()[3]]), [[3], [0]])
        return tf.transpose(y, [0, 3, 1, 2]) if first else y


def _taps(x, offsets, kernel, strides, pads, dilations, groups):
    """[batch, out height, out width, kernel height * kernel width * channels]: the weighed values under each tap."""
    kh, kw = kernel
    channels = x.shape.as_list()[3]
    n, oh, ow = (tf.shape(offsets)[d] for d in range(3))
    parts = tf.reshape(offsets, [n, oh, ow, 3, groups, kh, kw])
    floats = lambda count: tf.cast(tf.range(count), x.dtype)
    rows = tf.reshape(floats(oh) * strides[0] - pads[0], [1, -1, 1, 1, 1, 1])
    columns = tf.reshape(floats(ow) * strides[1] - pads[2], [1, 1, -1, 1, 1, 1])
    rows += tf.reshape(floats(kh) * dilations[0], [1, 1, 1, 1, -1, 1]) + parts[:, :, :, 0]
    columns += tf.reshape(floats(kw) * dilations[1], [1, 1, 1, 1, 1, -1]) + parts[:, :, :, 1]
    per_group = channels // groups
    images = tf.reshape(x, [n, tf.shape(x)[1], tf.shape(x)[2], groups, per_group])
    values = _bilinear(images, rows, columns) * tf.expand_dims(parts[:, :, :, 2], -1)
    values = tf.transpose(values, [0, 1, 2, 4, 5, 3, 6])  # batch, oh, ow, kh, kw, group, channel
    return tf.reshape(values, [n, oh, ow, kh * kw * channels])


def _bilinear(images, rows, columns):
    """images [n, height, width, groups, c] read at rows and columns [n, oh, ow, groups, kh, kw]; zero outside."""
    height, width = tf.shape(images)[1], tf.shape(images)[2]
    top, left = tf.floor(rows), tf.floor(columns)
    total = 0.0
    for down in (0, 1):
        for right in (0, 1):
            r, c = top + down, left + right
            weight = (1.0 - tf.abs(rows - r)) * (1.0 - tf.abs(columns - c))
            ri, ci = tf.cast(r, tf.int32), tf.cast(c, tf.int32)
            inside = (ri >= 0) & (ri < height) & (ci >= 0) & (ci < width)
            weight *= tf.cast(inside, weight.dtype)
            shape = tf.shape(ri)
            n = tf.broadcast_to(tf.reshape(tf.range(shape[0]), [-1, 1, 1, 1, 1, 1]), shape)
            g = tf.broadcast_to(tf.reshape(tf.range(shape[3]), [1, 1, 1, -1, 1, 1]), shape)
            ri, ci = tf.clip_by_value(ri, 0, height - 1), tf.clip_by_value(ci, 0, width - 1)
            total += tf.gather_nd(images, tf.stack([n, ri, ci, g], -1)) * tf.expand_dims(weight, -1)
    return total
