"""Spectra of sounds and what is made of them."""

import math

import numpy as np

from mindspore.dataset.audio.sound import (
    ANY_REAL, COUNT, FLAG, NOT_NEGATIVE, POSITIVE, RATE, REAL, WHOLE, Bounds, Sound, between, one_of,
)  # fmt: skip
from mindspore.dataset.audio.utils import BorderType, MelType, NormType, ResampleMethod, ScaleType, WindowType, filters_of

__all__ = ["AmplitudeToDB", "Angle", "ComplexNorm", "ComputeDeltas", "DBToAmplitude", "DetectPitchFrequency", "FrequencyMasking", "GriffinLim",
           "InverseMelScale", "Magphase", "MaskAlongAxis", "MaskAlongAxisIID", "MelScale", "PhaseVocoder", "Resample", "SlidingWindowCmn",
           "SpectralCentroid", "Spectrogram", "TimeMasking", "TimeStretch"]  # fmt: skip

_SMALL = 1e-9


def window_of(kind, length):
    """A window of one period, without its last point."""
    if kind == WindowType.KAISER:
        return np.kaiser(length + 1, 12.0)[:-1]
    return {"bartlett": np.bartlett, "blackman": np.blackman, "hamming": np.hamming, "hann": np.hanning}[kind.value](length + 1)[:-1]


def framed(window, n_fft):
    """The window in the middle of n_fft points."""
    before = (n_fft - len(window)) // 2
    return np.pad(window, (before, n_fft - len(window) - before))


