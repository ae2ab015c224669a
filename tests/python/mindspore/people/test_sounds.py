"""Transforms of sounds: what filters do to tones, what spectra and codes keep, and what arguments are refused."""

import numpy as np
import pytest

import mindspore.dataset as ds
import mindspore.dataset.audio as audio
from mindspore.dataset.audio import transforms
from mindspore.dataset.audio.utils import (BorderType, DensityFunction, FadeShape, GainType, Interpolation, MelType, Modulation, NormMode,
                                           NormType, ResampleMethod, ScaleType, WindowType, create_dct, melscale_fbanks)  # fmt: skip

RATE, COUNT = 8000, 4096


def tone(hertz, count=COUNT, rate=RATE, size=0.5):
    return size * np.sin(2 * np.pi * hertz * np.arange(count) / rate)


def response(filter_):
    """The gains at 0 to half of the sample rate: the spectrum of what comes of an impulse."""
    impulse = np.zeros((1, COUNT))
    impulse[0, 0] = 0.1
    return np.abs(np.fft.rfft(filter_(impulse)[0] / 0.1))


def at(gains, hertz):
    return gains[round(hertz / (RATE / 2) * (len(gains) - 1))]


@pytest.mark.parametrize("filter_, expected", [
    (audio.LowpassBiquad(RATE, 1000), {0: 1, 1000: 0.707, 4000: 0}), (audio.HighpassBiquad(RATE, 1000), {0: 0, 1000: 0.707, 4000: 1}),
    (audio.BandpassBiquad(RATE, 1000), {0: 0, 1000: 1, 4000: 0}), (audio.BandrejectBiquad(RATE, 1000), {0: 1, 1000: 0, 4000: 1}),
    (audio.BandpassBiquad(RATE, 1000, 0.5, True), {0: 0, 1000: 0.5, 4000: 0}), (audio.AllpassBiquad(RATE, 1000), {0: 1, 700: 1, 4000: 1}),
    (audio.EqualizerBiquad(RATE, 1000, 6), {0: 1, 1000: 10**0.3, 4000: 1}), (audio.BassBiquad(RATE, 6, 500), {0: 10**0.3, 4000: 1}),
    (audio.TrebleBiquad(RATE, -6, 1000), {0: 1, 4000: 10**-0.3}), (audio.Biquad(1.0, 0.0, 0.0, 2.0, 0.0, 0.0), {0: 0.5, 2000: 0.5}),
])  # fmt: skip
def test_filters_of_two_poles_pass_what_they_are_for(filter_, expected):
    gains = response(filter_)
    for hertz, gain in expected.items():
        assert at(gains, hertz) == pytest.approx(gain, abs=5e-3)


