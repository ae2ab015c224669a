"""Host operators of the platform. Those that mean something here are compositions of stock TensorFlow."""

import tensorflow.compat.v1 as tf


def randomchoicewithmask(x, count, seed=0, seed2=0):
    """(indices [count, rank], mask [count]): `count` places where the bool tensor `x` is true, in random order; where there are
    fewer, the rest are zero and masked out."""
    places = tf.cast(tf.where(x), tf.int32)
    chosen = tf.random.shuffle(places, seed=seed or None)[:count]
    found = tf.shape(chosen)[0]
    padded = tf.pad(chosen, [[0, count - found], [0, 0]])
    return tf.reshape(padded, [count, x.shape.rank]), tf.range(count) < found


def dense_image_warp(image, flow):
    """image [n, h, w, c] read at each pixel's place minus `flow` [n, h, w, 2] (rows, columns), bilinear, held at the border."""
    shape = tf.shape(image)
    n, h, w = shape[0], shape[1], shape[2]
    row, column = tf.meshgrid(tf.range(h), tf.range(w), indexing="ij")
    rows = tf.cast(row, flow.dtype)[None] - flow[..., 0]
    columns = tf.cast(column, flow.dtype)[None] - flow[..., 1]

    def part(place, size):
        low = tf.minimum(tf.maximum(tf.floor(place), 0.0), tf.cast(tf.maximum(size - 2, 0), place.dtype))
        return tf.cast(low, tf.int32), tf.clip_by_value(place - low, 0.0, 1.0)[..., None]

    (r, a), (c, b) = part(rows, h), part(columns, w)
    batch = tf.broadcast_to(tf.reshape(tf.range(n), [-1, 1, 1]), tf.shape(r))
    at = lambda i, j: tf.gather_nd(image, tf.stack([batch, tf.minimum(i, h - 1), tf.minimum(j, w - 1)], -1))
    upper = at(r, c) + b * (at(r, c + 1) - at(r, c))
    lower = at(r + 1, c) + b * (at(r + 1, c + 1) - at(r + 1, c))
    return upper + a * (lower - upper)


_NOT_SUPPORTED = ("embeddingrankid", "embedding_rank_id", "embedding_local_index", "warp_affine_v2", "resize_v2", "batch_enqueue",
                  "dequeue", "ocr_recognition_pre_handle", "ocr_detection_pre_handle", "ocr_identify_pre_handle",
                  "batch_dilate_polys", "ocr_find_contours", "ocr_detection_post_handle", "resize_and_clip_polys")  # fmt: skip


def __getattr__(name):
    if name in _NOT_SUPPORTED:
        raise NotImplementedError(f"npu_cpu_ops.{name} is not supported")
    raise AttributeError(f"module 'npu_cpu_ops' has no attribute '{name}'")
