"""Transforms that workers run. Images are HWC arrays; values are as the reference implementations define them."""

import numpy as np

from cairn import _data
from cairn._data import Transform, kind

NEAREST, LINEAR, CUBIC, AREA = 0, 2, 3, 4
_BORDERS = {"constant": 0, "edge": 1, "reflect": 2, "symmetric": 3}


def make(name, **options):
    """A transform of the library's table: numbers, lists of numbers, texts, arrays."""
    numbers, arrays = {}, {}
    for key, value in options.items():
        if isinstance(value, (str, np.ndarray)):
            arrays[key] = np.asarray(value)
        else:
            numbers[key] = [float(each) for each in (value if isinstance(value, (list, tuple)) else [value])]
    return Transform(name, numbers, arrays)


def mixed(transforms, chances=None, shuffled=False, count=-1, prob=1.0):
    """Several transforms in turn, with a probability in all and `chances` for each; `shuffled`: in random order, the first `count`."""
    return _data.mixed(list(transforms), [1.0] * len(transforms) if chances is None else list(chances), shuffled, count, prob)


def _size(size):
    return [size, size] if isinstance(size, int) else list(size)


def _sides(padding):
    if isinstance(padding, int):
        return [padding] * 4
    return list(padding) * (2 if len(padding) == 2 else 1)


def decode():
    """RGB u8 HWC of the bytes of a JPEG, PNG or BMP file."""
    return make("decode")


def resize(size, interpolation=LINEAR):
    """(height, width), or an int for the shorter edge."""
    return make("resize", size=_size(size), shorter=isinstance(size, int), interpolation=interpolation)


def center_crop(size):
    """The middle, with a border of zeros where the image is smaller."""
    return make("center_crop", size=_size(size))


def crop(top, left, size):
    """A part at a place told."""
    return make("crop", coordinates=[top, left], size=_size(size))


def pad(padding, fill=0, mode="constant"):
    """A border: one number, (left, top) for both sides, or left, top, right, bottom."""
    return make("pad", padding=_sides(padding), fill_value=fill, padding_mode=_BORDERS[mode])


def random_crop(size, padding=0, pad_if_needed=False, fill=0, mode="constant"):
    """A part at a random place, of the image with a border."""
    return make("random_crop", size=_size(size), padding=_sides(padding), pad_if_needed=pad_if_needed, fill_value=fill,
                padding_mode=_BORDERS[mode])  # fmt: skip


def random_resized_crop(size, scale=(0.08, 1.0), ratio=(3 / 4, 4 / 3), interpolation=LINEAR, max_attempts=10):
    """A part of random area and shape, resized."""
    return make("random_resized_crop", size=_size(size), scale=list(scale), ratio=list(ratio), interpolation=interpolation,
                max_attempts=max_attempts)  # fmt: skip


def random_crop_decode_resize(size, scale=(0.08, 1.0), ratio=(3 / 4, 4 / 3), interpolation=LINEAR, max_attempts=10):
    """The same pixels as decode and random_resized_crop, but of a JPEG file only the part is decoded."""
    return make("random_crop_decode_resize", size=_size(size), scale=list(scale), ratio=list(ratio), interpolation=interpolation,
                max_attempts=max_attempts)  # fmt: skip


def horizontal_flip():
    """Left for right."""
    return make("horizontal_flip")


def vertical_flip():
    """Top for bottom."""
    return make("vertical_flip")


def random_horizontal_flip(prob=0.5):
    """Left for right, with a probability."""
    return make("horizontal_flip", prob=prob)


def random_vertical_flip(prob=0.5):
    """Top for bottom, with a probability."""
    return make("vertical_flip", prob=prob)


def hwc2chw():
    """Channels first."""
    return make("hwc2chw")


def chw2hwc():
    """Channels last."""
    return make("chw2hwc")


def rescale(factor, shift=0.0):
    """x * factor + shift as float32."""
    return make("rescale", rescale=factor, shift=shift)


