"""Images scaled and moved by kernels that weigh what lies around each place."""

import numpy as np
from cairn.ms import core
from cairn.ms.numerics.basic import matmul, reshape


def _lanczos(radius):
    return radius, lambda x: np.sinc(x) * np.sinc(x / radius)


def _cubic(b, c):
    """The cubic of two pieces that b and c name (Mitchell and Netravali)."""

    def kernel(x):
        near = (12 - 9 * b - 6 * c) * x**3 + (-18 + 12 * b + 6 * c) * x**2 + 6 - 2 * b
        far = (-b - 6 * c) * x**3 + (6 * b + 30 * c) * x**2 + (-12 * b - 48 * c) * x + 8 * b + 24 * c
        return np.where(x < 1, near, far) / 6

    return 2, kernel


KERNELS = {  # radius, and the weight at a distance below it
    "lanczos1": _lanczos(1), "lanczos3": _lanczos(3), "lanczos5": _lanczos(5), "gaussian": (1.5, lambda x: np.exp(-2 * x * x)),
    "box": (0.5, lambda x: np.where(x < 0.5, 1.0, np.where(x == 0.5, 0.5, 0.0))), "triangle": (1, lambda x: 1 - x),
    "keyscubic": _cubic(0, 0.5), "mitchellcubic": _cubic(1 / 3, 1 / 3),
}  # fmt: skip


def _weights(size, count, scale, translation, kernel, antialias):
    """[count, size]: how each of `count` results weighs the `size` inputs; zeros where its place is outside."""
    radius, kernel = KERNELS[kernel]
    place = (np.arange(count)[:, None] + 0.5 - translation) / scale
    wide = max(1 / scale, 1.0) if antialias else 1.0
    distance = np.abs(np.arange(size)[None] + 0.5 - place) / wide
    weights = np.where((distance <= radius) & (place >= 0) & (place <= size), kernel(np.minimum(distance, radius)), 0)
    total = weights.sum(1, keepdims=True)
    return np.divide(weights, total, out=np.zeros_like(weights), where=np.abs(total) > 1e-35).astype(np.float32)


def scale_and_translate(x, sizes, scale, translation, kernel, antialias):
    """NHWC images of f32 at sizes (height, width): the place p of an image goes to p * scale + translation."""
    batch, height, width, channels = x.shape
    down, across = (
        _weights(*each, kernel, antialias) for each in zip((height, width), sizes, scale, translation)
    )
    rows = matmul(core.identity(down), reshape(x, (batch, height, width * channels)))
    return matmul(core.identity(across), reshape(rows, (batch, sizes[0], width, channels)))
