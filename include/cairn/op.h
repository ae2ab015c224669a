/* Operators from users: a shared library with rows that Cairn loads (`--op-library`, CAIRN_OP_LIBRARY, Python's
 * cairn.load_op_library). The library exports cairn_register_ops() and cairn_op_abi, and needs to link nothing: all that it
 * calls comes with the registry. <cairn/op.hpp> is the same for C++.
 */
#ifndef CAIRN_OP_H_
#define CAIRN_OP_H_

#include "cairn/cairn.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CAIRN_OP_ABI_VERSION 1

/* Which types an input accepts. */
typedef enum CairnAccepts {
  CAIRN_ACCEPTS_TENSOR = 0, /* any */
  CAIRN_ACCEPTS_NUMBERS = 1,
  CAIRN_ACCEPTS_FLOATS = 2,
  CAIRN_ACCEPTS_INTEGERS = 3,
  CAIRN_ACCEPTS_BOOLEAN = 4,
  CAIRN_ACCEPTS_I32_OR_I64 = 5,
  CAIRN_ACCEPTS_TEXT = 6
} CairnAccepts;

/* What an operator does with an input. */
typedef enum CairnRole {
  CAIRN_ROLE_DATA = 0,  /* its elements flow into the results; float data has a gradient */
  CAIRN_ROLE_SHAPE = 1, /* the dims of results depend on its elements */
  CAIRN_ROLE_INDEX = 2, /* its integers choose elements */
  /* Something kept from run to run, which has no gradient: a tensor, and a result is what it is in the next run. */
  CAIRN_ROLE_STATE = 3
} CairnRole;

typedef enum CairnArity { CAIRN_ARITY_ONE = 0, CAIRN_ARITY_OPTIONAL = 1, CAIRN_ARITY_VARIADIC = 2 } CairnArity;

typedef struct CairnOpInput {
  const char* name;
  int32_t accepts; /* a CairnAccepts */
  int32_t role;    /* a CairnRole */
  int32_t arity;   /* a CairnArity; what is not one stands last */
} CairnOpInput;

typedef struct CairnOpAttribute {
  CairnAttribute attribute; /* name and kind; its value is the default unless it is required */
  int32_t required;
} CairnOpAttribute;

enum { /* facts that passes may use: flags of CairnOpRow */
       CAIRN_OP_ELEMENTWISE =
           1, /* a result's element depends on the elements at the same place (NumPy's broadcasting) alone */
       CAIRN_OP_RANDOM = 2 /* equal inputs may give other results: never computed ahead, never merged */
};

typedef struct CairnOpRegistry CairnOpRegistry;

/* What every function of a row sees. */
typedef struct CairnOpCall {
  uint32_t struct_size;
  const CairnOpRegistry* registry;
  void* host; /* whose call it is */
  void* user; /* of the row */
  /* All that the row declares, in its order; those left out have their default. */
  const CairnAttribute* attributes;
  size_t attribute_count;
} CairnOpCall;

typedef struct CairnShapeCall {
  CairnOpCall call;
  const CairnType* inputs;
  const CairnTensor* const* values; /* for each input its elements where they are known, else NULL */
  size_t input_count;
} CairnShapeCall;

typedef struct CairnKernelCall {
  CairnOpCall call;
  const CairnTensor* inputs; /* row-major, as are the outputs */
  size_t input_count;
  CairnTensor* outputs; /* data is NULL where the dims are known only now: allocate() sets it */
  size_t output_count;
} CairnKernelCall;

typedef struct CairnGradientCall {
  CairnOpCall call;
  CairnBuilder* builder;
  CairnValue* const* inputs;
  size_t input_count;
  CairnValue* const* results;
  CairnValue* const* gradients; /* one for each result, NULL where nothing depends on it */
  size_t result_count;
  const int32_t* wanted; /* for each input */
  CairnValue** made;     /* to be filled for each wanted input; NULL: its gradient is zero */
} CairnGradientCall;

typedef struct CairnDecomposeCall {
  CairnOpCall call;
  CairnBuilder* builder;
  CairnValue* const* inputs;
  size_t input_count;
  CairnValue** results; /* to be filled */
  size_t result_count;
} CairnDecomposeCall;

/* An operator. All that it points to is copied when it is registered, except `user` and the functions. A function returns 0,
 * or another number after registry->fail() said why. A row has a kernel or a decomposition; without a shape rule the
 * decomposition's types are the results'; without a gradient the decomposition is differentiated. */
