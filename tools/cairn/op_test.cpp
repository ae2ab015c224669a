// cairn op test: what must hold for every operator, tried on the inputs that its row names.
#include <algorithm>
#include <cmath>

#include "autodiff/differentiate.h"
#include "capi/user_op.h"
#include "ir/builder.h"
#include "ir/text.h"
#include "op_verb.h"
#include "ops/cases.h"
#include "runtime/model.h"

namespace cairn::cli {
namespace {

/// Runs the checks of one case; each says what is wrong, or nothing.
class CaseCheck {
 public:
  CaseCheck(const OpDef& op, const std::string& text, std::vector<OpCheck>& checks)
      : op_(op), text_(text), checks_(checks) {}

  void run() {
    if (!check("case can be read", [&] { case_ = parse_case(op_, text_); })) return;
    inputs_ = random_inputs(case_);
    if (!check("shape rule on these dims", [&] { types_ = infer(case_.types); })) return;
    check("shape rule on open dims", [&] { open_dims(); });
    if (!check("runs", [&] { results_ = outputs(); })) return;
    check("results are as the shape rule says", [&] { declared(); });
    if (!op_.has(kNotFoldable)) check("equal inputs give equal results", [&] { repeatable(); });
    if (op_.reference && op_.decompose) check("kernel and decomposition agree", [&] { same_as_decomposition(); });
    check("text form", [&] { text_form(); });
    gradients();
  }

 private:
  template <class Body>
  bool check(const std::string& what, Body&& body) {
    OpCheck made{op_.name, text_, what, ""};
    try {
      body();
    } catch (const Error& error) {
      made.fault = error.what();
    }
    checks_.push_back(made);
    return made.fault.empty();
  }

  template <class... Args>
  [[noreturn]] static void wrong(fmt::format_string<Args...> format, Args&&... args) {
    fail(ErrorKind::invalid_model, "", format, std::forward<Args>(args)...);
  }

  std::vector<Type> infer(const std::vector<Type>& types) const {
    Block block;
    Builder builder(block);
    std::vector<Value*> values;
    for (size_t i = 0; i < types.size(); ++i)
      values.push_back(case_.literals[i].defined() ? builder.constant(case_.literals[i])
                                                   : block.add_param(types[i], fmt::format("x{}", i)));
    return infer_types(op_, values, case_.attributes);
  }

  /// With sizes, or whole shapes, unknown the rule must say the same or less.
  void open_dims() const {
    for (const bool ranked : {true, false}) {
      std::vector<Type> types = case_.types;
      for (Type& type : types) {
        if (!type.is_tensor()) continue;
        type.shape = ranked ? Shape(std::vector<Dim>(type.shape.rank())) : Shape::unranked();
      }
      const std::vector<Type> open = infer(types);
      for (size_t i = 0; i < open.size(); ++i)
        if (!compatible(open[i], types_[i]))
          wrong("result {} of {} is {}, of the real dims {}", op_.results[i], ranked ? "open dims" : "any dims",
                to_string(open[i]), to_string(types_[i]));
    }
  }

  std::vector<Tensor> outputs() const {
    Module module = module_of(case_);
    std::vector<Tensor> tensors;
    for (const HostValue& value : parameters_of(case_, inputs_)) tensors.push_back(value.tensor);
    return Model::make(std::move(module), {.threads = 1})->run(tensors);
  }

  void declared() const {
    for (size_t i = 0; i < results_.size(); ++i)
      if (!compatible(types_[i], results_[i].type()))
        wrong("result {} is {}, the shape rule says {}", op_.results[i], to_string(results_[i].type()),
              to_string(types_[i]));
  }

  void repeatable() const {
    const std::vector<Tensor> again = outputs();
    for (size_t i = 0; i < again.size(); ++i)
      if (!again[i].same_bits(results_[i])) wrong("result {} differs in a second run", op_.results[i]);
  }

  void same_as_decomposition() const {
    Module module = module_of(case_);
    Node& node = *module.main().body.nodes.back();
    Builder builder(module.main().body);
    Node inner;
    inner.op = node.op, inner.inputs = node.inputs, inner.attributes = node.attributes;
    module.main().body.results = op_.decompose(builder, inner);
    std::vector<Tensor> tensors;
    for (const HostValue& value : parameters_of(case_, inputs_)) tensors.push_back(value.tensor);
    const std::vector<Tensor> others = Model::make(std::move(module), {.threads = 1})->run(tensors);
    for (size_t i = 0; i < others.size(); ++i)
      if (auto fault = difference(others[i], results_[i], op_.precision))
        wrong("result {}: {}", op_.results[i], *fault);
  }

  void text_form() const {
    const Module module = module_of(case_);
    const ModuleText text = print(module);
    if (print(parse(text.text, text.weights)).text != text.text) wrong("it is read as something else");
  }

  void gradients();

