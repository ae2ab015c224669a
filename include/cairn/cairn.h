/* The C interface of Cairn: open a model, prepare it, run it; run single operators.
 *
 * Handles are opaque, and each kind has a function that frees it, which accepts NULL. Functions return a CairnStatus;
 * after a failure cairn_last_error() describes the calling thread's last error. Structs that may grow start with
 * struct_size, which the caller sets to sizeof the struct that it was compiled with. Texts are UTF-8; texts returned
 * through `char**` are freed with cairn_free_text(), other returned texts live as long as the handle that they came
 * from. A module must not be used by two threads at a time; a model may be run by any number of threads at once.
 */
#ifndef CAIRN_CAIRN_H_
#define CAIRN_CAIRN_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CAIRN_API __attribute__((visibility("default")))
#else
#define CAIRN_API
#endif

#define CAIRN_VERSION "0.1.0" /* of the product; every other place reads it here */
#define CAIRN_ABI_VERSION 1

typedef enum CairnStatus {
  CAIRN_OK = 0,
  CAIRN_INVALID_ARGUMENT = 1, /* an option or a call's argument */
  CAIRN_INVALID_MODEL = 2,    /* the bytes or the graph of a model */
  CAIRN_UNSUPPORTED = 3,      /* a valid model that cannot be taken */
  CAIRN_NOT_FOUND = 4,
  CAIRN_IO = 5,
  CAIRN_OUT_OF_MEMORY = 6,
  CAIRN_CANCELLED = 7,
  CAIRN_INTERNAL = 8 /* our fault: please report it */
} CairnStatus;

typedef struct CairnModule CairnModule; /* a program, as read */
typedef struct CairnModel CairnModel;   /* a module made ready to run */
typedef struct CairnOp CairnOp;         /* one operator, prepared for inputs of certain types */
typedef struct CairnList CairnList;     /* a list of tensors */
typedef struct CairnCancel CairnCancel; /* a flag that stops runs */

/* "0.1.0" */
CAIRN_API const char* cairn_version(void);
/* The CAIRN_ABI_VERSION of the loaded library. */
CAIRN_API uint32_t cairn_abi_version(void);

typedef struct CairnError {
  uint32_t struct_size;
  CairnStatus status;
  const char* where;   /* node and script line, or file; may be "" */
  const char* message; /* without `where` */
  const char* report;  /* JSON list of all problems when there are several, else "" */
} CairnError;

/* The calling thread's last error; its texts live until the thread's next failing call. */
CAIRN_API void cairn_last_error(CairnError* error);
CAIRN_API void cairn_free_text(char* text);

/* ---- Tensors: the layout of DLPack's DLDataType, DLDevice and DLTensor -------------------------------------------- */

typedef enum CairnTypeCode {
  CAIRN_INT = 0,
  CAIRN_UINT = 1,
  CAIRN_FLOAT = 2,
  CAIRN_BFLOAT = 4,
  CAIRN_COMPLEX = 5,
  CAIRN_BOOL = 6,
  CAIRN_TEXT = 200, /* elements are CairnText */
  CAIRN_LIST = 201  /* of single operators: data is a CairnList */
} CairnTypeCode;

/* An element of a text tensor: any bytes, not necessarily zero-terminated. Texts of inputs are read during the call;
 * texts of outputs are owned by the library and live until the next run on the same thread. */
typedef struct CairnText {
  const char* data;
  size_t size;
} CairnText;

typedef struct CairnDType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes; /* 1 */
} CairnDType;

typedef struct CairnDevice {
  int32_t type; /* 1: CPU */
  int32_t id;
} CairnDevice;

typedef struct CairnTensor {
  void* data;
  CairnDevice device;
  int32_t ndim;
  CairnDType dtype;
  int64_t* shape;
  int64_t* strides; /* in elements; NULL: row-major */
  uint64_t byte_offset;
} CairnTensor;

/* ---- Types and attributes ----------------------------------------------------------------------------------------- */

typedef enum CairnTypeKind {
  CAIRN_TYPE_TENSOR = 0,
  CAIRN_TYPE_LIST = 1, /* of one element type, as are optionals and resources */
  CAIRN_TYPE_OPTIONAL = 2,
  CAIRN_TYPE_TUPLE = 3,
  CAIRN_TYPE_RESOURCE = 4, /* a variable */
  CAIRN_TYPE_RNG = 5,      /* a random state */
  CAIRN_TYPE_TOKEN = 6
} CairnTypeKind;

