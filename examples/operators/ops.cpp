// What the library exports.
#include "ops.h"

CAIRN_OPS(registry) {
  registry.add(swish());
  registry.add(l2_norm());
  registry.add(running_mean());
  // Graphs that call Cairn's own relu by another name.
  registry.name("tensorflow", "ExampleRectify", "relu");
}
