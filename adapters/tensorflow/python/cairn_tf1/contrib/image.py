"""tf.contrib.image: projective transforms and flows."""

import tensorflow.compat.v1 as tf

from npu_bridge.npu_cpu.npu_cpu_ops import dense_image_warp  # noqa: F401


def _batched(images):
    images = tf.convert_to_tensor(images)
    rank = images.shape.rank
    if rank == 2:
        return images[None, :, :, None], lambda result: result[0, :, :, 0]
    if rank == 3:
        return images[None], lambda result: result[0]
    if rank == 4:
        return images, lambda result: result
    raise TypeError(f"images should have rank between 2 and 4, found {rank}")


def transform(images, transforms, interpolation="NEAREST", output_shape=None, name=None):
    """Output pixel (x, y) is read at ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k), k = c0 x + c1 y + 1, for a transform
    [a0, a1, a2, b0, b1, b2, c0, c1]; zero outside."""
    with tf.name_scope(name, "transform"):
        batch, back = _batched(images)
        transforms = tf.convert_to_tensor(transforms, tf.float32)
        transforms = transforms[None] if transforms.shape.rank == 1 else transforms
        shape = tf.shape(batch)[1:3] if output_shape is None else tf.convert_to_tensor(output_shape, tf.int32)
        return back(
            tf.raw_ops.ImageProjectiveTransformV2(
                images=batch, transforms=transforms, output_shape=shape, interpolation=interpolation.upper()
            )
        )


def angles_to_projective_transforms(angles, image_height, image_width, name=None):
    """Transforms that turn an image about its middle by `angles` (radians), counterclockwise."""
    angles = tf.convert_to_tensor(angles, tf.float32)
    angles = angles[None] if angles.shape.rank == 0 else angles
    height, width = tf.cast(image_height, tf.float32), tf.cast(image_width, tf.float32)
    cos, sin = tf.cos(angles), tf.sin(angles)
    x = ((width - 1) - (cos * (width - 1) - sin * (height - 1))) / 2.0
    y = ((height - 1) - (sin * (width - 1) + cos * (height - 1))) / 2.0
    zero = tf.zeros_like(angles)
    return tf.stack([cos, -sin, x, sin, cos, y, zero, zero], axis=1)


def rotate(images, angles, interpolation="NEAREST", name=None):
    with tf.name_scope(name, "rotate"):
        batch, _ = _batched(images)
        height, width = tf.shape(batch)[1], tf.shape(batch)[2]
        return transform(images, angles_to_projective_transforms(angles, height, width), interpolation)


def translations_to_projective_transforms(translations, name=None):
    """Transforms that move an image by (dx, dy)."""
    moves = tf.convert_to_tensor(translations, tf.float32)
    moves = moves[None] if moves.shape.rank == 1 else moves
    one, zero = tf.ones_like(moves[:, 0]), tf.zeros_like(moves[:, 0])
    return tf.stack([one, zero, -moves[:, 0], zero, one, -moves[:, 1], zero, zero], axis=1)


def translate(images, translations, interpolation="NEAREST", name=None):
    with tf.name_scope(name, "translate"):
        return transform(images, translations_to_projective_transforms(translations), interpolation)


def flat_transforms_to_matrices(transforms):
    flat = tf.reshape(tf.convert_to_tensor(transforms, tf.float32), [-1, 8])
    return tf.reshape(tf.concat([flat, tf.ones([tf.shape(flat)[0], 1])], 1), [-1, 3, 3])


def matrices_to_flat_transforms(matrices):
    flat = tf.reshape(matrices, [-1, 9])
    return flat[:, :8] / flat[:, 8:9]


def compose_transforms(*transforms):
    """The transform that applies the given ones, the first one first."""
    product = flat_transforms_to_matrices(transforms[0])
    for other in transforms[1:]:
        product = tf.matmul(product, flat_transforms_to_matrices(other))
    return matrices_to_flat_transforms(product)
