// The verbs of the command line. Each adds its subcommand and, when chosen, sets `run`, whose result is the exit status.
#pragma once

#include <functional>

#include "options.h"
#include "session.h"

namespace cairn::cli {

using Run = std::function<int()>;

/// MODEL, --input-shape, --batch, --threads, --engines, --out-nodes, --signature, --op-library, --max-seconds and --json.
void add_model_options(Verb& verb, ModelArguments& arguments, bool& json);

/// --max-seconds of the command, which is one of the model options; 0: any time.
double time_limit();
void add_op_library_option(Verb& verb);
/// Loads the libraries of operators that the environment and --op-library name.
void load_libraries();

void add_show(Verb& app, Run& run);
void add_freeze(Verb& app, Run& run);
void add_convert(Verb& app, Run& run);
void add_quantize(Verb& app, Run& run);
void add_run(Verb& app, Run& run);
void add_train(Verb& app, Run& run);
void add_bench(Verb& app, Run& run);
void add_verify(Verb& app, Run& run);
void add_diff(Verb& app, Run& run);
void add_why(Verb& app, Run& run);
void add_check(Verb& app, Run& run);
void add_simulate(Verb& app, Run& run);
void add_op(Verb& app, Run& run);
void add_data(Verb& app, Run& run);

/// The platform's own tools: arguments without the program's name.
int atc_main(const std::vector<std::string>& arguments);
int omg_main(const std::vector<std::string>& arguments);
int msame_main(const std::vector<std::string>& arguments);

/// Exit statuses beyond 0 and 1.
inline constexpr int kExitDiffers = 2;
inline constexpr int kExitNotVerified = 3;

/// Becomes `python -m MODULE arguments`, with the Python beside this program. Throws Error not_found.
int run_script_verb(const std::string& verb, const std::string& module, const std::vector<std::string>& arguments);

}  // namespace cairn::cli
