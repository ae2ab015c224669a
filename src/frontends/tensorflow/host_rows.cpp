// Ops that never become part of a module: TensorFlow runs them, or freezing removes them. The rows tell what they
// touch.
#include "frontends/tensorflow/row.h"

namespace cairn::tensorflow {
namespace {

constexpr Row kHostRows[] = {
    {"AssignVariableXlaConcatND", nullptr, writes(1)},
    {"CountUpTo", nullptr, writes(1)},
    {"DestroyResourceOp", nullptr, writes(1)},
    {"InitializeTable", nullptr, Trait::fills_table},
    {"InitializeTableFromTextFile", nullptr, Trait::fills_table},
    {"InitializeTableFromTextFileV2", nullptr, Trait::fills_table},
    {"InitializeTableV2", nullptr, Trait::fills_table},
    {"IsVariableInitialized", nullptr, reads(1) | Trait::asks},
    {"LookupTableImport", nullptr, Trait::fills_table},
    {"LookupTableImportV2", nullptr, Trait::fills_table},
    {"MutableHashTableOfTensors", nullptr, Trait::makes_table},
    {"MutableHashTableOfTensorsV2", nullptr, Trait::makes_table},
    {"QueueDequeue", nullptr, Trait::takes},
    {"QueueDequeueMany", nullptr, Trait::takes},
    {"QueueDequeueManyV2", nullptr, Trait::takes},
    {"QueueDequeueUpTo", nullptr, Trait::takes},
    {"QueueDequeueUpToV2", nullptr, Trait::takes},
    {"QueueDequeueV2", nullptr, Trait::takes},
    {"QueueEnqueue", nullptr, Trait::puts},
    {"QueueEnqueueMany", nullptr, Trait::puts},
    {"QueueEnqueueManyV2", nullptr, Trait::puts},
    {"QueueEnqueueV2", nullptr, Trait::puts},
    {"RefIdentity", nullptr, kHandsOn},
    {"ResourceCountUpTo", nullptr, writes(1)},
    {"ResourceScatterNdMax", nullptr, writes(1)},
    {"ResourceScatterNdMin", nullptr, writes(1)},
    {"ResourceStridedSliceAssign", nullptr, writes(1)},
    {"ScatterNdMax", nullptr, writes(1)},
    {"ScatterNdMin", nullptr, writes(1)},
    {"StridedSliceAssign", nullptr, writes(1)},
    {"VarHandleOp", nullptr, Trait::makes_variable},
    {"VarIsInitializedOp", nullptr, reads(1) | Trait::asks},
    {"Variable", nullptr, Trait::makes_variable},
    {"VariableV2", nullptr, Trait::makes_variable},
};

}  // namespace

std::span<const Row> host_rows() { return kHostRows; }

}  // namespace cairn::tensorflow
