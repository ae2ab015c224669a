"""Names of kinds of sounds' transforms, and the matrices of mel and cosine filters."""

from enum import Enum

import numpy as np

__all__ = ["BorderType", "DensityFunction", "FadeShape", "GainType", "Interpolation", "MelType", "Modulation", "NormMode", "NormType",
           "ResampleMethod", "ScaleType", "WindowType", "create_dct", "melscale_fbanks"]  # fmt: skip


def _kinds(name, *members):
    return Enum(name, {each.replace("_", "") if name == "FadeShape" else each: each.lower() for each in members}, type=str, module=__name__)


BorderType = _kinds("BorderType", "CONSTANT", "EDGE", "REFLECT", "SYMMETRIC")
DensityFunction = Enum("DensityFunction", {each: each for each in ("TPDF", "RPDF", "GPDF")}, type=str, module=__name__)
FadeShape = _kinds("FadeShape", "LINEAR", "EXPONENTIAL", "LOGARITHMIC", "QUARTER_SINE", "HALF_SINE")
GainType = _kinds("GainType", "POWER", "AMPLITUDE", "DB")
Interpolation = _kinds("Interpolation", "LINEAR", "QUADRATIC")
MelType = _kinds("MelType", "HTK", "SLANEY")
Modulation = _kinds("Modulation", "SINUSOIDAL", "TRIANGULAR")
NormMode = _kinds("NormMode", "NONE", "ORTHO")
NormType = _kinds("NormType", "NONE", "SLANEY")
ResampleMethod = _kinds("ResampleMethod", "SINC_INTERPOLATION", "KAISER_WINDOW")
ScaleType = _kinds("ScaleType", "POWER", "MAGNITUDE")
WindowType = _kinds("WindowType", "BARTLETT", "BLACKMAN", "HAMMING", "HANN", "KAISER")


def _typed(value, name, kind):
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{name} with value {value} is not of type {kind}, but got {type(value)}.")


def create_dct(n_mfcc, n_mels, norm=NormMode.NONE):
    """The matrix [n_mels, n_mfcc] of the cosine transform (DCT-II)."""
    for name, value in (("n_mfcc", n_mfcc), ("n_mels", n_mels)):
        _typed(value, name, int)
    _typed(norm, "norm", NormMode)
    for name, value in (("n_mfcc", n_mfcc), ("n_mels", n_mels)):
        if value <= 0:
            raise ValueError(f"{name} must be greater than 0, but got {value}.")
    made = np.cos(np.pi / n_mels * (np.arange(n_mels)[:, None] + 0.5) * np.arange(n_mfcc))
    if norm == NormMode.ORTHO:
        made *= np.sqrt(2.0 / n_mels)
        made[:, 0] *= np.sqrt(0.5)
    else:
        made *= 2.0
    return made.astype(np.float32)


CreateDct = create_dct

_LINEAR_UP_TO, _STEP, _RATIO = 1000.0, 200.0 / 3, np.log(6.4) / 27  # Slaney's scale: hertz, hertz a mel, logarithm a mel


def _to_mel(hertz, mel_type):
    if mel_type == MelType.HTK:
        return 2595.0 * np.log10(1.0 + hertz / 700.0)
    return _LINEAR_UP_TO / _STEP + np.log(hertz / _LINEAR_UP_TO) / _RATIO if hertz >= _LINEAR_UP_TO else hertz / _STEP


def _to_hertz(mel, mel_type):
    if mel_type == MelType.HTK:
        return 700.0 * (10.0 ** (mel / 2595.0) - 1.0)
    turn = _LINEAR_UP_TO / _STEP
    return np.where(mel >= turn, _LINEAR_UP_TO * np.exp(_RATIO * (mel - turn)), mel * _STEP)


def melscale_fbanks(n_freqs, f_min, f_max, n_mels, sample_rate, norm=NormType.NONE, mel_type=MelType.HTK):
    """Triangular filters [n_freqs, n_mels] over the frequencies 0 to half of the sample rate."""
    from mindspore.dataset.audio.sound import ANY_REAL, COUNT, one_of

    for name, bounds in (("n_freqs", COUNT), ("f_min", ANY_REAL), ("f_max", ANY_REAL), ("n_mels", COUNT), ("sample_rate", COUNT),
                         ("norm", one_of(NormType)), ("mel_type", one_of(MelType))):  # fmt: skip
        bounds.check(locals()[name], name)
    if f_max < f_min:
        raise ValueError("Input f_max should be no less than f_min.")
    return filters_of(n_freqs, f_min, f_max, n_mels, sample_rate, norm, mel_type).astype(np.float32)


def filters_of(n_freqs, f_min, f_max, n_mels, sample_rate, norm, mel_type):
    """The same in float64."""
    points = _to_hertz(np.linspace(_to_mel(f_min, mel_type), _to_mel(f_max, mel_type), n_mels + 2), mel_type)
    away = points - np.linspace(0, sample_rate // 2, n_freqs)[:, None]
    wide = np.diff(points)
    made = np.maximum(0, np.minimum(-away[:, :-2] / wide[:-1], away[:, 2:] / wide[1:]))
    return made * (2.0 / (points[2:] - points[:-2])) if norm == NormType.SLANEY else made
