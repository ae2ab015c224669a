// The gradient rule of every row over the row's own cases, in f64, against central differences: of the reference kernel, and for
// second order of the gradient itself.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "ir/evaluate.h"
#include "ops/cases.h"
#include "ops/gradients.h"

namespace cairn {
namespace {

bool is_float(const Type& type) { return type.is_tensor() && type.dtype.is_float(); }

// Inputs by which a rule gives no gradient: asking for it is an error.
bool has_rule_for(std::string_view op, size_t input) {
  static const std::set<std::pair<std::string_view, size_t>> kNone = {
      {"zeta", 0}, {"polygamma", 0}, {"incomplete_beta", 0}, {"incomplete_beta", 1}, {"incomplete_gamma_slope", 0}};
  return !kNone.contains({op, input});
}

// Where random elements lie; an empty range: of a magnitude of 0.3 to 3 and of any sign.
std::pair<double, double> domain_of(std::string_view op) {
  if (op == "log" || op == "sqrt" || op == "rsqrt" || op == "pow") return {0.3, 3};
  if (op == "log1p") return {-0.7, 3};
  if (op == "acosh") return {1.2, 3};
  if (op == "asin" || op == "acos" || op == "atanh" || op == "tan") return {-0.8, 0.8};
  return {0, 0};
}

// Ops that read one triangle and have gradients as of symmetric matrices.
bool is_symmetric(std::string_view op) { return op == "cholesky" || op == "self_adjoint_eig"; }

double uniform(std::mt19937_64& random, double low, double high) {
  return low + std::ldexp(static_cast<double>(random() >> 11), -53) * (high - low);
}

Tensor floats(DType dtype, const std::vector<int64_t>& dims, const std::vector<double>& values) {
  if (dtype == kF64) return Tensor::of<double>(kF64, dims, values);
  return Tensor::of<float>(kF32, dims, std::vector<float>(values.begin(), values.end()));
}

Tensor random_floats(const Type& type, DType dtype, std::mt19937_64& random, std::pair<double, double> range) {
  std::vector<double> values(static_cast<size_t>(*element_count(type.shape.sizes())));
  for (double& value : values) {
    const double sign = random() % 2 ? 1 : -1;
    value = range.first < range.second ? uniform(random, range.first, range.second) : sign * uniform(random, 0.3, 3);
  }
  return floats(dtype, type.shape.sizes(), values);
}

void make_symmetric(std::vector<double>& values, size_t n) {
  for (size_t i = 0; i < values.size(); ++i)
    if (const size_t row = i / n % n, column = i % n; row < column) values[i] = values[i + (column - row) * (n - 1)];
}

// Rows that take f32 alone.
bool is_f32_only(std::string_view op) { return op.starts_with("crop_and_resize") || op.starts_with("roi_align"); }

// A case in f64; literals of float data are moved away from kinks.
struct WideCase {
  OpCase of;
  std::vector<HostValue> inputs, results;
  std::vector<bool> wanted;  // inputs that are differentiated by

  explicit WideCase(OpCase op_case) : of(std::move(op_case)) {
    std::mt19937_64 random(7);
    const DType dtype = is_f32_only(of.op->name) ? kF32 : kF64;
    for (const auto& [name, value] : Attributes(of.attributes))
      if (const auto* each = std::get_if<DType>(&value); each && each->is_float()) of.attributes.set(name, dtype);
    for (size_t i = 0; i < of.types.size(); ++i) {
      const Tensor& literal = of.literals[i];
      wanted.push_back(is_float(of.types[i]) && of.op->role(i) == Role::data && has_rule_for(of.op->name, i));
      Tensor value = literal.defined() ? literal : random_tensor(of.types[i], random);
      if (is_float(of.types[i])) {
        if (!literal.defined()) value = random_floats(of.types[i], dtype, random, domain_of(of.op->name));
        std::vector<double> values = value.as_f64();
        const double most = std::string_view(of.op->name) == "svd" ? 2 : 0.05;  // far from equal singular values
        for (double& each : values) each += wanted[i] && literal.defined() ? uniform(random, 0.01, most) : 0;
        if (is_symmetric(of.op->name)) make_symmetric(values, static_cast<size_t>(value.dims().back()));
        value = floats(dtype, value.dims(), values);
      }
      inputs.push_back({value, nullptr});
    }
    results = run_reference(*of.op, of.attributes, inputs);
  }
  bool any_wanted() const { return std::count(wanted.begin(), wanted.end(), true) > 0; }
};

// A function and values for all its params.
struct Program {
  Block block;
  std::vector<HostValue> arguments;
  bool open = false;  // the run alone tells the sizes of all params but indices

