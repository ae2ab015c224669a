"""Models of a few bytes that ask for very much work, one of each kind. `python hostile_files.py SECONDS [NAME...]` runs them under a
time limit and prints what each took of it."""

import pathlib
import subprocess
import sys
import tempfile
import time

CAIRN = str(pathlib.Path(sys.executable).parent / "cairn")


class Body:
    """The lines of a function in the text form."""

    def __init__(self):
        self.lines, self.count = [], 0

    def add(self, text, type):
        self.count += 1
        self.lines.append(f"%v{self.count} = {text} : {type}")
        return f"%v{self.count}"

    def ints(self, *values):
        return self.add(f"constant {{value = i64[{len(values)}] ({', '.join(map(str, values))})}}", f"i64[{len(values)}]")

    def number(self, value, dtype="i64"):
        return self.add(f"constant {{value = {dtype}[] ({value})}}", f"{dtype}[]")

    def shaped(self, value, *dims):
        """A tensor of one element repeated."""
        return self.add(f"broadcast_to {value}, {self.ints(*dims)}", typed(*dims))

    def counted(self, count):
        """0, 1, 2, ... as floats."""
        numbers = self.add(f"iota {self.number(0)}, {self.number(count)}, {self.number(1)} {{dtype = i64}}", typed(count, dtype="i64"))
        return self.add(f"cast {numbers} {{dtype = f32}}", typed(count))

    def scrambled(self, count):
        """Different numbers in no order."""
        return self.add(f"sin {self.counted(count)}", typed(count))


def typed(*dims, dtype="f32"):
    return f"{dtype}[{', '.join(map(str, dims))}]"


def image(body, x, *dims):
    one = body.add(f"reshape {x}, {body.ints(*[1] * len(dims))}", typed(*[1] * len(dims)))
    return body.add(f"broadcast_to {one}, {body.ints(*dims)}", typed(*dims))


def pool(op):
    return lambda b, x: b.add(f"{op} {image(b, x, 1, 2048, 2048, 1)} {{window = [1024, 1024], padding = same}}", typed(1, 2048, 2048, 1))


def convolution(b, x):
    return b.add(f"conv2d {image(b, x, 1, 2048, 2048, 1)}, {image(b, x, 1024, 1024, 1, 1)} {{padding = same}}", typed(1, 2048, 2048, 1))


def grouped_convolution(b, x):
    return b.add(f"conv2d {image(b, x, 1, 512, 512, 64)}, {image(b, x, 511, 511, 1, 64)} {{padding = same, groups = 64}}", typed(1, 512, 512, 64))


def transposed_convolution(b, x):
    size = b.ints(1, 2048, 2048, 1)
    return b.add(f"conv2d_input_gradient {image(b, x, 1, 2048, 2048, 1)}, {image(b, x, 1024, 1024, 1, 1)}, {size} {{padding = same}}",
                 typed(1, 2048, 2048, 1))  # fmt: skip


def product(b, x):
    m = image(b, x, 1 << 14, 1 << 14)
    return b.add(f"matmul {m}, {m}", typed(1 << 14, 1 << 14))


def integer_product(b, x):
    m = b.add(f"cast {image(b, x, 1 << 12, 1 << 12)} {{dtype = i64}}", typed(1 << 12, 1 << 12, dtype="i64"))
    return b.add(f"matmul {m}, {m}", typed(1 << 12, 1 << 12, dtype="i64"))


def matrix(op, size=2500):
    def write(b, x):
        flat = b.scrambled(size * size)
        square = b.add(f"reshape {flat}, {b.ints(size, size)}", typed(size, size))
        return b.add(f"{op[0]} {square}", op[1](size))

    return write


def sorted_(b, x):
    n = 1 << 25
    b.lines.append(f"%y, %places = top_k {b.scrambled(n)}, {b.number(n)} : {typed(n)}, {typed(n, dtype='i64')}")
    return "%y"


def over(op, result, n=1 << 27):
    return lambda b, x: b.add(f"{op} {image(b, x, n)}{result[0]}", result[1])