typedef struct CairnType {
  int32_t kind;               /* a CairnTypeKind */
  CairnDType dtype;           /* of a tensor, as what follows */
  int32_t ndim;               /* -1: any */
  const int64_t* dims;        /* -1: any size */
  const char* const* symbols; /* NULL, or for each dim NULL or the name of its size: equal names are equal sizes */
  const struct CairnType* elements;
  size_t element_count;
} CairnType;

/* The kind of a CairnAttribute, which tells the member that holds its value. */
typedef enum CairnAttributeKind {
  CAIRN_ATTRIBUTE_BOOLEAN = 0,
  CAIRN_ATTRIBUTE_INTEGER = 1,
  CAIRN_ATTRIBUTE_NUMBER = 2,
  CAIRN_ATTRIBUTE_TEXT = 3,
  CAIRN_ATTRIBUTE_INTEGERS = 4,
  CAIRN_ATTRIBUTE_NUMBERS = 5,
  CAIRN_ATTRIBUTE_TEXTS = 6,
  CAIRN_ATTRIBUTE_DTYPE = 7,
  CAIRN_ATTRIBUTE_TYPE = 8,
  CAIRN_ATTRIBUTE_TENSOR = 9,
  CAIRN_ATTRIBUTE_FUNCTION = 10 /* the name of a function of the same module, as `text` */
} CairnAttributeKind;

/* An attribute. For a declared number an integer is accepted as well, for an element type its name, and for a list an
 * empty list of any kind. */
typedef struct CairnAttribute {
  const char* name;
  int32_t kind; /* a CairnAttributeKind */
  union CairnAttributeValue {
    int32_t boolean;
    int64_t integer;
    double number;
    CairnText text;
    struct CairnIntegers {
      const int64_t* data;
      size_t count;
    } integers;
    struct CairnNumbers {
      const double* data;
      size_t count;
    } numbers;
    struct CairnTexts {
      const CairnText* data;
      size_t count;
    } texts;
    CairnDType dtype;
    const CairnType* type;
    const CairnTensor* tensor; /* its elements are copied */
  } value;
} CairnAttribute;

/* ---- Modules ------------------------------------------------------------------------------------------------------ */

typedef enum CairnFormat {
  CAIRN_FORMAT_ANY = 0, /* told by the content */
  CAIRN_FORMAT_IR = 1,  /* Cairn's text form */
  CAIRN_FORMAT_GRAPHDEF = 2,
  CAIRN_FORMAT_SAVEDMODEL = 3, /* a folder: cairn_module_open only */
  CAIRN_FORMAT_ONNX = 4,
  CAIRN_FORMAT_OM = 5,
  /* A part of a running TensorFlow graph: a GraphDef whose inputs are `_Arg` and results `_Retval` nodes. */
  CAIRN_FORMAT_CLUSTER = 6
} CairnFormat;

/* Opens a model file or folder. `options`: NULL, or JSON: {"outputs": ["node:0"], "inputs": ["x"], "input_shapes":
 * {"x": [1, -1]}, "signature": "serving_default", "tags": ["serve"]}. A size may be a name, ["n", 64]: equal names
 * stand for equal sizes. For a cluster also "input_values": {"x": [3, "n"]}: the elements that an integer input always
 * has, numbers or names of sizes; "n" without brackets for a scalar. A run does not read such an input, which may have
 * any shape that "input_shapes" gives it. */
CAIRN_API CairnStatus cairn_module_open(const char* path, const char* options, CairnModule** module);
/* The same for a model in memory; the bytes are copied. `name` is used in messages. */
CAIRN_API CairnStatus cairn_module_from_bytes(CairnFormat format, const char* name, const void* data, size_t size,
                                              const char* options, CairnModule** module);
/* The same for a cluster whose inputs `names` always have the values `constants`, which are copied: a run still takes
 * such an input, but does not read it, and drops what it writes to such a variable. */
CAIRN_API CairnStatus cairn_module_from_cluster(const char* name, const void* data, size_t size, const char* options,
                                                const char* const* names, const CairnTensor* constants, size_t count,
                                                CairnModule** module);
