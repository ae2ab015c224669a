"""What the tests of atc share: small models, the fixtures that convert and run them."""

import numpy as np
import pytest

SUCCESS = "ATC run success, welcome to the next use."

DENSE = """module @m {
  source 0 = "tf" "dense/MatMul" "MatMul" ""
  source 1 = "tf" "dense/Exp" "Exp" ""
  source 2 = "tf" "dense/Log" "Log" ""
  func @main(%x: f32[?n, 3]) -> (%y: f32[?n, 2]) {
    %w = constant {value = f32[3, 2] (1.1, 0.2, -0.3, 0.4, 0.7, -0.6)} : f32[3, 2]
    %m = matmul %x, %w : f32[?n, 2] #0
    %e = exp %m : f32[?n, 2] #1
    %y = log1p %e : f32[?n, 2] #2
    return %y
  }
}
"""


def graph(*inputs):
    """A frozen graph in text form: y, y1, ... are the negated inputs, given as (name, dims)."""
    text = ""
    for i, (name, dims) in enumerate(inputs):
        sizes = " ".join(f"dim {{ size: {size} }}" for size in dims)
        text += f"""node {{ name: "{name}" op: "Placeholder" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }}
  attr {{ key: "shape" value {{ shape {{ {sizes} }} }} }} }}
node {{ name: "y{i or ""}" op: "Neg" input: "{name}" attr {{ key: "T" value {{ type: DT_FLOAT }} }} }}
"""
    return text


WEIGHTS = np.array([[1.1, 0.2], [-0.3, 0.4], [0.7, -0.6]], np.float32)
X = np.random.default_rng(3).standard_normal((64, 3)).astype(np.float32)


def image_model(dims, dtype="f32"):
    text = ", ".join(map(str, dims))
    return f"""module @m {{
  func @main(%x: {dtype}[{text}]) -> (%y: {dtype}[{text}]) {{
    %y = neg %x : {dtype}[{text}]
    return %y
  }}
}}
"""


@pytest.fixture
def convert(command, tmp_path):
    """convert(text, *options) writes model.om and returns what atc said."""

    def run(text, *options, fails=None):
        (tmp_path / "m.cairn").write_text(text)
        done = command("atc", "--model=m.cairn", "--output=model", *options)
        if fails:
            assert done.returncode == 255, done.stdout
            assert any(line.startswith(fails + ":") for line in done.stdout.splitlines()), done.stdout
        else:
            assert done.returncode == 0, done.stdout
        return done.stdout

    return run


@pytest.fixture
def output(command, tmp_path):
    """output(x=array, ...) -> outputs of model.om by name; None where the run is refused (then .why says why)."""

    def run(model="model.om", **inputs):
        words = []
        for name, array in inputs.items():
            np.save(tmp_path / f"{name}.npy", array)
            words += ["--input", f"{name}={name}.npy"]
        done = command("cairn", "run", model, *words, "-o", "out")
        if done.returncode != 0:
            run.why = done.stderr
            return None
        return {file.stem: np.load(file) for file in (tmp_path / "out").glob("*.npy")}

    return run


def ones(*dims):
    return np.ones(dims, np.float32)


def exact(x):
    """f32 arithmetic; the few units that kernels may differ by vanish in the roundings looked at."""
    return np.log1p(np.exp(x @ WEIGHTS))
