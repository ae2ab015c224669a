// The rows of the option table: every option of atc and omg, its meaning and its effect in this version.
#include "support/options.h"
#include "support/precision_modes.h"

namespace cairn {

namespace {

using enum OptionType;
using enum OptionStatus;

constexpr const char* kOwnTypes = "arithmetic stays in the model's own types, the most accurate choice";
constexpr const char* kNoChip = "there is no such chip part here; models run on the processor";
constexpr const char* kNoKernels = "no kernels are compiled while converting";
constexpr const char* kNoTuning = "there is no tuning while converting";
constexpr const char* kOneDevice = "a converted model runs on one machine";
constexpr const char* kNotYet = "is not done yet";
// clang-format off
constexpr ValueForm kCores = {"[1-9][0-9]{0,3}|[0-9]{1,4}\\|[0-9]{1,4}", "a number of cores, or one of each kind: 8 or \"8|8\"", "8|8"};
constexpr ValueForm kTuners = {"(RL|GA)(,(RL|GA))?", "RL, GA or \"RL,GA\"", "RL,GA"};
constexpr ValueForm kDevice = {"[0-9]{1,5}", "the number of a device, from 0 on", "3"};
constexpr ValueForm kLimit = {"-1|[0-9]{1,9}", "-1 for no limit, or a number of operators", "-1"};
constexpr ValueForm kNames = {"[A-Za-z_]\\w*( *, *[A-Za-z_]\\w*)*,?", "names between commas: A,B", "First,Second"};
constexpr ValueForm kName = {"[A-Za-z][A-Za-z0-9_]*", "a name of letters and digits: mini", "mini"};
constexpr ValueForm kVersion = {"IR|[0-9]+(\\.[A-Za-z0-9]+)*", "a version: 1.3, or IR", "1.3"};
constexpr ValueForm kSwitches = {"(true|false)(,(true|false))*", "true or false, for each of them: \"true,false\"", "true"};
// clang-format on

// One row, one or two lines.
// clang-format off
const OptionDef kTable[] = {
    {"help", "General", flag, {}, "", "print this text", acts, "", kAtc | kOmg, {"h"}},
    {"mode", "General", choice, {"0", "1", "3", "5", "6"}, "0",
     "0: convert; 1: model to JSON; 3: check only and write the report; 5: text dump to JSON; 6: print information", acts},
    {"log", "General", choice, {"null", "debug", "info", "warning", "error", "default"}, "null",
     "how much the tool tells while it works", acts},

    {"model", "Input", path, {}, "", "model to convert: SavedModel folder, frozen .pb, .onnx, .prototxt", acts},
    {"weight", "Input", path, {}, "", "weights of a Caffe model", acts},
    {"framework", "Input", choice, {"0", "1", "3", "5"}, "found from the file",
     "0: Caffe, 1: MindSpore, 3: TensorFlow, 5: ONNX", acts},
    {"input_format", "Input", choice, {"NCHW", "NHWC", "ND", "NCDHW", "NDHWC"}, "",
     "order of the image dimensions, for --dynamic_image_size and --insert_op_conf; models keep the order they have", acts},
    {"input_shape", "Input", text, {}, "", "shapes of the inputs: \"a:1,224,224,3;b:1,-1;c:1~8,10\"", acts},
    {"input_shape_range", "Input", text, {}, "", "ranges of the inputs' sizes: \"a:[1~20,3,-1]\", checked when it runs", acts},
    {"dynamic_batch_size", "Input", text, {}, "", "batch sizes the model takes: \"1,2,4,8\"; others are refused when it runs", acts},
    {"dynamic_image_size", "Input", text, {}, "", "image sizes the model takes: \"416,416;832,832\"", acts},
    {"dynamic_dims", "Input", text, {}, "", "sizes the model takes for all -1 in order: \"1,32;1,64\"", acts},
    {"singleop", "Input", path, {}, "", "JSON file of single operators, each becomes a model in the folder --output", acts, "", kAtc},
    {"om", "Input", path, {}, "", "model of modes 1, 5 and 6", acts},
    {"op_library", "Input", text, {}, "",
     "shared libraries with operators of your own, or folders of them, between commas", acts, "", kAtc | kOmg,
     {"plugin_path"}},

    {"output", "Output", path, {}, "", "name of the model to write; .om is added", acts},
    {"output_type", "Output", text, {}, "",
     "element type of the outputs: FP32, FP16, UINT8, or \"node:0:FP16;node2:0:FP32\"", acts},
    {"out_nodes", "Output", text, {}, "", "tensors to end the model at: \"node:0;node2:1\"", acts, "", kAtc | kOmg,
     {"out_node", "output_nodes"}},
    {"input_fp16_nodes", "Input", text, {}, "", "inputs that are handed in as 16-bit floats: \"a;b\"", acts},
    {"is_input_adjust_hw_layout", "Input", text, {}, "false", "inputs in the chip's own layout", refused,
     "there is no such layout here", kAtc, {}, kSwitches},
    {"is_output_adjust_hw_layout", "Output", text, {}, "false", "outputs in the chip's own layout", refused,
     "there is no such layout here", kAtc, {}, kSwitches},
    {"insert_op_conf", "Input", path, {}, "", "image preprocessing (AIPP) put in front of the model", acts},
    {"check_report", "Output", path, {}, "check_result.json", "where mode 3 writes its report", acts},
    {"json", "Output", path, {}, "", "file that modes 1 and 5 write", acts},
    {"dump_mode", "Output", zero_one, {}, "0", "1: mode 1 writes inferred shapes too", met,
     "the JSON always has the inferred shapes"},
    {"op_name_map", "Input", path, {}, "", "types of Caffe layers by other names, lines DetectionOutput:SSDDetectionOutput", acts},
    {"external_weight", "Output", zero_one, {}, "0", "1: weights in files weight/weight_<SHA-256> beside the model", acts, "", kAtc},
    {"save_original_model", "Output", true_false, {}, "false",
     "also write <output>_original.om, the model as it was read", acts, "", kAtc},
    {"display_model_info", "Output", zero_one, {}, "0", "1: print information about the model when done", acts, "", kAtc},

    {"soc_version", "Target", text, {}, "", "chip to convert for", noted,
     "every name gives a model for the processors this version knows", kAtc},
    {"core_type", "Target", choice, {"AiCore", "VectorCore"}, "AiCore", "kind of core", noted, kNoChip, kAtc},
    {"aicore_num", "Target", text, {}, "", "number of cores", noted, kNoChip, kAtc, {}, kCores},
    {"virtual_type", "Target", zero_one, {}, "0", "part of a chip", noted, kNoChip, kAtc},
    {"host_env_os", "Target", choice, {"linux"}, "linux", "system the model is for", noted,
     "models hold no machine code", kAtc},
    {"host_env_cpu", "Target", choice, {"x86_64", "aarch64"}, "", "processor of the host", noted,
     "models hold no machine code", kAtc},
    {"device_id", "Target", integer, {}, "0", "device used while tuning", noted, kNoTuning, kAtc, {}, kDevice},
    {"target", "Target", text, {}, "", "old name of the chip", noted, kNoChip, kAtc | kOmg, {}, kName},
    {"cal_conf", "Target", path, {}, "", "calibration settings", refused, "quantisation while converting is not done yet"},
    {"cluster_config", "Target", path, {}, "", "model spread over several devices", refused,
     kOneDevice, kAtc},
    {"distributed_cluster_build", "Target", zero_one, {}, "0", "1: build for several devices", refused, kOneDevice, kAtc},
    {"enable_graph_parallel", "Target", zero_one, {}, "0", "1: cut the model into parts for several devices", refused, kOneDevice,
     kAtc},
    {"graph_parallel_option_path", "Target", path, {}, "", "how the model is cut", refused, kOneDevice, kAtc},
    {"shard_model_dir", "Target", path, {}, "", "folder with the parts of a model", refused, kOneDevice, kAtc},
    {"model_relation_config", "Target", path, {}, "", "how the parts of a model hang together", refused, kOneDevice, kAtc},

    {"precision_mode", "Precision", choice, precision_names(false),
     "must_keep_origin_dtype", "types to compute in", acts, "", kAtc},
    {"precision_mode_v2", "Precision", choice, precision_names(true), "origin", "types to compute in", acts,
     "", kAtc},
    {"modify_mixlist", "Precision", path, {}, "", "JSON of operators added to and removed from the mixed modes' lists", acts, "",
     kAtc},
    {"op_precision_mode", "Precision", path, {}, "", "precision by operator: lines Type=high_precision", acts, "", kAtc,
     {"op_precision"}},
    {"op_select_implmode", "Precision", choice,
     {"high_performance", "high_precision", "high_performance_for_all", "high_precision_for_all"}, "high_performance",
     "high_precision: operators that stay in f32 in a lower precision mode; kernels are of high precision in any case",
     acts, "", kAtc},
    {"optypelist_for_implmode", "Precision", text, {}, "", "operators that --op_select_implmode is for: \"Gelu,Sigmoid\"",
     acts, "", kAtc, {}, kNames},
    {"keep_dtype", "Precision", path, {}, "", "operators that keep their types: a name or OpType::Type a line", acts, "",
     kAtc},
    {"customize_dtypes", "Precision", path, {}, "",
     "types by operator: lines Name::InputDtype:float16,OutputDtype:float32", acts, "", kAtc},
    {"allow_hf32", "Precision", true_false, {}, "false", "32-bit floats with short mantissas", noted, kOwnTypes, kAtc},
    {"deterministic", "Precision", zero_one, {}, "0", "1: convolutions by their definition, not by Winograd's method; results are"
     " equal in every run and for any number of threads in any case", acts, "", kAtc},
    {"compression_optimize_conf", "Precision", path, {}, "", "quantise while converting", refused, kNotYet, kAtc},
    {"sparsity", "Precision", zero_one, {}, "0", "4:2 sparse weights", noted, kNoChip, kAtc},
    {"quant_dumpable", "Precision", zero_one, {}, "0", "keep values around quantised operators", noted,
     "nothing is quantised while converting", kAtc},

    {"disable_reuse_memory", "Optimisation", zero_one, {}, "0", "1: every value has memory of its own", acts, "", kAtc},
    {"fusion_switch_file", "Optimisation", path, {}, "", "rules to switch off: JSON, or lines Rule:off", acts, "", kAtc},
    {"optimization_switch", "Optimisation", text, {}, "", "passes to switch: \"Pass:on;Pass2:off\"", acts, "", kAtc},
    {"oo_level", "Optimisation", choice, {"O1", "O3"}, "O3", "level of optimisation; O1: shapes and constants alone", acts, "",
     kAtc},
    {"oo_constant_folding", "Optimisation", true_false, {}, "true", "compute what depends on constants alone", acts, "", kAtc},
    {"oo_dead_code_elimination", "Optimisation", true_false, {}, "true", "remove branches whose condition is known", acts, "",
     kAtc},
    {"topo_sorting_mode", "Optimisation", choice, {"0", "1", "2", "3"}, "1", "order of the operators", noted,
     "the order is planned when the model is loaded", kAtc},
    {"enable_scope_fusion_passes", "Optimisation", text, {}, "", "TensorFlow scope rules to switch on", met,
     "patterns are found without being asked for", kAtc, {}, kNames},
    {"enable_single_stream", "Optimisation", true_false, {}, "false", "run operators one after the other", met,
     "operators run one after the other", kAtc},
    {"head_stream", "Optimisation", zero_one, {}, "0", "a stream of its own in front", noted, kNoChip, kAtc},
    {"ac_parallel_enable", "Optimisation", zero_one, {}, "0", "overlap host and device operators", noted, kNoChip, kAtc},
    {"tiling_schedule_optimize", "Optimisation", zero_one, {}, "0", "tile on the device", noted, kNoChip, kAtc},
    {"static_model_ops_lower_limit", "Optimisation", integer, {}, "", "smallest static part", noted, kNoChip, kAtc, {}, kLimit},
    {"enable_small_channel", "Optimisation", zero_one, {}, "0", "faster first convolution of few channels", met,
     "the fastest kernel is chosen for every convolution", kAtc},
    {"buffer_optimize", "Optimisation", choice, {"l2_optimize", "l1_optimize", "l1_and_l2_optimize", "off_optimize"},
     "l2_optimize", "use of the chip's buffers", noted, kNoChip, kAtc},
    {"enable_compress_weight", "Optimisation", true_false, {}, "false", "compress weights", noted, kNoChip, kAtc},
    {"compress_weight_conf", "Optimisation", path, {}, "", "operators whose weights are compressed", noted, kNoChip, kAtc},
    {"atomic_clean_policy", "Optimisation", zero_one, {}, "0", "how accumulators are cleared", noted, kNoChip, kAtc},
    {"jit_compile", "Optimisation", choice, {"0", "1", "2"}, "1", "compile kernels", noted, kNoKernels, kAtc},
    {"shape_generalized_build_mode", "Optimisation", choice, {"shape_precise", "shape_generalized"}, "shape_precise",
     "kernels for one shape or many", noted, kNoKernels, kAtc},

    {"auto_tune_mode", "Tuning", text, {}, "", "tune kernels: RL, GA", noted, kNoTuning, kAtc, {}, kTuners},
    {"mdl_bank_path", "Tuning", path, {}, "", "tuning results of models", noted, kNoTuning, kAtc},
    {"op_bank_path", "Tuning", path, {}, "", "tuning results of operators", noted, kNoTuning, kAtc},
    {"op_debug_level", "Debug", choice, {"0", "1", "2", "3", "4"}, "0", "keep sources of kernels", noted, kNoKernels, kAtc},
    {"debug_dir", "Debug", path, {}, "", "where sources of kernels go", noted, kNoKernels, kAtc},
    {"op_debug_config", "Debug", path, {}, "", "memory checks in kernels", noted, kNoKernels, kAtc},
    {"op_compiler_cache_mode", "Debug", choice, {"disable", "enable", "force"}, "disable", "cache of kernels", noted,
     kNoKernels, kAtc},
    {"op_compiler_cache_dir", "Debug", path, {}, "", "where the cache of kernels is", noted, kNoKernels, kAtc},
    {"status_check", "Debug", zero_one, {}, "0", "overflow checks in kernels", noted, kNoKernels, kAtc},
    {"export_compile_stat", "Debug", choice, {"0", "1", "2"}, "1", "0: do not write fusion_result.json", acts, "", kAtc},

    {"ddk_version", "General", text, {}, "", "version of the development kit", noted, "there is no such kit here", kOmg, {}, kVersion},
    {"net_format", "Input", choice, {"NCHW", "NHWC", "ND"}, "", "order of the image dimensions", noted,
     "the order is the one the model was made with", kOmg},
    {"encrypt_mode", "Output", choice, {"-1", "0"}, "-1", "0: encrypt the model", refused, "models are not encrypted", kOmg},
    {"hiai_version", "Target", text, {}, "", "version of the phone's engine", noted, kNoChip, kOmg, {}, kVersion},
    {"input_type", "Input", text, {}, "", "element type of the inputs", refused, kNotYet, kOmg},
};
// clang-format on

}  // namespace

std::span<const OptionDef> option_table() { return kTable; }

}  // namespace cairn
