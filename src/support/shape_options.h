// Parses shapes from the platform tools' command line: sizes by input, ranges of sizes, and profiles (combinations of
// sizes that a model is converted for).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cairn {

/// Sizes from low to high, both included.
struct SizeRange {
  static constexpr int64_t kNoLimit = INT64_MAX;
  int64_t low = 1;
  int64_t high = kNoLimit;
  bool holds(int64_t size) const { return size >= low && size <= high; }
  friend bool operator==(const SizeRange&, const SizeRange&) = default;
};

/// An input with its dims; -1 when several sizes are allowed, which the range then gives.
struct NamedDims {
  std::string name;  // empty: by position
  std::vector<int64_t> dims;
  std::vector<SizeRange> ranges;  // one per dim
  bool of_ranges = false;         // given by --input_shape_range
};

/// "a:1,224,224,3;b:1,-1,1~8"; brackets and blanks are accepted and noted in `repairs`. Names may contain colons.
/// Throws ReportError: E10002 (form), E10011 (zero), E10013 (too large), E10014 (no number).
std::vector<NamedDims> parse_input_shapes(const std::string& value, std::vector<std::string>& repairs);
/// --input_shape_range: "a:[1~20,3,-1];b:[..]", or without names "[..],[..]". Throws ReportError E10048.
std::vector<NamedDims> parse_shape_ranges(const std::string& value);

/// Which sizes the numbers of a profile give.
enum class ProfileKind : uint8_t { batch, image, dims };
using Profile = std::vector<int64_t>;
/// The value of --dynamic_batch_size, --dynamic_image_size or --dynamic_dims; empty batch sizes are left out and noted in `repairs`. Throws ReportError: E10003 (form), E10020
/// (an image has two sizes), E10035 and E10036 (2 to 100 profiles), E10037 (lengths), E10038 (zero), E10039 (twice).
std::vector<Profile> parse_profiles(ProfileKind kind, const std::string& value, std::vector<std::string>& repairs);
/// For each profile the sizes of every input, with each -1 replaced. `format` is "NCHW", "NHWC", "ND" and so on. Throws
/// ReportError: E10012, E10018, E10031 (batch), E10019 (image), E10003, E10045 (number of -1), E10040 (none, or a range).
std::vector<std::vector<std::vector<int64_t>>> fill_profiles(ProfileKind kind, const std::vector<Profile>& profiles,
                                                             const std::vector<NamedDims>& inputs,
                                                             const std::string& format);

}  // namespace cairn