def normalize(mean, std, is_hwc=True):
    """(x - mean) / std for each channel, as float32."""
    return make("normalize", mean=list(mean), std=list(std), is_hwc=is_hwc)


def random_color_adjust(brightness=(1, 1), contrast=(1, 1), saturation=(1, 1), hue=(0, 0)):
    """Each by a random amount of its range, in random order."""
    return make("random_color_adjust", brightness=list(brightness), contrast=list(contrast), saturation=list(saturation), hue=list(hue))


def grayscale(channels=1, prob=1.0):
    """Shades of gray."""
    return make("grayscale", channels=channels, prob=prob)


def invert():
    """255 - x."""
    return make("invert")


def to_tensor():
    """CHW float32 from 0 to 1."""
    return make("to_tensor")


def type_cast(dtype):
    """Another element type; to integers by truncation."""
    return make("type_cast", kind=kind(np.dtype(dtype).name))


def one_hot(classes, smoothing_rate=0.0):
    """A row with a one for each label."""
    return make("one_hot", classes=classes, smoothing_rate=smoothing_rate)


def pad_end(shape, value=0):
    """Filled up at the end of each axis, cut where it is longer."""
    return make("pad_end", shape=[-1 if size is None else size for size in shape], value=value)


def concatenate(prepend=None, append=None):
    """Values before and after those of one dimension."""
    return make("concatenate", **{name: np.asarray(value) for name, value in (("prepend", prepend), ("append", append)) if value is not None})


def duplicate():
    """A column twice."""
    return make("duplicate")


def _words(vocabulary):
    return {"words": np.array(list(vocabulary), dtype=np.str_), "numbers": np.array(list(vocabulary.values()), np.int64)}


def whitespace_tokenizer(offsets=False):
    """Words between blanks; with offsets also two columns of where they begin and end, in bytes."""
    return make("whitespace_tokenizer", with_offsets=offsets)


def regex_tokenizer(delimiter, keep="", offsets=False):
    """What lies between matches of a pattern, and the matches that another matches as a whole."""
    return make("regex_tokenizer", delim_pattern=delimiter, keep_delim_pattern=keep, with_offsets=offsets)


def basic_tokenizer(lower_case=False, keep_whitespace=False, offsets=False):
    """Words, punctuation and Chinese characters, as BERT cuts them."""
    return make("basic_tokenizer", lower_case=lower_case, keep_whitespace=keep_whitespace, with_offsets=offsets)


def bert_tokenizer(vocabulary, lower_case=False, unknown="[UNK]", suffix="##", offsets=False):
    """The same, and words to the longest pieces that {word: number} has."""
    return make("bert_tokenizer", **_words(vocabulary), lower_case=lower_case, unknown_token=unknown, suffix_indicator=suffix,
                with_offsets=offsets)  # fmt: skip


def lookup(vocabulary, unknown=None, dtype="int32"):
    """Numbers of words; `unknown`: the word whose number others get."""
    return make("lookup", **_words(vocabulary), kind=kind(np.dtype(dtype).name), **({} if unknown is None else {"unknown": vocabulary[unknown]}))


def case_fold():
    """Unicode's NFKC_Casefold."""
    return make("case_fold")


def regex_replace(pattern, replacement):
    """Another text for each match; $1 is the first group."""
    return make("regex_replace", pattern=pattern, replace=replacement)


def ngram(lengths, separator=" "):
    """Runs of so many words as one text."""
    return make("ngram", n=[lengths] if isinstance(lengths, int) else list(lengths), separator=separator)


def to_number(dtype):
    """Numbers of texts."""
    return make("to_number", kind=kind(np.dtype(dtype).name))


def apply(transform, *columns, seed=0):
    """The transform's results for these arrays."""
    made = transform.apply([np.asarray(each) for each in columns], seed)
    return made[0] if len(made) == 1 else made
