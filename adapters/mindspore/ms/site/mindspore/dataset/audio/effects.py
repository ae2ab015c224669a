"""Effects on sounds: gains, distortions, delays and codes."""

import numpy as np

from mindspore.dataset.audio.sound import (
    ANY_REAL, COUNT, FLAG, INTEGER, NOT_NEGATIVE, POSITIVE, RATE, REAL, WHOLE, Bounds, Sound, between, one_of, unit,
)  # fmt: skip
from mindspore.dataset.audio.utils import DensityFunction, FadeShape, GainType, Interpolation, Modulation

__all__ = ["Contrast", "DCShift", "Dither", "Fade", "Flanger", "Gain", "MuLawDecoding", "MuLawEncoding", "Overdrive", "Phaser", "Vol"]


class Contrast(Sound):
    """Louder without clipping."""

    def __init__(self, enhancement_amount=75.0):
        self.take(locals(), enhancement_amount=between(0, 100))

    def compute(self, x):
        angle = x * np.pi / 2
        return np.sin(angle + self.enhancement_amount / 750 * np.sin(4 * angle))


class DCShift(Sound):
    """An offset, with a limit near the peaks where a gain for it is given."""

    def __init__(self, shift, limiter_gain=None):
        self.take(locals(), shift=between(-2.0, 2.0), limiter_gain=Bounds((float, int), may_be_none=True))

    def compute(self, x):
        shift, gain = self.shift, self.limiter_gain
        shifted = unit(x + shift)
        if gain is None or gain == shift or shift == 0:
            return shifted
        bound, side = 1 - (abs(shift) - gain), np.sign(shift)
        near = (x - side * bound) * gain / (1 - bound) + bound + shift  # below 0 the bound is added as well, as MindSpore does
        near = np.minimum(near, bound) if side > 0 else np.maximum(near, -bound)
        return np.where(side * x > bound, near, shifted)


class Dither(Sound):
    """16 bits, after noise of a density; noise_shaping adds the error of each sample to the next."""

    def __init__(self, density_function=DensityFunction.TPDF, noise_shaping=False):
        self.take(locals(), density_function=Bounds(DensityFunction), noise_shaping=FLAG)

    def compute(self, x):
        rows, rng = x.reshape(-1, x.shape[-1]), self.rng

        def any_sample():
            return rows[rng.randint(max(len(rows) - 1, 1)), rng.randint(max(rows.shape[1] - 1, 1))]

        if self.density_function == DensityFunction.RPDF:
            noise = any_sample() - 0.5
        elif self.density_function == DensityFunction.GPDF:
            noise = sum(any_sample() for _ in range(7))
        else:  # the periodic triangular window
            noise = np.bartlett(rows.shape[1] + 1)[:-1]
        made = np.round(rows * (2**15 - 2) + noise) / 2**15
        if self.noise_shaping:
            made[:, 1:] += (made - rows)[:, :-1]
        return made.reshape(x.shape)


def _rising(t, shape):
    """How loud a fade is at times from 0 to 1."""
    return {"linear": t, "exponential": 2 ** (t - 1) * t, "logarithmic": np.log10(0.1 + t) + 1, "quarter_sine": np.sin(t * np.pi / 2),
            "half_sine": np.sin(t * np.pi - np.pi / 2) / 2 + 0.5}[shape.value]  # fmt: skip


class Fade(Sound):
    """In and out by a shape, over numbers of samples."""

    def __init__(self, fade_in_len=0, fade_out_len=0, fade_shape=FadeShape.LINEAR):
        self.take(locals(), fade_in_len=WHOLE, fade_out_len=WHOLE, fade_shape=one_of(FadeShape))

    def compute(self, x):
        length, name = x.shape[-1], type(self).__name__
        for told, count in (("fade_in_len", self.fade_in_len), ("fade_out_len", self.fade_out_len)):
            if count > length:
                raise RuntimeError(f"{name}: {told} should be less than waveform length.")
        x = x.copy()
        x[..., : self.fade_in_len] *= np.clip(_rising(np.linspace(0, 1, self.fade_in_len), self.fade_shape), 0, 1)
        x[..., length - self.fade_out_len :] *= np.clip(_rising(1 - np.linspace(0, 1, self.fade_out_len), self.fade_shape), 0, 1)
        return x


def _wave_table(sine, size, least, most, phase):
    """One period of an oscillation between two values."""
    point = (np.arange(size) + int(phase / np.pi / 2 * size + 0.5)) % size
    if sine:
        made = (np.sin(point / size * 2 * np.pi) + 1) / 2
    else:
        made, quarter = point * 2 / size, 4 * point // size
        made = np.select([quarter == 0, quarter == 3], [made + 0.5, made - 1.5], 1.5 - made)
    return made * (most - least) + least


