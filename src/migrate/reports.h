// The result of a migration in the formats that people and tools read.
#pragma once

#include <string>

#include "migrate/api_table.h"
#include "migrate/migrate.h"

namespace cairn::migrate {

/// Unified diffs of all changed files.
std::string diff_report(const Result& result);
/// A table for the terminal: what was found and changed, at most 100 columns wide.
std::string text_report(const Result& result);
std::string json_report(const Result& result);
/// SARIF 2.1.0; changes carry fixes that an editor can apply.
std::string sarif_report(const Result& result);
std::string csv_report(const Result& result);
/// One page without outside parts: summary, side-by-side differences, findings with advice, references, score.
std::string html_report(const Result& result, const std::string& title);
/// The known seven columns and ours behind them. Throws Error when it cannot be written or the build has no xlsx writer.
void xlsx_report(const Result& result, const SupportList& list, const std::string& path);

std::string_view generation_name(Generation generation);
std::string_view distribution_name(Distribution distribution);
/// "TensorFlow 1", or how many scripts are of each interface.
std::string interfaces(const Result& result);

/// The five report files of the platform's converter (success_report.txt, failed_report.txt, need_migration_doc.txt,
/// api_brief_report.txt, api_analysis_report.xlsx) into `folder`.
void platform_reports(const Result& result, const SupportList& list, const std::string& folder);

/// The rules as a Markdown page.
std::string rules_markdown();

}  // namespace cairn::migrate
