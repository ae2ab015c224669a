"""The test models, made once per content of the scripts that make them. As a program: prints their folder."""

import machine
from steps import ROOT, run, step

MAKERS = ("tests/models/make_models.py", "examples/digits/train.py", "requirements/venv.txt")


def ensure_models():
    """Makes the TensorFlow test models in the cache if need be; returns their folder."""
    folder = machine.cache_folder("models", *((ROOT / file).read_bytes() for file in MAKERS))
    if not (folder / ".complete").exists():
        python = machine.ensure_environment(".venv")
        with step("test models"):
            machine.ensure_cached(folder, lambda target: run([python, ROOT / MAKERS[0], target]))
    return folder


if __name__ == "__main__":
    import contextlib
    import sys

    with contextlib.redirect_stdout(sys.stderr):
        models = ensure_models()
    print(models)