CAIRN_API void cairn_module_free(CairnModule* module);
/* The nodes of a GraphDef that cannot be part of a cluster, as JSON {"node": "reason"}. */
CAIRN_API CairnStatus cairn_cluster_refusals(const void* graph, size_t size, char** refusals);
/* What TensorFlow's operators touch and cost: JSON, {"Cumsum": {"traits": [], "known_input": 1}}. The traits are those of
 * src/frontends/tensorflow/row.h; "known_input", where an input must be known when a cluster is compiled, is its number
 * (negative: from the end). Operators of which nothing is told are left out. */
CAIRN_API CairnStatus cairn_cluster_operators(char** operators);

typedef struct CairnLocation {
  const char* node;     /* source node, "conv1/Conv2D" */
  const char* location; /* script line, "train.py:41" */
} CairnLocation;

/* Sets the script lines that created the source nodes; unknown nodes are ignored. */
CAIRN_API CairnStatus cairn_module_set_locations(CairnModule* module, const CairnLocation* locations, size_t count);
/* Writes an .om file, replacing `path` atomically. */
CAIRN_API CairnStatus cairn_module_save(const CairnModule* module, const char* path);
/* Converts the model at `source` to an .om file that is known to run, as `cairn convert` and atc do: equal options give equal
 * files. `options`: NULL, or JSON with the keys of cairn_module_open (sizes may also be [low, high]) and "replace"
 * {"node": "zeros"}, "cut" ["node"], "output_type" "FP16", "output_types" {"y": "FP16"}, "input_fp16_nodes" ["x"],
 * "input_format" "NCHW", "insert_op_conf" (a file), "dynamic_batch_size" [1, 2], "dynamic_image_size" [[224, 224]],
 * "dynamic_dims" [[1, 32]], "precision_mode", "mixed_lists" (an object), "keep_types" ["node"], "custom_types" (lines),
 * "disabled_passes" ["rule"], "keep_memory", "deterministic", "external_weights". `report`: NULL, or receives JSON: what `cairn convert
 * --json` prints, with the share of the work that falls to the engine `reference`, and "notes" on what may be
 * unexpected. */
CAIRN_API CairnStatus cairn_module_convert(const char* source, const char* options, const char* output, char** report);
/* The module in text form. */
CAIRN_API CairnStatus cairn_module_text(const CairnModule* module, char** text);
/* A module with the inputs of `module` whose results are gradients. `options`: NULL, or JSON:
 * "kind": "grad" (of a result that is one number), "vjp" (takes a gradient for each float result, returns the results
 *   and the gradients of inputs) or "jvp" (takes a tangent for each input, returns the results and their tangents);
 * "function": the name of a function of the module, else "main";
 * "wrt": names of inputs or of weights (float constants), ["x", "conv1.weight"]; without it all float inputs;
 * "weights": true for all weights that have a name and a dim; "weights_as_inputs": true makes those inputs of the module;
 * "result": the name of the result that grad differentiates, else the first; "value": true to return it as well, before
 *   the gradients. */
CAIRN_API CairnStatus cairn_module_grad(const CairnModule* module, const char* options, CairnModule** gradient);
/* A module whose convolutions and matrix products with constant weights compute on 8 bits, as far as the budget allows; what
 * `cairn quantize` makes. `names`, `examples`: `count` arrays of calibration data, examples along the first dim, for the inputs
 * and perhaps the labels; none are needed for weights alone or with a record. `options`: NULL, or JSON: "method" ("minmax",
 * "percentile", "kl", "mse"), "percentile", "weights_only" (8 or 4), "group", "budget" ("0.5%", "25dB"), "labels" (a name),
 * "batch", "keep" (layers), "calibrate_on" (examples), "without" (["equalise", "smooth", "correct"]), "threads", and files:
 * "config" and "record" of AMCT to follow, "write_config", "write_record" and "report" (HTML) to write; "data": what to call
 * the data there. `report`: NULL, or receives JSON: what `cairn quantize --json` prints, and "notes". */
CAIRN_API CairnStatus cairn_module_quantize(const CairnModule* module, const char* options, const char* const* names,
                                            const CairnTensor* examples, size_t count, CairnModule** quantized,
                                            char** report);

/* ---- Building modules --------------------------------------------------------------------------------------------- */

typedef struct CairnBuilder
    CairnBuilder;                     /* makes the functions of a module, or inside a rule of an operator its nodes */
