// Results of TensorFlow's ops that have several or a list of them, from the op registry of TensorFlow 2.15 (Apache-2.0):
// inside a function an input is written "node:result:index", and the flat number of a result needs the ones before it.
#include <algorithm>
#include <string_view>

#include "frontends/tensorflow/functions.h"
#include "ir/user_ops.h"

namespace cairn::tensorflow {
namespace {

struct ResultRow {
  std::string_view op;
  std::string_view results;  // in order; "name*attr" has as many tensors as the attribute says
};

// clang-format off
constexpr ResultRow kResults[] = {
    {"AllCandidateSampler", "sampled_candidates true_expected_count sampled_expected_count"},
    {"ApproxTopK", "values indices"},
    {"BarrierTakeMany", "indices keys values*component_types"},
    {"Batch", "batched_tensors*T batch_index id"},
    {"BatchFunction", "out_tensors*Tout"},
    {"BatchNormWithGlobalNormalizationGrad", "dx dm dv db dg"},
    {"BatchSelfAdjointEigV2", "e v"},
    {"BatchSvd", "s u v"},
    {"BlockLSTM", "i cs f o ci co h"},
    {"BlockLSTMGrad", "x_grad cs_prev_grad h_prev_grad w_grad wci_grad wcf_grad wco_grad b_grad"},
    {"BlockLSTMGradV2", "x_grad cs_prev_grad h_prev_grad w_grad wci_grad wcf_grad wco_grad b_grad"},
    {"BlockLSTMV2", "i cs f o ci co h"},
    {"BoostedTreesBucketize", "buckets*num_features"},
    {"BroadcastGradientArgs", "r0 r1"},
    {"CSRSparseMatrixComponents", "row_ptrs col_inds values"},
    {"CSRSparseMatrixToSparseTensor", "indices values dense_shape"},
    {"CTCBeamSearchDecoder",
     "decoded_indices*top_paths decoded_values*top_paths decoded_shape*top_paths log_probability"},
    {"CTCGreedyDecoder", "decoded_indices decoded_values decoded_shape log_probability"},
    {"CTCLoss", "loss gradient"},
    {"CTCLossV2", "loss gradient"},
    {"CairnUserOp", "y*Tout"},
    {"CairnUserOpGrad", "dx*Tout"},
    {"Case", "output*Tout"},
    {"CollectiveAssignGroupV2", "group_size group_key"},
    {"CombinedNonMaxSuppression", "nmsed_boxes nmsed_scores nmsed_classes valid_detections"},
    {"ComputeAccidentalHits", "indices ids weights"},
    {"ConcatOffset", "offset*N"},
    {"CudnnRNN", "output output_h output_c reserve_space"},
    {"CudnnRNNBackprop", "input_backprop input_h_backprop input_c_backprop params_backprop"},
    {"CudnnRNNBackpropV2", "input_backprop input_h_backprop input_c_backprop params_backprop"},
    {"CudnnRNNBackpropV3", "input_backprop input_h_backprop input_c_backprop params_backprop"},
    {"CudnnRNNV2", "output output_h output_c reserve_space host_reserved"},
    {"CudnnRNNV3", "output output_h output_c reserve_space host_reserved"},
    {"DatasetToSingleElement", "components*output_types"},
    {"DecodeCSV", "output*OUT_TYPE"},
    {"DecodeProtoV2", "sizes values*output_types"},
    {"DecodeWav", "audio sample_rate"},
    {"DenseCountSparseOutput", "output_indices output_values output_dense_shape"},
    {"DenseToDenseSetOperation", "result_indices result_values result_shape"},
    {"DenseToSparseSetOperation", "result_indices result_values result_shape"},
    {"DeserializeManySparse", "sparse_indices sparse_values sparse_shape"},
    {"DeserializeSparse", "sparse_indices sparse_values sparse_shape"},
    {"DynamicPartition", "outputs*num_partitions"},
    {"EagerPyFunc", "output*Tout"},
    {"Eig", "e v"},
    {"FakeQuantWithMinMaxVarsGradient", "backprops_wrt_input backprop_wrt_min backprop_wrt_max"},
    {"FakeQuantWithMinMaxVarsPerChannelGradient", "backprops_wrt_input backprop_wrt_min backprop_wrt_max"},
    {"FixedUnigramCandidateSampler", "sampled_candidates true_expected_count sampled_expected_count"},
    {"For", "output*T"},
    {"FractionalAvgPool", "output row_pooling_sequence col_pooling_sequence"},
    {"FractionalMaxPool", "output row_pooling_sequence col_pooling_sequence"},
    {"FusedBatchNorm", "y batch_mean batch_variance reserve_space_1 reserve_space_2"},
    {"FusedBatchNormGrad", "x_backprop scale_backprop offset_backprop reserve_space_3 reserve_space_4"},
    {"FusedBatchNormGradV2", "x_backprop scale_backprop offset_backprop reserve_space_3 reserve_space_4"},
    {"FusedBatchNormGradV3", "x_backprop scale_backprop offset_backprop reserve_space_4 reserve_space_5"},
    {"FusedBatchNormV2", "y batch_mean batch_variance reserve_space_1 reserve_space_2"},
    {"FusedBatchNormV3", "y batch_mean batch_variance reserve_space_1 reserve_space_2 reserve_space_3"},
    {"GRUBlockCell", "r u c h"},
    {"GRUBlockCellGrad", "d_x d_h_prev d_c_bar d_r_bar_u_bar"},
    {"GenerateVocabRemapping", "remapping num_present"},
    {"IdentityN", "output*T"},
    {"If", "output*Tout"},
    {"InfeedDequeueTuple", "outputs*dtypes"},
    {"IteratorGetNext", "components*output_types"},
    {"IteratorGetNextSync", "components*output_types"},
    {"LSTMBlockCell", "i cs f o ci co h"},
    {"LSTMBlockCellGrad", "cs_prev_grad dicfo wci_grad wcf_grad wco_grad"},
    {"LearnedUnigramCandidateSampler", "sampled_candidates true_expected_count sampled_expected_count"},
    {"ListDiff", "out idx"},
    {"LogMatrixDeterminant", "sign log_abs_determinant"},
    {"LogUniformCandidateSampler", "sampled_candidates true_expected_count sampled_expected_count"},
    {"LookupTableExport", "keys values"},
    {"LookupTableExportV2", "keys values"},
    {"Lu", "lu p"},
    {"MapPeek", "values*dtypes"},
    {"MapUnstage", "values*dtypes"},
    {"MapUnstageNoKey", "key values*dtypes"},
    {"MaxPoolWithArgmax", "output argmax"},
    {"Merge", "output value_index"},
    {"NearestNeighbors", "nearest_center_indices nearest_center_distances"},
    {"NonMaxSuppressionV4", "selected_indices valid_outputs"},
    {"NonMaxSuppressionV5", "selected_indices selected_scores valid_outputs"},
    {"OptionalGetValue", "components*output_types"},
    {"OrderedMapPeek", "values*dtypes"},
    {"OrderedMapUnstage", "values*dtypes"},
    {"OrderedMapUnstageNoKey", "key values*dtypes"},
    {"ParseExample", "sparse_indices*Nsparse sparse_values*sparse_types sparse_shapes*Nsparse dense_values*Tdense"},
    {"ParseExampleV2",
     "sparse_indices*num_sparse sparse_values*sparse_types sparse_shapes*num_sparse "
     "dense_values*Tdense ragged_values*ragged_value_types ragged_row_splits*ragged_split_types"},
    {"ParseSequenceExample",
     "context_sparse_indices*Ncontext_sparse context_sparse_values*context_sparse_types "
     "context_sparse_shapes*Ncontext_sparse context_dense_values*Tcontext_dense "
     "feature_list_sparse_indices*Nfeature_list_sparse "
     "feature_list_sparse_values*feature_list_sparse_types "
     "feature_list_sparse_shapes*Nfeature_list_sparse "
     "feature_list_dense_values*feature_list_dense_types "
     "feature_list_dense_lengths*Nfeature_list_dense"},
    {"ParseSequenceExampleV2",
     "context_sparse_indices*Ncontext_sparse context_sparse_values*context_sparse_types "
     "context_sparse_shapes*Ncontext_sparse context_dense_values*Tcontext_dense "
     "context_ragged_values*context_ragged_value_types "
     "context_ragged_row_splits*context_ragged_split_types "
     "feature_list_sparse_indices*Nfeature_list_sparse "
     "feature_list_sparse_values*feature_list_sparse_types "
     "feature_list_sparse_shapes*Nfeature_list_sparse "
     "feature_list_dense_values*feature_list_dense_types "
     "feature_list_dense_lengths*Nfeature_list_dense "
     "feature_list_ragged_values*feature_list_ragged_value_types "
     "feature_list_ragged_outer_splits*feature_list_ragged_split_types "
     "feature_list_ragged_inner_splits*feature_list_ragged_split_types"},
    {"ParseSingleExample",
     "sparse_indices*num_sparse sparse_values*sparse_types sparse_shapes*num_sparse "
     "dense_values*Tdense"},
    {"ParseSingleSequenceExample",
     "context_sparse_indices*Ncontext_sparse context_sparse_values*context_sparse_types "
     "context_sparse_shapes*Ncontext_sparse context_dense_values*Tcontext_dense "
     "feature_list_sparse_indices*Nfeature_list_sparse "
     "feature_list_sparse_values*feature_list_sparse_types "
     "feature_list_sparse_shapes*Nfeature_list_sparse "
     "feature_list_dense_values*feature_list_dense_types"},
    {"PartitionedCall", "output*Tout"},
    {"PyFunc", "output*Tout"},
    {"PyFuncStateless", "output*Tout"},
    {"Qr", "q r"},
    {"QuantizeAndDequantizeV4Grad", "input_backprop input_min_backprop input_max_backprop"},
    {"QuantizeDownAndShrinkRange", "output output_min output_max"},
    {"QuantizeV2", "output output_min output_max"},
    {"QuantizedAdd", "z min_z max_z"},
    {"QuantizedAvgPool", "output min_output max_output"},
    {"QuantizedBatchNormWithGlobalNormalization", "result result_min result_max"},
    {"QuantizedBiasAdd", "output min_out max_out"},
    {"QuantizedConcat", "output output_min output_max"},
    {"QuantizedConcatV2", "output output_min output_max"},
    {"QuantizedConv2D", "output min_output max_output"},
    {"QuantizedConv2DAndRelu", "output min_output max_output"},
    {"QuantizedConv2DAndReluAndRequantize", "output min_output max_output"},
    {"QuantizedConv2DAndRequantize", "output min_output max_output"},
    {"QuantizedConv2DPerChannel", "output min_output max_output"},
    {"QuantizedConv2DWithBias", "output min_output max_output"},
    {"QuantizedConv2DWithBiasAndRelu", "output min_output max_output"},
    {"QuantizedConv2DWithBiasAndReluAndRequantize", "output min_output max_output"},
    {"QuantizedConv2DWithBiasAndRequantize", "output min_output max_output"},
    {"QuantizedConv2DWithBiasSignedSumAndReluAndRequantize", "output min_output max_output"},
    {"QuantizedConv2DWithBiasSumAndRelu", "output min_output max_output"},
    {"QuantizedConv2DWithBiasSumAndReluAndRequantize", "output min_output max_output"},
    {"QuantizedDepthwiseConv2D", "output min_output max_output"},
    {"QuantizedDepthwiseConv2DWithBias", "output min_output max_output"},
    {"QuantizedDepthwiseConv2DWithBiasAndRelu", "output min_output max_output"},
    {"QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize", "output min_output max_output"},
    {"QuantizedInstanceNorm", "y y_min y_max"},
    {"QuantizedMatMul", "out min_out max_out"},
    {"QuantizedMatMulWithBias", "out min_out max_out"},
    {"QuantizedMatMulWithBiasAndRelu", "out min_out max_out"},
    {"QuantizedMatMulWithBiasAndReluAndRequantize", "out min_out max_out"},
    {"QuantizedMatMulWithBiasAndRequantize", "out min_out max_out"},
    {"QuantizedMaxPool", "output min_output max_output"},
    {"QuantizedMul", "z min_z max_z"},
    {"QuantizedRelu", "activations min_activations max_activations"},
    {"QuantizedRelu6", "activations min_activations max_activations"},
    {"QuantizedReluX", "activations min_activations max_activations"},
    {"QuantizedReshape", "output output_min output_max"},
    {"QuantizedResizeBilinear", "resized_images out_min out_max"},
    {"QueueDequeue", "components*component_types"},
    {"QueueDequeueMany", "components*component_types"},
    {"QueueDequeueManyV2", "components*component_types"},
    {"QueueDequeueUpTo", "components*component_types"},
    {"QueueDequeueUpToV2", "components*component_types"},
    {"QueueDequeueV2", "components*component_types"},
    {"RaggedCountSparseOutput", "output_indices output_values output_dense_shape"},
    {"RaggedCross", "output_values output_row_splits"},
    {"RaggedFillEmptyRows", "output_value_rowids output_values empty_row_indicator reverse_index_map"},
    {"RaggedFillEmptyRowsGrad", "d_values d_default_value"},
    {"RaggedGather", "output_nested_splits*OUTPUT_RAGGED_RANK output_dense_values"},
    {"RaggedRange", "rt_nested_splits rt_dense_values"},
    {"RaggedTensorFromVariant", "output_nested_splits*output_ragged_rank output_dense_values"},
    {"RaggedTensorToSparse", "sparse_indices sparse_values sparse_dense_shape"},
    {"ReaderRead", "key value"},
    {"ReaderReadUpTo", "keys values"},
    {"ReaderReadUpToV2", "keys values"},
    {"ReaderReadV2", "key value"},
    {"ReduceDataset", "components*output_types"},
    {"RefMerge", "output value_index"},
    {"RefSwitch", "output_false output_true"},
    {"RemoteCall", "output*Tout"},
    {"RequantizationRange", "output_min output_max"},
    {"RequantizationRangePerChannel", "output_min output_max"},
    {"Requantize", "output output_min output_max"},
    {"RequantizePerChannel", "output output_min output_max"},
    {"RestoreV2", "tensors*dtypes"},
    {"SampleDistortedBoundingBox", "begin size bboxes"},
    {"SampleDistortedBoundingBoxV2", "begin size bboxes"},
    {"SelfAdjointEigV2", "e v"},
    {"ShapeN", "output*N"},
    {"Skipgram", "vocab_word vocab_freq words_per_epoch current_epoch total_words_processed examples labels"},
    {"SoftmaxCrossEntropyWithLogits", "loss backprop"},
    {"SparseAccumulatorTakeGradient", "indices values shape"},
    {"SparseAdd", "sum_indices sum_values sum_shape"},
    {"SparseAddGrad", "a_val_grad b_val_grad"},
    {"SparseConcat", "output_indices output_values output_shape"},
    {"SparseCountSparseOutput", "output_indices output_values output_dense_shape"},
    {"SparseCross", "output_indices output_values output_shape"},
    {"SparseCrossHashed", "output_indices output_values output_shape"},
    {"SparseCrossV2", "output_indices output_values output_shape"},
    {"SparseFillEmptyRows", "output_indices output_values empty_row_indicator reverse_index_map"},
    {"SparseFillEmptyRowsGrad", "d_values d_default_value"},
    {"SparseReduceMaxSparse", "output_indices output_values output_shape"},
    {"SparseReduceSumSparse", "output_indices output_values output_shape"},
    {"SparseReorder", "output_indices output_values"},
    {"SparseReshape", "output_indices output_shape"},
    {"SparseSegmentMeanGradV2", "output sorted_unique_indices"},
    {"SparseSegmentSqrtNGradV2", "output sorted_unique_indices"},
    {"SparseSegmentSumGradV2", "output sorted_unique_indices"},
    {"SparseSlice", "output_indices output_values output_shape"},
    {"SparseSoftmaxCrossEntropyWithLogits", "loss backprop"},
    {"SparseSparseMaximum", "output_indices output_values"},
    {"SparseSparseMinimum", "output_indices output_values"},
    {"SparseSplit", "output_indices*num_split output_values*num_split output_shape*num_split"},
    {"SparseToSparseSetOperation", "result_indices result_values result_shape"},
    {"Split", "output*num_split"},
    {"SplitDedupData", "integer_tensor float_tensor"},
    {"SplitV", "output*num_split"},
    {"StagePeek", "values*dtypes"},
    {"StatefulPartitionedCall", "output*Tout"},
    {"StatelessCase", "output*Tout"},
    {"StatelessIf", "output*Tout"},
    {"StatelessRandomGetKeyCounter", "key counter"},
    {"StatelessRandomGetKeyCounterAlg", "key counter alg"},
    {"StatelessSampleDistortedBoundingBox", "begin size bboxes"},
    {"StatelessWhile", "output*T"},
    {"StringNGrams", "ngrams ngrams_splits"},
    {"StringSplit", "indices values shape"},
    {"StringSplitV2", "indices values shape"},
    {"Svd", "s u v"},
    {"Switch", "output_false output_true"},
    {"SymbolicGradient", "output*Tout"},
    {"TPUPartitionedCall", "output*Tout"},
    {"TakeManySparseFromTensorsMap", "sparse_indices sparse_values sparse_shape"},
    {"TensorArrayConcat", "value lengths"},
    {"TensorArrayConcatV2", "value lengths"},
    {"TensorArrayConcatV3", "value lengths"},
    {"TensorArrayGradV3", "grad_handle flow_out"},
    {"TensorArrayGradWithShape", "grad_handle flow_out"},
    {"TensorArrayV3", "handle flow"},
    {"TensorListConcat", "tensor lengths"},
    {"TensorListConcatV2", "tensor lengths"},
    {"TensorListPopBack", "output_handle tensor"},
    {"ThreadUnsafeUnigramCandidateSampler", "sampled_candidates true_expected_count sampled_expected_count"},
    {"TopK", "values indices"},
    {"TopKUnique", "topk topk_indices"},
    {"TopKV2", "values indices"},
    {"TopKWithUnique", "topk topk_indices"},
    {"UnicodeDecode", "row_splits char_values"},
    {"UnicodeDecodeWithOffsets", "row_splits char_values char_to_byte_starts"},
    {"UniformCandidateSampler", "sampled_candidates true_expected_count sampled_expected_count"},
    {"Unique", "y idx"},
    {"UniqueV2", "y idx"},
    {"UniqueWithCounts", "y idx count"},
    {"UniqueWithCountsV2", "y idx count"},
    {"Unpack", "output*num"},
    {"Unstage", "values*dtypes"},
    {"While", "output*T"},
    {"XlaLaunch", "results*Tresults"},
    {"XlaSplitND", "outputs*N"},
    {"XlaVariadicReduce", "output*N"},
    {"XlaVariadicReduceV2", "outputs*T"},
    {"XlaVariadicSort", "outputs*T"},
    {"XlaWhile", "output*T"},
};
// clang-format on

constexpr bool is_sorted() {
  for (size_t i = 1; i < std::size(kResults); ++i)
    if (kResults[i - 1].op >= kResults[i].op) return false;
  return true;
}
static_assert(is_sorted());

}  // namespace

std::string_view multiple_results(std::string_view op) {
  const ResultRow* row = std::lower_bound(std::begin(kResults), std::end(kResults), op,
                                          [](const ResultRow& a, std::string_view name) { return a.op < name; });
  if (row != std::end(kResults) && row->op == op) return row->results;
  const OpDef* user = find_foreign_op("tensorflow", op);
  return user && user->results.size() > 1 ? *intern_symbol(fmt::format("{}", fmt::join(user->results, " ")))
                                          : std::string_view();
}

}  // namespace cairn::tensorflow
