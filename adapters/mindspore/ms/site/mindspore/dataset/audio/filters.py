"""Filters of sounds: recursive ones, most of them with two poles and two zeros after R. Bristow-Johnson's formulas, as SoX has them."""

import numpy as np

from mindspore.dataset.audio.sound import FLAG, Q, RATE, REAL, REAL_NOT_ZERO, Bounds, Sound, unit

__all__ = ["AllpassBiquad", "BandBiquad", "BandpassBiquad", "BandrejectBiquad", "BassBiquad", "Biquad", "DeemphBiquad", "EqualizerBiquad",
           "Filtfilt", "HighpassBiquad", "LFilter", "LowpassBiquad", "RiaaBiquad", "TrebleBiquad"]  # fmt: skip


def filtered(x, a, b):
    """y with a[0] y[n] = sum of b[k] x[n - k] - sum of a[k] y[n - k], along the last axis."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    a, b, back = a / a[0], b / a[0], (a[1:] / a[0]).tolist()
    rows = x.reshape(-1, x.shape[-1])
    made = np.empty_like(rows)
    for row, into in zip(rows, made):
        past, result = [0.0] * len(back), []
        for value in np.convolve(row, b)[: len(row)].tolist():
            for each, factor in zip(past, back):
                value -= factor * each
            past = [value, *past[:-1]] if back else past
            result.append(value)
        into[:] = result
    return made.reshape(x.shape)


class _TwoPoles(Sound):
    """`coefficients()` gives (b0, b1, b2, a0, a1, a2)."""

    def compute(self, x):
        made = self.coefficients()
        return unit(filtered(x, made[3:], made[:3]))

    def angle(self, frequency):
        """cos and sin of the angle of a frequency in hertz."""
        angle = 2 * np.pi * frequency / self.sample_rate
        return np.cos(angle), np.sin(angle)


class Biquad(_TwoPoles):
    """Two poles and two zeros, by their coefficients."""

    def __init__(self, b0, b1, b2, a0, a1, a2):
        self.take(locals(), b0=REAL, b1=REAL, b2=REAL, a0=REAL_NOT_ZERO, a1=REAL, a2=REAL)

    def coefficients(self):
        return self.b0, self.b1, self.b2, self.a0, self.a1, self.a2


class AllpassBiquad(_TwoPoles):
    """Changes phases alone."""

    def __init__(self, sample_rate, central_freq, Q=0.707):
        self.take(locals(), sample_rate=RATE, central_freq=REAL, Q=_Q)

    def coefficients(self):
        cos, sin = self.angle(self.central_freq)
        alpha = sin / 2 / self.Q
        return 1 - alpha, -2 * cos, 1 + alpha, 1 + alpha, -2 * cos, 1 - alpha


class BandBiquad(_TwoPoles):
    """SoX's band: what is near a frequency, for tones or for noise."""

    def __init__(self, sample_rate, central_freq, Q=0.707, noise=False):
        self.take(locals(), sample_rate=RATE, central_freq=REAL, Q=_Q, noise=FLAG)

    def coefficients(self):
        a2 = np.exp(-2 * np.pi * self.central_freq / self.Q / self.sample_rate)
        a1 = -4 * a2 / (1 + a2) * self.angle(self.central_freq)[0]
        b0 = np.sqrt(1 - a1 * a1 / (4 * a2)) * (1 - a2)
        if self.noise:
            b0 = np.sqrt(((1 + a2) ** 2 - a1 * a1) * (1 - a2) / (1 + a2))
        return b0, 0.0, 0.0, 1.0, a1, a2


class BandpassBiquad(_TwoPoles):
    """Passes a band."""

    def __init__(self, sample_rate, central_freq, Q=0.707, const_skirt_gain=False):
        self.take(locals(), sample_rate=RATE, central_freq=REAL, Q=_Q, const_skirt_gain=FLAG)

    def coefficients(self):
        cos, sin = self.angle(self.central_freq)
        alpha = sin / 2 / self.Q
        peak = sin / 2 if self.const_skirt_gain else alpha
        return peak, 0.0, -peak, 1 + alpha, -2 * cos, 1 - alpha


class BandrejectBiquad(_TwoPoles):
    """Stops a band."""

    def __init__(self, sample_rate, central_freq, Q=0.707):
        self.take(locals(), sample_rate=RATE, central_freq=REAL, Q=_Q)

    def coefficients(self):
        cos, sin = self.angle(self.central_freq)
        alpha = sin / 2 / self.Q
        return 1.0, -2 * cos, 1.0, 1 + alpha, -2 * cos, 1 - alpha


class _Shelf(_TwoPoles):
    """A gain on one side of a frequency: side is 1 for what is above, -1 for what is below."""

    def __init__(self, sample_rate, gain, central_freq, Q=0.707):
        self.take(locals(), sample_rate=RATE, gain=REAL, central_freq=REAL, Q=_Q)

    def slope(self, sin, amplitude):
        return sin / 2 / self.Q

    def coefficients(self):
        cos, sin = self.angle(self.central_freq)
        up, side = 10 ** (self.gain / 40), self.side
        wide, less, more = 2 * np.sqrt(up) * self.slope(sin, up), (up - 1) * cos * side, (up + 1) * cos * side
        return (up * (up + 1 + less + wide), -2 * side * up * (up - 1 + more), up * (up + 1 + less - wide),
                up + 1 - less + wide, 2 * side * (up - 1 - more), up + 1 - less - wide)  # fmt: skip