typedef struct CairnOpRow {
  uint32_t struct_size;
  const char* name;    /* "domain.name" */
  const char* summary; /* one sentence */
  const CairnOpInput* inputs;
  size_t input_count;
  const CairnOpAttribute* attributes;
  size_t attribute_count;
  const char* const* results; /* names */
  size_t result_count;
  uint32_t flags;
  int32_t (*shape)(const CairnShapeCall* call);
  int32_t (*kernel)(const CairnKernelCall* call);
  int32_t (*gradient)(const CairnGradientCall* call);
  int32_t (*decompose)(const CairnDecomposeCall* call);
  const char* no_gradient; /* why there is none, or NULL */
  /* Inputs worth testing, "f32[2, 3], f32[3] {axis = 1}", for `cairn op test`. */
  const char* const* cases;
  size_t case_count;
  /* Names that frameworks have for it, "tensorflow:FusedGelu", "onnx:com.acme::Gelu", beside those that follow from its
   * own: ONNX's domain::Name and TensorFlow's Domain>Name or Name are found without. */
  const char* const* foreign_names;
  size_t foreign_name_count;
  void* user;
} CairnOpRow;

struct CairnOpRegistry {
  uint32_t struct_size;
  uint32_t abi_version;     /* CAIRN_OP_ABI_VERSION of the host */
  const char* host_version; /* CAIRN_VERSION of the host */
  void* host;
  CairnStatus (*add)(const CairnOpRegistry* registry, const CairnOpRow* row);
  /* Nodes of that type of a framework ("tensorflow", "onnx") stand for the operator: a row of a user, one of Cairn's own, or a
   * type that Cairn reads from that framework. */
  CairnStatus (*name)(const CairnOpRegistry* registry, const char* framework, const char* type, const char* op);
  /* Of the thread's last failed call below. */
  void (*last_error)(CairnError* error);
  /* Says why the function fails. */
  void (*fail)(const CairnOpCall* call, const char* message);
  /* Tells the type of the next result, in a shape rule. */
  CairnStatus (*result)(const CairnShapeCall* call, const CairnType* type);
  /* Gives output `index` these dims and memory, in a kernel. */
  CairnStatus (*allocate)(const CairnKernelCall* call, size_t index, int32_t ndim, const int64_t* dims);
  /* As the functions cairn_builder_* of the same names. */
  CairnStatus (*constant)(CairnBuilder*, const CairnTensor*, const char*, CairnValue**);
  CairnStatus (*number)(CairnBuilder*, double, CairnDType, CairnValue**);
  CairnStatus (*node)(CairnBuilder*, const char*, CairnValue* const*, size_t, const CairnAttribute*, size_t,
                      const char*, CairnValue**, size_t);
  CairnStatus (*begin_if)(CairnBuilder*, CairnValue*, CairnValue* const*, size_t, CairnValue**);
  CairnStatus (*begin_else)(CairnBuilder*, CairnValue* const*, size_t, CairnValue**);
  CairnStatus (*end_if)(CairnBuilder*, CairnValue* const*, size_t, CairnValue**);
  CairnStatus (*begin_while)(CairnBuilder*, CairnValue* const*, size_t, CairnValue* const*, size_t, CairnValue**);
  CairnStatus (*begin_body)(CairnBuilder*, CairnValue*, CairnValue**);
  CairnStatus (*end_while)(CairnBuilder*, CairnValue* const*, CairnValue**);
  CairnStatus (*type)(CairnBuilder*, const CairnValue*, const CairnType**);
  CairnStatus (*constant_of)(CairnBuilder*, const CairnValue*, CairnTensor*);
};

/* What a library exports: the version it was compiled against, and the function that adds its rows. It returns 0, or
 * another number when registry->add() failed. */
typedef int32_t (*CairnRegisterOps)(const CairnOpRegistry* registry);
#define CAIRN_OP_ABI_SYMBOL "cairn_op_abi"
#define CAIRN_REGISTER_OPS_SYMBOL "cairn_register_ops"

/* Adds a row of the process that calls; `origin` is where it comes from, for messages. */
CAIRN_API CairnStatus cairn_op_register(const CairnOpRow* row, const char* origin);

#ifdef __cplusplus
}
#endif

#endif