typedef struct CairnValue CairnValue; /* a value that a builder made; lives as long as the builder or its module */

CAIRN_API CairnStatus cairn_builder_create(const char* name, CairnBuilder** builder);
CAIRN_API void cairn_builder_free(CairnBuilder* builder);
/* Begins a function; the previous one ends here. "main" is the model. `types` of its results are required for calls
 * that are added before the function is complete (recursion); else NULL. */
CAIRN_API CairnStatus cairn_builder_function(CairnBuilder* builder, const char* name, const CairnType* types,
                                             size_t type_count);
/* Adds a param to the function, also from inside a conditional, loop or call. */
CAIRN_API CairnStatus cairn_builder_param(CairnBuilder* builder, const char* name, const CairnType* type,
                                          CairnValue** value);
/* Adds a result. `updates`: NULL, or the param of main (a variable) whose new content the value is. */
CAIRN_API CairnStatus cairn_builder_result(CairnBuilder* builder, const char* name, CairnValue* value,
                                           const CairnValue* updates);
/* Sets the source node of all nodes added from now on, shown in messages, dumps and profiles; `name` NULL: none. */
CAIRN_API CairnStatus cairn_builder_source(CairnBuilder* builder, const char* framework, const char* name,
                                           const char* op, const char* location);
/* Adds a constant; the elements are copied. `name` may be NULL, here and below. */
CAIRN_API CairnStatus cairn_builder_constant(CairnBuilder* builder, const CairnTensor* tensor, const char* name,
                                             CairnValue** value);
/* Adds a scalar constant; the number is rounded to the element type (for integers: saturated). */
CAIRN_API CairnStatus cairn_builder_number(CairnBuilder* builder, double number, CairnDType dtype, CairnValue** value);
/* Adds a node. Fills results[0 .. result_count); the operator may have more results. */
CAIRN_API CairnStatus cairn_builder_add(CairnBuilder* builder, const char* op, CairnValue* const* inputs,
                                        size_t input_count, const CairnAttribute* attributes, size_t attribute_count,
                                        const char* name, CairnValue** results, size_t result_count);
CAIRN_API CairnStatus cairn_builder_call(CairnBuilder* builder, const char* function, CairnValue* const* inputs,
                                         size_t input_count, CairnValue** results, size_t result_count);
/* A conditional. Nodes added between begin_if and begin_else run when `condition` (bool[]) is true, those added from
 * there to end_if when it is false. Values from outside may be used inside; `taken`, which may be empty, asks for handles
 * of such values inside, which `inside` receives. Both branches return `count` values; `results` receives the handles of
 * the conditional's results. */
CAIRN_API CairnStatus cairn_builder_begin_if(CairnBuilder* builder, CairnValue* condition, CairnValue* const* taken,
                                             size_t taken_count, CairnValue** inside);
CAIRN_API CairnStatus cairn_builder_begin_else(CairnBuilder* builder, CairnValue* const* values, size_t count,
                                               CairnValue** inside);
CAIRN_API CairnStatus cairn_builder_end_if(CairnBuilder* builder, CairnValue* const* values, size_t count,
                                           CairnValue** results);
/* For who knows what the first branch returns only after the second (begin_else with count 0): branch continues in
 * branch 0 or 1 of the innermost conditional, join ends it as end_if does, with the values of both. */
CAIRN_API CairnStatus cairn_builder_branch(CairnBuilder* builder, size_t branch);
CAIRN_API CairnStatus cairn_builder_join(CairnBuilder* builder, CairnValue* const* then, CairnValue* const* otherwise,
                                         size_t count, CairnValue** results);
/* A loop: begin_while, the condition, begin_body with its result (bool[]), the body, end_while with the carried values
 * of the next iteration. `inside` receives the handles of the carried values, then of the captured values `taken`. */
CAIRN_API CairnStatus cairn_builder_begin_while(CairnBuilder* builder, CairnValue* const* carried, size_t carried_count,
                                                CairnValue* const* taken, size_t taken_count, CairnValue** inside);