class BassBiquad(_Shelf):
    """A gain of low frequencies."""

    side = -1

    def __init__(self, sample_rate, gain, central_freq=100.0, Q=0.707):
        super().__init__(sample_rate, gain, central_freq, Q)


class TrebleBiquad(_Shelf):
    """A gain of high frequencies."""

    side = 1

    def __init__(self, sample_rate, gain, central_freq=3000, Q=0.707):
        super().__init__(sample_rate, gain, central_freq, Q)


class DeemphBiquad(_Shelf):
    """Undoes the emphasis of compact discs (ISO 908): a shelf of high frequencies."""

    side = 1

    def __init__(self, sample_rate):
        self.take(locals(), sample_rate=Bounds((int,)))
        if sample_rate not in (44100, 48000):
            raise ValueError(f"Argument sample_rate should be 44100 or 48000, but got {sample_rate}.")
        self.central_freq, self._slope, self.gain = (5283, 0.4845, -9.477) if sample_rate == 44100 else (5356, 0.479, -9.62)

    def slope(self, sin, amplitude):
        return sin / 2 * np.sqrt((amplitude + 1 / amplitude) * (1 / self._slope - 1) + 2)


class EqualizerBiquad(_TwoPoles):
    """A gain near a frequency."""

    def __init__(self, sample_rate, center_freq, gain, Q=0.707):
        _named(sample_rate, RATE, "sample_rate")
        _named(center_freq, REAL, "central_freq")
        self.take(locals(), gain=REAL, Q=_Q)
        self.sample_rate, self.center_freq = sample_rate, center_freq

    def coefficients(self):
        cos, sin = self.angle(self.center_freq)
        up, alpha = 10 ** (self.gain / 40), sin / 2 / self.Q
        return 1 + alpha * up, -2 * cos, 1 - alpha * up, 1 + alpha / up, -2 * cos, 1 - alpha / up


def _named(value, bounds, name):
    bounds.check(value, name)


class _Pass(_TwoPoles):
    """What is above (side 1) or below (side -1) a frequency."""

    def __init__(self, sample_rate, cutoff_freq, Q=0.707):
        self.take(locals(), sample_rate=RATE, cutoff_freq=REAL, Q=_Q)

    def coefficients(self):
        cos, sin = self.angle(self.cutoff_freq)
        alpha, edge = sin / 2 / self.Q, 1 + self.side * cos
        return edge / 2, -self.side * edge, edge / 2, 1 + alpha, -2 * cos, 1 - alpha


class HighpassBiquad(_Pass):
    """Passes high frequencies."""

    side = 1


class LowpassBiquad(_Pass):
    """Passes low frequencies."""

    side = -1


_RIAA = {44100: ((-0.2014898, 0.9233820), (0.7083149, 0.9924091)), 48000: ((-0.1766069, 0.9321590), (0.7396325, 0.9931330)),
         88200: ((-0.1168735, 0.9648312), (0.8590646, 0.9964002)), 96000: ((-0.1141486, 0.9676817), (0.8699137, 0.9966946))}  # fmt: skip


class RiaaBiquad(_TwoPoles):
    """The playback equalization of records: zeros and poles by sample rate, with gain 1 at 1 kHz."""

    def __init__(self, sample_rate):
        self.take(locals(), sample_rate=Bounds((int,)))
        if sample_rate not in _RIAA:
            raise ValueError(f"sample_rate should be one of {list(_RIAA)}, but got {sample_rate}.")

    def coefficients(self):
        b, a = (np.array([1.0, -(p + q), p * q]) for p, q in _RIAA[self.sample_rate])
        at = np.exp(-1j * 2 * np.pi * 1000 / self.sample_rate * np.arange(3))
        return *(b * abs(a @ at) / abs(b @ at)), *a


class LFilter(Sound):
    """A recursive filter by its coefficients, lowest delay first."""

    def __init__(self, a_coeffs, b_coeffs, clamp=True):
        for name, values in (("a_coeffs", a_coeffs), ("b_coeffs", b_coeffs)):
            Bounds((list, tuple)).check(values, name)
        for name, values in (("a_coeffs", a_coeffs), ("b_coeffs", b_coeffs)):
            for place, value in enumerate(values):
                REAL.check(value, f"{name}[{place}]")
        if len(a_coeffs) != len(b_coeffs):
            raise ValueError(f"The size of a_coeffs is not equal to that of b_coeffs: {len(a_coeffs)} and {len(b_coeffs)}.")
        self.take(locals(), clamp=FLAG)
        self.a_coeffs, self.b_coeffs = a_coeffs, b_coeffs

    def compute(self, x):
        made = filtered(x, self.a_coeffs, self.b_coeffs)
        return unit(made) if self.clamp else made


class Filtfilt(LFilter):
    """The same forwards and then backwards."""

    def compute(self, x):
        return super().compute(filtered(x, self.a_coeffs, self.b_coeffs)[..., ::-1])[..., ::-1]


_Q = Q