def spectrum(x, window, n_fft, hop, center=True, pad_mode="reflect", onesided=True):
    """Complex numbers [..., frequency, time] of frames of n_fft samples."""
    if center:
        x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(n_fft // 2, n_fft // 2)], mode=pad_mode)
    frames = np.lib.stride_tricks.sliding_window_view(x, n_fft, axis=-1)[..., ::hop, :] * framed(window, n_fft)
    return np.moveaxis(np.fft.rfft(frames) if onesided else np.fft.fft(frames), -1, -2)


def unspectrum(spec, window, n_fft, hop, length=None):
    """The sound whose centred frames have the spectrum."""
    window = framed(window, n_fft)
    frames = np.fft.irfft(np.moveaxis(spec, -1, -2), n_fft) * window
    whole = n_fft + hop * (frames.shape[-2] - 1)
    made, weight = np.zeros((*frames.shape[:-2], whole)), np.zeros(whole)
    for i in range(frames.shape[-2]):
        made[..., i * hop : i * hop + n_fft] += frames[..., i, :]
        weight[i * hop : i * hop + n_fft] += window**2
    end = whole - n_fft // 2 if length is None else n_fft // 2 + length
    made, weight = made[..., n_fft // 2 : end], weight[n_fft // 2 : end]
    return made / np.where(weight > 1e-11, weight, 1)


class _Framed(Sound):
    """What has frames: n_fft, win_length and hop_length."""

    def take_frames(self, n_fft, win_length, hop_length, bounds=COUNT):
        COUNT.check(n_fft, "n_fft")
        bounds.optional().check(win_length, "win_length")
        if win_length is not None and win_length > n_fft:
            raise ValueError(f"Input win_length should be no more than n_fft, but got win_length: {win_length} and n_fft: {n_fft}.")
        bounds.optional().check(hop_length, "hop_length")
        self.n_fft, self.win_length = n_fft, win_length or n_fft
        self.hop_length = hop_length or self.win_length // 2


class Spectrogram(_Framed):
    """Magnitudes [..., frequency, time] to a power; power 0 gives real and imaginary parts [..., frequency, time, 2]."""

    def __init__(self, n_fft=400, win_length=None, hop_length=None, pad=0, window=WindowType.HANN, power=2.0, normalized=False,
                 center=True, pad_mode=BorderType.REFLECT, onesided=True):  # fmt: skip
        self.take_frames(n_fft, win_length, hop_length)
        self.take(locals(), pad=WHOLE, window=one_of(WindowType), power=NOT_NEGATIVE, normalized=FLAG, center=FLAG, onesided=FLAG,
                  pad_mode=one_of(BorderType))  # fmt: skip

    def compute(self, x):
        if self.pad:
            x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(self.pad, self.pad)])
        if self.n_fft > x.shape[-1] + (self.n_fft // 2 * 2 if self.center else 0):
            raise RuntimeError(f"Spectrogram: n_fft should be more than 0 and less than the length of the waveform, but got n_fft: {self.n_fft}.")
        window = window_of(self.window, self.win_length)
        made = spectrum(x, window, self.n_fft, self.hop_length, self.center, self.pad_mode.value, self.onesided)
        if self.normalized:
            made = made / np.sqrt(np.sum(window**2))
        return np.abs(made) ** self.power if self.power else np.stack([made.real, made.imag], -1)


class SpectralCentroid(_Framed):
    """The mean frequency of each frame, [..., 1, time]."""

    def __init__(self, sample_rate, n_fft=400, win_length=None, hop_length=None, pad=0, window=WindowType.HANN):
        self.take(locals(), sample_rate=WHOLE, pad=WHOLE, window=one_of(WindowType))
        self.take_frames(n_fft, win_length, hop_length)

    def compute(self, x):
        spec = Spectrogram(self.n_fft, self.win_length, self.hop_length, self.pad, self.window, 1.0).compute(x)
        at = np.linspace(0, self.sample_rate // 2, spec.shape[-2])[:, None]
        return np.sum(at * spec, -2, keepdims=True) / np.sum(spec, -2, keepdims=True)


class GriffinLim(_Framed):
    """A sound for a spectrogram, whose phases are sought in rounds (Griffin and Lim)."""

    least_rank, form = 2, "<..., freq, time>"

    def __init__(self, n_fft=400, n_iter=32, win_length=None, hop_length=None, window_type=WindowType.HANN, power=2.0, momentum=0.99,
                 length=None, rand_init=True):  # fmt: skip
        COUNT.check(n_fft, "n_fft")
        self.take(locals(), n_iter=COUNT)
        self.take_frames(n_fft, win_length, hop_length, WHOLE)
        self.take(locals(), window_type=one_of(WindowType), power=POSITIVE, momentum=NOT_NEGATIVE, length=WHOLE.optional(), rand_init=FLAG)

    def compute(self, x):
        if x.shape[-2] != self.n_fft // 2 + 1:
            raise RuntimeError(f"GriffinLim: the frequency of the input should equal to n_fft / 2 + 1, but got {x.shape[-2]}.")
        window, size, step = window_of(self.window_type, self.win_length), x ** (1 / self.power), self.momentum / (1 + self.momentum)
        turn = self.rng.rand(*x.shape) + 1j * self.rng.rand(*x.shape) if self.rand_init else np.ones(x.shape, np.complex128)
        before = 0.0
        for _ in range(self.n_iter):
            sound = unspectrum(size * turn, window, self.n_fft, self.hop_length, self.length)
            now = spectrum(sound, window, self.n_fft, self.hop_length)
            turn = now - before * step
            turn, before = turn / (np.abs(turn) + 1e-16), now
        return unspectrum(size * turn, window, self.n_fft, self.hop_length, self.length)


class AmplitudeToDB(Sound):
    """Decibels of amplitudes or powers, at most top_db below the largest of a spectrogram."""

    least_rank, form = 2, "<..., freq, time>"

    def __init__(self, stype=ScaleType.POWER, ref_value=1.0, amin=1e-10, top_db=80.0):
        self.take(locals(), stype=one_of(ScaleType), ref_value=POSITIVE, amin=POSITIVE, top_db=POSITIVE)

    def compute(self, x):
        factor = 10 if self.stype == ScaleType.POWER else 20
        made = factor * (np.log10(np.maximum(x, self.amin)) - np.log10(max(self.ref_value, self.amin)))
        largest = made.max(axis=tuple(range(max(made.ndim - 3, 0), made.ndim)), keepdims=True)
        return np.maximum(made, largest - self.top_db)


class DBToAmplitude(Sound):
    """Powers (power 1) or amplitudes (power 0.5) of decibels."""

    def __init__(self, ref, power):
        self.take(locals(), ref=REAL, power=REAL)

    def compute(self, x):
        return self.ref * (10 ** (0.1 * x)) ** self.power


class _Complex(Sound):
    """Real and imaginary parts [..., 2] as complex numbers."""

    form = "<..., complex=2>"

    def wave(self, value):
        value = super().wave(value)
        if value.shape[-1:] != (2,):
            raise RuntimeError(f"{type(self).__name__}: input tensor is not in shape of {self.form}.")
        return value


class Angle(_Complex):
    """The angles of complex numbers."""

    def compute(self, x):
        return np.arctan2(x[..., 1], x[..., 0])


class ComplexNorm(_Complex):
    """The magnitudes of complex numbers to a power."""

    def __init__(self, power=1.0):
        self.take(locals(), power=NOT_NEGATIVE)

    def compute(self, x):
        return np.hypot(x[..., 0], x[..., 1]) ** self.power


class Magphase(ComplexNorm):
    """Both: two columns."""

    one_column = False

    def apply(self, value):
        value = self.wave(value)
        x = value.astype(np.float64)
        return tuple(each.astype(value.dtype) for each in (self.compute(x), np.arctan2(x[..., 1], x[..., 0])))


class ComputeDeltas(Sound):
    """The slope of each coefficient over win_length frames."""

    least_rank, form = 2, "<..., freq, time>"

    def __init__(self, win_length=5, pad_mode=BorderType.EDGE):
        self.take(locals(), pad_mode=one_of(BorderType), win_length=between(3, 2147483647, (int,)))

    def compute(self, x):
        n = (self.win_length - 1) // 2
        padded = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(n, n)], mode=self.pad_mode.value)
        return np.lib.stride_tricks.sliding_window_view(padded, 2 * n + 1, -1) @ np.arange(-n, n + 1) / (n * (n + 1) * (2 * n + 1) / 3)


