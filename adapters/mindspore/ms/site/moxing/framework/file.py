"""Files and folders of this machine; obs:// and s3:// paths are refused."""

import os
import shutil


def _local(path):
    if str(path).startswith(("obs://", "s3://")):
        raise NotImplementedError(f"{path}: object storage is not supported; a local path works")
    return path


def copy_parallel(src_url, dst_url, **_):
    """Copies a folder."""
    if os.path.abspath(_local(src_url)) != os.path.abspath(_local(dst_url)):
        shutil.copytree(src_url, dst_url, dirs_exist_ok=True)


def copy(src_url, dst_url, **_):
    """Copies a file."""
    shutil.copyfile(_local(src_url), _local(dst_url))


def exists(url):
    """Whether something is there."""
    return os.path.exists(_local(url))


def is_directory(url):
    """Whether a folder is there."""
    return os.path.isdir(_local(url))


def make_dirs(url):
    """Makes a folder."""
    os.makedirs(_local(url), exist_ok=True)


def list_directory(url, recursive=False):
    """Names in a folder."""
    if not recursive:
        return sorted(os.listdir(_local(url)))
    return sorted(os.path.relpath(os.path.join(folder, name), url) for folder, _, names in os.walk(_local(url)) for name in names)


def read(url, binary=False):
    """What a file holds."""
    with open(_local(url), "rb" if binary else "r") as file:
        return file.read()


def shift(*_):
    """Replaces os by moxing there; there is nothing to replace here."""
