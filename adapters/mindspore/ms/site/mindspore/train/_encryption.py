"""Files under a key: AES-GCM, AES-CBC and SM4-CBC of the package `cryptography`, in a form of our own: a mark, the mode, a random start and
the cipher text. MindSpore's encrypted files are laid out differently and are not read."""

import os

from cairn.ms import refuse

_MARK = b"CAIRNENC"
_KEYS = {"AES-GCM": (16, 24, 32), "AES-CBC": (16, 24, 32), "SM4-CBC": (16,)}
_START_BYTES = {"AES-GCM": 12, "AES-CBC": 16, "SM4-CBC": 16}


def check(key, mode, who, names=("enc_key", "enc_mode")):
    """Whether a key is given. TypeError and ValueError where it, or the mode, cannot be one."""
    if not isinstance(mode, str):
        raise TypeError(f"For '{who}', the argument '{names[1]}' must be str, but got {type(mode)}.")
    if key is None:
        return False
    if not isinstance(key, bytes):
        raise TypeError(f"For '{who}', the argument '{names[0]}' must be bytes, but got {type(key)}.")
    if mode not in _KEYS:
        raise ValueError(f"For '{who}', the argument '{names[1]}' must be one of {list(_KEYS)}, but got {mode}.")
    if len(key) not in _KEYS[mode]:
        raise ValueError(f"For '{who}', the length of '{names[0]}' must be one of {_KEYS[mode]} bytes for {mode}, but got {len(key)}.")
    try:
        import cryptography  # noqa: F401
    except ImportError:
        refuse(f"{who}({names[0]}=...)", "encryption needs the package cryptography, which is not installed", "pip install cryptography")
    return True


def _cbc(key, mode, start):
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    return Cipher((algorithms.AES if mode == "AES-CBC" else algorithms.SM4)(key), modes.CBC(start))


def encrypted(data, key, mode):
    """The bytes of a file."""
    start = os.urandom(_START_BYTES[mode])
    head = _MARK + mode.encode() + start
    if mode == "AES-GCM":
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return head + AESGCM(key).encrypt(start, data, head)
    left = 16 - len(data) % 16
    worker = _cbc(key, mode, start).encryptor()
    return head + worker.update(data + bytes([left]) * left) + worker.finalize()


def is_encrypted(data):
    """Whether a file begins as `encrypted` writes it."""
    return data[: len(_MARK)] == _MARK


def decrypted(data, key, mode):
    """What was encrypted. ValueError where key or mode are others, or the file is damaged."""
    begin = len(_MARK) + len(mode)
    head, body = data[: begin + _START_BYTES[mode]], data[begin + _START_BYTES[mode] :]
    if data[:begin] != _MARK + mode.encode():
        raise ValueError(f"is not encrypted by {mode}")
    wrong = ValueError("cannot be decrypted: the key is another one, or the file is damaged")
    start = head[begin:]
    if mode == "AES-GCM":
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            return AESGCM(key).decrypt(start, body, head)
        except InvalidTag:
            raise wrong from None
    if not body or len(body) % 16:
        raise wrong
    worker = _cbc(key, mode, start).decryptor()
    text = worker.update(body) + worker.finalize()
    if not 1 <= text[-1] <= 16 or text[-text[-1] :] != bytes([text[-1]]) * text[-1]:
        raise wrong
    return text[: -text[-1]]