CAIRN_API CairnStatus cairn_builder_begin_body(CairnBuilder* builder, CairnValue* condition, CairnValue** inside);
CAIRN_API CairnStatus cairn_builder_end_while(CairnBuilder* builder, CairnValue* const* next, CairnValue** results);
/* A call of a function that is made where it is called: the nodes added between begin_call and end_call. `inside`
 * receives its params, one for each of `inputs`; end_call takes the values that it returns. To give the function a
 * gradient of its own, call begin_backward with these values instead, whose `inside` receives the inputs, the results and
 * a gradient for each float result; end_call then takes a gradient for each float input. */
CAIRN_API CairnStatus cairn_builder_begin_call(CairnBuilder* builder, const char* name, CairnValue* const* inputs,
                                               size_t count, CairnValue** inside);
CAIRN_API CairnStatus cairn_builder_begin_backward(CairnBuilder* builder, CairnValue* const* results, size_t count,
                                                   CairnValue** inside);
CAIRN_API CairnStatus cairn_builder_end_call(CairnBuilder* builder, CairnValue* const* values, size_t count,
                                             CairnValue** results, size_t result_count);
/* Drops the innermost conditional, loop or call that has not ended, with its nodes. */
CAIRN_API CairnStatus cairn_builder_abandon(CairnBuilder* builder);
/* Appends nodes for the gradients of `wanted`, given those of `results`: `seeds`, where NULL (each, or all) stands for
 * ones. Inside of a conditional, loop or call these are the gradients through its own nodes. A value on which no result
 * depends has gradient zero. The gradients are values like others, and can be differentiated again. */
CAIRN_API CairnStatus cairn_builder_gradients(CairnBuilder* builder, CairnValue* const* results,
                                              CairnValue* const* seeds, size_t result_count, CairnValue* const* wanted,
                                              size_t wanted_count, CairnValue** gradients);
/* The same outside of conditionals, loops and calls for a caller that has computed the values `kept` before: what the
 * gradients read of them becomes new params of the function. params[i] is NULL where no gradient reads kept[i]. */
CAIRN_API CairnStatus cairn_builder_gradients_of_kept(CairnBuilder* builder, CairnValue* const* results,
                                                      CairnValue* const* seeds, size_t result_count,
                                                      CairnValue* const* wanted, size_t wanted_count,
                                                      CairnValue* const* kept, size_t kept_count,
                                                      CairnValue** gradients, CairnValue** params);
/* The type of a value as far as it is known; it lives as long as the builder. */
CAIRN_API CairnStatus cairn_builder_type(CairnBuilder* builder, const CairnValue* value, const CairnType** type);
/* The elements of a constant value; CAIRN_NOT_FOUND when the value is not constant. */
CAIRN_API CairnStatus cairn_builder_constant_of(CairnBuilder* builder, const CairnValue* value, CairnTensor* tensor);
/* Verifies the module and returns it; afterwards the builder can only be freed. */
CAIRN_API CairnStatus cairn_builder_finish(CairnBuilder* builder, CairnModule** module);

/* ---- Models ------------------------------------------------------------------------------------------------------- */

typedef struct CairnModelOptions {
  uint32_t struct_size;
  int32_t threads;      /* 0: all that the process may use */
  const char* engines;  /* "cpu,reference", best first; NULL: the default */
  int32_t keep_graph;   /* 1: run the graph as it is, without optimising it */
  int32_t lent_threads; /* 1: every run brings schedule, for `threads` threads; none are started */
  int32_t bind_state;   /* 1: variables and random states are inputs, whose memory a run updates in place */
  /* The platform's name of a precision mode, "allow_mix_precision"; NULL or "": every operator keeps its types. */
  const char* precision_mode;
  /* Changes to the lists of a mixed mode, JSON: {"black-list": {"to-add": ["ReduceSumD"], "to-remove": []}}; or NULL. */
  const char* mixed_lists;
  const char* keep_types; /* nodes that keep their types in every mode: JSON list of the source's names; or NULL */
  /* Types of single operators, a line each: "conv1::InputDtype:float16,OutputDtype:float32"; or NULL. */
  const char* custom_types;
  /* Bound in bytes on the plans of a model (one for each set of input shapes), the memory of their runs and their
   * generated code; the least recently used ones are freed first. 0: the environment's CAIRN_PLAN_MEMORY ("256M"), else
   * 1 GiB. */
  uint64_t plan_memory;
  int32_t deterministic; /* 1: convolutions by their definition alone, not by Winograd's method */
} CairnModelOptions;

