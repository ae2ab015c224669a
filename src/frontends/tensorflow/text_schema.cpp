#include "frontends/tensorflow/text_schema.h"

#include "frontends/tensorflow/fields.h"

namespace cairn::tensorflow {
namespace {

using enum TextKind;

constexpr TextEnum kTypes[] = {
    {"DT_INVALID", 0},      {"DT_FLOAT", 1},          {"DT_DOUBLE", 2},       {"DT_INT32", 3},
    {"DT_UINT8", 4},        {"DT_INT16", 5},          {"DT_INT8", 6},         {"DT_STRING", 7},
    {"DT_COMPLEX64", 8},    {"DT_INT64", 9},          {"DT_BOOL", 10},        {"DT_QINT8", 11},
    {"DT_QUINT8", 12},      {"DT_QINT32", 13},        {"DT_BFLOAT16", 14},    {"DT_QINT16", 15},
    {"DT_QUINT16", 16},     {"DT_UINT16", 17},        {"DT_COMPLEX128", 18},  {"DT_HALF", 19},
    {"DT_RESOURCE", 20},    {"DT_VARIANT", 21},       {"DT_UINT32", 22},      {"DT_UINT64", 23},
    {"DT_FLOAT8_E5M2", 24}, {"DT_FLOAT8_E4M3FN", 25}, {"DT_INT4", 29},        {"DT_UINT4", 30},
    {"DT_FLOAT_REF", 101},  {"DT_DOUBLE_REF", 102},   {"DT_INT32_REF", 103},  {"DT_UINT8_REF", 104},
    {"DT_INT16_REF", 105},  {"DT_INT8_REF", 106},     {"DT_STRING_REF", 107}, {"DT_INT64_REF", 109},
    {"DT_BOOL_REF", 110},   {"DT_BFLOAT16_REF", 114}, {"DT_HALF_REF", 119}};

extern const TextMessage kAttrValue, kTensor, kNameAttrList;

constexpr TextField kDimFields[] = {{"size", field::dim::size, integer}, {"name", field::dim::name, text}};
constexpr TextMessage kDim{"TensorShapeProto.Dim", kDimFields};
constexpr TextField kShapeFields[] = {{"dim", field::tensor_shape::dim, message, &kDim},
                                      {"unknown_rank", field::tensor_shape::unknown_rank, boolean}};
constexpr TextMessage kShape{"TensorShapeProto", kShapeFields};

constexpr TextField kVersionFields[] = {{"producer", field::version_def::producer, integer},
                                        {"min_consumer", field::version_def::min_consumer, integer},
                                        {"bad_consumers", field::version_def::bad_consumers, integer}};
constexpr TextMessage kVersions{"VersionDef", kVersionFields};

constexpr TextField kListFields[] = {{"s", field::list_value::s, text},
                                     {"i", field::list_value::i, integer},
                                     {"f", field::list_value::f, real32},
                                     {"b", field::list_value::b, boolean},
                                     {"type", field::list_value::type, enumeration, nullptr, kTypes},
                                     {"shape", field::list_value::shape, message, &kShape},
                                     {"tensor", field::list_value::tensor, message, &kTensor},
                                     {"func", field::list_value::func, message, &kNameAttrList}};
constexpr TextMessage kList{"AttrValue.ListValue", kListFields};

constexpr TextField kAttrValueFields[] = {{"list", field::attr_value::list, message, &kList},
                                          {"s", field::attr_value::s, text},
                                          {"i", field::attr_value::i, integer},
                                          {"f", field::attr_value::f, real32},
                                          {"b", field::attr_value::b, boolean},
                                          {"type", field::attr_value::type, enumeration, nullptr, kTypes},
                                          {"shape", field::attr_value::shape, message, &kShape},
                                          {"tensor", field::attr_value::tensor, message, &kTensor},
                                          {"placeholder", field::attr_value::placeholder, text},
                                          {"func", field::attr_value::func, message, &kNameAttrList}};
constexpr TextMessage kAttrValue{"AttrValue", kAttrValueFields};

constexpr TextField kAttrEntryFields[] = {{"key", field::map_entry::key, text},
                                          {"value", field::map_entry::value, message, &kAttrValue}};
constexpr TextMessage kAttrEntry{"attr", kAttrEntryFields};
constexpr TextField kTextEntryFields[] = {{"key", field::map_entry::key, text},
                                          {"value", field::map_entry::value, text}};
constexpr TextMessage kTextEntry{"map entry", kTextEntryFields};

constexpr TextField kNameAttrListFields[] = {{"name", field::name_attr_list::name, text},
                                             {"attr", field::name_attr_list::attr, message, &kAttrEntry}};
constexpr TextMessage kNameAttrList{"NameAttrList", kNameAttrListFields};

constexpr TextField kTensorFields[] = {{"dtype", field::tensor::dtype, enumeration, nullptr, kTypes},
                                       {"tensor_shape", field::tensor::shape, message, &kShape},
                                       {"version_number", field::tensor::version_number, integer},
                                       {"tensor_content", field::tensor::content, text},
                                       {"float_val", field::tensor::float_val, real32},
                                       {"double_val", field::tensor::double_val, real64},
                                       {"int_val", field::tensor::int_val, integer},
                                       {"string_val", field::tensor::string_val, text},
                                       {"scomplex_val", field::tensor::scomplex_val, real32},
                                       {"int64_val", field::tensor::int64_val, integer},
                                       {"bool_val", field::tensor::bool_val, boolean},
                                       {"dcomplex_val", field::tensor::dcomplex_val, real64},
                                       {"half_val", field::tensor::half_val, integer},
                                       {"uint32_val", field::tensor::uint32_val, integer},
                                       {"uint64_val", field::tensor::uint64_val, integer}};
constexpr TextMessage kTensor{"TensorProto", kTensorFields};

constexpr TextField kNodeFields[] = {{"name", field::node_def::name, text},
                                     {"op", field::node_def::op, text},
                                     {"input", field::node_def::input, text},
                                     {"device", field::node_def::device, text},
                                     {"attr", field::node_def::attr, message, &kAttrEntry},
                                     {"experimental_debug_info", field::node_def::debug_info, ignored},
                                     {"experimental_type", field::node_def::experimental_type, ignored}};
constexpr TextMessage kNode{"NodeDef", kNodeFields};

constexpr TextField kArgFields[] = {{"name", field::arg_def::name, text},
                                    {"description", 2, text},
                                    {"type", field::arg_def::type, enumeration, nullptr, kTypes},
                                    {"type_attr", field::arg_def::type_attr, text},
                                    {"number_attr", field::arg_def::number_attr, text},
                                    {"type_list_attr", field::arg_def::type_list_attr, text},
                                    {"is_ref", field::arg_def::is_ref, boolean},
                                    {"experimental_full_type", 17, ignored}};
constexpr TextMessage kArg{"OpDef.ArgDef", kArgFields};
constexpr TextField kOpDefFields[] = {{"name", field::op_def::name, text},
                                      {"input_arg", field::op_def::input_arg, message, &kArg},
                                      {"output_arg", field::op_def::output_arg, message, &kArg},
                                      {"attr", 4, ignored},
                                      {"summary", 5, text},
                                      {"description", 6, text},
                                      {"deprecation", 8, ignored},
                                      {"is_aggregate", 16, boolean},
                                      {"is_stateful", field::op_def::is_stateful, boolean},
                                      {"is_commutative", 18, boolean},
                                      {"allows_uninitialized_input", 19, boolean},
                                      {"is_distributed_communication", 21, boolean},
                                      {"control_output", field::op_def::control_output, text}};
constexpr TextMessage kOpDef{"OpDef", kOpDefFields};

constexpr TextField kFunctionFields[] = {{"signature", field::function_def::signature, message, &kOpDef},
                                         {"node_def", field::function_def::node, message, &kNode},
                                         {"ret", field::function_def::ret, message, &kTextEntry},
                                         {"attr", field::function_def::attr, message, &kAttrEntry},
                                         {"control_ret", field::function_def::control_ret, message, &kTextEntry},
                                         {"arg_attr", field::function_def::arg_attr, ignored},
                                         {"resource_arg_unique_id", field::function_def::resource_id, ignored}};
constexpr TextMessage kFunction{"FunctionDef", kFunctionFields};
constexpr TextField kLibraryFields[] = {{"function", field::library::function, message, &kFunction},
                                        {"gradient", field::library::gradient, ignored},
                                        {"registered_gradients", 3, ignored}};
constexpr TextMessage kLibrary{"FunctionDefLibrary", kLibraryFields};

constexpr TextField kGraphFields[] = {{"node", field::graph_def::node, message, &kNode},
                                      {"library", field::graph_def::library, message, &kLibrary},
                                      {"version", field::graph_def::version, integer},
                                      {"versions", field::graph_def::versions, message, &kVersions},
                                      {"debug_info", field::graph_def::debug_info, ignored}};

constexpr TextField kMetaInfoFields[] = {{"meta_graph_version", 1, text},
                                         {"stripped_op_list", 2, ignored},
                                         {"any_info", 3, ignored},
                                         {"tags", field::meta_info::tags, text},
                                         {"tensorflow_version", field::meta_info::tensorflow_version, text},
                                         {"tensorflow_git_version", 6, text},
                                         {"stripped_default_attrs", 7, boolean},
                                         {"function_aliases", 8, message, &kTextEntry}};
constexpr TextMessage kMetaInfo{"MetaGraphDef.MetaInfoDef", kMetaInfoFields};
constexpr TextField kSaverFields[] = {{"filename_tensor_name", field::saver_def::filename_tensor, text},
                                      {"save_tensor_name", 2, text},
                                      {"restore_op_name", field::saver_def::restore_op, text},
                                      {"max_to_keep", 4, integer},
                                      {"sharded", 5, boolean},
                                      {"keep_checkpoint_every_n_hours", 6, real32},
                                      {"version", 7, ignored}};
constexpr TextMessage kSaver{"SaverDef", kSaverFields};
constexpr TextField kTensorInfoFields[] = {{"name", field::tensor_info::name, text},
                                           {"dtype", field::tensor_info::dtype, enumeration, nullptr, kTypes},
                                           {"tensor_shape", field::tensor_info::shape, message, &kShape},
                                           {"coo_sparse", field::tensor_info::coo_sparse, ignored},
                                           {"composite_tensor", field::tensor_info::composite, ignored}};
constexpr TextMessage kTensorInfo{"TensorInfo", kTensorInfoFields};
constexpr TextField kInfoEntryFields[] = {{"key", field::map_entry::key, text},
                                          {"value", field::map_entry::value, message, &kTensorInfo}};
constexpr TextMessage kInfoEntry{"map entry", kInfoEntryFields};
constexpr TextField kSignatureFields[] = {{"inputs", field::signature_def::input, message, &kInfoEntry},
                                          {"outputs", field::signature_def::output, message, &kInfoEntry},
                                          {"method_name", field::signature_def::method_name, text},
                                          {"defaults", 4, ignored}};
constexpr TextMessage kSignature{"SignatureDef", kSignatureFields};
constexpr TextField kSignatureEntryFields[] = {{"key", field::map_entry::key, text},
                                               {"value", field::map_entry::value, message, &kSignature}};
constexpr TextMessage kSignatureEntry{"map entry", kSignatureEntryFields};
constexpr TextField kAssetFields[] = {{"tensor_info", field::asset_file::tensor_info, message, &kTensorInfo},
                                      {"filename", field::asset_file::filename, text}};
constexpr TextMessage kAsset{"AssetFileDef", kAssetFields};
constexpr TextField kMetaGraphFields[] = {{"meta_info_def", field::meta_graph::info, message, &kMetaInfo},
                                          {"graph_def", field::meta_graph::graph, message, &kGraphDefText},
                                          {"saver_def", field::meta_graph::saver, message, &kSaver},
                                          {"collection_def", field::meta_graph::collection, ignored},
                                          {"signature_def", field::meta_graph::signature, message, &kSignatureEntry},
                                          {"asset_file_def", field::meta_graph::asset, message, &kAsset},
                                          {"object_graph_def", field::meta_graph::object_graph, ignored}};
constexpr TextMessage kMetaGraph{"MetaGraphDef", kMetaGraphFields};
constexpr TextField kSavedModelFields[] = {{"saved_model_schema_version", field::saved_model::schema_version, integer},
                                           {"meta_graphs", field::saved_model::meta_graph, message, &kMetaGraph}};

}  // namespace

const TextMessage kGraphDefText{"GraphDef", kGraphFields};
const TextMessage kSavedModelText{"SavedModel", kSavedModelFields};

}  // namespace cairn::tensorflow
