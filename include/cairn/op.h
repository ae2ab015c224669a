/* Operators from users: a shared library that defines operators (rows) and that Cairn loads (`--op-library`,
 * CAIRN_OP_LIBRARY, Python's cairn.load_op_library). The library exports cairn_register_ops() and cairn_op_abi. It does
 * not link to Cairn: all functions that it calls are members of the registry. <cairn/op.hpp> is the C++ interface.
 */
#ifndef CAIRN_OP_H_
#define CAIRN_OP_H_

#include "cairn/cairn.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CAIRN_OP_ABI_VERSION 1

/* The types that an input accepts. */
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
  /* State kept from run to run, without a gradient: a tensor; one result is its content for the next run. */
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

/* The argument of every function of a row. */
typedef struct CairnOpCall {
  uint32_t struct_size;
  const CairnOpRegistry* registry;
  void* host; /* whose call it is */
  void* user; /* of the row */
  /* All attributes that the row declares, in its order; missing ones have their default. */
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

/* An operator. Everything it points to is copied at registration, except `user` and the functions. A function returns 0
 * for success, or another number after it called registry->fail(). A row has a kernel or a decomposition; without a
 * shape rule the results have the types of the decomposition; without a gradient the decomposition is
 * differentiated. */
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
  /* Test inputs for `cairn op test`: "f32[2, 3], f32[3] {axis = 1}". */
  const char* const* cases;
  size_t case_count;
  /* Additional framework names, "tensorflow:FusedGelu", "onnx:com.acme::Gelu". Those that follow from its own name,
   * ONNX's domain::Name and TensorFlow's Domain>Name or Name, are found without. */
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
  /* Makes `type` of a framework ("tensorflow", "onnx") a name of the operator `op`: a user's, one of Cairn's own, or a
   * type that Cairn imports from that framework. */
  CairnStatus (*name)(const CairnOpRegistry* registry, const char* framework, const char* type, const char* op);
  /* The error of this thread's last failed call of one of the functions below. */
  void (*last_error)(CairnError* error);
  /* Sets the message for a function that fails. */
  void (*fail)(const CairnOpCall* call, const char* message);
  /* In a shape rule: adds the type of the next result. */
  CairnStatus (*result)(const CairnShapeCall* call, const CairnType* type);
  /* In a kernel: sets the dims of output `index` and allocates its memory. */
  CairnStatus (*allocate)(const CairnKernelCall* call, size_t index, int32_t ndim, const int64_t* dims);
  /* Like the functions cairn_builder_* of the same names. */
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

/* The exports of a library: the ABI version it was compiled against, and the function that adds its rows, which returns
 * 0 or, when registry->add() failed, another number. */
typedef int32_t (*CairnRegisterOps)(const CairnOpRegistry* registry);
#define CAIRN_OP_ABI_SYMBOL "cairn_op_abi"
#define CAIRN_REGISTER_OPS_SYMBOL "cairn_register_ops"

/* Registers a row from the calling process itself; `origin` says in messages where it comes from. */
CAIRN_API CairnStatus cairn_op_register(const CairnOpRow* row, const char* origin);

#ifdef __cplusplus
}
#endif

#endif
