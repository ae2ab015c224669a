// TensorFlow's ops that read records: tf.train.Example and lines of CSV.
#include "frontends/fold.h"
#include "frontends/tensorflow/importer.h"

namespace cairn::tensorflow {
namespace {

using Texts = std::vector<std::string>;

/// The texts that a constant input holds, all of them.
void append_texts(OpContext& c, size_t input, Texts& list) {
  const Tensor names = c.constant(input, "the names of features");
  if (names.dtype() != kString) fail(ErrorKind::invalid_model, "", "names of features must be strings");
  for (const std::string& name : names.values<std::string>()) list.push_back(name);
}

/// The element types of a list attribute.
std::vector<DType> types(OpContext& c, const char* attr) {
  std::vector<DType> list;
  for (int64_t number : c.integers(attr)) {
    const auto dtype = dtype_of(static_cast<DataType>(number));
    if (!dtype) c.refuse("features of {} are not supported", to_string(static_cast<DataType>(number)));
    list.push_back(*dtype);
  }
  return list;
}

Texts written(const std::vector<DType>& list) {
  Texts texts;
  for (DType dtype : list) texts.push_back(to_string(dtype));
  return texts;
}

/// Types of the dense features of one record.
Texts dense_types(OpContext& c) {
  const std::vector<DType> elements = types(c, "Tdense");
  const AttrValue shapes = attr_of(c.node(), "dense_shapes", AttrValue::Kind::list, *c.importer().model());
  if (shapes.shapes.size() != elements.size())
    fail(ErrorKind::invalid_model, "", "has {} shapes of {} dense features", shapes.shapes.size(), elements.size());
  Texts texts;
  for (size_t i = 0; i < elements.size(); ++i) {
    Shape shape;
    if (shapes.shapes[i].unknown_rank) c.refuse("a dense feature has a shape of unknown rank");
    for (int64_t size : shapes.shapes[i].dims) shape.dims.push_back(size < 0 ? Dim() : Dim(size));
    texts.push_back(to_string(Type::tensor(elements[i], shape)));
  }
  return texts;
}

struct Features {
  Texts sparse, dense, ragged;
  size_t defaults = 0;  // the first input of them
};

/// Names are attributes of a single example, one input each of ParseExample, and lists of its second version.
Features features(OpContext& c) {
  Features found;
  if (c.node().op == "ParseSingleExample") {
    found.sparse = c.texts("sparse_keys"), found.dense = c.texts("dense_keys");
    found.defaults = 1;
  } else if (c.node().op == "ParseExample") {
    const int64_t sparse = c.integer("Nsparse"), dense = c.integer("Ndense");
    if (sparse < 0 || dense < 0 || 2 + sparse + dense > static_cast<int64_t>(c.in.size()))
      fail(ErrorKind::invalid_model, "", "has {} inputs for {} features", c.in.size(), sparse + dense);
    for (int64_t i = 0; i < sparse + dense; ++i)
      append_texts(c, static_cast<size_t>(2 + i), i < sparse ? found.sparse : found.dense);
    found.defaults = static_cast<size_t>(2 + sparse + dense);
  } else {
    c.expect_inputs(5, c.in.size());
    append_texts(c, 2, found.sparse), append_texts(c, 3, found.dense), append_texts(c, 4, found.ragged);
    found.defaults = 5;
  }
  return found;
}

void parse_example(OpContext& c) {
  c.expect_inputs(1, c.in.size());
  Features found = features(c);
  std::vector<Value*> operands{c.in[0]};
  operands.insert(operands.end(), c.in.begin() + static_cast<int64_t>(found.defaults), c.in.end());
  Attributes attributes{{"sparse", found.sparse}, {"sparse_types", written(types(c, "sparse_types"))},
                        {"dense", found.dense},   {"dense_types", dense_types(c)},
                        {"ragged", found.ragged}, {"ragged_types", written(types(c, "ragged_value_types"))}};
  attributes.set("splits", written(types(c, "ragged_split_types")));
  auto* made = c.b.add_node(op_named("parse_example"), operands, attributes);
  c.out = results_of(*made);
}

void decode_csv(OpContext& c) {
  c.expect_inputs(1, c.in.size());
  auto* made = c.b.add_node(op_named("decode_csv"), c.in,
                            {{"delimiter", c.text("field_delim", ",")},
                             {"quotes", c.boolean("use_quote_delim", true)},
                             {"missing", c.text("na_value", "")},
                             {"columns", c.integers("select_cols")}});
  c.out = results_of(*made);
}

constexpr Row kExampleRows[] = {
    {"DecodeCSV", decode_csv},
    {"ParseExample", parse_example},
    {"ParseExampleV2", parse_example},
    {"ParseSingleExample", parse_example},
};

}  // namespace

std::span<const Row> example_rows() { return kExampleRows; }

}  // namespace cairn::tensorflow