  Value* add(HostValue argument, Role role = Role::data) {
    Type type = argument.tensor.type();
    if (open && role != Role::index) type.shape.dims.assign(type.shape.rank(), Dim());
    arguments.push_back(std::move(argument));
    return block.add_param(type, fmt::format("x{}", block.params.size()));
  }
  std::vector<Value*> add_all(const std::vector<Tensor>& tensors) {
    std::vector<Value*> values;
    for (const Tensor& tensor : tensors) values.push_back(add({tensor, nullptr}));
    return values;
  }
};

std::vector<Tensor> tensors_of(const std::vector<HostValue>& values) {
  std::vector<Tensor> tensors;
  for (const HostValue& value : values) tensors.push_back(value.tensor);
  return tensors;
}

std::vector<Tensor> weights_for(const std::vector<Tensor>& like) {
  std::mt19937_64 random(11);
  std::vector<Tensor> weights;
  for (const Tensor& x : like) weights.push_back(random_floats(x.type(), x.dtype(), random, {}));
  return weights;
}

// The op of a case as a function of its wanted inputs, and the same function's gradients.
class Derivatives {
 public:
  /// By one input or of one result alone where told.
  explicit Derivatives(const OpCase& op_case, int input = -1, int result = -1) : case_(op_case), result_(result) {
    for (size_t i = 0; i < case_.wanted.size() && input >= 0; ++i)
      case_.wanted[i] = case_.wanted[i] && static_cast<int>(i) == input;
    for (size_t i = 0; i < case_.inputs.size(); ++i)
      if (case_.wanted[i]) data_.push_back(case_.inputs[i].tensor);
    for (size_t i = 0; i < case_.results.size(); ++i)
      if (flows_from(i)) flows_.push_back(case_.results[i].tensor);
    flows_ = weights_for(flows_);
  }
  bool any() const { return case_.any_wanted() && !flows_.empty(); }
  const std::vector<Tensor>& flows() const { return flows_; }

  void forward(Program& program) const {
    Builder b(program.block);
    const Node* node = add_node(b, program.add_all(data_));
    for (size_t i = 0; i < node->results.size(); ++i)
      if (flows_from(i)) program.block.results.push_back(node->result(i));
  }
  // Of the wanted inputs, then of what flows in.
  void gradients(Program& program) const {
    Builder b(program.block);
    std::vector<Value*> data = program.add_all(data_), flows = program.add_all(flows_), others;
    for (size_t i = 0; i < case_.inputs.size() && program.open; ++i)
      if (!case_.wanted[i] && case_.of.types[i].is_tensor())
        others.push_back(program.add(case_.inputs[i], case_.of.op->role(i)));
    program.block.results = first_order(b, data, flows, others);
  }
  void second(Program& program, const std::vector<Tensor>& weights) const {
    Builder b(program.block);
    std::vector<Value*> inputs = program.add_all(data_);
    for (Value* flow : program.add_all(flows_)) inputs.push_back(flow);
    const std::vector<Value*> flows = program.add_all(weights);
    Node node;
    node.op = case_.of.op;
    GradientContext g(b, node, inputs, flows, flows, std::vector<bool>(inputs.size(), true));
    differentiate_formula(g, [&](const std::vector<Var>& in) {
      std::vector<Value*> data, dy;
      for (const Var& each : in) (data.size() < data_.size() ? data : dy).push_back(each.value);
      return first_order(b, data, dy, {});
    });
    for (size_t i = 0; i < inputs.size(); ++i)
      program.block.results.push_back(g.made(i) ? g.made(i) : zeros_like(g.x(i)).value);
  }