@pytest.mark.parametrize("noise", [False, True])
def test_band_is_loudest_near_its_frequency(noise):
    gains = response(audio.BandBiquad(RATE, 1000, 1.0, noise))
    assert gains.argmax() == pytest.approx(COUNT // 8, rel=0.2) and gains[-1] < gains[0] < gains.max()


def test_playback_curves_have_gain_one_at_their_reference():
    for rate in (44100, 48000, 88200, 96000):
        gain = audio.RiaaBiquad(rate)(tone(1000, 8000, rate, 0.1))[4000:].max() / 0.1
        assert gain == pytest.approx(1, abs=0.02)
    for rate in (44100, 48000):
        assert audio.DeemphBiquad(rate)(np.full((1, 2000), 0.3))[0, -1] == pytest.approx(0.3, abs=1e-4)


def test_lfilter_is_its_recursion_and_clamps_only_if_asked():
    a, b, x = [2.0, -0.5, 0.3], [1.0, 0.4, 4.0], np.random.RandomState(0).rand(2, 50)
    expected = np.zeros_like(x)
    for n in range(50):
        for k in range(3):
            if n >= k:
                expected[:, n] += b[k] / a[0] * x[:, n - k] - (a[k] / a[0] * expected[:, n - k] if k else 0)
    np.testing.assert_allclose(audio.LFilter(a, b, False)(x), expected, 1e-12)
    np.testing.assert_allclose(audio.LFilter(a, b)(x), np.clip(expected, -1, 1), 1e-12)


def test_filtfilt_has_no_phase():
    impulse = np.zeros((1, 201))
    impulse[0, 100] = 0.5
    made = audio.Filtfilt([1.0, -0.4], [0.3, 0.3], False)(impulse)
    np.testing.assert_allclose(made, made[:, ::-1], atol=1e-12)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_floating_types_stay(kind):
    assert audio.LowpassBiquad(RATE, 1000)(tone(100).astype(kind)).dtype == kind
    assert audio.Gain(6.0)(tone(100).astype(kind)).dtype == kind


def test_gains():
    x = np.array([0.1, -0.2])
    np.testing.assert_allclose(audio.Gain(20.0)(x), x * 10)
    np.testing.assert_allclose(audio.Vol(2.0)(x), x * 2)
    np.testing.assert_allclose(audio.Vol(4.0, GainType.POWER)(x), x * 2)
    np.testing.assert_allclose(audio.Vol(100.0, GainType.DB)(x), [1, -1])
    np.testing.assert_allclose(audio.Contrast(0)(x), np.sin(x * np.pi / 2))


def test_an_offset_is_limited_near_the_peaks():
    x = np.array([-0.9, 0.0, 0.9])
    np.testing.assert_allclose(audio.DCShift(0.3)(x), [-0.6, 0.3, 1.0])
    made = audio.DCShift(0.3, 0.05)(x)
    assert made[2] <= 0.75 and made[0] == pytest.approx(-0.6)
    np.testing.assert_allclose(audio.DCShift(-0.3, 0.05)(-x), [0.6, -0.3, 0.42], rtol=1e-6)
    np.testing.assert_allclose(audio.DCShift(-0.5, 0.2)(np.array([-1.0, -0.75, -0.5])), [0, 1 / 6, -1], atol=1e-6)


@pytest.mark.parametrize("shape", list(FadeShape))
def test_fades_begin_and_end_in_silence(shape):
    made = audio.Fade(20, 30, shape)(np.ones((2, 100)))
    assert abs(made[:, [0, -1]]).max() < 1e-6 and (made[:, 20:70] == 1).all() and (np.diff(made[0, :20]) >= 0).all()


def test_longer_fades_than_sounds_are_refused():
    with pytest.raises(RuntimeError, match="fade_in_len should be less than waveform length"):
        audio.Fade(5)(np.ones(3))


@pytest.mark.parametrize("modulation", list(Modulation))
@pytest.mark.parametrize("interpolation", list(Interpolation))
def test_flanger_of_no_width_is_the_sound(modulation, interpolation):
    x = np.stack([tone(200, 300), tone(300, 300)])
    np.testing.assert_allclose(audio.Flanger(RATE, width=0.0, modulation=modulation, interpolation=interpolation)(x), x, 1e-6)
    made = audio.Flanger(RATE, 5.0, 2.0, 20.0, 90.0, 2.0, 50.0, modulation, interpolation)(x)
    assert made.shape == x.shape and 0.05 < abs(made - x).max() < 1.5


def test_phaser_without_decay_is_two_gains():
    x = tone(200, 300)
    np.testing.assert_allclose(audio.Phaser(RATE, 0.5, 0.5, decay=0.0)(x), x / 4)
    assert not np.allclose(audio.Phaser(RATE, sinusoidal=False)(x), audio.Phaser(RATE)(x))


def test_overdrive_bends_peaks():
    x = np.array([[0.0, 0.9, -0.9, 0.9]])
    assert (abs(audio.Overdrive(100.0, 0.0)(x)) <= 1).all() and audio.Overdrive(0.0, 0.0)(x)[0, 0] == 0


@pytest.mark.parametrize("density", list(DensityFunction))
@pytest.mark.parametrize("shaping", [False, True])
def test_dither_stays_within_few_steps_of_16_bits(density, shaping):
    x = np.random.RandomState(1).uniform(-0.9, 0.9, (2, 64))
    assert abs(audio.Dither(density, shaping)(x) - x).max() < 16 / 2**15


def test_mu_law_codes_come_back():
    x = np.linspace(-1, 1, 41)
    codes = audio.MuLawEncoding()(x)
    assert codes.dtype == np.int32 and codes[0] == 0 and codes[-1] == 255
    np.testing.assert_allclose(audio.MuLawDecoding()(codes), x, atol=0.03)


@pytest.mark.parametrize("window", list(WindowType))
def test_a_tone_has_its_peak_in_its_bin(window):
    spec = audio.Spectrogram(n_fft=256, window=window)(tone(1000))
    assert spec.shape == (129, COUNT // 128 + 1) and (spec[:, 2:-2].argmax(0) == 32).all()


def test_spectrogram_of_frames_by_hand():
    x = np.random.RandomState(2).rand(1, 40)
    made = audio.Spectrogram(8, 6, 4, 2, WindowType.HAMMING, 1.0, True, False)(x)
    window = 0.54 - 0.46 * np.cos(2 * np.pi * np.arange(6) / 6)
    padded, framed = np.pad(x[0], 2), np.pad(window, 1)
    expected = np.stack([np.abs(np.fft.rfft(padded[i : i + 8] * framed)) for i in range(0, 37, 4)], -1) / np.sqrt((window**2).sum())
    np.testing.assert_allclose(made[0], expected, 1e-10)


def test_power_zero_keeps_both_parts():
    x = np.random.RandomState(3).rand(2, 64)
    both = audio.Spectrogram(16, power=0)(x)
    assert both.shape == (2, 9, 9, 2)
    np.testing.assert_allclose(audio.ComplexNorm(2.0)(both), audio.Spectrogram(16)(x), 1e-9)
    magnitude, phase = audio.Magphase()(both)
    np.testing.assert_allclose(magnitude * np.exp(1j * phase), both[..., 0] + 1j * both[..., 1], atol=1e-12)
    np.testing.assert_allclose(audio.Angle()(both), phase)
    assert audio.Spectrogram(16, onesided=False, pad_mode=BorderType.EDGE)(x).shape == (2, 16, 9)


def test_centroid_of_a_tone_is_the_tone():
    made = audio.SpectralCentroid(RATE, 512)(tone(1500)[None])
    assert made.shape[:2] == (1, 1) and made[0, 0, 3:-3] == pytest.approx(1500, rel=0.02)


def test_sounds_from_spectrograms():
    spec = audio.Spectrogram(128, power=1.0)(tone(500, 1024))
    sound = audio.GriffinLim(128, 30, power=1.0, momentum=0.5, rand_init=False)(spec)
    assert abs(audio.Spectrogram(128, power=1.0)(sound) - spec).mean() < 0.15 * spec.mean()


def test_decibels_and_back():
    x = np.random.RandomState(4).uniform(0.1, 1, (3, 4, 5))
    np.testing.assert_allclose(audio.DBToAmplitude(1.0, 1.0)(audio.AmplitudeToDB()(x)), x, 1e-9)
    np.testing.assert_allclose(audio.AmplitudeToDB(ScaleType.MAGNITUDE)(x), 20 * np.log10(x), 1e-9)
    x[0, 0, 0] = 1e-9
    assert audio.AmplitudeToDB(top_db=30.0)(x).min() > -31


def test_mel_filters_are_triangles():
    filters = melscale_fbanks(201, 0.0, 8000.0, 20, 16000)
    assert filters.shape == (201, 20) and filters.max() <= 1 and (np.diff(filters.argmax(0)) > 0).all()
    slaney = melscale_fbanks(4001, 0.0, 8000.0, 10, 16000, NormType.SLANEY, MelType.SLANEY)
    np.testing.assert_allclose(slaney.sum(0) * 2, 1, rtol=0.02)  # areas over hertz
    spec = np.random.RandomState(5).rand(2, 201, 3)
    np.testing.assert_allclose(audio.MelScale(20)(spec), filters.T @ spec, 1e-5)
    near = audio.InverseMelScale(201, 20, sgdargs={"sgd_lr": 0.1, "sgd_momentum": 0.9}, max_iter=300)(audio.MelScale(20)(spec))
    assert near.shape == spec.shape and abs(audio.MelScale(20)(near) - audio.MelScale(20)(spec)).mean() < 0.5


def test_the_cosine_matrix_is_orthonormal():
    made = create_dct(8, 8, NormMode.ORTHO)
    np.testing.assert_allclose(made.T @ made, np.eye(8), atol=1e-6)
    assert create_dct(3, 5)[0, 0] == 2


def test_slopes():
    ramp = np.tile(np.arange(12.0), (2, 1))
    np.testing.assert_allclose(audio.ComputeDeltas(5)(ramp)[:, 2:-2], 1)


def test_normalization_over_windows():
    x = np.random.RandomState(6).rand(30, 4)
    np.testing.assert_allclose(audio.SlidingWindowCmn(60, 60)(x), x - x.mean(0), 1e-9)
    made = audio.SlidingWindowCmn(60, 60, True, True)(x)
    np.testing.assert_allclose([made.mean(0), made.std(0)], [np.zeros(4), np.ones(4)], atol=1e-9)


def test_masks():
    x = np.ones((2, 10, 20))
    made = audio.MaskAlongAxis(3, 4, 0.5, 1)(x)
    assert (made[:, 3:7] == 0.5).all() and made.sum() == 2 * 20 * (6 + 2)
    assert (audio.TimeMasking(False, 5, 2, 0.0)(x)[..., 2:7] == 0).all()
    assert (audio.FrequencyMasking(False, 5, 2, 0.0)(x)[:, 2:7] == 0).all()
    for each in (audio.TimeMasking(True, 8), audio.FrequencyMasking(True, 8), audio.MaskAlongAxisIID(8, 0.0, 2)):
        assert x.size - each(x).sum() <= 2 * 20 * 9


def test_stretching_keeps_a_tone():
    both = audio.Spectrogram(128, power=0)(tone(1000))
    made = audio.TimeStretch(64, 65, 2.0)(both)
    assert made.shape == (65, (both.shape[1] + 1) // 2, 2) and (audio.ComplexNorm()(made)[:, 1:-1].argmax(0) == 16).all()
    np.testing.assert_allclose(audio.TimeStretch(n_freq=65)(both), both)


@pytest.mark.parametrize("method", list(ResampleMethod))
@pytest.mark.parametrize("of, to", [(8000, 4000), (8000, 12000), (8000, 7000)])
def test_resampled_tones_are_tones(method, of, to):
    made = audio.Resample(of, to, method, 32)(tone(400, 2000, of))
    assert made.shape == (-(-to * 2000 // of),)
    np.testing.assert_allclose(made[200:-200], tone(400, len(made), to)[200:-200], atol=5e-3)


def test_pitch_of_a_tone():
    made = audio.DetectPitchFrequency(RATE, win_length=5)(tone(200))
    np.testing.assert_allclose(made[5:-5], 200, rtol=0.03)


def test_columns_of_a_pipeline():
    rows = np.stack([tone(100, 64), tone(3900, 64)])
    data = ds.NumpySlicesDataset(rows, ["sound"], shuffle=False).map([audio.LowpassBiquad(RATE, 500), audio.Gain(0.0)], ["sound"])
    quiet = [abs(row["sound"]).max() for row in data.create_dict_iterator(num_epochs=1, output_numpy=True)]
    assert quiet[0] > 0.3 and quiet[1] < 0.1


@pytest.mark.parametrize("call, error, words", [
    (lambda: audio.AllpassBiquad(0, 1), ValueError, "Input sample_rate is not within the required interval of [-2147483648, 0) and (0, 2147483647]."),
    (lambda: audio.AllpassBiquad(1.5, 1), TypeError, "Argument sample_rate with value 1.5 is not of type [<class 'int'>], but got <class 'float'>."),
    (lambda: audio.BassBiquad(1, "2"), TypeError, "Argument gain with value 2 is not of type [<class 'float'>, <class 'int'>], but got <class 'str'>."),
    (lambda: audio.LowpassBiquad(1, 2, 0), ValueError, "Input Q is not within the required interval of (0, 1]."),
    (lambda: audio.Biquad(0, 0, 0, 0, 0, 0), ValueError, "Input a0 is not within the required interval of [-16777216, 0) and (0, 16777216]."),
    (lambda: audio.Contrast(101), ValueError, "Input enhancement_amount is not within the required interval of [0, 100]."),
    (lambda: audio.DeemphBiquad(8000), ValueError, "Argument sample_rate should be 44100 or 48000, but got 8000."),
    (lambda: audio.RiaaBiquad(8000), ValueError, "sample_rate should be one of [44100, 48000, 88200, 96000], but got 8000."),
    (lambda: audio.LFilter([1], ["1"]), TypeError, "Argument b_coeffs[0] with value 1 is not of type"),
    (lambda: audio.Spectrogram(8, 9), ValueError, "Input win_length should be no more than n_fft, but got win_length: 9 and n_fft: 8."),
    (lambda: audio.Spectrogram(power=-1), ValueError, "Input power is not within the required interval of [0, 16777216]."),
    (lambda: audio.Spectrogram(window="hann"), TypeError, "Argument window with value hann is not of type [<enum 'WindowType'>], but got <class 'str'>."),
    (lambda: audio.MelScale(f_min=9000), ValueError, "MelScale: sample_rate // 2 should be greater than f_min when f_max is set to None."),
    (lambda: audio.Resample(rolloff=0.0), ValueError, "Input rolloff is not within the required interval of (0, 1.0]."),
    (lambda: audio.Vol(0, GainType.POWER), ValueError, "Input gain is not within the required interval of (0, 16777216]."),
    (lambda: create_dct(0, 2), ValueError, "n_mfcc must be greater than 0, but got 0."),
    (lambda: audio.AmplitudeToDB()(np.ones(3)), RuntimeError, "AmplitudeToDB: input tensor is not in shape of <..., freq, time>."),
    (lambda: audio.ComplexNorm()(np.ones((2, 3))), RuntimeError, "ComplexNorm: input tensor is not in shape of <..., complex=2>."),
    (lambda: audio.Gain()(np.array(["a"])), RuntimeError, "Gain: input tensor type should be int, float or double, but got: string."),
    (lambda: audio.Gain()("a"), TypeError, "Input should be NumPy audio, got <class 'str'>."),
])  # fmt: skip
def test_refusals(call, error, words):
    with pytest.raises(error) as raised:
        call()
    assert words in str(raised.value)


def test_all_transforms_are_names_of_the_package_and_of_transforms():
    assert all(getattr(audio, name) is getattr(transforms, name) for name in transforms.__all__)
