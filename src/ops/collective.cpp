// Collectives: what the ranks of a job exchange (comm/job.h). A group of one rank works without a job.
#include <numeric>

#include "comm/job.h"
#include "comm/reduce.h"
#include "ir/collective.h"
#include "ir/gradient.h"
#include "ops/collective.h"
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/kernels.h"
#include "ops/rows.h"
#include "ops/text.h"

namespace cairn {

namespace {

using comm::Kind;

constexpr uint32_t kTraits = kWritesState | kNotFoldable | kCollective;

/// The request that the attributes describe.
comm::Request request_of(const AttributeView& attr, Kind kind, DType dtype, std::span<const int64_t> dims) {
  comm::Request request;
  request.kind = kind;
  request.group = attr.text("group");
  request.dtype = dtype;
  request.dims = dims;
  if (attr.has("name")) request.name = attr.text("name");
  if (attr.has("reduction")) request.reduction = comm::reduction_named(attr.text("reduction"));
  if (attr.has("root")) request.root = attr.integer("root");
  if (attr.has("ranks")) request.ranks = attr.integer("ranks");
  return request;
}

comm::Request request_of(const KernelContext& context, Kind kind, const Tensor& elements) {
  return request_of(context.attr, kind, elements.dtype(), elements.dims());
}

template <Kind kKind>
void exchange(KernelContext& context) {
  allocate_results(context);
  comm::Request request = request_of(context, kKind, context.input(0));
  request.input = context.input(0).data();
  request.output = context.output(0).mutable_data();
  comm::run(request);
}

int64_t ranks_of(const InferContext& context) {
  const int64_t ranks = context.attr.integer("ranks");
  if (ranks < 1) context.fail("a group has 1 rank or more, not {}", ranks);
  if (!context.op().find_attribute("root")) return ranks;
  const int64_t root = context.attr.integer("root");
  if (root < 0 || root >= ranks) context.fail("root is {}, expected 0 to {}", root, ranks - 1);
  return ranks;
}

DType reduced_type(const InferContext& context) {
  const DType dtype = moved_type(context, 0);
  const std::string& reduction = context.attr.text("reduction");
  if (!comm::reducible(comm::reduction_named(reduction), dtype))
    context.fail("{} of {} is not defined", reduction, to_string(dtype));
  return dtype;
}

void infer_reduce(InferContext& context) {
  ranks_of(context);
  context.result(reduced_type(context), context.shape(0));
}

void infer_bucket(InferContext& context) {
  ranks_of(context);
  if (context.input_count() == 0) context.fail("needs a tensor");
  equal_types(context);
  for (size_t i = 0; i < context.input_count(); ++i) context.result(reduced_type(context), context.shape(i));
}

void all_reduce_bucket(KernelContext& context) {
  allocate_results(context);
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  Dims counts;
  for (size_t i = 0; i < context.input_count(); ++i) {
    inputs.push_back(context.input(i).data());
    outputs.push_back(context.output(i).mutable_data());
    counts.push_back(context.input(i).count());
  }
  const Dims all = {std::accumulate(counts.begin(), counts.end(), int64_t{0})};
  comm::Request request = request_of(context, Kind::all_reduce, context.input(0));
  const auto& names = std::get<std::vector<std::string>>(context.attr.get("names"));
  const std::string name = fmt::format("{}", fmt::join(names, ","));
  request.name = name, request.dims = all;
  request.inputs = inputs, request.outputs = outputs, request.counts = counts;
  comm::run(request);
}

void infer_move(InferContext& context) {
  ranks_of(context);
  context.result(moved_type(context, 0), context.shape(0));
}

/// The dims with the first one `ranks` times as long.
Shape joined(const InferContext& context) {
  const int64_t ranks = ranks_of(context);
  Shape shape = context.shape(0);
  if (!shape.ranked) return shape;
  if (shape.rank() == 0) context.fail("a scalar has no axis to join along");
  if (ranks == 1) return shape;
  int64_t size = 0;
  if (shape.dims[0].known() && __builtin_mul_overflow(shape.dims[0].size, ranks, &size))
    context.fail("{} rows of {} ranks are too many", shape.dims[0].size, ranks);
  shape.dims[0] = shape.dims[0].known() ? Dim(size) : Dim();
  return shape;
}

/// The dims of a part when axis 0 is cut into as many as there are ranks.
Shape cut(const InferContext& context) {
  const int64_t ranks = ranks_of(context);
  Shape shape = context.shape(0);
  if (!shape.ranked) return shape;
  if (shape.rank() == 0) context.fail("a scalar has no axis to cut along");
  Dim& first = shape.dims[0];
  if (first.known() && first.size % ranks != 0)
    context.fail("axis 0 has {} rows, no multiple of {} ranks", first.size, ranks);
  if (ranks > 1) first = first.known() ? Dim(first.size / ranks) : Dim();
  return shape;
}

void infer_gather(InferContext& context) { context.result(moved_type(context, 0), joined(context)); }
void infer_scatter(InferContext& context) { context.result(moved_type(context, 0), cut(context)); }
void infer_reduce_scatter(InferContext& context) { context.result(reduced_type(context), cut(context)); }
void infer_all_to_all(InferContext& context) {
  cut(context);
  context.result(moved_type(context, 0), context.shape(0));
}

void all_to_all(KernelContext& context) {
  allocate_results(context);
  const Tensor& x = context.input(0);
  comm::Request request = request_of(context, Kind::all_to_all, x);
  comm::check_size(request);
  const int64_t ranks = context.attr.integer("ranks");
  const Dims counts(static_cast<size_t>(ranks), x.count() / ranks);
  Dims offsets(counts.size(), 0);
  for (size_t i = 1; i < offsets.size(); ++i) offsets[i] = offsets[i - 1] + counts[i];
  request.input = x.data();
  request.output = context.output(0).mutable_data();
  request.send_counts = request.receive_counts = counts;
  request.send_offsets = request.receive_offsets = offsets;
  comm::run(request);
}

template <class Context>
int64_t end_of_received(const Context& context, int64_t count, int64_t place) {
  constexpr int64_t kMost = int64_t{1} << 40;
  if (count < 0 || place < 0 || count > kMost || place > kMost)
    context.fail("{} elements cannot be received at {}", count, place);
  return count + place;
}

void infer_all_to_all_v(InferContext& context) {
  const DType dtype = moved_type(context, 0);
  ranked(context, 0, 1);
  const int64_t ranks = ranks_of(context);
  for (size_t i = 1; i < 5; ++i) {
    ranked(context, i, 1);
    if (context.shape(i).ranked) same_size(context, context.shape(i).dims[0], Dim(ranks), "ranks");
  }
  const auto counts = constant_integers(context, 3), places = constant_integers(context, 4);
  Dim size;
  if (counts && places) {
    size = Dim(int64_t{0});
    for (size_t i = 0; i < std::min(counts->size(), places->size()); ++i)
      size.size = std::max(size.size, end_of_received(context, (*counts)[i], (*places)[i]));
  }
  context.result(dtype, {size});
}

void all_to_all_v(KernelContext& context) {
  const Tensor& x = context.input(0);
  comm::Request request = request_of(context, Kind::all_to_all, x);
  comm::check_size(request);
  std::array<Dims, 4> lists;
  for (size_t i = 0; i < 4; ++i) lists[i] = context.input(1 + i).as_i64();
  const auto& [send_counts, send_places, receive_counts, receive_places] = lists;
  int64_t size = 0;
  for (size_t i = 0; i < send_counts.size(); ++i) {
    const bool fits = send_counts[i] >= 0 && send_places[i] >= 0 && send_counts[i] <= x.count() - send_places[i];
    if (!fits) context.fail("{} elements from {} on are not in {}", send_counts[i], send_places[i], x.count());
    size = std::max(size, end_of_received(context, receive_counts[i], receive_places[i]));
  }
  constexpr int64_t kMost = int64_t{1} << 30;
  if (size > kMost) context.fail("{} elements cannot be received, {} is the most", size, kMost);
  Tensor& y = context.allocate(0, x.dtype(), {size});
  std::memset(y.mutable_data(), 0, y.bytes());
  request.input = x.data();
  request.output = y.mutable_data();
  request.send_counts = send_counts, request.send_offsets = send_places;
  request.receive_counts = receive_counts, request.receive_offsets = receive_places;
  comm::run(request);
}

void send(KernelContext& context) {
  comm::Request request = request_of(context, Kind::send, context.input(0));
  request.root = context.attr.integer("to");
  request.tag = context.attr.integer("tag");
  request.input = context.input(0).data();
  comm::run(request);
}

void infer_receive(InferContext& context) {
  const auto& dims = context.attr.integers("shape");
  if (std::any_of(dims.begin(), dims.end(), [](int64_t size) { return size < 0; })) context.fail("a dim is below 0");
  context.result(context.attr.dtype("dtype"), Shape::of(dims));
}

void receive(KernelContext& context) {
  allocate_results(context);
  comm::Request request = request_of(context, Kind::receive, context.output(0));
  request.root = context.attr.integer("from");
  request.tag = context.attr.integer("tag");
  request.output = context.output(0).mutable_data();
  comm::run(request);
}

/// A collective of the same group for the gradient of this one.
Var partner(const GradientContext& g, const char* op, Var x, const char* reduction = nullptr) {
  Attributes attributes = {{"group", g.attr.text("group")}, {"ranks", g.attr.integer("ranks")}};
  const OpDef& row = op_named(op);
  if (reduction) attributes.set("reduction", std::string(reduction));
  if (row.find_attribute("root") && g.attr.has("root")) attributes.set("root", g.attr.integer("root"));
  if (row.find_attribute("fusion")) attributes.set("fusion", int64_t{0});
  if (row.find_attribute("name") && g.attr.has("name") && !g.attr.text("name").empty())
    attributes.set("name", g.attr.text("name") + "/gradient");
  return x.apply(op, {}, std::move(attributes));
}

// The product of what the others give is the derivative by this rank's elements: differentiated where all are gathered.
Var product_gradient(const GradientContext& g) {
  const Sizes own = sizes_of(g, g.x(0));
  Sizes as_row = own;
  as_row.insert(as_row.begin(), Size(g.b, 1));
  const Var row = reshape(g.x(0), as_row);
  const Var all = partner(g, "all_gather", row);
  const OpDef& product = op_named("reduce_prod");
  Builder& b = *row.builder;
  Node* node = b.add_node(product, {all.value}, {{"axes", std::vector<int64_t>{0}}});
  GradientContext inner(b, *node, {all.value}, {node->result()}, {g.dy().value}, {true});
  product.gradient(inner);
  const Var mine = partner(g, "reduce_scatter", {b, inner.made(0)}, "sum");
  return reshape(mine, own);
}

void all_reduce_rule(GradientContext& g) {
  const std::string& reduction = g.attr.text("reduction");
  if (reduction == "sum" || reduction == "mean") return g.set(0, partner(g, "all_reduce", g.dy(), reduction.c_str()));
  if (reduction == "prod") return g.set(0, product_gradient(g));
  const Var sum = partner(g, "all_reduce", g.dy(), "sum");
  g.set(0, select(g.x(0).apply("equal", {g.y()}), sum, zeros_like(sum)));
}

void bucket_rule(GradientContext& g) {
  Attributes attributes = {
      {"reduction", g.attr.text("reduction")}, {"group", g.attr.text("group")}, {"ranks", g.attr.integer("ranks")}};
  if (g.attr.text("reduction") != "sum" && g.attr.text("reduction") != "mean")
    fail(ErrorKind::unsupported, "all_reduce_bucket", "has gradients of sum and mean alone");
  std::vector<Value*> gradients;
  for (size_t i = 0; i < g.input_count(); ++i) gradients.push_back(g.dy(i).value);
  const Node* node = g.b.add_node(op_named("all_reduce_bucket"), std::move(gradients), std::move(attributes));
  for (size_t i = 0; i < g.input_count(); ++i) g.set(i, {g.b, node->result(i)});
}

void reduce_scatter_rule(GradientContext& g) {
  const std::string& reduction = g.attr.text("reduction");
  if (reduction != "sum" && reduction != "mean")
    fail(ErrorKind::unsupported, "reduce_scatter", "has no gradient of {}, only of sum and mean", reduction);
  const Var all = partner(g, "all_gather", g.dy());
  g.set(0, reduction == "sum" ? all : all / static_cast<double>(g.attr.integer("ranks")));
}

void reduce_to_rule(GradientContext& g) {
  const std::string& reduction = g.attr.text("reduction");
  if (reduction != "sum" && reduction != "mean")
    fail(ErrorKind::unsupported, "reduce_to", "has no gradient of {}, only of sum and mean", reduction);
  const Var all = partner(g, "broadcast_from", g.dy());
  g.set(0, reduction == "sum" ? all : all / static_cast<double>(g.attr.integer("ranks")));
}

void all_to_all_v_rule(GradientContext& g) {
  const Attributes attributes = {{"group", g.attr.text("group")}, {"ranks", g.attr.integer("ranks")}};
  const Var back = g.dy().apply("all_to_all_v", {g.x(3), g.x(4), g.x(1), g.x(2)}, attributes);
  // What no rank was sent, behind the last element that one was, has gradient zero.
  const Size missing = Size(g.x(0), 0) - Size(back, 0);
  if (missing.is(0)) return g.set(0, back);
  const Var pads = reshape(as_vector(g.b, {Size(g.b, 0), missing}), {Size(g.b, 1), Size(g.b, 2)});
  g.set(0, back.apply("pad", {pads}));
}

OpDef collective(const char* name, const char* summary, std::vector<AttrDef> attributes, void (*infer)(InferContext&),
                 void (*gradient)(GradientContext&), void (*reference)(KernelContext&), std::vector<const char*> cases,
                 uint32_t traits = 0) {
  std::vector<AttrDef> all = std::move(attributes);
  all.push_back({"group", AttrKind::text, Attribute(std::string("world"))});
  all.push_back(integer("ranks", 1));
  return {.name = name,
          .summary = summary,
          .inputs = {{"x", Accepts::any_tensor}},
          .attributes = std::move(all),
          .traits = kTraits | traits,
          .precision = Precision::rounded,
          .infer = infer,
          .gradient = gradient,
          .reference = reference,
          .oracle = {"x"},
          .cases = std::move(cases)};
}

AttrDef reduction() { return word("reduction", "sum", {"sum", "prod", "max", "min", "mean"}); }

std::vector<OpDef> make_message_rows() {
  const Oracle several = untested("needs several processes: tests/python/test_collectives.py");
  return {
      {.name = "send",
       .summary =
           "sends x to rank `to` of the group, which receives it with the same tag; messages between two ranks keep "
           "their order",
       .inputs = {{"x", Accepts::any_tensor}},
       .attributes = {{"to", AttrKind::integer}, integer("tag", 0), text_or("group", "world")},
       .results = {},
       .traits = kTraits,
       .infer = [](InferContext& context) { moved_type(context, 0); },
       .reference = send,
       .oracle = several},
      {.name = "receive",
       .summary = "what rank `from` of the group sends with the same tag, of this type and shape",
       .attributes = {{"from", AttrKind::integer},
                      integer("tag", 0),
                      dtype_or(kF32),
                      {"shape", AttrKind::integers},
                      text_or("group", "world")},
       .traits = kTraits,
       .infer = infer_receive,
       .reference = receive,
       .oracle = several},
      {.name = "barrier",
       .summary = "waits until all ranks of the group have come here",
       .attributes = {text_or("group", "world")},
       .results = {},
       .traits = kTraits,
       .infer = [](InferContext&) {},
       .reference =
           [](KernelContext& context) {
             comm::Request request;
             request.group = context.attr.text("group");
             comm::run(request);
           },
       .oracle = several},
  };
}

std::vector<OpDef> make_collective_rows() {
  std::vector<OpDef> rows = {
      collective(
          "all_reduce",
          "the sum, product, largest, least or mean of what all ranks of the group give, in the order of ranks; bools "
          "count as or (sum, max) and and (prod, min). `fusion` 1: may be put together with others by the group's "
          "strategy, 2: with those of equal `fusion_id`, 0: never",
          {reduction(), text_or("name", ""), integer("fusion", 1), integer("fusion_id", -1)}, infer_reduce,
          all_reduce_rule, exchange<Kind::all_reduce>,
          {"f32[2, 3]", "i64[0]", "bool[4] {reduction = max}", "f16[5] {reduction = mean}",
           "f32[4] {reduction = prod}"},
          kInPlace),
      collective("all_gather", "what all ranks of the group give, joined along axis 0 in the order of ranks", {},
                 infer_gather, [](GradientContext& g) { g.set(0, partner(g, "reduce_scatter", g.dy(), "sum")); },
                 exchange<Kind::all_gather>, {"f32[2, 3]", "bool[1]", "i8[0, 2]"}),
      collective("reduce_scatter",
                 "of the reduction (as all_reduce) of all ranks' elements this rank's part along axis 0", {reduction()},
                 infer_reduce_scatter, reduce_scatter_rule, exchange<Kind::reduce_scatter>,
                 {"f32[2, 3]", "i32[4] {reduction = min}"}),
      collective(
          "broadcast_from", "what rank `root` of the group gives, on all ranks", {integer("root", 0)}, infer_move,
          [](GradientContext& g) { g.set(0, partner(g, "reduce_to", g.dy(), "sum")); }, exchange<Kind::broadcast>,
          {"f32[2, 3]", "u8[0]"}, kInPlace),
      collective("reduce_to",
                 "the reduction (as all_reduce) of all ranks' elements on rank `root` of the group, zeros on others",
                 {reduction(), integer("root", 0)}, infer_reduce, reduce_to_rule, exchange<Kind::reduce>,
                 {"f32[2, 3]", "bf16[4] {reduction = max}"}, kInPlace),
      collective("gather_to", "what all ranks give, joined along axis 0 on rank `root` of the group, zeros on others",
                 {integer("root", 0)}, infer_gather,
                 [](GradientContext& g) { g.set(0, partner(g, "scatter_from", g.dy())); }, exchange<Kind::gather>,
                 {"f32[2, 3]", "i64[1]"}),
      collective("scatter_from", "this rank's part along axis 0 of what rank `root` of the group gives",
                 {integer("root", 0)}, infer_scatter,
                 [](GradientContext& g) { g.set(0, partner(g, "gather_to", g.dy())); }, exchange<Kind::scatter>,
                 {"f32[2, 3]", "i64[1]"}),
      collective(
          "all_to_all",
          "axis 0 is cut into equal parts, one for each rank of the group; the parts that this rank gets, joined", {},
          infer_all_to_all, [](GradientContext& g) { g.set(0, partner(g, "all_to_all", g.dy())); }, all_to_all,
          {"f32[2, 3]", "bool[1]"}),
      {.name = "all_reduce_bucket",
       .summary =
           "all_reduce of each of the tensors by one exchange; `names` are those of the nodes that were put together",
       .inputs = {{"xs", Accepts::any_tensor, InputDef::Arity::variadic}},
       .attributes = {reduction(),
                      {"names", AttrKind::texts, std::vector<std::string>{}},
                      text_or("group", "world"),
                      integer("ranks", 1)},
       .results = {},
       .traits = kTraits,
       .precision = Precision::rounded,
       .infer = infer_bucket,
       .gradient = bucket_rule,
       .reference = all_reduce_bucket,
       .oracle = {"tuple(xs)"},
       .cases = {"f32[2, 3], f32[]", "i8[5], i8[0] {reduction = max}", "bool[2], bool[3] {reduction = prod}",
                 "f16[3], f16[1, 2] {reduction = mean}"}},
      {.name = "all_to_all_v",
       .summary = "sends send_counts[i] elements from send_displacements[i] on to each rank i of the group and places "
                  "receive_counts[i] elements from it at receive_displacements[i]; what nothing is placed at is zero",
       .inputs = {{"x", Accepts::any_tensor},
                  index_operand("send_counts"),
                  index_operand("send_displacements"),
                  shape_operand("receive_counts"),
                  shape_operand("receive_displacements")},
       .attributes = {text_or("group", "world"), integer("ranks", 1)},
       .traits = kTraits | kDynamicResult,
       .infer = infer_all_to_all_v,
       .gradient = all_to_all_v_rule,
       .reference = all_to_all_v,
       .oracle = {"np.concatenate([np.zeros(receive_displacements[0], x.dtype), "
                  "x[send_displacements[0]:send_displacements[0] + send_counts[0]]])"},
       .cases = {"f32[6], i64[1]=[3], i64[1]=[2], i64[1]=[3], i64[1]=[1]"}},
  };
  for (OpDef& row : make_message_rows()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace

std::optional<comm::Request> exchange_of(const Node& node, std::span<const int64_t> dims) {
  constexpr std::pair<void (*)(KernelContext&), Kind> kExchanges[] = {
      {exchange<Kind::all_reduce>, Kind::all_reduce},
      {exchange<Kind::all_gather>, Kind::all_gather},
      {exchange<Kind::reduce_scatter>, Kind::reduce_scatter},
      {exchange<Kind::broadcast>, Kind::broadcast},
      {exchange<Kind::reduce>, Kind::reduce},
      {exchange<Kind::gather>, Kind::gather},
      {exchange<Kind::scatter>, Kind::scatter}};
  for (const auto& [function, kind] : kExchanges)
    if (node.op->reference == function) return request_of(node.attr(), kind, node.inputs[0]->type.dtype, dims);
  return std::nullopt;
}

std::span<const OpDef> collective_ops() {
  static const std::vector<OpDef> rows = make_collective_rows();
  return rows;
}

}  // namespace cairn
