"""./dev new-op NAME [--family FAMILY]: an op row with its reference kernel, and a test, both to be filled in.

The row goes to the end of src/ops/FAMILY.cpp, the test to tests/ops/NAME_test.cpp. Nothing else names an op."""

import argparse
import re
import sys

from steps import ROOT

KERNEL = """void {name}(KernelContext& context) {{
  context.fail("the reference kernel is not written");
}}

"""
ROW = """      {{.name = "{name}",
       .summary = "FILL IN: one sentence with rounding, NaN, overflow and empty tensors",
       .inputs = {{{{"x", Accepts::floats}}}},
       .traits = kElementwise | kInPlace,
       .precision = Precision::rounded,
       .infer = infer_same,
       .no_gradient = "FILL IN: a rule (.gradient), or why there is none",
       .reference = {name},
       .oracle = {{"np.{name}(x)"}},
       .cases = {{"f32[2, 3]", "f32[]", "f32[0, 4]", "f32[37]", "f16[9]"}}}},
"""
TEST = """// {name}: values worked out by hand; everything general is tested from the row .
#include <gtest/gtest.h>

#include "ir/text.h"
#include "runtime/model.h"

namespace cairn {{
namespace {{

TEST({title}, KnownValues) {{
  auto model = Model::make(parse(R"(
module @test {{
  func @main(%x: f32[3]) -> (%y: f32[3]) {{
    %y = {name} %x : f32[3]
    return %y
  }}
}})"));
  Tensor x = Tensor::zeros(kF32, {{3}});
  auto values = x.mutable_values<float>();
  values[0] = -1, values[1] = 0, values[2] = 2;
  auto y = model->run({{x}})[0];
  EXPECT_EQ(std::vector<float>(y.values<float>().begin(), y.values<float>().end()), (std::vector<float>{{}}));  // FILL IN
}}

}}  // namespace
}}  // namespace cairn
"""
END_OF_ROWS = "\n  };\n"
START_OF_ROWS = re.compile(r"^std::vector<OpDef> make_\w+_rows\(\)", re.MULTILINE)


def families():
    return sorted(f.stem for f in (ROOT / "src/ops").glob("*.cpp") if START_OF_ROWS.search(f.read_text()))


def main(arguments):
    parser = argparse.ArgumentParser(prog="./dev new-op", description=__doc__)
    parser.add_argument("name", help="snake_case, the field's standard term")
    parser.add_argument("--family", default="unary", choices=families(), help="file of src/ops (default %(default)s)")
    options = parser.parse_args(arguments)
    if not re.fullmatch(r"[a-z][a-z0-9_]*", options.name):
        parser.error(f"'{options.name}' is not snake_case")
    for file in (ROOT / "src/ops").glob("*.cpp"):
        if re.search(rf'(\.name = |\()"{options.name}"', file.read_text()):
            print(f"dev: {file.relative_to(ROOT)} has a row '{options.name}' already", file=sys.stderr)
            return 1
    family = ROOT / "src/ops" / f"{options.family}.cpp"
    test = ROOT / "tests/ops" / f"{options.name}_test.cpp"
    text = family.read_text()
    start = START_OF_ROWS.search(text).start()
    end = text.index(END_OF_ROWS, start) + 1
    kernel, row = KERNEL.format(name=options.name), ROW.format(name=options.name)
    family.write_text(text[:start] + kernel + text[start:end] + row + text[end:])
    test.parent.mkdir(exist_ok=True)
    title = "".join(part.capitalize() for part in options.name.split("_"))
    test.write_text(TEST.format(name=options.name, title=title))
    print(f"wrote the row at the end of {family.relative_to(ROOT)} and {test.relative_to(ROOT)}")
    print("next: fill both in, then ./dev test test_ops")
    return 0