 private:
  // Float results by which anything is differentiated; the gradient that ctc_loss yields is not.
  bool flows_from(size_t result) const {
    const bool end = std::string_view(case_.of.op->name) == "ctc_loss" && result == 1;
    const bool told = result_ < 0 || static_cast<int>(result) == result_;
    return case_.results[result].tensor.dtype().is_float() && !end && told;
  }
  // The inputs that are not wanted are constants where no values are given for them.
  Node* add_node(Builder& b, const std::vector<Value*>& data, const std::vector<Value*>& others = {}) const {
    std::vector<Value*> inputs;
    size_t next = 0, other = 0;
    for (size_t i = 0; i < case_.inputs.size(); ++i) {
      const Type& type = case_.of.types[i];
      const bool given = !others.empty() && type.is_tensor();
      inputs.push_back(case_.wanted[i] ? data[next++] : given ? others[other++] : b.constant(case_.inputs[i].tensor));
      if (!type.is_tensor()) inputs.back()->type = type;
    }
    return b.add_node(*case_.of.op, inputs, case_.of.attributes);
  }
  std::vector<Value*> first_order(Builder& b, const std::vector<Value*>& data, const std::vector<Value*>& dy,
                                  const std::vector<Value*>& others) const {
    const Node* node = add_node(b, data, others);
    std::vector<Value*> results, flows;
    size_t next = 0;
    for (size_t i = 0; i < node->results.size(); ++i) {
      results.push_back(node->result(i));
      flows.push_back(flows_from(i) ? dy[next++] : nullptr);
    }
    GradientContext g(b, *node, node->inputs, results, flows, case_.wanted);
    node->op->gradient(g);
    std::vector<Value*> made;
    for (size_t i = 0; i < node->inputs.size(); ++i)
      if (case_.wanted[i]) made.push_back(g.made(i) ? g.made(i) : zeros_like(g.x(i)).value);
    return made;
  }

  WideCase case_;
  int result_;
  std::vector<Tensor> data_, flows_;
};

// Slopes of the sum of weights * f by elements of f's params, compared with gradients.
class Slopes {
 public:
  Slopes(const Program& f, const std::vector<Tensor>& weights, bool symmetric, std::string text)
      : f_(f), symmetric_(symmetric), text_(std::move(text)) {
    for (const Tensor& each : weights) weights_.push_back(each.as_f64());
    for (const HostValue& result : evaluate(f_.block, f_.arguments))
      for (double value : result.tensor.as_f64()) finite_ &= std::isfinite(value);
    for (const HostValue& argument : f_.arguments)
      for (double value : argument.tensor.as_f64()) finite_ &= std::isfinite(value);
  }

  // Whether there was anything to compare; most: of how many elements of an input one by one.
  bool check(const std::vector<HostValue>& gradients, int64_t most) {
    if (!finite_) return false;
    for (size_t at = 0; at < f_.arguments.size(); ++at) check(at, gradients[at].tensor, most);
    return true;
  }

 private:
  void check(size_t at, const Tensor& gradient, int64_t most) {
    const Tensor& x = f_.arguments[at].tensor;
    ASSERT_EQ(to_string(gradient.type()), to_string(x.type())) << text_ << ": of input " << at;
    const std::vector<double> made = gradient.as_f64();
    double largest = 1;
    for (double each : made) largest = std::max(largest, std::abs(each));
    const int64_t step = std::max<int64_t>(1, x.count() / most) | 1;
    for (int64_t i = 0; i < x.count(); i += step) {
      std::vector<double> direction(made.size());
      direction[static_cast<size_t>(i)] = 1;
      if (symmetric_ && at == 0) direction[static_cast<size_t>(mirror(x, i))] = 1;
      compare(at, direction, made, largest, i);
    }
    if (x.count() < 2 || symmetric_) return;
    std::mt19937_64 random(3);
    std::vector<double> direction(made.size());
    for (double& each : direction) each = uniform(random, -1, 1);
    compare(at, direction, made, largest * std::sqrt(static_cast<double>(made.size())), -1);
  }

  void compare(size_t at, const std::vector<double>& direction, const std::vector<double>& made, double scale,
               int64_t i) {
    double expected = 0;
    for (size_t j = 0; j < made.size(); ++j)
      if (direction[j] != 0) expected += direction[j] * made[j];
    const double slope = slope_along(at, direction);
    const double tolerance = f_.arguments[at].tensor.dtype() == kF64 ? 3e-6 : 1e-2;
    EXPECT_NEAR(expected, slope, tolerance * scale) << text_ << ": element " << i << " of input " << at;
  }

  static int64_t mirror(const Tensor& x, int64_t i) {
    const int64_t n = x.dims().back();
    return i / (n * n) * n * n + i % n * n + i / n % n;
  }

  double slope_along(size_t at, const std::vector<double>& direction) const {
    const Tensor& x = f_.arguments[at].tensor;
    const double step = x.dtype() == kF64 ? 1e-5 : 1e-2;
    const auto moved = [&](double by) {
      std::vector<HostValue> arguments = f_.arguments;
      std::vector<double> values = x.as_f64();
      for (size_t j = 0; j < values.size(); ++j) values[j] += by * direction[j];
      arguments[at].tensor = floats(x.dtype(), x.dims(), values);
      return evaluate(f_.block, arguments);
    };
    const std::vector<HostValue> behind = moved(-step), ahead = moved(step);
    double sum = 0;
    for (size_t k = 0; k < ahead.size(); ++k) {
      const std::vector<double> low = behind[k].tensor.as_f64(), high = ahead[k].tensor.as_f64();
      for (size_t j = 0; j < high.size(); ++j) sum += (high[j] - low[j]) * weights_[k][j];
    }
    return sum / (2 * step);
  }