def suppression(b, x):
    n = 1 << 20
    columns = b.add(f"reshape {b.counted(n)}, {b.ints(n, 1)}", typed(n, 1))
    zeros = b.add(f"sub {columns}, {columns}", typed(n, 1))
    ones = b.add(f"cos {zeros}", typed(n, 1))
    after = b.add(f"add {columns}, {ones}", typed(n, 1))
    boxes = b.add(f"concat {columns}, {zeros}, {after}, {ones} {{axis = 1}}", typed(n, 4))
    scores, zero, least = b.scrambled(n), b.number(0.0, "f32"), b.number(-9.0, "f32")
    b.lines.append(f"%y, %scores, %count = non_max_suppression {boxes}, {scores}, {b.number(n)}, {b.number(0.5, 'f32')}, {least}, {zero} "
                   ": i64[?k], f32[?k], i64[]")  # fmt: skip
    return "%y"


def fourier(b, x):
    n = (1 << 24) + 43
    pairs = b.add(f"reshape {b.scrambled(2 * n)}, {b.ints(n, 2)}", typed(n, 2))
    return b.add(f"dft {pairs} {{axis = 0}}", typed(n, 2))


def gathered(b, x):
    n = 1 << 27
    places = b.add(f"cast {image(b, x, n)} {{dtype = i64}}", typed(n, dtype="i64"))
    return b.add(f"gather {b.scrambled(1024)}, {places} {{axis = 0}}", typed(n))


def clearing(b, x):
    n = 1 << 29
    return b.add(f"tanh {image(b, x, n)}", typed(n))


LOOP = """%y = while %i {carried = 1} : i64[]
      region(%a: i64[]) {
        %end = constant {value = i64[] (-7)} : i64[]
        %c = not_equal %a, %end : bool[]
        yield %c
      }
      region(%j: i64[]) {
        %two = constant {value = i64[] (2)} : i64[]
        %n = mul %j, %two : i64[]
        yield %n
      }"""


def loop(b, x):
    whole = b.add(f"cast {x} {{dtype = i64}}", "i64[1]")
    b.lines.append(f"%i = reshape {whole}, {b.ints()} : i64[]")
    b.lines.append(LOOP)
    return "%y"


KINDS = {
    "max_pool": pool("max_pool2d"),
    "avg_pool": pool("avg_pool2d"),
    "convolution": convolution,
    "grouped_convolution": grouped_convolution,
    "transposed_convolution": transposed_convolution,
    "product": product,
    "integer_product": integer_product,
    "sorting": sorted_,
    "cumsum": lambda b, x: b.add(f"cumsum {image(b, x, 1 << 28)} {{axis = 0}}", typed(1 << 28)),
    "suppression": suppression,
    "fourier": fourier,
    "gather": gathered,
    "clearing": clearing,
    "loop": loop,
}


def text_of(name, folded=False):
    """The model; `folded`: without inputs, so that it is computed when it is read."""
    body = Body()
    x = "%x"
    if folded:
        body.lines.append("%x = constant {value = f32[1] (1.5)} : f32[1]")
    result = KINDS[name](body, x)
    last = body.lines[-1] if name != "loop" else ": i64[]"
    type = last.rsplit(" : ", 1)[-1].lstrip(": ")
    type = type.split("], ")[0].rstrip("]") + "]"  # of the first result
    lines = "\n    ".join(body.lines)
    return f"module @hostile {{\n  func @main({'' if folded else '%x: f32[1]'}) -> (%out: {type}) {{\n    {lines}\n    return {result}\n  }}\n}}\n"


def run(folder, name, seconds, *words, verb="run", folded=False):
    path = pathlib.Path(folder) / f"{name}.ir"
    path.write_text(text_of(name, folded))
    begin = time.perf_counter()
    done = subprocess.run([CAIRN, verb, str(path), *words, "--max-seconds", str(seconds)], capture_output=True, text=True)
    return time.perf_counter() - begin, done


if __name__ == "__main__":
    limit = float(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[2:] or KINDS:
            for words in (["--engines", "cpu"], ["--engines", "reference"]):
                took, done = run(folder, name, limit, *words)
                print(f"{name:24} {words[1]:10} {took / limit:5.2f}  {done.returncode} {done.stderr.strip()[:120]}")
