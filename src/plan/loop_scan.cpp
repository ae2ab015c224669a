#include "plan/loop_scan.h"

#include <algorithm>

#include "ir/control.h"
#include "ir/evaluate.h"
#include "ir/expression.h"
#include "passes/facts.h"
#include "passes/pipeline.h"

namespace cairn {

namespace {

constexpr const char *kTurns = "turns", *kScanned = "scanned", *kFirst = "first", *kStep = "step", *kAtOnce = "at_once";

void infer_scan(InferContext& context) {
  const Block& body = *context.regions()[0];
  const auto carried = static_cast<size_t>(context.attr.integer(kCarried));
  for (size_t i = 0; i < body.results.size(); ++i)
    context.result(i < carried ? body.results[i]->type
                               : stacked_type(context.attr.integer(kTurns), body.results[i]->type));
}

const OpDef kScan = {.name = "scan",
                     .summary = "a loop over rows: plan/scans.h",
                     .inputs = {{"values", Accepts::any, InputDef::Arity::variadic}},
                     .attributes = {{kCarried, AttrKind::integer},
                                    {kScanned, AttrKind::integer},
                                    {kTurns, AttrKind::integer},
                                    {kFirst, AttrKind::integers},
                                    {kStep, AttrKind::integers},
                                    {kAtOnce, AttrKind::boolean}},
                     .results = {},
                     .traits = kControl | kNotFoldable,
                     .infer = infer_scan};

std::optional<RowOfTurn> row_of_turn(const std::vector<int64_t>& rows) {
  const RowOfTurn row{rows[0], rows.size() > 1 ? rows[1] - rows[0] : 1};
  for (size_t t = 0; t < rows.size(); ++t)
    if (rows[t] != row.first + row.step * static_cast<int64_t>(t)) return {};
  return row;
}

/// Whether iteration t has row t or row `turns` - 1 - t: all rows in ascending or descending order.
bool has_all_rows(const RowOfTurn& row, int64_t turns) {
  return (row.first == 0 && row.step == 1) || (row.first == turns - 1 && row.step == -1);
}

bool all_static(const Block& block) {
  const auto fits = [](const auto& value) { return !value->type.is_tensor() || value->type.is_static(); };
  return std::all_of(block.params.begin(), block.params.end(), fits) &&
         std::all_of(block.nodes.begin(), block.nodes.end(),
                     [&](const auto& node) { return std::all_of(node->results.begin(), node->results.end(), fits); });
}

bool is_made_by_cast(const Value* value) { return value->producer && value->producer->is("cast"); }
/// Whether it is f32 that comes from 16 bits.
bool is_widened(const Value* value) {
  if (!is_made_by_cast(value) || value->type.dtype != kF32) return false;
  const DType from = value->producer->inputs[0]->type.dtype;
  return from == kF16 || from == kBF16;
}
/// The f32 that this is made of by rounding it to 16 bits, else the value itself.
const Value* before_rounding(const Value* value) {
  const Value* small = is_widened(value) ? value->producer->inputs[0] : nullptr;
  if (!small || !is_made_by_cast(small)) return value;
  const Value* wide = small->producer->inputs[0];
  return wide->type.dtype == kF32 ? wide : value;
}
/// The f32 to which the only use of a value rounds it, or null.
const Value* after_rounding(const Value* value, const Uses& uses) {
  for (int cast = 0; cast < 2; ++cast) {
    if (!uses.single(value) || !uses.users(value)[0]->is("cast")) return nullptr;
    value = uses.users(value)[0]->result();
  }
  return before_rounding(value) != value ? value : nullptr;
}

bool acts(const Block& block) {
  Effects effects(nullptr);
  return std::any_of(block.nodes.begin(), block.nodes.end(), [&](const auto& node) { return effects.of(*node); });
}

}  // namespace

bool has_rows(const Type& type) { return type.is_static() && type.dtype != kString && type.dtype.bits >= 8; }

Type stacked_type(int64_t rows, const Type& row) {
  Shape shape = row.shape;
  shape.dims.insert(shape.dims.begin(), Dim(rows));
  return Type::tensor(row.dtype, std::move(shape));
}

std::optional<Scan> scan_of(const Node& node) {
  if (node.op != &kScan) return {};
  const AttributeView attr = node.attr();
  return Scan{static_cast<size_t>(attr.integer(kCarried)),
              static_cast<size_t>(attr.integer(kScanned)),
              attr.integer(kTurns),
              attr.integers(kFirst),
              attr.integers(kStep),
              attr.boolean(kAtOnce)};
}

void set_scan(Node& node, const Scan& scan) {
  node.op = &kScan;
  node.attributes = Attributes{{kCarried, static_cast<int64_t>(scan.carried)},
                               {kScanned, static_cast<int64_t>(scan.scanned)},
                               {kTurns, scan.turns},
                               {kFirst, scan.first},
                               {kStep, scan.step},
                               {kAtOnce, scan.at_once}};
}

LoopScan::LoopScan(const Node& loop, const ListRows& lists, const Numbers& numbers, Builder& outside)
    : loop_(loop), lists_(lists), outside_(outside), carried_(carried_count(loop)), results_(carried_) {
  std::unordered_map<const Value*, Value*> map;
  for (Value* input : loop.inputs) map[input] = input;
  copy_ = clone(loop, map);
  body_ = copy_->regions[1].get();
  const auto known = [&](const Value* outer) -> std::optional<Tensor> {
    if (const auto found = numbers.find(outer); found != numbers.end()) return found->second;
    return constant_of(outer) ? std::optional(*constant_of(outer)) : std::nullopt;
  };
  const auto length_or_number = [&](const Value* outer) {
    const auto list = lists.find(outer);
    return list == lists.end() ? known(outer) : Tensor::scalar_i64(list->second.count);
  };
  const auto elements = [&](const Value* outer) -> std::optional<Tensor> {
    const auto list = lists.find(outer);
    return list == lists.end() || !list->second.tensor ? std::nullopt : known(list->second.tensor);
  };
  numbers_.emplace(*copy_, LoopNumbers::Known{length_or_number, elements});
}

bool LoopScan::run() {
  if (turns() < 1 || acts(*copy_->regions[0])) return false;
  find_lists();
  find_gathers();
  if ((reads_.empty() && writes_.empty() && elements_.empty()) || !use_rows()) return false;
  for (const TakeSum take : {&LoopScan::rows_sum, &LoopScan::product_sum, &LoopScan::axes_sum}) take_out_sums(take);
  return true;
}

std::unique_ptr<Node> LoopScan::scan() {
  auto node = std::make_unique<Node>();
  node->sources = loop_.sources;
  auto region = std::make_unique<Block>();
  const auto take = [&](Value* input, std::unique_ptr<Value> param) {
    node->inputs.push_back(input);
    region->params.push_back(std::move(param));
  };
  std::vector<int64_t> first, step;
  const auto add_row = [&](const RowOfTurn& row) { first.push_back(row.first), step.push_back(row.step); };
  for (const size_t i : kept_) take(start(i), std::move(body_->params[i]));
  for (Read& read : reads_) {
    take(read.outer, std::move(read.param));
    add_row(read.row);
  }
  for (size_t i = carried_; i < loop_.inputs.size(); ++i)
    if (!gone_.contains(i)) take(start(i), std::move(body_->params[i]));
  for (auto& [outer, param] : captures_) take(outer, std::move(param));
  for (const Write& write : writes_) add_row(write.row);
  renumber(region->params);
  region->nodes = std::move(body_->nodes);
  region->results = std::move(body_->results);
  set_scan(*node, {kept_.size(), reads_.size(), turns(), std::move(first), std::move(step)});
  for (size_t i = 0; i < region->results.size(); ++i) {
    const Type& type = region->results[i]->type;
    auto result = std::make_unique<Value>();
    result->type = i < kept_.size() ? type : stacked_type(turns(), type);
    result->producer = node.get();
    node->results.push_back(std::move(result));
  }
  renumber(node->results);
  node->regions.push_back(std::move(region));
  return node;
}

Value* LoopScan::value(const Node& scan, size_t i) {
  const Result& result = results_[i];
  if (result.sum == Sum::none) return scan.result(position(i));
  std::vector<Value*> all;
  for (const Operand& operand : result.operands) {
    all.push_back(operand.outer ? operand.outer : scan.result(kept_.size() + operand.write));
    for (const DType dtype : operand.casts) all.back() = outside_.add("cast", {all.back()}, {{"dtype", dtype}});
  }
  Value* sum = all[0];
  if (result.sum == Sum::product) {
    for (Value*& each : all)
      each = as(Shape{Dim(turns() * each->type.shape.dims[1].size), each->type.shape.dims[2]}, each);
    sum = outside_.add("matmul", all, {{"transpose_a", true}});
  } else if (result.sum == Sum::axes) {
    sum = outside_.add("reduce_sum", all, {{"axes", result.axes}});
  }
  sum = as(result.type.shape, sum);
  return is_zero(start(i)) ? sum : outside_.add("add", {start(i), sum});
}

std::optional<Rows> LoopScan::rows(const Node& scan, size_t i) const {
  if (elements_.contains(i)) return Rows{nullptr, scan.result(position(i)), 1};
  std::optional<Rows> rows = results_[i].list;
  if (rows && results_[i].write) rows->tensor = scan.result(kept_.size() + *results_[i].write);
  return rows;
}

void LoopScan::tell(const Node& scan, Numbers& numbers) const {
  for (size_t k = 0; k < kept_.size(); ++k)
    if (const auto last = numbers_->last(kept_[k]);
        last && scan.result(k)->type.is_tensor() && !elements_.contains(kept_[k]))
      numbers[scan.result(k)] = *last;
  for (size_t k = 0; k < writes_.size(); ++k) {
    const auto* by_turn = writes_[k].by_turn;
    const Type& type = scan.result(kept_.size() + k)->type;
    if (!by_turn || !type.dtype.is_integer()) continue;
    std::vector<int64_t> by_row(by_turn->size());
    for (size_t t = 0; t < by_row.size(); ++t)
      by_row[static_cast<size_t>(writes_[k].row.first + writes_[k].row.step * static_cast<int64_t>(t))] = (*by_turn)[t];
    const Tensor all = Tensor::of_i64(by_row).reshaped(type.shape.sizes());
    numbers[scan.result(kept_.size() + k)] =
        type.dtype == kI64 ? all : evaluate("cast", {all}, {{"dtype", type.dtype}});
  }
}

size_t LoopScan::position(size_t i) const {
  return static_cast<size_t>(std::find(kept_.begin(), kept_.end(), i) - kept_.begin());
}

Value* LoopScan::as(const Shape& shape, Value* x) const {
  return x->type.shape == shape ? x : outside_.add("reshape", {x, outside_.ints(shape.sizes())});
}

void LoopScan::find_lists() {
  const Uses uses(*body_);
  for (size_t i = 0; i < body_->params.size(); ++i) {
    const auto known = lists_.find(loop_.inputs[i]);
    if (known == lists_.end()) continue;
    const size_t reads = reads_.size(), same = same_.size();
    const bool whole = numbers_->origin(param(i)) ? reads_list(i, known->second, uses)
                                                  : i < carried_ && writes_list(i, known->second, uses);
    if (whole) {
      gone_.insert(i);
      continue;
    }
    reads_.resize(reads);
    same_.resize(same);
    if (!is_element(i, known->second, uses)) same_.resize(same);
  }
}

size_t LoopScan::yields(const Value* value) const {
  return static_cast<size_t>(std::count(body_->results.begin(), body_->results.end(), value));
}

void LoopScan::read_numbers(const Value* made) {
  const auto* by_turn = numbers_->of(made);
  CHECK(by_turn, "a length");
  reads_.push_back({made, outside_.constant(Tensor::of_i64(*by_turn)), {}});
}

bool LoopScan::reads_list(size_t i, const Rows& rows, const Uses& uses) {
  std::vector<const Value*> all{param(i)};
  for (const auto& node : body_->nodes)
    for (const auto& result : node->results)
      if (numbers_->origin(result.get()) == i) all.push_back(result.get());
  for (const Value* list : all) {
    if (!numbers_->of(list) || yields(list) > (i < carried_ && body_->results[i] == list ? 1 : 0)) return false;
    for (const Node* user : uses.users(list))
      if (!reads_by(*user, rows)) return false;
  }
  if (i >= carried_) return true;
  results_[i].list = rows;
  results_[i].list->count = numbers_->last(i)->as_i64()[0];
  return true;
}

bool LoopScan::reads_by(const Node& user, const Rows& rows) {
  const auto& lengths = *numbers_->of(user.inputs[0]);
  if (user.is("list_size")) {
    read_numbers(user.result());
    return true;
  }
  if (user.is("list_resize")) {
    const auto* after = numbers_->of(user.result());
    for (size_t t = 0; after && t < lengths.size(); ++t)
      if ((*after)[t] > lengths[t]) return false;
    return after != nullptr;
  }
  const bool pops = user.is("list_pop");
  if (!pops && !user.is("list_get")) return false;
  std::vector<int64_t> places = lengths;
  for (int64_t& place : places) --place;
  if (!pops && !numbers_->of(user.inputs[1])) return false;
  if (!pops) places = *numbers_->of(user.inputs[1]);
  size_t behind = 0;
  for (size_t t = 0; t < places.size(); ++t) {
    if (places[t] < 0) return false;
    behind += places[t] >= lengths[t];
  }
  const Value* made = user.result(pops ? 1 : 0);
  if (behind == places.size() && !pops && user.attr().boolean("grow") && user.inputs.size() > 2) {
    Block zeros;
    Builder builder(zeros);
    same_.emplace_back(made, zeros_like({builder, user.inputs[2]}).value);
    const auto place =
        std::find_if(body_->nodes.begin(), body_->nodes.end(), [&](const auto& node) { return node.get() == &user; });
    body_->nodes.insert(place, std::make_move_iterator(zeros.nodes.begin()),
                        std::make_move_iterator(zeros.nodes.end()));
    return true;
  }
  if (behind > 0) return false;
  if (rows.same && constant_of(rows.same)) {
    std::unordered_map<const Value*, Value*> map;
    body_->nodes.insert(body_->nodes.begin(), clone(*rows.same->producer, map));
    same_.emplace_back(made, body_->nodes[0]->result());
    return true;
  }
  if (rows.same) {
    captures_.emplace_back(rows.same, std::make_unique<Value>());
    captures_.back().second->type = rows.same->type;
    same_.emplace_back(made, captures_.back().second.get());
    return true;
  }
  const auto row = row_of_turn(places);
  if (!row || !rows.tensor) return false;
  reads_.push_back({made, rows.tensor, *row});
  return true;
}

bool LoopScan::writes_list(size_t i, const Rows& start, const Uses& uses) {
  const Value* list = body_->results[i];
  const Node* maker = list->producer;
  const bool pushes = maker && maker->is("list_push");
  if (!maker || !(pushes || maker->is("list_set")) || maker->inputs[0] != param(i) || !numbers_->of(list)) return false;
  if (yields(list) != 1 || yields(param(i)) != 0) return false;
  for (const Value* each : {static_cast<const Value*>(param(i)), list})
    for (const Node* user : uses.users(each)) {
      if (user == maker && each != list) continue;
      if (!user->is("list_size")) return false;
      read_numbers(user->result());
    }
  Value* x = maker->inputs[pushes ? 1 : 2];
  Result& result = results_[i];
  if (pushes && start.count > 0) return false;
  RowOfTurn row;
  if (!pushes) {
    const auto* places = numbers_->of(maker->inputs[1]);
    if (!places) return false;
    const auto known = row_of_turn(*places);
    const bool adds = maker->attr().boolean("add") && (start.tensor || start.same);
    if (!known || !has_all_rows(*known, turns()) || numbers_->last(i)->as_i64()[0] != turns() || adds) return false;
    row = *known;
  }
  const bool stays = !x->producer && x->index >= carried_ && x->type.is_tensor();
  result.list = Rows{nullptr, stays ? loop_.inputs[x->index] : nullptr, turns()};
  if (stays) return true;
  result.write = write_of(x, row);
  writes_[*result.write].by_turn = numbers_->of(x);
  return true;
}

bool LoopScan::is_element(size_t i, const Rows& rows, const Uses& uses) {
  const auto is_first = [&](const Value* index) {
    const auto* places = numbers_->of(index);
    return places && std::all_of(places->begin(), places->end(), [](int64_t place) { return place == 0; });
  };
  if (rows.count != 1 || i >= carried_) return false;
  Type type = param(i)->type.elements[0];
  std::vector<Value*> lists{param(i)};  // each with what its element is
  for (size_t k = 0; k < lists.size(); ++k) {
    Value* list = lists[k];
    if (yields(list) != (body_->results[i] == list ? 1 : 0)) return false;
    for (const Node* user : uses.users(list)) {
      const bool sets = user->is("list_set");
      if (!(sets || user->is("list_get")) || !is_first(user->inputs[1])) return false;
      if (!sets) {
        same_.emplace_back(user->result(), list);
        continue;
      }
      if (user->inputs[0] != list || user->attr().boolean("add")) return false;
      lists.push_back(user->result());
      same_.emplace_back(user->result(), user->inputs[2]);
      type = meet(type, user->inputs[2]->type);
    }
  }
  if (std::find(lists.begin(), lists.end(), body_->results[i]) == lists.end()) return false;
  Value* element = rows.same;
  if (rows.tensor) element = outside_.add("gather", {rows.tensor, outside_.constant(Tensor::scalar_i64(0))});
  if (!element && has_rows(type) && (type.dtype.is_float() || type.dtype.is_integer()))
    element = outside_.add("broadcast_to", {outside_.number(0, type.dtype), outside_.ints(type.shape.sizes())});
  if (!element || !has_rows(element->type)) return false;
  elements_[i] = element;
  param(i)->type = element->type;
  return true;
}

// Rows of what stays the same in all turns, by an index that goes through them.
void LoopScan::find_gathers() {
  for (const auto& node : body_->nodes) {
    if (!node->is("gather")) continue;
    const Value *x = node->inputs[0], *index = node->inputs[1];
    const auto* known = numbers_->of(index);
    if (x->producer || x->index < carried_ || !known || index->type.shape.rank() != 0 || !has_rows(x->type) ||
        x->type.shape.rank() == 0 || node->attr().integer("axis") != 0)
      continue;
    std::vector<int64_t> places = *known;
    const int64_t rows = x->type.shape.dims[0].size;
    for (int64_t& place : places)
      if (place < 0 && !node->attr().boolean("from_start")) place += rows;
    const auto row = row_of_turn(places);
    const auto inside = [&](int64_t place) { return place >= 0 && place < rows; };
    if (row && std::all_of(places.begin(), places.end(), inside))
      reads_.push_back({node->result(), loop_.inputs[x->index], *row});
  }
}

void LoopScan::set_results() {
  body_->results.clear();
  for (const size_t i : kept_) body_->results.push_back(next_[i]);
  for (const Write& write : writes_) body_->results.push_back(write.inner);
  remove_dead(*body_, nullptr);
}

bool LoopScan::use_rows() {
  std::unordered_map<const Value*, Value*> instead(same_.begin(), same_.end());
  for (Read& read : reads_) {
    if (!has_rows(read.outer->type)) return false;
    Shape shape = read.outer->type.shape;
    shape.dims.erase(shape.dims.begin());
    read.param->type = Type::tensor(read.outer->type.dtype, std::move(shape));
    instead[read.made] = read.param.get();
  }
  const auto current = [&](Value*& value) {
    for (auto found = instead.find(value); found != instead.end(); found = instead.find(value)) value = found->second;
  };
  for (const auto& node : body_->nodes) std::for_each(node->inputs.begin(), node->inputs.end(), current);
  std::for_each(body_->results.begin(), body_->results.end(), current);
  for (Write& write : writes_) current(write.inner);
  next_ = body_->results;
  for (size_t i = 0; i < carried_; ++i)
    if (!gone_.contains(i)) kept_.push_back(i);
  set_results();
  for (size_t i = 0; i < loop_.inputs.size(); ++i) {
    Type& type = param(i)->type;
    if (type.is_tensor() && compatible(type, start(i)->type)) type = meet(type, start(i)->type);
  }
  try {
    infer_block(*body_);
    fold_constants(*body_, nullptr);
  } catch (const Error& fault) {
    if (fault.kind() == ErrorKind::cancelled) throw;
    return false;
  }
  for (Result& result : results_)
    if (const Tensor* constant = result.write ? constant_of(writes_[*result.write].inner) : nullptr) {
      result.list->same = outside_.constant(*constant);
      result.write.reset();
    }
  const auto used = used_values(*body_);
  if (!all_static(*body_)) return false;
  for (const size_t i : gone_)
    if (used.contains(param(i))) return false;
  for (const size_t i : kept_)
    if (next_[i]->type != param(i)->type || start(i)->type != param(i)->type) return false;
  for (size_t i = carried_; i < loop_.inputs.size(); ++i)
    if (!gone_.contains(i) && loop_.inputs[i]->type != param(i)->type) return false;
  return std::all_of(writes_.begin(), writes_.end(), [](const Write& write) { return has_rows(write.inner->type); });
}

// Shapes that lists brought in are constants by now, so that more is known than when the turns were followed.
std::vector<int64_t> LoopScan::numbers_now(const Value* value) const {
  for (const Read& read : reads_)
    if (read.param.get() == value) value = read.made;
  if (const auto* known = numbers_->of(value)) return *known;
  const Node* node = value->producer;
  if (!node || !node->op->pure() || !node->regions.empty() || !node->op->reference || node->inputs.empty()) return {};
  if (!value->type.is_static() || element_count(value->type.shape.sizes()) != 1) return {};
  std::vector<std::vector<int64_t>> by_input;
  for (const Value* input : node->inputs) {
    by_input.push_back(constant_of(input) ? std::vector<int64_t>() : numbers_now(input));
    if (!constant_of(input) && by_input.back().empty()) return {};
  }
  std::vector<int64_t> made;
  for (size_t t = 0; t < static_cast<size_t>(turns()); ++t) {
    std::vector<HostValue> inputs;
    for (size_t i = 0; i < by_input.size(); ++i) {
      const Type& type = node->inputs[i]->type;
      const Tensor* constant = constant_of(node->inputs[i]);
      inputs.push_back({constant ? *constant
                                 : evaluate("cast", {Tensor::of_i64({by_input[i][t]}).reshaped(type.shape.sizes())},
                                            {{"dtype", type.dtype}}),
                        nullptr});
    }
    const Tensor result = evaluate(*node, inputs)[value->index].tensor;
    if (!result.dtype().is_integer() && result.dtype() != kBool) return {};
    made.push_back(result.as_i64()[0]);
  }
  return made;
}

// A carried value to which each turn adds something.
void LoopScan::take_out_sums(TakeSum take) {
  const Uses uses(*body_);
  for (const size_t i : std::vector<size_t>(kept_)) {
    const Value *carried = param(i), *sum = next_[i];
    if (!uses.users(sum).empty() || yields(sum) != 1) continue;
    const Value* wide = before_rounding(sum);
    if (const Value* rounded = after_rounding(carried, uses); wide != sum && rounded) carried = rounded;
    if (wide != sum && !(uses.single(wide) && uses.single(sum->producer->inputs[0]))) continue;
    const Node* next = wide->producer;
    if (!next || !uses.single(carried) || uses.users(carried)[0] != next) continue;
    if (next->is("add")) {
      const Value* term = next->inputs[next->inputs[0] == carried ? 1 : 0];
      next = term->type == param(i)->type ? term->producer : nullptr;
      if (next && next->is("scatter_reduce")) continue;
    } else if (wide != sum || !next->is("scatter_reduce") || next->inputs[0] != param(i) ||
               next->inputs[2] == param(i)) {
      continue;
    }
    results_[i].type = param(i)->type;
    if (next && (this->*take)(*next, results_[i])) std::erase(kept_, i);
  }
  set_results();
}

const LoopScan::Read* LoopScan::read_whole(const Value* inner) const {
  for (const Read& read : reads_)
    if (read.param.get() == inner && has_all_rows(read.row, turns()) && read.outer->type.shape.dims[0].size == turns())
      return &read;
  return nullptr;
}

std::optional<RowOfTurn> LoopScan::order_of(const Value* inner) const {
  if (const Read* read = read_whole(inner)) return read->row;
  for (const Write& write : writes_)
    if (write.inner == inner) return write.row;
  return {};
}

Value* LoopScan::stackable(Value* inner, std::vector<DType>* casts) const {
  std::vector<DType> made;
  Value* from = inner;
  for (; !order_of(from) && is_made_by_cast(from); from = from->producer->inputs[0])
    made.insert(made.begin(), from->type.dtype);
  if (!order_of(from)) {
    from = is_widened(inner) ? inner->producer->inputs[0] : inner;
    made = std::vector<DType>(from != inner, kF32);
  }
  if (casts) *casts = std::move(made);
  return from;
}

LoopScan::Operand LoopScan::stacked(Value* inner, const RowOfTurn& row) {
  Operand operand;
  inner = stackable(inner, &operand.casts);
  if (const Read* read = read_whole(inner); read && read->row == row)
    operand.outer = read->outer;
  else
    operand.write = write_of(inner, row);
  return operand;
}

size_t LoopScan::write_of(Value* inner, const RowOfTurn& row) {
  const auto same = [&](const Write& write) { return write.inner == inner && write.row == row; };
  const auto found = std::find_if(writes_.begin(), writes_.end(), same);
  const auto place = static_cast<size_t>(found - writes_.begin());
  if (found == writes_.end()) writes_.push_back({inner, row});
  return place;
}

bool LoopScan::rows_sum(const Node& term, Result& result) {
  const Node* node = &term;
  const bool scatters = term.is("scatter_reduce");
  while (node && node->is("reshape")) node = node->inputs[0]->producer;
  if (!node || !(scatters || node->is("segment_reduce")) || node->attr().text("mode") != (scatters ? "add" : "sum"))
    return false;
  const std::vector<int64_t> places = numbers_now(node->inputs[1]);
  if (places.empty()) return false;
  const auto row = row_of_turn(places);
  if (!row || !has_all_rows(*row, turns()) || node->result()->type.shape.dims[0] != Dim(turns())) return false;
  Value* rows = node->inputs[scatters ? 2 : 0];
  while (rows->producer && rows->producer->is("reshape")) rows = rows->producer->inputs[0];
  result.operands = {stacked(rows, *row)};
  result.sum = Sum::rows;
  return true;
}

bool LoopScan::product_sum(const Node& rounded, Result& result) {
  const Node* term = before_rounding(rounded.result())->producer;
  if (!term || !term->is("matmul") || !term->attr().boolean("transpose_a") || term->attr().boolean("transpose_b"))
    return false;
  Value *a = term->inputs[0], *b = term->inputs[1];
  if (a->type.shape.rank() != 2 || b->type.shape.rank() != 2) return false;
  const Value *rows_a = stackable(a), *rows_b = stackable(b);
  const auto of_a = order_of(rows_a), of_b = order_of(rows_b);
  const RowOfTurn row = of_a ? *of_a : of_b ? *of_b : RowOfTurn();
  size_t read = 0, fresh = 0;
  for (const Read& each : reads_) read += storage_bytes(each.param->type);
  if (!of_a) fresh += storage_bytes(rows_a->type);
  if (of_b != row) fresh += storage_bytes(rows_b->type);
  if (fresh > read) return false;
  result.operands = {stacked(a, row), stacked(b, row)};
  result.sum = Sum::product;
  return true;
}

bool LoopScan::axes_sum(const Node& rounded, Result& result) {
  const Node* term = before_rounding(rounded.result())->producer;
  if (!term || !term->is("reduce_sum")) return false;
  Value* x = term->inputs[0];
  const auto row = order_of(stackable(x));
  if (!row) return false;
  result.axes = {0};
  for (const int64_t axis : term->attr().integers("axes"))
    result.axes.push_back(axis < 0 ? axis + static_cast<int64_t>(x->type.shape.rank()) + 1 : axis + 1);
  result.operands = {stacked(x, *row)};
  result.sum = Sum::axes;
  return true;
}

}  // namespace cairn