/* Optimises a copy of the module and prepares it for runs; `options` may be NULL. */
CAIRN_API CairnStatus cairn_model_prepare(const CairnModule* module, const CairnModelOptions* options,
                                          CairnModel** model);
CAIRN_API void cairn_model_free(CairnModel* model);

typedef struct CairnPort {
  uint32_t struct_size;
  const char* name;
  CairnDType dtype;
  int32_t ndim;        /* -1: any */
  const int64_t* dims; /* -1: any size */
} CairnPort;

CAIRN_API size_t cairn_model_input_count(const CairnModel* model);
CAIRN_API size_t cairn_model_output_count(const CairnModel* model);
CAIRN_API CairnStatus cairn_model_input(const CairnModel* model, size_t index, CairnPort* port);
CAIRN_API CairnStatus cairn_model_output(const CairnModel* model, size_t index, CairnPort* port);

/* Flags of how a run uses an input. */
enum {
  CAIRN_INPUT_READ = 1,    /* its content matters */
  CAIRN_INPUT_UPDATED = 2, /* a run leaves the new content in its memory, which no other input or output may share */
  CAIRN_INPUT_RANDOM = 4   /* a random state, u64[3] */
};
CAIRN_API int32_t cairn_model_input_use(const CairnModel* model, size_t index);
/* The value of input `index`, a random state, before the first run; CAIRN_NOT_FOUND when the model has no seed for
 * it. */
CAIRN_API CairnStatus cairn_model_first_random_state(const CairnModel* model, size_t index, uint64_t state[3]);
CAIRN_API int32_t cairn_model_threads(const CairnModel* model);
/* The approximate number of bytes that the model's plans, the memory of their runs, their generated code and the graph
 * occupy now, without the weights. `most`: NULL, or receives the bound that plan_memory set. */
CAIRN_API size_t cairn_model_memory(const CairnModel* model, size_t* most);
/* The ns that the model's runs have spent so far on plans for input shapes that they had not met. */
CAIRN_API uint64_t cairn_model_planning(const CairnModel* model);
/* Whether the runs of this process are recorded or dumped now. */
CAIRN_API int32_t cairn_watching(void);

/* Plans a run for these input shapes ahead of time (`inputs[i].data` is not read). `description`: NULL, or receives JSON:
 * plan id, memory, and each step with kernel, source nodes, FLOPs and bytes. */
CAIRN_API CairnStatus cairn_model_plan(const CairnModel* model, const CairnTensor* inputs, size_t count,
                                       char** description);

/* Returns the memory for output `index`: row-major, aligned at least to its elements (best to 64 bytes). NULL ends the
 * run with CAIRN_OUT_OF_MEMORY. Called once per output, on the thread that called run. */
typedef void* (*CairnAllocate)(void* user, size_t index, CairnDType dtype, int32_t ndim, const int64_t* shape);

/* Schedules work on a host's threads: returns at once and arranges one later call of call(data) on one of them. The
 * call may happen after the run has ended; it returns about 100 us after there is no more work. */
typedef void (*CairnSchedule)(void* host, void (*call)(void* data), void* data);

/* A step that has been run, reported on the running thread. Outputs are readable during the call only. */
typedef struct CairnStep {
  uint32_t struct_size;
  size_t index;
  const char* kernel;
  const char* node; /* source node and script line */
  int64_t begin_ns; /* CLOCK_MONOTONIC */
  int64_t end_ns;
  double flops;
  double bytes;
  const CairnTensor* outputs;
  size_t output_count;
} CairnStep;
typedef void (*CairnObserve)(void* user, const CairnStep* step);

typedef struct CairnRunOptions {
  uint32_t struct_size;
  CairnSchedule schedule; /* NULL: the model's own threads */
  void* host;
  int32_t width; /* threads that work at a time, the caller's included; without schedule: 1 for the caller's alone */
  CairnObserve observe; /* NULL: none */
  void* observe_user;
  const CairnCancel* cancel; /* NULL: none; asked between steps, and within large ones */
  int64_t
      step; /* the host's number of the step that the run is part of, for profiles; 0: the run is a step of its own */
  int32_t (*interrupted)(
      void* user); /* NULL: none; called about twenty times a second on this thread: other than 0 cancels the run */
  void* interrupted_user;
} CairnRunOptions;