class SlidingWindowCmn(Sound):
    """Coefficients [..., time, coefficient] less their mean over a window, and over its deviation with norm_vars."""

    least_rank, form = 2, "<..., freq, time>"

    def __init__(self, cmn_window=600, min_cmn_window=100, center=False, norm_vars=False):
        self.take(locals(), cmn_window=WHOLE, min_cmn_window=WHOLE, center=FLAG, norm_vars=FLAG)

    def _span(self, t, count):
        start = t - (self.cmn_window // 2 if self.center else self.cmn_window)
        end = max(start, 0) + self.cmn_window if self.center else max(t + 1, self.min_cmn_window)
        if end > count:
            start, end = max(start, 0) - (end - count), count
        return max(start, 0), end

    def compute(self, x):
        made, count = np.empty_like(x), x.shape[-2]
        for t in range(count):
            start, end = self._span(t, count)
            part = x[..., start:end, :]
            made[..., t, :] = x[..., t, :] - part.mean(-2)
            if self.norm_vars:
                made[..., t, :] = 0 if end - start == 1 else made[..., t, :] / np.sqrt(part.var(-2))
        return made


class MelScale(Sound):
    """A spectrogram [..., n_stft, time] over n_mels triangular filters."""

    least_rank, form = 2, "<..., freq, time>"

    def __init__(self, n_mels=128, sample_rate=16000, f_min=0, f_max=None, n_stft=201, norm=NormType.NONE, mel_type=MelType.HTK):
        self.take_filters(locals())

    def take_filters(self, given):
        """Checks what tells the filters."""
        self.take(given, n_mels=COUNT, sample_rate=COUNT, f_min=ANY_REAL, f_max=POSITIVE.optional())
        if self.f_max is not None and self.f_min >= self.f_max:
            raise ValueError("MelScale: f_max should be greater than f_min.")
        if self.f_max is None and self.f_min >= self.sample_rate // 2:
            raise ValueError("MelScale: sample_rate // 2 should be greater than f_min when f_max is set to None.")
        self.take(given, n_stft=COUNT, norm=one_of(NormType), mel_type=one_of(MelType))

    def filters(self):
        """[n_stft, n_mels]"""
        top = self.sample_rate // 2 if self.f_max is None else self.f_max
        return filters_of(self.n_stft, self.f_min, top, self.n_mels, self.sample_rate, self.norm, self.mel_type)

    def compute(self, x):
        if x.shape[-2] != self.n_stft:
            raise RuntimeError(f"MelScale: the number of frequencies should be n_stft, {self.n_stft}, but got {x.shape[-2]}.")
        return self.filters().T @ x


class InverseMelScale(MelScale):
    """A spectrogram whose filtered form comes near the given one: descent from random numbers."""

    def __init__(self, n_stft, n_mels=128, sample_rate=16000, f_min=0.0, f_max=None, max_iter=100000, tolerance_loss=1e-5,
                 tolerance_change=1e-8, sgdargs=None, norm=NormType.NONE, mel_type=MelType.HTK):  # fmt: skip
        self.take_filters(locals())
        self.take(locals(), max_iter=COUNT, tolerance_loss=POSITIVE, tolerance_change=POSITIVE)
        sgdargs = {"sgd_lr": 0.1, "sgd_momentum": 0.9, **(sgdargs or {})}
        self.take(sgdargs, sgd_lr=NOT_NEGATIVE, sgd_momentum=NOT_NEGATIVE)

    def compute(self, x):
        if x.shape[-2] != self.n_mels:
            raise RuntimeError(f"InverseMelScale: the number of mel filters should be n_mels, {self.n_mels}, but got {x.shape[-2]}.")
        wanted, filters = np.swapaxes(x.reshape(-1, *x.shape[-2:]), -1, -2), self.filters()
        made = self.rng.rand(*wanted.shape[:-1], self.n_stft)
        speed, last = np.zeros_like(made), math.inf
        for _ in range(self.max_iter):
            away = wanted - made @ filters
            loss = np.mean(np.sum(away**2, -1))
            if loss < self.tolerance_loss or abs(last - loss) < self.tolerance_change:
                break
            last = loss
            speed = self.sgd_momentum * speed - 2 / np.prod(wanted.shape[:-1]) * away @ filters.T
            made = made - self.sgd_lr * speed
        return np.swapaxes(np.maximum(made, 0), -1, -2).reshape(*x.shape[:-2], self.n_stft, x.shape[-1])


class MaskAlongAxis(Sound):
    """Frequencies (axis 1) or times (axis 2) of an interval are a value."""

    least_rank, form, told = 2, "<..., freq, time>", ("mask_width", "the masked")

    def __init__(self, mask_start, mask_width, mask_value, axis):
        self.take(locals(), mask_start=Bounds((int,)), mask_width=Bounds((int,)), mask_value=Bounds((int, float)), axis=Bounds((int,)))
        self.take(locals(), mask_start=WHOLE, mask_width=COUNT, mask_value=REAL, axis=between(1, 2, (int,)))

    def compute(self, x):
        axis, name = self.axis - 3, type(self).__name__
        length, (width_name, of) = x.shape[axis], self.told
        if self.mask_start >= length:
            raise RuntimeError(f"{name}: invalid parameter, 'mask_start' should be less than the length of the masked dimension.")
        if self.mask_width > length:
            raise RuntimeError(f"{name}: invalid parameter, '{width_name}' should be less than or equal to the length of {of} dimension.")
        if self.mask_start + self.mask_width > length:
            raise RuntimeError(f"{name}: the sum of 'mask_start' and 'mask_width' is out of bounds of {of} dimension.")
        return _masked(x, axis, self.mask_start, self.mask_width, self.mask_value)


def _masked(x, axis, start, width, value):
    x = x.copy()
    np.moveaxis(x, axis, -1)[..., start : start + width] = value
    return x


class MaskAlongAxisIID(Sound):
    """The same at a place, and as wide as, chance says, up to mask_param."""

    least_rank, form, told = 2, "<..., freq, time>", ("mask_param", "the masked")

    def __init__(self, mask_param, mask_value, axis):
        self.take(locals(), mask_param=WHOLE, mask_value=ANY_REAL, axis=between(1, 2, (int,)))

    def compute(self, x):
        axis, (name, of) = self.axis - 3, self.told
        if self.mask_param > x.shape[axis]:
            raise RuntimeError(f"{type(self).__name__}: invalid parameter, '{name}' should be less than or equal to the length of {of} dimension.")
        width = self.rng.uniform(0, self.mask_param)
        start = self.rng.uniform(0, x.shape[axis] - width)
        return _masked(x, axis, int(start), int(start + width) - int(start), self.mask_value)


class _Masking(Sound):
    """Either of both."""

    least_rank, form = 2, "<..., freq, time>"

    def take_mask(self, given, param):
        """Checks and keeps the arguments; the width is told as mask_param."""
        FLAG.check(given["iid_masks"], "iid_masks")
        for name, value in (("mask_param", given[param]), ("mask_start", given["mask_start"])):
            Bounds((int,)).check(value, name)
            between(0, 16777216, (int,)).check(value, name)
        NOT_NEGATIVE.check(given["mask_value"], "mask_value")
        self._param, (self._start, self._width, self._value, self._iid) = param, (given[each] for each in ("mask_start", param, "mask_value", "iid_masks"))

    def compute(self, x):
        if self._iid:
            made = MaskAlongAxisIID(self._width, self._value, self.axis)
            made._rng = self.rng
        elif not self._width:
            return x
        else:
            made = MaskAlongAxis(self._start, self._width, self._value, self.axis)
        made.told = self._param, self.of
        return made.compute(x)


class FrequencyMasking(_Masking):
    """Masks frequencies."""

    axis, of = 1, "frequency"

    def __init__(self, iid_masks=False, freq_mask_param=0, mask_start=0, mask_value=0.0):
        self.take_mask(locals(), "freq_mask_param")


class TimeMasking(_Masking):
    """Masks times."""

    axis, of = 2, "time"

    def __init__(self, iid_masks=False, time_mask_param=0, mask_start=0, mask_value=0.0):
        self.take_mask(locals(), "time_mask_param")


class PhaseVocoder(_Complex):
    """A spectrogram [..., frequency, time, 2] faster by a rate, at the same pitch."""

    least_rank, form = 3, "<..., freq, num_frame, complex=2>"

    def __init__(self, rate, phase_advance):
        self.take(locals(), rate=POSITIVE, phase_advance=Bounds((np.ndarray,)))

    def wave(self, value):
        value, advance = super().wave(value), self.phase_advance
        wrong = "PhaseVocoder: invalid parameter, "
        if advance.ndim != 2 or advance.shape[1] != 1:
            raise RuntimeError(f"{wrong}'phase_advance' should be in shape of <freq, 1>.")
        if advance.shape[0] != value.shape[-3]:
            raise RuntimeError(f"{wrong}'first dimension of 'phase_advance'' should be equal to the third to last of the input, {value.shape[-3]}.")
        if advance.dtype != value.dtype:
            raise RuntimeError(f"{wrong}data type of phase_advance should be equal to data type of the input, {value.dtype}.")
        return value

    def compute(self, x):
        return _stretched(x, self.rate, self.phase_advance.astype(np.float64))


def _stretched(x, rate, advance):
    if rate == 1:
        return x
    spec = x[..., 0] + 1j * x[..., 1]
    times = np.arange(0, spec.shape[-1], rate)
    part, first = times % 1, np.angle(spec[..., :1])
    spec = np.pad(spec, [(0, 0)] * (spec.ndim - 1) + [(0, 2)])
    now, then = spec[..., times.astype(int)], spec[..., times.astype(int) + 1]
    turn = np.angle(then) - np.angle(now) - advance
    turn += advance - 2 * np.pi * np.round(turn / (2 * np.pi))
    turn = np.cumsum(np.concatenate([first, turn[..., :-1]], -1), -1)
    size = part * np.abs(then) + (1 - part) * np.abs(now)
    return np.stack([size * np.cos(turn), size * np.sin(turn)], -1)


class TimeStretch(_Complex):
    """The same, by the length of the hops."""

    least_rank, form = 3, "<..., freq, num_frame, complex=2>"

    def __init__(self, hop_length=None, n_freq=201, fixed_rate=None):
        self.take(locals(), hop_length=COUNT.optional(), n_freq=COUNT, fixed_rate=POSITIVE.optional())

    def compute(self, x):
        hop = self.n_freq - 1 if self.hop_length is None else self.hop_length
        return _stretched(x, self.fixed_rate or 1, np.linspace(0, np.pi * hop, self.n_freq)[:, None])


class Resample(Sound):
    """Another sample rate, by windowed sinc kernels."""

    def __init__(self, orig_freq=16000, new_freq=16000, resample_method=ResampleMethod.SINC_INTERPOLATION, lowpass_filter_width=6,
                 rolloff=0.99, beta=None):  # fmt: skip
        self.take(locals(), orig_freq=between(0, 16777216, open_left=True), new_freq=between(0, 16777216, open_left=True),
                  resample_method=one_of(ResampleMethod), lowpass_filter_width=COUNT, rolloff=between(0, 1.0, (float,), open_left=True),
                  beta=Bounds((int, float), may_be_none=True))  # fmt: skip

    def compute(self, x):
        of, to = int(self.orig_freq), int(self.new_freq)
        if of == to:
            return x
        of, to = of // math.gcd(of, to), to // math.gcd(of, to)
        most, zeros = min(of, to) * self.rolloff, self.lowpass_filter_width
        width = math.ceil(zeros * of / most)
        t = np.clip((np.arange(-width, width + of) / of - np.arange(to)[:, None] / to) * most, -zeros, zeros)
        if self.resample_method == ResampleMethod.SINC_INTERPOLATION:
            window = np.cos(t * np.pi / zeros / 2) ** 2
        else:
            beta = 14.769656459379492 if self.beta is None else float(self.beta)
            window = np.i0(beta * np.sqrt(1 - (t / zeros) ** 2)) / np.i0(beta)
        kernels = np.sinc(t) * window * most / of
        padded = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(width, width + of)])
        parts = np.lib.stride_tricks.sliding_window_view(padded, kernels.shape[1], -1)[..., ::of, :]
        made = (parts @ kernels.T).reshape(*x.shape[:-1], -1)
        return made[..., : math.ceil(to * x.shape[-1] / of)]


