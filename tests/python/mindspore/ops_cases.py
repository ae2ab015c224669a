"""Cases of operators: lines of ops_cases.txt, their inputs, and how expressions are evaluated with any MindSpore."""

import re
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent


class Case:
    """A line: expression | statement | inputs | notes"""

    def __init__(self, line):
        parts = [each.strip() for each in re.split(r" \|(?: |$)", line)] + ["", "", ""]
        self.expression, self.statement, self.inputs = parts[0], parts[1], re.findall(r"(\w+)=(\S+)", parts[2])
        self.notes = parts[3].split()

    def arrays(self, floats=np.float32):
        """{name: array}, the same ones each time."""
        random = np.random.RandomState(len(self.expression))
        makers = {
            "f": lambda *shape: random.normal(0, 1, shape),
            "p": lambda *shape: random.uniform(0.3, 2, shape),
            "u": lambda *shape: random.uniform(-0.9, 0.9, shape),
            "i": lambda *shape: random.randint(0, 5, shape),
            "n": lambda *shape: random.randint(-4, 5, shape),
            "b": lambda *shape: random.randint(0, 2, shape).astype(bool),
            "c": np.array,
            "boxes": lambda count: np.cumsum(random.uniform(1, 20, (count, 2, 2)), 1).reshape(count, 4),
            "onehot": lambda rows, classes: np.eye(classes)[random.randint(0, classes, rows)],
            "np": np,
        }
        made = {}
        for name, text in self.inputs:
            array = np.asarray(eval(text, makers))
            made[name] = array.astype({"f": floats, "i": np.int32, "b": np.bool_}[array.dtype.kind])
        return made


def read(file):
    lines = (FOLDER / file).read_text().splitlines()
    return [Case(line) for line in lines if line.strip() and not line.startswith("#")]


def flat(tree):
    """The arrays and numbers of nested tuples."""
    if isinstance(tree, (tuple, list)):
        return [each for part in tree for each in flat(part)]
    return [np.asarray(tree.asnumpy() if hasattr(tree, "asnumpy") else tree)]


def names_of_mindspore():
    """What expressions name, of the MindSpore that is imported."""
    import mindspore as ms
    from mindspore import nn
    from mindspore.ops import functional, operations

    try:
        from mindspore.ops.operations import _grad_ops
    except ImportError:
        _grad_ops = None
    return {"ms": ms, "nn": nn, "P": operations, "G": _grad_ops, "F": functional, "Tensor": ms.Tensor, "np": np}


def evaluate(case, floats=np.float32):
    """The results with MindSpore."""
    names = names_of_mindspore()
    names.update((name, names["Tensor"](array)) for name, array in case.arrays(floats).items())
    return eval(case.expression, names)


def main():
    """Evaluates the cases with the real package and writes {number_part: array} to the file that is named."""
    import sys

    import mindspore

    mindspore.set_context(mode=mindspore.PYNATIVE_MODE, device_target="CPU")
    made = {}
    for number, case in enumerate(read(sys.argv[1])):
        if "own" in case.notes:
            continue
        try:
            try:
                results = flat(evaluate(case))
            except SystemError:  # of MindSpore itself, for what an earlier case left behind
                results = flat(evaluate(case))
            made.update((f"{number}_{part}", each) for part, each in enumerate(results))
        except Exception as error:
            made[f"{number}_error"] = np.array(f"{type(error).__name__}: {error}"[:200])
    np.savez(sys.argv[2], **made)


if __name__ == "__main__":
    main()
