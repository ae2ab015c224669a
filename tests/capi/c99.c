/* The header in C99, and a model run through it: prints the outputs of y = 2 x + 1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "cairn/op.h"

static const char kModel[] =
    "module @line {\n"
    "  func @main(%x: f32[?n]) -> (%y: f32[?n]) {\n"
    "    %a = constant {value = f32[] (2)} : f32[]\n"
    "    %b = constant {value = f32[] (1)} : f32[]\n"
    "    %m = mul %x, %a : f32[?n]\n"
    "    %y = add %m, %b : f32[?n]\n"
    "    return %y\n"
    "  }\n"
    "}\n";

static float results[4];

static void* allocate(void* user, size_t index, CairnDType dtype, int32_t ndim, const int64_t* shape) {
  (void)user;
  if (index != 0 || dtype.code != CAIRN_FLOAT || dtype.bits != 32 || ndim != 1 || shape[0] > 4) return NULL;
  return results;
}

static int failed(const char* what) {
  CairnError error;
  memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  cairn_last_error(&error);
  printf("%s: %d %s %s\n", what, (int)error.status, error.where, error.message);
  return 1;
}

int main(void) {
  CairnModule* module = NULL;
  CairnModel* model = NULL;
  float values[3] = {1, 2, 3};
  int64_t shape[1] = {3};
  CairnTensor input;
  memset(&input, 0, sizeof input);
  input.data = values;
  input.device.type = 1;
  input.ndim = 1;
  input.dtype.code = CAIRN_FLOAT;
  input.dtype.bits = 32;
  input.dtype.lanes = 1;
  input.shape = shape;
  if (cairn_module_from_bytes(CAIRN_FORMAT_IR, "line", kModel, strlen(kModel), NULL, &module)) return failed("open");
  if (cairn_model_prepare(module, NULL, &model)) return failed("prepare");
  if (cairn_model_run(model, &input, 1, allocate, NULL, NULL)) return failed("run");
  printf("%g %g %g\n", results[0], results[1], results[2]);
  cairn_model_free(model);
  cairn_module_free(module);
  return 0;
}