/* Runs the model once. Inputs are in the model's order; strided views are copied, other inputs are read in place. */
CAIRN_API CairnStatus cairn_model_run(const CairnModel* model, const CairnTensor* inputs, size_t input_count,
                                      CairnAllocate allocate, void* user, const CairnRunOptions* options);

/* Variables that a model keeps between its runs. Acquiring a variable gives exclusive access to its elements,
 * row-major, for reading and writing until it is released. If it is released with `changed` 1, the elements take effect
 * from the next run on. A variable that has no value yet is acquired as zeros, if its shape is known. */
CAIRN_API size_t cairn_model_variable_count(const CairnModel* model);
CAIRN_API CairnStatus cairn_model_variable(const CairnModel* model, size_t index, CairnPort* port);
CAIRN_API CairnStatus cairn_model_variable_acquire(CairnModel* model, size_t index, CairnTensor* tensor);
CAIRN_API CairnStatus cairn_model_variable_release(CairnModel* model, size_t index, int32_t changed);
/* The state of a model's random numbers, as bytes that can be saved and restored; 0 bytes when it has none. */
CAIRN_API size_t cairn_model_random_state_size(const CairnModel* model);
CAIRN_API CairnStatus cairn_model_random_state_get(const CairnModel* model, void* state, size_t size);
CAIRN_API CairnStatus cairn_model_random_state_set(CairnModel* model, const void* state, size_t size);

/* Computes the content of a model's input "ascend_dynamic_aipp_data" (dynamic image preprocessing) for `images` images.
 * `config` is the text of an AIPP configuration with one aipp_op for all images or one per image. `*size` is the
 * capacity of `bytes` and receives the size of the content; with `bytes` NULL only the size is computed. */
CAIRN_API CairnStatus cairn_aipp_parameters(const char* config, int64_t images, void* bytes, size_t* size);

CAIRN_API CairnStatus cairn_cancel_create(CairnCancel** cancel);
CAIRN_API void cairn_cancel_set(CairnCancel* cancel, int32_t cancelled);
CAIRN_API void cairn_cancel_free(CairnCancel* cancel);

/* Limits the calling thread's work in the library from now on (open, prepare, save, run): it fails with CAIRN_CANCELLED
 * after `max_seconds` (0: no limit), when `cancel` (or NULL) is set, or when `interrupted` (or NULL), which is called
 * about twenty times a second on this thread, returns other than 0. A run that cannot finish in the time is refused
 * before it starts. Limits nest; each ends with a call of cairn_limit_end on the same thread. */
CAIRN_API CairnStatus cairn_limit_begin(double max_seconds, const CairnCancel* cancel,
                                        int32_t (*interrupted)(void* user), void* user);
CAIRN_API void cairn_limit_end(void);

/* ---- Profiles ----------------------------------------------------------------------------------------------------- */

/* Records every run of the process from now on into a new folder PROF_*. `options`: NULL, or JSON with "level" (marks, ops,
 * counters), "output" (a folder) and the keys of PROFILING_OPTIONS. Starts nest: the recording ends with the last stop.
 * If the environment's PROFILING_MODE is true, the first model of a process starts a recording. */
CAIRN_API CairnStatus cairn_profile_start(const char* options);
/* `folder`: NULL, or receives the recording's folder, which `cairn profile export FOLDER` turns into tables and
 * pages. */
CAIRN_API CairnStatus cairn_profile_stop(char** folder);
/* Begins a named range ("epoch 3") on this thread in the current recording; ranges nest. range_end ends the one that
 * began last. Both do nothing while there is no recording. */
CAIRN_API CairnStatus cairn_profile_range_begin(const char* name);
CAIRN_API CairnStatus cairn_profile_range_end(void);

/* ---- Dumps -------------------------------------------------------------------------------------------------------- */

/* Writes the results of every operator in every run from now on, below the folder "dump_path", until the dump is
 * stopped. `options`: JSON with the platform's names: enable_dump, enable_dump_debug (watch for values that are not
 * finite), enable_exception_dump, dump_path, dump_step ("0|5|10-20"), dump_mode (input, output, all), dump_data
 * (tensor, stats), dump_layer; and dump_format (dump, npy), dump_budget ("500MB"). A new dump suspends the current one
 * until it is stopped itself. If the environment's CAIRN_DUMP has such options, the first model of a process starts a
 * dump. */
