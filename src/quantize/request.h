// What the command and the C interface ask for beside the options of a quantisation: files, and how results are recorded.
#pragma once

#include "model/om_file.h"
#include "quantize/report.h"

namespace cairn::quantize {

struct Request {
  Options options;
  std::vector<std::string> without;          // steps to leave out: equalise, smooth, correct, costs
  std::string config, record;                // files of AMCT to follow; empty: none
  std::string page, new_config, new_record;  // files to write
};

/// Reads what `request` names and makes the options complete. `notes` receives what has no effect. Throws Error.
void complete(Request& request, std::vector<std::string>& notes);
void write_files(const Request& request, const Outcome& outcome, const Provenance& provenance);
/// The origin of the model that is written.
OmOrigin recorded(OmOrigin origin, const Options& options);

}  // namespace cairn::quantize