  const Program& f_;
  std::vector<std::vector<double>> weights_;
  bool symmetric_, finite_ = true;
  std::string text_;
};

// Rows whose gradient is not the slope of their results.
bool has_another_gradient(std::string_view op) { return op == "stop_gradient" || op == "fake_quantize"; }

// Cases of rows with a rule whose floats are all f32 or f64 and can all be f64.
std::vector<OpCase> wide_cases() {
  std::vector<OpCase> cases;
  for (OpCase& each : all_cases()) {
    const auto narrow = [](const Type& type) { return is_float(type) && type.dtype.bits < 32; };
    if (each.op->gradient && !has_another_gradient(each.op->name) &&
        std::none_of(each.types.begin(), each.types.end(), narrow))
      cases.push_back(std::move(each));
  }
  return cases;
}

// Results that their inputs do not determine, and the largest of samples: asking for the gradient is an error.
bool is_undetermined(const OpCase& op_case) {
  const std::string_view name = op_case.op->name;
  const Attribute* mode = op_case.attributes.find("mode");
  if (name == "roi_align" && mode) return std::get<std::string>(*mode) == "max";
  if (name != "qr" && name != "svd") return false;
  const auto dims = op_case.types[0].shape.sizes();
  const int64_t rows = dims[dims.size() - 2], columns = dims.back();
  const Attribute* full = op_case.attributes.find("full");
  return full && std::get<bool>(*full) && (name == "qr" ? rows > columns : rows != columns);
}

// Rows of whose gradient there is none, at least by one input.
bool has_second_order(const OpCase& op_case) {
  const std::string_view name = op_case.op->name;
  return name != "ctc_loss" && name != "incomplete_gamma" && name != "incomplete_gamma_upper";
}

bool check_slopes(const OpCase& op_case) {
  const Derivatives derivatives(op_case);
  if (!derivatives.any()) return false;
  Program forward, gradients;
  derivatives.forward(forward);
  if (is_undetermined(op_case)) {
    EXPECT_THROW(derivatives.gradients(gradients), Error);
    return false;
  }
  derivatives.gradients(gradients);
  Slopes slopes(forward, derivatives.flows(), is_symmetric(op_case.op->name), op_case.text);
  return slopes.check(evaluate(gradients.block, gradients.arguments), 6);
}

bool check_slopes_of_gradients(const OpCase& op_case) {
  const Derivatives derivatives(op_case);
  if (!derivatives.any() || is_undetermined(op_case) || !has_second_order(op_case)) return false;
  Program gradients, second;
  derivatives.gradients(gradients);
  int64_t elements = 0;
  for (const HostValue& each : gradients.arguments) elements += each.tensor.count();
  if (elements > 400) return false;
  const std::vector<Tensor> weights = weights_for(tensors_of(evaluate(gradients.block, gradients.arguments)));
  derivatives.second(second, weights);
  const std::vector<HostValue> made = evaluate(second.block, second.arguments);
  const auto empty = [](const HostValue& each) { return each.tensor.count() == 0; };
  if (std::any_of(gradients.arguments.begin(), gradients.arguments.end(), empty)) return false;
  Slopes slopes(gradients, weights, is_symmetric(op_case.op->name), op_case.text);
  return slopes.check(made, 3);
}

void expect_equal(const std::string& text, const HostValue& expected, const HostValue& found) {
  const auto wrong = difference(expected.tensor, found.tensor, Precision::accumulate_f32);
  EXPECT_FALSE(wrong) << text << ": " << *wrong;
}

// Each gradient alone is what it is among the others, and that of one result alone is its slope.
bool check_parts(const OpCase& op_case) {
  const Derivatives all(op_case);
  if (!all.any() || is_undetermined(op_case)) return false;
  Program program;
  all.gradients(program);
  const std::vector<HostValue> expected = evaluate(program.block, program.arguments);
  size_t next = 0;
  for (size_t i = 0; i < op_case.types.size(); ++i) {
    const Derivatives one(op_case, static_cast<int>(i));
    if (!one.any()) continue;
    Program alone;
    one.gradients(alone);
    expect_equal(op_case.text, expected[next++], evaluate(alone.block, alone.arguments)[0]);
  }
  for (size_t i = 0; i < op_case.op->results.size() && op_case.op->results.size() > 1; ++i) {
    const Derivatives one(op_case, -1, static_cast<int>(i));
    if (!one.any()) continue;
    Program forward, alone;
    one.forward(forward);
    one.gradients(alone);
    Slopes slopes(forward, one.flows(), is_symmetric(op_case.op->name), op_case.text);
    slopes.check(evaluate(alone.block, alone.arguments), 3);
  }
  return true;
}

// The same gradients where the run alone knows sizes and the elements of all other inputs.
bool check_open_sizes(const OpCase& op_case) {
  const Derivatives derivatives(op_case);
  if (!derivatives.any() || is_undetermined(op_case)) return false;
  Program known, open;
  open.open = true;
  derivatives.gradients(known);
  if (std::string_view(op_case.op->name) == "qr" || std::string_view(op_case.op->name) == "svd") {
    EXPECT_THROW(derivatives.gradients(open), Error);  // wide and tall matrices have different formulas
    return false;
  }
  derivatives.gradients(open);
  const std::vector<HostValue> expected = evaluate(known.block, known.arguments),
                               found = evaluate(open.block, open.arguments);
  for (size_t i = 0; i < expected.size(); ++i) expect_equal(op_case.text, expected[i], found[i]);
  return true;
}

// Checks all cases; every row but those named must have one with something to compare.
void check_all(bool (*check)(const OpCase&), const std::set<std::string_view>& without) {
  std::set<std::string_view> rows, checked;
  for (const OpCase& op_case : wide_cases()) {
    rows.insert(op_case.op->name);
    try {
      if (check(op_case)) checked.insert(op_case.op->name);
    } catch (const Error& error) {
      ADD_FAILURE() << op_case.text << ": " << error.what();
    }
  }
  for (std::string_view row : rows) EXPECT_NE(checked.contains(row), without.contains(row)) << row;
}

TEST(Rules, GiveTheSlopesOfTheKernels) { check_all(check_slopes, {}); }

TEST(Rules, GiveTheSlopesOfGradients) {
  check_all(check_slopes_of_gradients, {"ctc_loss", "incomplete_gamma", "incomplete_gamma_upper"});
}

TEST(Rules, GiveEachGradientAlone) { check_all(check_parts, {}); }

TEST(Rules, NeedNoSizes) { check_all(check_open_sizes, {"qr", "svd"}); }

// A mean of more elements than the largest f16.
TEST(Rules, OfSmallFloatsHoldLargeSizes) {
  Program program;
  Builder b(program.block);
  const Var x{b, program.block.add_param(Type::tensor(kF16, Shape{80000}), "x")};
  const Var mean = reduce_mean(x, {0}), dy = cast(mean.number(0.5), kF16);
  GradientContext g(b, *mean.value->producer, {x.value}, {mean.value}, {dy.value}, {true});
  op_named("reduce_mean").gradient(g);
  program.block.results = {g.made(0)};
  const Tensor made =
      evaluate(program.block, std::vector<HostValue>{{Tensor::zeros(kF16, {80000}), nullptr}})[0].tensor;
  EXPECT_NEAR(made.as_f64()[79999], 0.5 / 80000, 1e-7);
}

// A float result of float data needs a rule, or a reason why there is none.
TEST(Rules, AreThereOrSayWhyNot) {
  for (const OpDef* op : all_ops()) {
    EXPECT_FALSE(op->gradient && op->no_gradient) << op->name << " has a rule and a reason for none";
    if (op->has(kControl) || op->gradient || op->no_gradient) continue;
    const auto takes_floats = [&](const InputDef& input) {
      return input.role == Role::data && (input.accepts == Accepts::any || input.accepts == Accepts::any_tensor ||
                                          input.accepts == Accepts::numbers || input.accepts == Accepts::floats ||
                                          input.accepts == Accepts::number_or_bool || input.accepts == Accepts::list);
    };
    bool differentiable =
        op->cases.empty() && !op->results.empty() && std::any_of(op->inputs.begin(), op->inputs.end(), takes_floats);
    for (const char* text : op->cases) {
      const OpCase op_case = parse_case(*op, text);
      const Module module = module_of(op_case);
      bool data = false;
      for (size_t i = 0; i < op_case.types.size(); ++i) data |= op->role(i) == Role::data && is_float(op_case.types[i]);
      for (const Value* result : module.main().body.results) differentiable |= data && is_float(result->type);
    }
    EXPECT_FALSE(differentiable) << op->name << " has neither a gradient rule nor a reason for none";
  }
}

}  // namespace
}  // namespace cairn
