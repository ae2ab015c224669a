"""Image files to arrays: PNG and BMP here, all else by Pillow where it is installed."""

import io
import struct
import zlib

import numpy as np
from cairn.ms import refuse


def decode(data, name="image"):
    """uint8 HWC, three channels, of the bytes of an image file."""
    data = bytes(np.asarray(data, np.uint8))
    try:
        if data[:8] == b"\x89PNG\r\n\x1a\n":
            return _png(data)
        if data[:2] == b"BM":
            return _bmp(data)
    except (struct.error, zlib.error, IndexError, ValueError) as error:
        raise RuntimeError(f"Decode: image decode failed, {name} is damaged: {error}") from None
    try:
        from PIL import Image
    except ImportError:
        kind = "JPEG" if data[:2] == b"\xff\xd8" else "this kind of file"
        refuse("Decode", f"{name}: {kind} needs the package Pillow, which is not installed", "PNG or BMP, or pip install pillow")
    try:
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    except Exception as error:
        raise RuntimeError(f"Decode: image decode failed, {name}: {error}") from None


def _bmp(data):
    (start,), (width, height) = struct.unpack_from("<I", data, 10), struct.unpack_from("<ii", data, 18)
    bits, packed = struct.unpack_from("<HI", data, 28)
    if bits not in (24, 32) or packed:
        raise ValueError(f"a BMP file of {bits} bits a pixel, packed by {packed}, is not supported")
    stride = (width * bits // 8 + 3) // 4 * 4
    rows = np.frombuffer(data, np.uint8, stride * abs(height), start).reshape(abs(height), stride)
    pixels = rows[:, : width * bits // 8].reshape(abs(height), width, bits // 8)[..., 2::-1]
    return np.ascontiguousarray(pixels[::-1] if height > 0 else pixels)


_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def _png(data):
    place, packed, palette = 8, b"", None
    while place < len(data):
        length, kind = struct.unpack_from(">I4s", data, place)
        body = data[place + 8 : place + 8 + length]
        if kind == b"IHDR":
            width, height, bits, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
        elif kind == b"PLTE":
            palette = np.frombuffer(body, np.uint8).reshape(-1, 3)
        elif kind == b"IDAT":
            packed += body
        elif kind == b"IEND":
            break
        place += 12 + length
    if interlaced or bits not in (1, 2, 4, 8, 16) or width * height > 1 << 28:
        raise ValueError("an interlaced or outsized PNG file is not supported")
    channels = _CHANNELS[colour]
    stride, step = (width * channels * bits + 7) // 8, max(channels * bits // 8, 1)
    rows = _unfiltered(zlib.decompressobj().decompress(packed, (stride + 1) * height), stride, height, step)
    if bits < 8:
        values = np.unpackbits(rows, axis=1).reshape(height, -1, bits)
        values = (values * (1 << np.arange(bits)[::-1])).sum(2)[:, : width * channels]
        rows = (values if colour == 3 else values * 255 // ((1 << bits) - 1)).astype(np.uint8)
    elif bits == 16:
        rows = rows[:, ::2]
    pixels = rows.reshape(height, width, channels)
    if colour == 3:
        return palette[pixels[..., 0]]
    return np.ascontiguousarray(np.repeat(pixels[..., :1], 3, 2) if channels < 3 else pixels[..., :3])


def _unfiltered(data, stride, height, step):
    lines = np.frombuffer(data, np.uint8).reshape(height, stride + 1)
    rows = np.zeros((height, stride), np.uint8)
    above = np.zeros(stride, np.uint8)
    for number, line in enumerate(lines):
        how, line = line[0], line[1:]
        if how == 0:
            row = line
        elif how == 2:
            row = line + above
        elif how == 1:
            padded = np.resize(np.append(line, np.zeros(-stride % step, np.uint8)), (-(-stride // step), step))
            row = np.cumsum(padded, axis=0, dtype=np.uint8).ravel()[:stride]
        else:
            row = _predicted(line, above, how, step)
        rows[number] = above = row
    return rows


def _predicted(line, above, how, step):
    row, up, raw = [0] * len(line), above.tolist(), line.tolist()
    for place, value in enumerate(raw):
        left, corner = (row[place - step], up[place - step]) if place >= step else (0, 0)
        if how == 3:
            guess = (left + up[place]) >> 1
        else:
            by_left, by_up, by_corner = abs(up[place] - corner), abs(left - corner), abs(left + up[place] - 2 * corner)
            guess = left if by_left <= by_up and by_left <= by_corner else up[place] if by_up <= by_corner else corner
        row[place] = (value + guess) & 255
    return np.array(row, np.uint8)
