#include "engines/cpu/activated.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engines/cpu/call_step.h"
#include "engines/cpu/groups.h"
#include "engines/cpu/pixel_product.h"
#include "engines/cpu/program.h"
#include "engines/cpu/separable.h"
#include "engines/cpu/tile_step.h"
#include "support/memory.h"

namespace cairn {

namespace {

constexpr int64_t kBandFloats = 32 << 10,
                  kMostBandFloats = 128 << 10;  // of results at a time: where weights are small, and at most
constexpr int64_t kLeastPixels = 16;            // of a product: fewer need other panels of weights
constexpr int64_t kSmallWeights = 64 << 10;     // floats that stay in the second-level cache beside them

/// The parts of a group: a program that makes a contraction's left operand, or none; the contraction, which makes floats; and a program
/// that reads them as `made`, or none: then the contraction ends the group.
struct Activated {
  Group before, product, rest;
  Contraction contraction;
  const Value *read = nullptr, *made = nullptr;  // read: what `before` makes
  std::optional<ConvSpec> pixels;
  std::optional<SlideSpec> slide;

  int64_t channels() const { return last_dim(contraction.result); }
  /// What is computed at a time: pixels, or rows of one image.
  int64_t items() const { return pixels ? pixels->ow : slide->n * slide->oh; }
  int64_t item_floats() const { return pixels ? channels() : slide->ow * channels(); }
  int64_t read_floats() const { return read ? last_dim(read) : 0; }
  bool by_rows() const { return pixels || Slide::goes_by_rows(*slide); }
};

void add_once(std::vector<const Value*>& values, const Value* value) {
  if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

bool contains(const std::vector<const Node*>& nodes, const Node* node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

/// Inputs of a group: what its nodes read and do not make.
void find_inputs(Group& group) {
  for (const Node* node : group.nodes)
    for (const Value* input : node->inputs)
      if (!contains(group.nodes, input->producer)) add_once(group.inputs, input);
}

/// The nodes that make the contraction's left operand, and what of their values it reads: 16 bits where the processor multiplies these.
void split_before(const Group& group, const Node& contraction, Activated& a) {
  std::vector<const Value*> pending{contraction.inputs[0]};
  for (size_t i = 0; i < pending.size(); ++i) {
    const Node* made = pending[i]->producer;
    if (contains(group.nodes, made) && !contains(a.before.nodes, made)) {
      a.before.nodes.push_back(made);
      pending.insert(pending.end(), made->inputs.begin(), made->inputs.end());
    }
  }
  if (std::ranges::all_of(a.before.nodes, [](const Node* each) { return each->is("cast"); }))
    return a.before.nodes.clear();
  a.read = contraction.inputs[0];
  if (is_widening(*a.read->producer) && form_of(a.read->producer->inputs[0]->type.dtype) == Form::brains &&
      machine_has_brain_products()) {
    std::erase(a.before.nodes, a.read->producer);
    a.read = a.read->producer->inputs[0];
  }
  const auto place = [&](const Node* each) { return std::ranges::find(group.nodes, each); };
  std::ranges::sort(a.before.nodes, [&](const Node* one, const Node* two) { return place(one) < place(two); });
  a.before.outputs = {a.read};
  find_inputs(a.before);
}

/// What makes the left operand; the contraction with the widening of its operands and its bias; and the rest, which begins with the
/// rounding of their sum.
Refusal split_activated(const Group& group, Activated& a) {
  const auto node = std::find_if(group.nodes.begin(), group.nodes.end(),
                                 [](const Node* each) { return each->op->has(kContraction); });
  if (node == group.nodes.end() || group.outputs.size() != 1) return "is no contraction with one result";
  split_before(group, **node, a);
  if (a.read) {
    for (const Node* each : group.nodes)
      if (!contains(a.before.nodes, each)) a.product.nodes.push_back(each);
    a.product.outputs = group.outputs;
    find_inputs(a.product);
    auto found = as_contraction(a.product);
    if (!found) found = as_stored_contraction(a.product);
    if (found) {
      a.contraction = *found, a.made = group.outputs[0];
      return std::nullopt;
    }
    a.product = {};
  }
  const auto operand = [&](const Node* each) {
    const bool widens = is_widening(*each) || (each->is("cast") && constant_of(each->inputs[0]));
    return widens && std::find((*node)->inputs.begin(), (*node)->inputs.end(), each->result()) != (*node)->inputs.end();
  };
  const Value* made = (*node)->result(0);
  const auto is_bias = [&](const Node* each) {
    if (!a.rest.nodes.empty() || !each->is("add") || (each->inputs[0] == made) == (each->inputs[1] == made))
      return false;
    const Tensor* constant = constant_of(each->inputs[each->inputs[0] == made ? 1 : 0]);
    return constant && constant->count() == last_dim(made) && constant->dims().back() == last_dim(made);
  };
  for (const Node* each : group.nodes) {
    if (contains(a.before.nodes, each)) continue;
    const bool bias = is_bias(each);
    if (each == *node || operand(each) || bias) {
      a.product.nodes.push_back(each);
      if (bias) made = each->result();
    } else {
      a.rest.nodes.push_back(each);
    }
  }
  a.product.outputs = {made}, a.rest.outputs = group.outputs;
  a.made = made;
  find_inputs(a.product), find_inputs(a.rest);
  auto found = as_contraction(a.product);
  if (!found) found = as_stored_contraction(a.product);
  if (!found) return "is no contraction with a bias";
  a.contraction = *found;
  return std::nullopt;
}

bool is_row_product(const Node& node) {
  return node.is("matmul") && node.inputs[1]->type.shape.rank() == 2 && !node.attr().boolean("transpose_a") &&
         !node.attr().boolean("transpose_b");
}

Refusal read_product(Activated& a) {
  const Node& node = *a.contraction.node;
  if (is_depthwise(node)) {
    a.slide.emplace();
    if (auto reason = read_depthwise(a.product, *a.slide)) return reason;
    return a.slide->d == 1 && a.slide->kd == 1 ? Refusal() : "has three dims";
  }
  if (!is_row_product(node) && !is_pixel_product(node)) return "is another contraction";
  a.pixels.emplace();
  if (auto reason = read_pixel_product(a.product, *a.pixels)) return reason;
  a.pixels->w = a.pixels->ow = *element_count(node.result()->type.shape.sizes()) / std::max<int64_t>(1, a.channels());
  return std::nullopt;
}

/// In how many bands of nearly equal size an image is computed.
int64_t bands_of(const Activated& a) {
  if (!a.by_rows()) return 1;
  const bool small = a.slide || a.pixels->ic * a.pixels->oc <= kSmallWeights;
  const int64_t items = a.slide ? a.slide->oh : a.items(), most = small ? kBandFloats : kMostBandFloats;
  return std::clamp<int64_t>((items * std::max(a.item_floats(), a.read_floats()) + most - 1) / most, 1, items);
}

Refusal read_activated(const Group& group, Activated& a) {
  if (auto reason = split_activated(group, a)) return reason;
  const bool whole = a.rest.nodes.empty();
  if (whole && !a.read) return "has no further operations";
  const auto has_few_bits = [](const Value* value) { return is_narrow(value->type.dtype); };
  const bool narrow = has_few_bits(group.outputs[0]) || std::ranges::any_of(a.before.inputs, has_few_bits) ||
                      is_narrow(form_in(a.product, a.contraction.node->inputs[0]));
  if (!narrow) return "has no 16 bits";
  const Value* bias = a.contraction.epilogue.bias;
  if (!weights_of(a.contraction) || (bias && !constant_of(bias))) return "weights or a bias are computed in the run";
  if (!whole && (a.contraction.epilogue.residual || a.contraction.epilogue.activation))
    return "has an epilogue of its own";
  if (auto reason = read_product(a)) return reason;
  if (a.read && !a.pixels) return "the left operand is made by elements";
  for (const Group* program : {&a.before, &a.rest})
    if (!program->nodes.empty())
      if (auto reason = ElementwiseProgram::refuses(*program)) return reason;
  if (!whole && a.rest.outputs[0]->type.shape != a.made->type.shape) return "the rest has another shape";
  if (!whole && !ElementwiseProgram(a.rest).goes_by_elements()) return "the rest does not go element by element";
  if (a.items() == 0 || a.item_floats() == 0) return "has no elements";
  const int64_t bands = bands_of(a), items = a.slide ? a.slide->oh : a.items();
  if ((items + bands - 1) / bands * std::max(a.item_floats(), a.read_floats()) > kMostBandFloats)
    return "a row is larger than the cache";
  if (a.slide) return std::nullopt;
  if (a.contraction.stored && a.pixels->ic * a.pixels->oc > kSmallWeights) return "large weights stay in 16 bits";
  if (items / bands < kLeastPixels) return "has few pixels";
  if (a.pixels->ic * a.pixels->oc > kSmallWeights && (bands - 1) * a.pixels->ic > a.items())
    return "weights would be read again and again";
  return std::nullopt;
}

class ActivatedStep final : public Step {
 public:
  ActivatedStep(const Group& group, const Activated& a, MakeContext& context)
      : threads_(std::max(1, context.threads)), images_(a.slide ? a.slide->n : 1), items_(a.items() / images_),
        item_(a.item_floats()), read_(a.read_floats()), bands_(bands_of(a)), by_rows_(a.by_rows()) {
    const Node& node = *a.contraction.node;
    if (a.read)
      before_.emplace(a.before), read_bytes_ = bytes_of(form_of(a.read->type.dtype));
    else
      x_ = index_of(group, node.inputs[0]);
    if (!a.rest.nodes.empty()) program_.emplace(a.rest);
    for (const Value* value : a.before.inputs) before_inputs_.push_back(index_of(group, value));
    for (const Value* value : a.rest.inputs) inputs_.push_back(value == a.made ? kMade : index_of(group, value));
    if (a.pixels) {
      bands_ = std::max(bands_, std::min<int64_t>(threads_, items_ / kLeastPixels));
      product_.emplace(a.contraction, *a.pixels, group, context);
      for (int64_t band = 0; band < bands_; ++band) product_->for_pixels(start_of(band + 1) - start_of(band));
      return;
    }
    SlideSpec one = *a.slide;
    one.n = 1;
    slide_.emplace(one, machine_isa());
    image_bytes_ = one.pixels() * one.in_channels() * bytes_of(one.x_form);
    const Tensor& kernel = *weights_of(a.contraction);
    packed_ = context.packer.packed(kernel, slide_->layout(), slide_->packed_size() * sizeof(float), [&](void* to) {
      slide_->pack(kernel.data(), form_of(kernel.dtype()), static_cast<float*>(to));
    });
    bias_.resize(slide_->bias_size());
    slide_->pack_bias(a.contraction.epilogue.bias ? floats_of(a.contraction.epilogue.bias).data() : nullptr,
                      bias_.data());
  }

  void run(const StepArgs& args) const override {
    Executor& executor = executor_for(args, threads_);
    executor.run(static_cast<int>(images_ * bands_), [&](int chunk, int worker) {
      const int64_t image = chunk / bands_, first = start_of(chunk % bands_), last = start_of(chunk % bands_ + 1);
      auto* const made = static_cast<float*>(args.workspace) + static_cast<size_t>(worker) * scratch_floats();
      float* const widened = made + made_floats();
      const char* x = before_ ? make_left(args, first, last, widened + widened_floats()) : nullptr;
      if (!x) x = input<char>(args, x_) + (product_ ? first * product_->read() : image * image_bytes_);
      if (!program_) return finish(args, x, first, last, widened);
      multiply(x, first, last, made, widened);
      std::array<const void*, ElementwiseProgram::kMostRegisters> from;
      const int64_t start = (image * items_ + first) * item_;
      for (size_t i = 0; i < inputs_.size(); ++i)
        from[i] = inputs_[i] == kMade ? made - start : args.inputs[inputs_[i]];
      program_->run_part(from.data(), args.outputs, start, start + (last - first) * item_);
    });
  }

  std::string kernel() const override {
    const auto elementwise = [](const std::optional<ElementwiseProgram>& program, std::string_view where) {
      return program ? fmt::format(", elementwise {}{}", program->instructions(), where) : "";
    };
    return fmt::format("cpu/activated {}{}{}, {} {} at a time", product_ ? "product" : "depthwise",
                       elementwise(before_, " before"), elementwise(program_, ""), most_items(),
                       product_ ? "pixels" : "rows");
  }
  size_t workspace() const override { return scratch_floats() * sizeof(float) * static_cast<size_t>(threads_); }
  bool reads(size_t input) const override {
    return input == x_ || std::ranges::find(inputs_, input) != inputs_.end() ||
           std::ranges::find(before_inputs_, input) != before_inputs_.end() ||
           (product_ && product_->residual() == input);
  }

 private:
  static constexpr size_t kMade = SIZE_MAX;

  /// The left operand of pixels [first, last).
  const char* make_left(const StepArgs& args, int64_t first, int64_t last, float* scratch) const {
    std::array<const void*, ElementwiseProgram::kMostRegisters> from;
    for (size_t i = 0; i < before_inputs_.size(); ++i) from[i] = args.inputs[before_inputs_[i]];
    auto* const to = reinterpret_cast<char*>(scratch);
    void* const all = to - first * read_ * read_bytes_;
    before_->run_part(from.data(), &all, first * read_, last * read_);
    return to;
  }
  void finish(const StepArgs& args, const char* x, int64_t first, int64_t last, float* widened) const {
    const char* residual =
        product_->residual() ? input<char>(args, *product_->residual()) + first * product_->added() : nullptr;
    product_->run(last - first, x, residual, output<char>(args) + first * product_->made(), widened);
  }
  void multiply(const char* x, int64_t first, int64_t last, float* made, float* widened) const {
    const auto* packed = static_cast<const float*>(packed_.get());
    if (product_)
      product_->run(last - first, x, nullptr, reinterpret_cast<char*>(made), widened);
    else if (by_rows_)
      slide_->run_rows(first, last, x, packed, bias_.data(), made - first * item_);
    else
      slide_->run(serial_executor(), x, packed, bias_.data(), nullptr, made);
  }
  int64_t start_of(int64_t band) const { return items_ * band / bands_; }
  int64_t most_items() const { return (items_ + bands_ - 1) / bands_; }
  size_t made_floats() const { return program_ ? static_cast<size_t>((most_items() * item_ + 15) / 16 * 16) : 0; }
  size_t widened_floats() const { return product_ ? (product_->widened_size() + 15) / 16 * 16 : 0; }
  size_t left_floats() const { return static_cast<size_t>((most_items() * read_ + 15) / 16 * 16); }
  size_t scratch_floats() const { return made_floats() + widened_floats() + left_floats(); }

  std::optional<ElementwiseProgram> before_, program_;
  int threads_;
  int64_t images_, items_, item_;  // items of an image, floats of an item
  int64_t read_, read_bytes_ = 0;  // elements of a pixel that the first program makes
  int64_t bands_;                  // of an image
  bool by_rows_;
  size_t x_ = kMade;
  std::vector<size_t> inputs_, before_inputs_;  // of the programs, among the group's
  std::optional<PixelProduct> product_;
  std::optional<Slide> slide_;
  int64_t image_bytes_ = 0;
  std::shared_ptr<const void> packed_;
  std::vector<float> bias_;
};

}  // namespace

Refusal refuses_activated(const Group& group) {
  Activated activated;
  return read_activated(group, activated);
}

std::unique_ptr<Step> make_activated(const Group& group, MakeContext& context) {
  Activated activated;
  const Refusal refusal = read_activated(group, activated);
  CHECK(!refusal, "{}", *refusal);
  return std::make_unique<ActivatedStep>(group, activated, context);
}

}  // namespace cairn