class DetectPitchFrequency(Sound):
    """The pitch of each frame: the lag at which it is most like itself, smoothed by a median."""

    def __init__(self, sample_rate, frame_time=0.01, win_length=30, freq_low=85, freq_high=3400):
        self.take(locals(), sample_rate=RATE, frame_time=between(0, 16777216, open_left=True), win_length=COUNT, freq_low=POSITIVE, freq_high=POSITIVE)

    def compute(self, x):
        lags, size = math.ceil(self.sample_rate / self.freq_low), math.ceil(self.sample_rate * self.frame_time)
        frames = math.ceil(x.shape[-1] / size)
        x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, lags + frames * size - x.shape[-1])])

        def parts(start):
            return x[..., start : start + frames * size].reshape(*x.shape[:-1], frames, size)

        def power(part):
            return (_SMALL + np.linalg.norm(part, axis=-1)) ** 2

        own = parts(0)
        like = np.stack([np.sum(own * parts(lag), -1) / power(own) / power(parts(lag)) for lag in range(1, lags + 1)], -1)
        least = math.ceil(self.sample_rate / self.freq_high)
        best, half = like[..., least:], like[..., least : lags // 2]
        at = best.argmax(-1)
        if half.shape[-1]:
            at = np.where(half.max(-1) > 0.99 * best.max(-1), half.argmax(-1), at)
        return self.sample_rate / (_SMALL + self._smoothed(at + least + 1))

    def _smoothed(self, at):
        before = (self.win_length - 1) // 2
        at = np.pad(at, [(0, 0)] * (at.ndim - 1) + [(before, 0)], mode="edge")
        if at.shape[-1] < self.win_length:
            raise RuntimeError("DetectPitchFrequency: win_length is more than the number of frames.")
        rolled = np.sort(np.lib.stride_tricks.sliding_window_view(at, self.win_length, -1), -1)
        return rolled[..., (self.win_length - 1) // 2]