CAIRN_API CairnStatus cairn_dump_start(const char* options);
/* `folder`: NULL, or receives the dump's folder, for `cairn compare`. */
CAIRN_API CairnStatus cairn_dump_stop(char** folder);
/* Sets the script lines that created source nodes, for dumps and profiles of models whose modules do not have them;
 * later calls add and replace lines. */
CAIRN_API CairnStatus cairn_set_script_lines(const CairnLocation* locations, size_t count);

/* ---- Single operators --------------------------------------------------------------------------------------------- */

/* An operator's definition (its row). It lives as long as the process. */
typedef struct CairnOperator CairnOperator;
CAIRN_API CairnStatus cairn_op_find(const char* name, const CairnOperator** found);

/* Prepares the operator for inputs of these types. Equal calls return the same prepared operator; what matters are the
 * element types, shapes and strides of the inputs, and the elements of shape operands (a `shape`, a `begin`), which are
 * read now. An operator that was prepared before is found in the thread's cache, without lock or allocation. Of
 * `outputs`, which may be NULL, only the strides matter, for results that are written with strides. Of `options`, which
 * may be NULL, only threads, engines and lent_threads matter. */
CAIRN_API CairnStatus cairn_op_prepare(const CairnOperator* found, const CairnAttribute* attributes,
                                       size_t attribute_count, const CairnTensor* inputs, size_t input_count,
                                       const CairnTensor* outputs, size_t output_count,
                                       const CairnModelOptions* options, const CairnOp** op);
CAIRN_API void cairn_op_free(const CairnOp* op);
/* The types of the results, without data; ndim is -1 when only a run determines it. Valid until the thread's next
 * call. */
CAIRN_API const CairnTensor* cairn_op_outputs(const CairnOp* op, size_t* count);
/* FLOPs of one run; `bytes`: NULL, or receives the number of bytes read and written. */
CAIRN_API double cairn_op_cost(const CairnOp* op, double* bytes);
/* JSON: the operator, its kernel, and for each input whether it is read in place ("direct", "strided"), copied first,
 * or was embedded when the operator was prepared ("value"). */
CAIRN_API CairnStatus cairn_op_describe(const CairnOp* op, char** description);

/* Runs the operator; several threads may run the same one at once. An output with data is written there, with its
 * strides, and may alias an input; results beyond output_count, and those whose data is NULL, are written to memory
 * from `allocate` (which may be NULL when there are none). A random state is a u64[3] that the caller keeps: an input
 * has the current state, a result is the next one. `options` may be NULL; width 1 without schedule uses the calling
 * thread only. */
CAIRN_API CairnStatus cairn_op_run(const CairnOp* op, const CairnTensor* inputs, size_t input_count,
                                   CairnTensor* outputs, size_t output_count, CairnAllocate allocate, void* user,
                                   const CairnRunOptions* options);

/* A list of tensors, for operators with list operands or results: a CairnTensor with dtype {CAIRN_LIST, 0, 1}, ndim 0
 * and the CairnList as data. The data of an output is NULL before the run; afterwards the caller owns the list.
 * Operators never modify a list. */
CAIRN_API CairnStatus cairn_list_create(const CairnTensor* elements, size_t count, CairnList** list);
CAIRN_API void cairn_list_free(CairnList* list);
CAIRN_API size_t cairn_list_size(const CairnList* list);
/* An element, which lives as long as the list; CAIRN_NOT_FOUND when it was never set. */
CAIRN_API CairnStatus cairn_list_element(const CairnList* list, size_t index, CairnTensor* element);
/* Loads a library of operators (<cairn/op.h>), which models may use from now on. The libraries that the environment's
 * CAIRN_OP_LIBRARY names, separated by colons, are loaded when the first model is opened or the first operator is
 * found. */
CAIRN_API CairnStatus cairn_op_library_load(const char* path);
/* JSON: every operator with summary, inputs, attributes and results; for operators from users also their library. */
CAIRN_API CairnStatus cairn_describe_ops(char** description);
/* JSON: every pass in order, then every rule: name, summary, and whether it is required. The passes and rules that the
 * environment's CAIRN_DISABLE names ("ALL", or names separated by commas) are disabled for all models of the process,
 * unless they are required. CAIRN_ENGINES names the engines of models for which no engines are given. */
CAIRN_API CairnStatus cairn_describe_passes(char** description);

#ifdef __cplusplus
}
#endif

#endif
