#include "frontends/caffe/schema.h"

#include <array>

namespace cairn::caffe {
namespace {

constexpr TextKind integer = TextKind::integer, boolean = TextKind::boolean, real = TextKind::real32,
                   text = TextKind::text, word = TextKind::enumeration, message = TextKind::message,
                   ignored = TextKind::ignored;

constexpr TextField kShapeFields[] = {{"dim", 1, integer}};
constexpr TextMessage kShape{"BlobShape", kShapeFields};
constexpr TextEnum kPhases[] = {{"TRAIN", 0}, {"TEST", 1}};
constexpr TextField kStateFields[] = {{"phase", 1, word, nullptr, kPhases}, {"level", 2, integer}, {"stage", 3, text}};
constexpr TextMessage kState{"NetState", kStateFields};
constexpr TextField kRuleFields[] = {{"phase", 1, word, nullptr, kPhases},
                                     {"min_level", 2, integer},
                                     {"max_level", 3, integer},
                                     {"stage", 4, text},
                                     {"not_stage", 5, text}};
constexpr TextMessage kRule{"NetStateRule", kRuleFields};

// Parameters by kind of layer, in alphabetical order.
constexpr TextField kAccuracyFields[] = {{"top_k", 1, integer}, {"axis", 2, integer}, {"ignore_label", 3, integer}};
constexpr TextMessage kAccuracy{"AccuracyParameter", kAccuracyFields};
constexpr TextField kArgMaxFields[] = {{"out_max_val", 1, boolean}, {"top_k", 2, integer}, {"axis", 3, integer}};
constexpr TextMessage kArgMax{"ArgMaxParameter", kArgMaxFields};
constexpr TextField kBatchNormFields[] = {
    {"use_global_stats", 1, boolean}, {"moving_average_fraction", 2, real}, {"eps", 3, real}};
constexpr TextMessage kBatchNorm{"BatchNormParameter", kBatchNormFields};
constexpr TextField kBiasFields[] = {{"axis", 1, integer}, {"num_axes", 2, integer}, {"filler", 3, ignored}};
constexpr TextMessage kBias{"BiasParameter", kBiasFields};
constexpr TextField kClipFields[] = {{"min", 1, real}, {"max", 2, real}};
constexpr TextMessage kClip{"ClipParameter", kClipFields};
constexpr TextField kConcatFields[] = {{"concat_dim", 1, integer}, {"axis", 2, integer}};
constexpr TextMessage kConcat{"ConcatParameter", kConcatFields};
constexpr TextField kConvolutionFields[] = {{"num_output", 1, integer},
                                            {"bias_term", 2, boolean},
                                            {"pad", 3, integer},
                                            {"kernel_size", 4, integer},
                                            {"group", 5, integer},
                                            {"stride", 6, integer},
                                            {"weight_filler", 7, ignored},
                                            {"bias_filler", 8, ignored},
                                            {"pad_h", 9, integer},
                                            {"pad_w", 10, integer},
                                            {"kernel_h", 11, integer},
                                            {"kernel_w", 12, integer},
                                            {"stride_h", 13, integer},
                                            {"stride_w", 14, integer},
                                            {"engine", 15, ignored},
                                            {"axis", 16, integer},
                                            {"force_nd_im2col", 17, ignored},
                                            {"dilation", 18, integer}};
constexpr TextMessage kConvolution{"ConvolutionParameter", kConvolutionFields};
constexpr TextField kCropFields[] = {{"axis", 1, integer}, {"offset", 2, integer}};
constexpr TextMessage kCrop{"CropParameter", kCropFields};
constexpr TextField kDataFields[] = {
    {"source", 1, ignored},     {"scale", 2, real},        {"mean_file", 3, text},
    {"batch_size", 4, integer}, {"crop_size", 5, integer}, {"mirror", 6, ignored},
    {"rand_skip", 7, ignored},  {"backend", 8, ignored},   {"force_encoded_color", 9, ignored},
    {"prefetch", 10, ignored}};
constexpr TextMessage kData{"DataParameter", kDataFields};
constexpr TextField kImageDataFields[] = {
    {"source", 1, ignored},     {"scale", 2, real},         {"mean_file", 3, text},    {"batch_size", 4, integer},
    {"crop_size", 5, integer},  {"mirror", 6, ignored},     {"rand_skip", 7, ignored}, {"shuffle", 8, ignored},
    {"new_height", 9, integer}, {"new_width", 10, integer}, {"is_color", 11, boolean}, {"root_folder", 12, ignored}};
constexpr TextMessage kImageData{"ImageDataParameter", kImageDataFields};
constexpr TextField kNmsFields[] = {{"nms_threshold", 1, real}, {"top_k", 2, integer}, {"eta", 3, real}};
constexpr TextMessage kNms{"NonMaximumSuppressionParameter", kNmsFields};
constexpr TextEnum kCodes[] = {{"CORNER", 1}, {"CENTER_SIZE", 2}, {"CORNER_SIZE", 3}};
constexpr TextField kDetectionFields[] = {
    {"num_classes", 1, integer},          {"share_location", 2, boolean},
    {"background_label_id", 3, integer},  {"nms_param", 4, message, &kNms},
    {"save_output_param", 5, ignored},    {"code_type", 6, word, nullptr, kCodes},
    {"keep_top_k", 7, integer},           {"variance_encoded_in_target", 8, boolean},
    {"confidence_threshold", 9, real},    {"visualize", 10, ignored},
    {"visualize_threshold", 11, ignored}, {"save_file", 12, ignored}};
constexpr TextMessage kDetection{"DetectionOutputParameter", kDetectionFields};
constexpr TextField kDropoutFields[] = {{"dropout_ratio", 1, real}};
constexpr TextMessage kDropout{"DropoutParameter", kDropoutFields};
constexpr TextField kDummyDataFields[] = {{"data_filler", 1, ignored}, {"num", 2, integer},
                                          {"channels", 3, integer},    {"height", 4, integer},
                                          {"width", 5, integer},       {"shape", 6, message, &kShape}};
constexpr TextMessage kDummyData{"DummyDataParameter", kDummyDataFields};
constexpr TextEnum kEltwiseWords[] = {{"PROD", 0}, {"SUM", 1}, {"MAX", 2}};
constexpr TextField kEltwiseFields[] = {
    {"operation", 1, word, nullptr, kEltwiseWords}, {"coeff", 2, real}, {"stable_prod_grad", 3, ignored}};
constexpr TextMessage kEltwise{"EltwiseParameter", kEltwiseFields};
constexpr TextField kEluFields[] = {{"alpha", 1, real}};
constexpr TextMessage kElu{"ELUParameter", kEluFields};
constexpr TextField kEmbedFields[] = {{"num_output", 1, integer},
                                      {"input_dim", 2, integer},
                                      {"bias_term", 3, boolean},
                                      {"weight_filler", 4, ignored},
                                      {"bias_filler", 5, ignored}};
constexpr TextMessage kEmbed{"EmbedParameter", kEmbedFields};
constexpr TextField kExpFields[] = {{"base", 1, real}, {"scale", 2, real}, {"shift", 3, real}};
constexpr TextMessage kExp{"ExpParameter", kExpFields}, kLog{"LogParameter", kExpFields};
constexpr TextField kFlattenFields[] = {{"axis", 1, integer}, {"end_axis", 2, integer}};
constexpr TextMessage kFlatten{"FlattenParameter", kFlattenFields};
constexpr TextField kInnerProductFields[] = {{"num_output", 1, integer},    {"bias_term", 2, boolean},
                                             {"weight_filler", 3, ignored}, {"bias_filler", 4, ignored},
                                             {"axis", 5, integer},          {"transpose", 6, boolean}};
constexpr TextMessage kInnerProduct{"InnerProductParameter", kInnerProductFields};
constexpr TextField kInputFields[] = {{"shape", 1, message, &kShape}};
constexpr TextMessage kInput{"InputParameter", kInputFields}, kParameter{"ParameterParameter", kInputFields};
constexpr TextField kInterpFields[] = {{"height", 1, integer},      {"width", 2, integer},
                                       {"zoom_factor", 3, integer}, {"shrink_factor", 4, integer},
                                       {"pad_beg", 5, integer},     {"pad_end", 6, integer}};
constexpr TextMessage kInterp{"InterpParameter", kInterpFields};
constexpr TextEnum kRegions[] = {{"ACROSS_CHANNELS", 0}, {"WITHIN_CHANNEL", 1}};
constexpr TextField kLrnFields[] = {{"local_size", 1, integer},
                                    {"alpha", 2, real},
                                    {"beta", 3, real},
                                    {"norm_region", 4, word, nullptr, kRegions},
                                    {"k", 5, real},
                                    {"engine", 6, ignored}};
constexpr TextMessage kLrn{"LRNParameter", kLrnFields};
constexpr TextField kMemoryDataFields[] = {
    {"batch_size", 1, integer}, {"channels", 2, integer}, {"height", 3, integer}, {"width", 4, integer}};
constexpr TextMessage kMemoryData{"MemoryDataParameter", kMemoryDataFields};
constexpr TextField kMvnFields[] = {
    {"normalize_variance", 1, boolean}, {"across_channels", 2, boolean}, {"eps", 3, real}};
constexpr TextMessage kMvn{"MVNParameter", kMvnFields};
constexpr TextField kNormalizeFields[] = {
    {"across_spatial", 1, boolean}, {"scale_filler", 2, ignored}, {"channel_shared", 3, boolean}, {"eps", 4, real}};
constexpr TextMessage kNormalize{"NormalizeParameter", kNormalizeFields};
constexpr TextField kPermuteFields[] = {{"order", 1, integer}};
constexpr TextMessage kPermute{"PermuteParameter", kPermuteFields};
constexpr TextEnum kPools[] = {{"MAX", 0}, {"AVE", 1}, {"STOCHASTIC", 2}};
constexpr TextEnum kRoundings[] = {{"CEIL", 0}, {"FLOOR", 1}};
constexpr TextField kPoolingFields[] = {{"pool", 1, word, nullptr, kPools},
                                        {"kernel_size", 2, integer},
                                        {"stride", 3, integer},
                                        {"pad", 4, integer},
                                        {"kernel_h", 5, integer},
                                        {"kernel_w", 6, integer},
                                        {"stride_h", 7, integer},
                                        {"stride_w", 8, integer},
                                        {"pad_h", 9, integer},
                                        {"pad_w", 10, integer},
                                        {"engine", 11, ignored},
                                        {"global_pooling", 12, boolean},
                                        {"ceil_mode", 13, boolean},
                                        {"round_mode", 14, word, nullptr, kRoundings}};
constexpr TextMessage kPooling{"PoolingParameter", kPoolingFields};
constexpr TextField kPowerFields[] = {{"power", 1, real}, {"scale", 2, real}, {"shift", 3, real}};
constexpr TextMessage kPower{"PowerParameter", kPowerFields};
constexpr TextField kPReluFields[] = {{"filler", 1, ignored}, {"channel_shared", 2, boolean}};
constexpr TextMessage kPRelu{"PReLUParameter", kPReluFields};
constexpr TextField kPriorBoxFields[] = {{"min_size", 1, real},    {"max_size", 2, real}, {"aspect_ratio", 3, real},
                                         {"flip", 4, boolean},     {"clip", 5, boolean},  {"variance", 6, real},
                                         {"img_size", 7, integer}, {"img_h", 8, integer}, {"img_w", 9, integer},
                                         {"step", 10, real},       {"step_h", 11, real},  {"step_w", 12, real},
                                         {"offset", 13, real}};
constexpr TextMessage kPriorBox{"PriorBoxParameter", kPriorBoxFields};
constexpr TextField kProposalFields[] = {{"feat_stride", 1, real},
                                         {"base_size", 2, real},
                                         {"min_size", 3, real},
                                         {"ratio", 4, real},
                                         {"scale", 5, real},
                                         {"pre_nms_topn", 6, integer},
                                         {"post_nms_topn", 7, integer},
                                         {"iou_threshold", 8, real},
                                         {"nms_thresh", 8, real},
                                         {"output_actual_rois_num", 9, boolean}};
constexpr TextMessage kProposal{"ProposalParameter", kProposalFields};
constexpr TextField kPsRoiFields[] = {
    {"spatial_scale", 1, real}, {"output_dim", 2, integer}, {"group_size", 3, integer}};
constexpr TextMessage kPsRoi{"PSROIPoolingParameter", kPsRoiFields};
constexpr TextField kRecurrentFields[] = {{"num_output", 1, integer},
                                          {"weight_filler", 2, ignored},
                                          {"bias_filler", 3, ignored},
                                          {"debug_info", 4, ignored},
                                          {"expose_hidden", 5, boolean}};
constexpr TextMessage kRecurrent{"RecurrentParameter", kRecurrentFields};
constexpr TextEnum kReductions[] = {{"SUM", 1}, {"ASUM", 2}, {"SUMSQ", 3}, {"MEAN", 4}};
constexpr TextField kReductionFields[] = {
    {"operation", 1, word, nullptr, kReductions}, {"axis", 2, integer}, {"coeff", 3, real}};
constexpr TextMessage kReduction{"ReductionParameter", kReductionFields};
constexpr TextField kReluFields[] = {{"negative_slope", 1, real}, {"engine", 2, ignored}};
constexpr TextMessage kRelu{"ReLUParameter", kReluFields};
constexpr TextField kReorgFields[] = {{"reverse", 1, boolean}, {"stride", 2, integer}};
constexpr TextMessage kReorg{"ReorgParameter", kReorgFields};
constexpr TextField kReshapeFields[] = {{"shape", 1, message, &kShape}, {"axis", 2, integer}, {"num_axes", 3, integer}};
constexpr TextMessage kReshape{"ReshapeParameter", kReshapeFields};
constexpr TextField kReverseFields[] = {{"axis", 1, integer}};
constexpr TextMessage kReverse{"ReverseParameter", kReverseFields};
constexpr TextField kRoiAlignFields[] = {{"pooled_h", 1, integer},
                                         {"pooled_w", 2, integer},
                                         {"spatial_scale", 3, real},
                                         {"sampling_ratio", 4, integer},
                                         {"roi_end_mode", 5, integer}};
constexpr TextMessage kRoiAlign{"ROIAlignParameter", kRoiAlignFields};
constexpr TextField kRoiPoolingFields[] = {{"pooled_h", 1, integer},
                                           {"pooled_w", 2, integer},
                                           {"spatial_scale", 3, real},
                                           {"spatial_scale_h", 4, real},
                                           {"spatial_scale_w", 5, real}};
constexpr TextMessage kRoiPooling{"ROIPoolingParameter", kRoiPoolingFields};
constexpr TextField kScaleFields[] = {{"axis", 1, integer},
                                      {"num_axes", 2, integer},
                                      {"filler", 3, ignored},
                                      {"bias_term", 4, boolean},
                                      {"bias_filler", 5, ignored}};
constexpr TextMessage kScale{"ScaleParameter", kScaleFields};
constexpr TextField kShuffleFields[] = {{"group", 1, integer}};
constexpr TextMessage kShuffle{"ShuffleChannelParameter", kShuffleFields};
constexpr TextField kSliceFields[] = {{"slice_dim", 1, integer}, {"slice_point", 2, integer}, {"axis", 3, integer}};
constexpr TextMessage kSlice{"SliceParameter", kSliceFields};
constexpr TextField kSoftmaxFields[] = {{"engine", 1, ignored}, {"axis", 2, integer}};
constexpr TextMessage kSoftmax{"SoftmaxParameter", kSoftmaxFields};
constexpr TextField kSppFields[] = {
    {"pyramid_height", 1, integer}, {"pool", 2, word, nullptr, kPools}, {"engine", 6, ignored}};
constexpr TextMessage kSpp{"SPPParameter", kSppFields};
constexpr TextField kSsdFields[] = {{"num_classes", 1, integer},
                                    {"share_location", 2, boolean},
                                    {"background_label_id", 3, integer},
                                    {"iou_threshold", 4, real},
                                    {"top_k", 5, integer},
                                    {"eta", 6, real},
                                    {"variance_encoded_in_target", 7, boolean},
                                    {"code_type", 8, integer},
                                    {"keep_top_k", 9, integer},
                                    {"confidence_threshold", 10, real}};
constexpr TextMessage kSsd{"SSDDetectionOutputParameter", kSsdFields};
constexpr TextField kTransformerFields[] = {
    {"transform_type", 1, text},   {"sampler_type", 2, text}, {"output_H", 3, integer}, {"output_W", 4, integer},
    {"to_compute_dU", 5, ignored}, {"theta_1_1", 6, real},    {"theta_1_2", 7, real},   {"theta_1_3", 8, real},
    {"theta_2_1", 9, real},        {"theta_2_2", 10, real},   {"theta_2_3", 11, real}};
constexpr TextMessage kTransformer{"SpatialTransformerParameter", kTransformerFields};
constexpr TextField kSwishFields[] = {{"beta", 1, real}};
constexpr TextMessage kSwish{"SwishParameter", kSwishFields};
constexpr TextField kThresholdFields[] = {{"threshold", 1, real}};
constexpr TextMessage kThreshold{"ThresholdParameter", kThresholdFields};
constexpr TextField kTileFields[] = {{"axis", 1, integer}, {"tiles", 2, integer}};
constexpr TextMessage kTile{"TileParameter", kTileFields};
constexpr TextField kTransformFields[] = {{"scale", 1, real},
                                          {"mirror", 2, ignored},
                                          {"crop_size", 3, integer},
                                          {"mean_file", 4, text},
                                          {"mean_value", 5, real},
                                          {"force_color", 6, ignored},
                                          {"force_gray", 7, ignored},
                                          {"resize_param", 8, ignored},
                                          {"noise_param", 9, ignored},
                                          {"emit_constraint", 10, ignored},
                                          {"crop_h", 11, integer},
                                          {"crop_w", 12, integer},
                                          {"distort_param", 13, ignored},
                                          {"expand_param", 14, ignored}};
constexpr TextMessage kTransform{"TransformationParameter", kTransformFields};
constexpr TextField kUpsampleFields[] = {
    {"scale", 1, real}, {"stride", 2, integer}, {"stride_h", 3, integer}, {"stride_w", 4, integer}};
constexpr TextMessage kUpsample{"UpsampleParameter", kUpsampleFields};
constexpr TextField kYoloFields[] = {{"boxes", 1, integer},      {"coords", 2, integer},  {"classes", 3, integer},
                                     {"yolo_version", 4, text},  {"softmax", 5, boolean}, {"background", 6, boolean},
                                     {"softmaxtree", 7, boolean}};
constexpr TextMessage kYolo{"YoloParameter", kYoloFields};
constexpr TextField kYoloOutputFields[] = {{"boxes", 1, integer},         {"classes", 2, integer},
                                           {"coords", 3, integer},        {"relative", 4, boolean},
                                           {"obj_threshold", 5, real},    {"score_threshold", 6, real},
                                           {"iou_threshold", 7, real},    {"pre_nms_topn", 8, integer},
                                           {"post_nms_topn", 9, integer}, {"biases", 10, real},
                                           {"biases_low", 11, real},      {"biases_mid", 12, real},
                                           {"biases_high", 13, real},     {"resize_origin_img_to_net", 14, boolean}};
constexpr TextMessage kYoloOutput{"YoloDetectionOutputParameter", kYoloOutputFields};

constexpr TextField kParamFields[] = {
    {"name", 1, text}, {"share_mode", 2, ignored}, {"lr_mult", 3, ignored}, {"decay_mult", 4, ignored}};
constexpr TextMessage kParam{"ParamSpec", kParamFields, 0, field::layer::unknown};

constexpr TextField kLayerFields[] = {
    {"name", field::layer::name, text},
    {"type", 2, text},
    {"bottom", 3, text},
    {"top", 4, text},
    {"loss_weight", 5, ignored},
    {"param", 6, message, &kParam},
    {"blobs", field::layer::blobs, ignored},
    {"include", 8, message, &kRule},
    {"exclude", 9, message, &kRule},
    {"phase", 10, word, nullptr, kPhases},
    {"propagate_down", 11, ignored},
    {"transform_param", 100, message, &kTransform},
    {"loss_param", 101, ignored},
    {"accuracy_param", 102, message, &kAccuracy},
    {"argmax_param", 103, message, &kArgMax},
    {"concat_param", 104, message, &kConcat},
    {"contrastive_loss_param", 105, ignored},
    {"convolution_param", 106, message, &kConvolution},
    {"data_param", 107, message, &kData},
    {"dropout_param", 108, message, &kDropout},
    {"dummy_data_param", 109, message, &kDummyData},
    {"eltwise_param", 110, message, &kEltwise},
    {"exp_param", 111, message, &kExp},
    {"hdf5_data_param", 112, message, &kData},
    {"hdf5_output_param", 113, ignored},
    {"hinge_loss_param", 114, ignored},
    {"image_data_param", 115, message, &kImageData},
    {"infogain_loss_param", 116, ignored},
    {"inner_product_param", 117, message, &kInnerProduct},
    {"lrn_param", 118, message, &kLrn},
    {"memory_data_param", 119, message, &kMemoryData},
    {"mvn_param", 120, message, &kMvn},
    {"pooling_param", 121, message, &kPooling},
    {"power_param", 122, message, &kPower},
    {"relu_param", 123, message, &kRelu},
    {"sigmoid_param", 124, ignored},
    {"softmax_param", 125, message, &kSoftmax},
    {"slice_param", 126, message, &kSlice},
    {"tanh_param", 127, ignored},
    {"threshold_param", 128, message, &kThreshold},
    {"window_data_param", 129, ignored},
    {"python_param", 130, ignored},
    {"prelu_param", 131, message, &kPRelu},
    {"spp_param", 132, message, &kSpp},
    {"reshape_param", 133, message, &kReshape},
    {"log_param", 134, message, &kLog},
    {"flatten_param", 135, message, &kFlatten},
    {"reduction_param", 136, message, &kReduction},
    {"embed_param", 137, message, &kEmbed},
    {"tile_param", 138, message, &kTile},
    {"batch_norm_param", 139, message, &kBatchNorm},
    {"elu_param", 140, message, &kElu},
    {"bias_param", 141, message, &kBias},
    {"scale_param", 142, message, &kScale},
    {"input_param", 143, message, &kInput},
    {"crop_param", 144, message, &kCrop},
    {"parameter_param", 145, message, &kParameter},
    {"recurrent_param", 146, message, &kRecurrent},
    {"swish_param", 147, message, &kSwish},
    {"clip_param", 148, message, &kClip},
    {"annotated_data_param", 200, ignored},
    {"multibox_loss_param", 201, ignored},
    {"permute_param", 202, message, &kPermute},
    {"prior_box_param", 203, message, &kPriorBox},
    {"detection_output_param", 204, message, &kDetection},
    {"detection_evaluate_param", 205, ignored},
    {"norm_param", 206, message, &kNormalize},
    {"video_data_param", 207, ignored},
    {"ssddetectionoutput_param", 232, message, &kSsd},
    {"interp_param", 1001, message, &kInterp},
    {"proposal_param", 1002, message, &kProposal},
    {"psroi_pooling_param", 1003, message, &kPsRoi},
    {"reorg_param", 1004, message, &kReorg},
    {"reverse_param", 1005, message, &kReverse},
    {"roi_align_param", 1006, message, &kRoiAlign},
    {"roi_pooling_param", 1007, message, &kRoiPooling},
    {"shuffle_channel_param", 1008, message, &kShuffle},
    {"upsample_param", 1009, message, &kUpsample},
    {"yolo_param", 1010, message, &kYolo},
    {"mish_param", 1011, ignored},
    {"relu6_param", 1012, ignored},
    {"yolov2_detection_output_param", 1013, message, &kYoloOutput},
    {"yolov3_detection_output_param", 1014, message, &kYoloOutput},
    {"yolov3_detection_output_v2_param", 1015, message, &kYoloOutput},
    {"st_param", 1016, message, &kTransformer},
};

struct OldType {
  int64_t number;
  std::string_view word, oldest, now;
};
constexpr OldType kOldTypes[] = {
    {35, "ABSVAL", "", "AbsVal"},
    {1, "ACCURACY", "accuracy", "Accuracy"},
    {30, "ARGMAX", "", "ArgMax"},
    {2, "BNLL", "bnll", "BNLL"},
    {3, "CONCAT", "concat", "Concat"},
    {37, "CONTRASTIVE_LOSS", "", "ContrastiveLoss"},
    {4, "CONVOLUTION", "conv", "Convolution"},
    {40, "CROP", "", "Crop"},
    {5, "DATA", "data", "Data"},
    {39, "DECONVOLUTION", "", "Deconvolution"},
    {6, "DROPOUT", "dropout", "Dropout"},
    {32, "DUMMY_DATA", "", "DummyData"},
    {7, "EUCLIDEAN_LOSS", "euclidean_loss", "EuclideanLoss"},
    {25, "ELTWISE", "", "Eltwise"},
    {38, "EXP", "", "Exp"},
    {8, "FLATTEN", "flatten", "Flatten"},
    {9, "HDF5_DATA", "hdf5_data", "HDF5Data"},
    {10, "HDF5_OUTPUT", "hdf5_output", "HDF5Output"},
    {28, "HINGE_LOSS", "", "HingeLoss"},
    {11, "IM2COL", "im2col", "Im2col"},
    {12, "IMAGE_DATA", "images", "ImageData"},
    {13, "INFOGAIN_LOSS", "infogain_loss", "InfogainLoss"},
    {14, "INNER_PRODUCT", "innerproduct", "InnerProduct"},
    {15, "LRN", "lrn", "LRN"},
    {29, "MEMORY_DATA", "", "MemoryData"},
    {16, "MULTINOMIAL_LOGISTIC_LOSS", "multinomial_logistic_loss", "MultinomialLogisticLoss"},
    {34, "MVN", "", "MVN"},
    {17, "POOLING", "pool", "Pooling"},
    {26, "POWER", "", "Power"},
    {18, "RELU", "relu", "ReLU"},
    {19, "SIGMOID", "sigmoid", "Sigmoid"},
    {27, "SIGMOID_CROSS_ENTROPY_LOSS", "", "SigmoidCrossEntropyLoss"},
    {36, "SILENCE", "", "Silence"},
    {20, "SOFTMAX", "softmax", "Softmax"},
    {21, "SOFTMAX_LOSS", "softmax_loss", "SoftmaxWithLoss"},
    {22, "SPLIT", "split", "Split"},
    {33, "SLICE", "", "Slice"},
    {23, "TANH", "tanh", "TanH"},
    {24, "WINDOW_DATA", "window_data", "WindowData"},
    {31, "THRESHOLD", "", "Threshold"}};
constexpr auto kOldWords = [] {
  std::array<TextEnum, std::size(kOldTypes)> words{};
  for (size_t i = 0; i < words.size(); ++i) words[i] = {kOldTypes[i].word, static_cast<int32_t>(kOldTypes[i].number)};
  return words;
}();

constexpr TextField kOldestFields[] = {{"name", field::oldest_layer::name, text},
                                       {"type", 2, text},
                                       {"num_output", 3, integer},
                                       {"biasterm", 4, boolean},
                                       {"weight_filler", 5, ignored},
                                       {"bias_filler", 6, ignored},
                                       {"pad", 7, integer},
                                       {"kernelsize", 8, integer},
                                       {"group", 9, integer},
                                       {"stride", 10, integer},
                                       {"pool", 11, word, nullptr, kPools},
                                       {"dropout_ratio", 12, real},
                                       {"local_size", 13, integer},
                                       {"alpha", 14, real},
                                       {"beta", 15, real},
                                       {"source", 16, ignored},
                                       {"scale", 17, real},
                                       {"meanfile", 18, text},
                                       {"batchsize", 19, integer},
                                       {"cropsize", 20, integer},
                                       {"mirror", 21, ignored},
                                       {"k", 22, real},
                                       {"blobs", field::oldest_layer::blobs, ignored},
                                       {"blobs_lr", 51, ignored},
                                       {"weight_decay", 52, ignored},
                                       {"rand_skip", 53, ignored},
                                       {"det_fg_threshold", 54, ignored},
                                       {"det_bg_threshold", 55, ignored},
                                       {"det_fg_fraction", 56, ignored},
                                       {"det_context_pad", 58, ignored},
                                       {"det_crop_mode", 59, ignored},
                                       {"new_num", 60, integer},
                                       {"new_channels", 61, integer},
                                       {"new_height", 62, integer},
                                       {"new_width", 63, integer},
                                       {"shuffle_images", 64, ignored},
                                       {"concat_dim", 65, integer},
                                       {"hdf5_output_param", 1001, ignored}};

constexpr TextField kOldFields[] = {{"layer", field::old_layer::oldest, message, &kOldestLayer},
                                    {"bottom", 2, text},
                                    {"top", 3, text},
                                    {"name", field::old_layer::name, text},
                                    {"type", 5, word, nullptr, kOldWords},
                                    {"blobs", field::old_layer::blobs, ignored},
                                    {"blobs_lr", 7, ignored},
                                    {"weight_decay", 8, ignored},
                                    {"concat_param", 9, message, &kConcat},
                                    {"convolution_param", 10, message, &kConvolution},
                                    {"data_param", 11, message, &kData},
                                    {"dropout_param", 12, message, &kDropout},
                                    {"hdf5_data_param", 13, message, &kData},
                                    {"hdf5_output_param", 14, ignored},
                                    {"image_data_param", 15, message, &kImageData},
                                    {"infogain_loss_param", 16, ignored},
                                    {"inner_product_param", 17, message, &kInnerProduct},
                                    {"lrn_param", 18, message, &kLrn},
                                    {"pooling_param", 19, message, &kPooling},
                                    {"window_data_param", 20, ignored},
                                    {"power_param", 21, message, &kPower},
                                    {"memory_data_param", 22, message, &kMemoryData},
                                    {"argmax_param", 23, message, &kArgMax},
                                    {"eltwise_param", 24, message, &kEltwise},
                                    {"threshold_param", 25, message, &kThreshold},
                                    {"dummy_data_param", 26, message, &kDummyData},
                                    {"accuracy_param", 27, message, &kAccuracy},
                                    {"hinge_loss_param", 29, ignored},
                                    {"relu_param", 30, message, &kRelu},
                                    {"slice_param", 31, message, &kSlice},
                                    {"include", 32, message, &kRule},
                                    {"exclude", 33, message, &kRule},
                                    {"mvn_param", 34, message, &kMvn},
                                    {"loss_weight", 35, ignored},
                                    {"transform_param", 36, message, &kTransform},
                                    {"tanh_param", 37, ignored},
                                    {"sigmoid_param", 38, ignored},
                                    {"softmax_param", 39, message, &kSoftmax},
                                    {"contrastive_loss_param", 40, ignored},
                                    {"exp_param", 41, message, &kExp},
                                    {"loss_param", 42, ignored},
                                    {"param", 1001, text},
                                    {"blob_share_mode", 1002, ignored}};

constexpr TextField kNetFields[] = {{"name", 1, text},
                                    {"layers", field::net_old_layer, message, &kOldLayer},
                                    {"input", 3, text},
                                    {"input_dim", 4, integer},
                                    {"force_backward", 5, ignored},
                                    {"state", 6, message, &kState},
                                    {"debug_info", 7, ignored},
                                    {"input_shape", 8, message, &kShape},
                                    {"layer", field::net_layer, message, &kLayer}};

}  // namespace

const TextMessage kNet{"NetParameter", kNetFields};
const TextMessage kLayer{"LayerParameter", kLayerFields, field::layer::place, field::layer::unknown};
const TextMessage kOldLayer{"V1LayerParameter", kOldFields, field::layer::place, field::layer::unknown};
const TextMessage kOldestLayer{"V0LayerParameter", kOldestFields};

std::string_view current_type(int64_t old) {
  for (const OldType& type : kOldTypes)
    if (type.number == old) return type.now;
  return {};
}

std::string_view current_type(std::string_view oldest) {
  for (const OldType& type : kOldTypes)
    if (!type.oldest.empty() && type.oldest == oldest) return type.now;
  return {};
}

}  // namespace cairn::caffe