class Flanger(Sound):
    """The sound and itself, delayed by a time that swings; channels swing one after the other."""

    least_rank, form = 2, "<..., channel, time>"

    def __init__(self, sample_rate, delay=0.0, depth=2.0, regen=0.0, width=71.0, speed=0.5, phase=25.0,
                 modulation=Modulation.SINUSOIDAL, interpolation=Interpolation.LINEAR):  # fmt: skip
        self.take(locals(), sample_rate=RATE, delay=between(0, 30), depth=between(0, 10), regen=between(-95, 95), width=between(0, 100),
                  speed=between(0.1, 10), phase=between(0, 100), modulation=one_of(Modulation), interpolation=one_of(Interpolation))  # fmt: skip

    def apply(self, value):
        made = super().apply(value)
        kind = np.asarray(value).dtype
        return made.astype(kind) if kind.kind in "iu" else made

    def compute(self, x):
        rate, shape = self.sample_rate, x.shape
        x = x.reshape(-1, *shape[-2:])
        feedback, delayed_gain = self.regen / 100, self.width / 100
        own_gain, delayed_gain = 1 / (1 + delayed_gain), delayed_gain / (1 + delayed_gain) * (1 - abs(feedback))
        least, size = self.delay / 1000, int((self.delay + self.depth) / 1000 * rate + 0.5) + 2
        period = int(rate / self.speed)
        table = _wave_table(self.modulation == Modulation.SINUSOIDAL, period, np.floor(least * rate + 0.5), size - 2.0, 3 * np.pi / 2)
        channels = np.arange(shape[-2])
        offsets = (channels * period * self.phase / 100 + 0.5).astype(int)
        held, last, made, place = np.zeros((*x.shape[:2], size)), np.zeros(x.shape[:2]), np.empty_like(x), 0
        for i in range(shape[-1]):
            place = (place + size - 1) % size
            whole, part = np.divmod(table[(i + offsets) % period].astype(np.float32).astype(np.float64), 1)
            held[:, :, place] = x[:, :, i] + last * feedback
            first, second, third = (held[:, channels, (place + whole.astype(int) + k) % size] for k in range(3))
            if self.interpolation == Interpolation.LINEAR:
                last = first + (second - first) * part
            else:
                second, third = second - first, third - first
                last = first + ((third * 0.5 - second) * part + second * 2 - third * 0.5) * part
            made[:, :, i] = x[:, :, i] * own_gain + last * delayed_gain
        return unit(made).reshape(shape)


class Phaser(Sound):
    """The sound and its own past, at a distance that swings."""

    def __init__(self, sample_rate, gain_in=0.4, gain_out=0.74, delay_ms=3.0, decay=0.4, mod_speed=0.5, sinusoidal=True):
        self.take(locals(), sample_rate=INTEGER, gain_in=between(0, 1), gain_out=between(0, 1e9), delay_ms=between(0, 5.0), decay=between(0, 0.99),
                  mod_speed=between(0.1, 2), sinusoidal=FLAG)  # fmt: skip

    def compute(self, x):
        rows, size = x.reshape(-1, x.shape[-1]), int(self.delay_ms * 0.001 * self.sample_rate + 0.5)
        period = int(self.sample_rate / self.mod_speed + 0.5)
        table = (_wave_table(self.sinusoidal, period, 1.0, float(size), np.pi / 2) + 0.5).astype(int)
        held, made = np.zeros((len(rows), size)), np.empty_like(rows)
        for i in range(rows.shape[1]):
            now = rows[:, i] * self.gain_in + held[:, (i + table[i % period]) % size] * self.decay
            held[:, (i + 1) % size] = now
            made[:, i] = now * self.gain_out
        return unit(made).reshape(x.shape)


class Gain(Sound):
    """Louder by decibels."""

    def __init__(self, gain_db=1.0):
        self.take(locals(), gain_db=REAL)

    def compute(self, x):
        return x * 10 ** (self.gain_db / 20)


class Overdrive(Sound):
    """Soft clipping; color makes the halves of a wave unequal."""

    def __init__(self, gain=20.0, color=20.0):
        self.take(locals(), gain=between(0, 100), color=between(0, 100))

    def compute(self, x):
        bent = np.clip(x * 10 ** (self.gain / 20) + self.color / 200, -1, 1)
        bent = bent - bent**3 / 3
        steps = np.diff(bent, axis=-1, prepend=0)
        last, made = np.zeros(x.shape[:-1]), np.empty_like(x)
        for i in range(x.shape[-1]):
            last = steps[..., i] + 0.995 * last
            made[..., i] = x[..., i] * 0.5 + last * 0.75
        return unit(made)


class Vol(Sound):
    """A gain, as a factor, a factor of power, or decibels."""

    def __init__(self, gain, gain_type=GainType.AMPLITUDE):
        self.take(locals(), gain=Bounds((int, float)), gain_type=one_of(GainType))
        {GainType.AMPLITUDE: NOT_NEGATIVE, GainType.POWER: POSITIVE, GainType.DB: ANY_REAL}[gain_type].check(gain, "gain")

    def compute(self, x):
        factor = {"amplitude": lambda g: g, "db": lambda g: 10 ** (g / 20), "power": np.sqrt}[self.gain_type.value](self.gain)
        return unit(x * factor)


class MuLawEncoding(Sound):
    """Codes 0 to quantization_channels - 1 for samples in [-1, 1], finer near zero."""

    def __init__(self, quantization_channels=256):
        self.take(locals(), quantization_channels=COUNT)

    def apply(self, value):
        x, mu = self.wave(value).astype(np.float64), self.quantization_channels - 1.0
        return ((np.sign(x) * np.log1p(mu * np.abs(x)) / np.log1p(mu) + 1) / 2 * mu + 0.5).astype(np.int32)


class MuLawDecoding(Sound):
    """The samples of such codes."""

    def __init__(self, quantization_channels=256):
        self.take(locals(), quantization_channels=COUNT)

    def compute(self, x):
        mu = self.quantization_channels - 1.0
        x = x / mu * 2 - 1
        return np.sign(x) * np.expm1(np.abs(x) * np.log1p(mu)) / mu