  const OpDef& op_;
  std::string text_;
  std::vector<OpCheck>& checks_;
  OpCase case_;
  std::vector<HostValue> inputs_;
  std::vector<Type> types_;
  std::vector<Tensor> results_;
};

/// The case with float64 for every float type, where the operator takes that.
std::optional<OpCase> in_doubles(const OpCase& given) {
  OpCase wide = given;
  for (Type& type : wide.types)
    if (type.is_tensor() && type.dtype.is_float()) type.dtype = kF64;
  for (const Tensor& literal : given.literals)
    if (literal.defined() && literal.dtype().is_float() && literal.dtype() != kF64) return std::nullopt;
  try {
    std::vector<Tensor> inputs;
    for (const HostValue& value : parameters_of(wide, random_inputs(wide))) inputs.push_back(value.tensor);
    Model::make(module_of(wide), {.threads = 1})->run(inputs);
  } catch (const Error&) {  // its kernel is of other types alone
    return std::nullopt;
  }
  return wide;
}

bool has_only_singles(const OpCase& given) {
  return std::all_of(given.types.begin(), given.types.end(), [](const Type& type) {
    return !type.is_tensor() || !type.dtype.is_float() || type.dtype == kF32;
  });
}

/// Gradients against central differences: of sum(w * result) over the float results, w being random.
class GradientCheck {
 public:
  GradientCheck(const OpCase& given, bool wide) : case_(given), wide_(wide), random_(7) {
    for (const HostValue& value : parameters_of(case_, random_inputs(case_))) point_.push_back(value.tensor.owned());
    Module module = module_of(case_);
    forward_ = Model::make(clone(module), {.threads = 1});
    for (const Tensor& result : forward_->run(point_)) {
      if (!result.dtype().is_float()) continue;
      weights_.push_back(random_tensor(result.type(), random_));
    }
    const Function& main = module.main();
    for (const auto& param : main.body.params)
      if (param->type.dtype.is_float() && given.op->role(param->index) == Role::data) wrt_.push_back(param->name);
    if (wrt_.empty() || weights_.empty()) return;
    Function& vjp = append_vjp(module, main, wrt_, "vjp");
    const size_t results = main.body.results.size();
    Module alone;
    alone.functions.push_back(clone(vjp));
    for (auto& function : module.functions)
      if (function->name != "main" && function->name != "vjp") alone.functions.push_back(std::move(function));
    alone.functions.front()->name = "main";
    std::vector<Tensor> inputs = point_;
    inputs.insert(inputs.end(), weights_.begin(), weights_.end());
    std::vector<Tensor> made = Model::make(std::move(alone), {.threads = 1})->run(inputs);
    gradients_.assign(made.begin() + static_cast<int64_t>(results), made.end());
  }

  const std::vector<std::string>& wrt() const { return wrt_; }

  /// The largest difference from the gradient by finite differences, relative to its largest element.
  double error(size_t which) const {
    const size_t input = static_cast<size_t>(std::stoul(wrt_[which].substr(wrt_[which].find_first_of("0123456789"))));
    const std::vector<double> made = gradients_[which].as_f64();
    double most = 1e-3, worst = 0;
    std::vector<double> expected(made.size());
    for (size_t i = 0; i < made.size(); ++i) {
      expected[i] = (value(input, i, 1) - value(input, i, -1)) / (2 * step());
      most = std::max(most, std::abs(expected[i]));
    }
    for (size_t i = 0; i < made.size(); ++i) {
      const double off = std::abs(made[i] - expected[i]);
      if (!(off <= worst)) worst = off;
    }
    return worst / most;
  }

 private:
  double step() const { return wide_ ? 1e-5 : 1e-2; }

  double value(size_t input, size_t element, int sign) const {
    std::vector<Tensor> moved = point_;
    std::vector<double> elements = point_[input].as_f64();
    elements[element] += sign * step();
    if (wide_)
      moved[input] = Tensor::of(kF64, point_[input].dims(), elements);
    else
      moved[input] = Tensor::of(kF32, point_[input].dims(), std::vector<float>(elements.begin(), elements.end()));
    double sum = 0;
    size_t next = 0;
    for (const Tensor& result : forward_->run(moved)) {
      if (!result.dtype().is_float()) continue;
      const std::vector<double> y = result.as_f64(), w = weights_[next++].as_f64();
      for (size_t i = 0; i < y.size(); ++i) sum += y[i] * w[i];
    }
    return sum;
  }

  OpCase case_;
  bool wide_;
  std::mt19937_64 random_;
  std::vector<Tensor> point_, weights_, gradients_;
  std::shared_ptr<const Model> forward_;
  std::vector<std::string> wrt_;
};

void CaseCheck::gradients() {
  if (op_.no_gradient || !(op_.gradient || op_.decompose)) return;
  const std::optional<OpCase> wide = in_doubles(case_);
  if (!wide && !has_only_singles(case_)) return;
  const double tolerance = wide ? 1e-5 : 3e-2;
  std::optional<GradientCheck> gradient;
  if (!check(fmt::format("gradient is made, in float{}", wide ? 64 : 32),
             [&] { gradient.emplace(wide ? *wide : case_, wide.has_value()); }))
    return;
  for (size_t i = 0; i < gradient->wrt().size(); ++i)
    check(fmt::format("gradient of {} equals central differences", gradient->wrt()[i]), [&] {
      const double error = gradient->error(i);
      if (!(error <= tolerance)) wrong("differs by {:.2g} of its largest element", error);
    });
}

}  // namespace

std::vector<OpCheck> check_ops(const std::string& library) {
  std::vector<OpCheck> checks;
  for (const OpDef* row : user_ops()) {
    if (capi::library_of(*row) != library) continue;
    if (!*row->summary) checks.push_back({row->name, "", "summary", "is empty"});
    if (row->cases.empty())
      checks.push_back({row->name, "", "cases", "the row names no inputs to test, as .test(\"f32[2, 3]\")"});
    for (const char* text : row->cases) CaseCheck(*row, text, checks).run();
  }
  if (checks.empty()) fail(ErrorKind::not_found, library, "has no operators");
  return checks;
}

}  // namespace cairn::cli
