"""Fourier transforms of any length, of few lines and of many, equal NumPy's."""

import cairn
import numpy as np
import pytest

LENGTHS = [*range(1, 33), 97, 143, 360, 509, 1000, 1001, 1024]


def pairs(z):
    return np.stack([z.real, z.imag], -1)


def close(made, expected):
    np.testing.assert_allclose(made, expected, rtol=0, atol=1e-12 * max(1, np.abs(expected).max(initial=0)))


@pytest.mark.parametrize("lines", [1, 3, 8, 21])
def test_transforms_of_every_kind(lines):
    random = np.random.default_rng(lines)
    for length in LENGTHS:
        x = random.standard_normal((lines, length, 2))
        z = x[..., 0] + 1j * x[..., 1]
        close(cairn.ops.dft(x, axis=1), pairs(np.fft.fft(z)))
        close(cairn.ops.dft(x, axis=-2, inverse=True), pairs(np.fft.ifft(z)))
        close(cairn.ops.dft(x.swapaxes(0, 1), axis=0), pairs(np.fft.fft(z)).swapaxes(0, 1))
        size = np.asarray(length)
        for given in {length, max(1, length - 3), length + 2}:
            real = random.standard_normal((lines, given))
            close(cairn.ops.real_dft(real, size), pairs(np.fft.rfft(real, length)))
        for given in {length // 2 + 1, max(1, length // 2 - 1), length // 2 + 3}:
            spectrum = random.standard_normal((lines, given, 2))
            close(cairn.ops.inverse_real_dft(spectrum, size), np.fft.irfft(spectrum @ [1, 1j], length))


def test_a_line_with_nan_leaves_its_neighbours_alone():
    x = np.ones((9, 64), np.float32)
    x[4, 5] = np.nan
    made = cairn.ops.real_dft(x, np.asarray(64))
    assert np.isnan(made[4]).all() and np.isfinite(np.delete(made, 4, 0)).all()
