// The files of the platform's compression tool (AMCT): configurations in JSON, and records of scales and offsets in the text
// form of protocol buffers.
#pragma once

#include "quantize/quantise.h"

namespace cairn::quantize {

/// Takes over what a configuration says of the whole model and of its layers; `notes` receives what has no effect here. Throws
/// Error not_found, io, invalid_argument.
void read_config(const std::string& path, Options& options, std::vector<std::string>& notes);
/// A configuration that says what was chosen, layer by layer.
std::string config_text(const Outcome& outcome, const Options& options);

/// Takes over the scales of a record; layers without one stay f32. Throws Error not_found, io, invalid_model.
void read_record(const std::string& path, Options& options);
/// The scales and offsets of all quantised layers whose data is quantised. Offsets are those of integers from -128 to 127.
std::string record_text(const Outcome& outcome);

}  // namespace cairn::quantize
