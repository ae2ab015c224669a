#include "profile/bulk_rows.h"

#include <fmt/format.h>

#include <vector>

namespace cairn::profile {
namespace {

// What SQLite asks of a virtual table: https://www.sqlite.org/vtab.html. It is called from C, so nothing here may throw.
struct Table : sqlite3_vtab {
  const BulkRows* rows;
};

struct Cursor : sqlite3_vtab_cursor {
  const BulkRows* rows;
  size_t at;
  std::vector<int64_t> values;
};

int connect(sqlite3* database, void* rows, int, const char* const*, sqlite3_vtab** made, char**) {
  const auto* given = static_cast<const BulkRows*>(rows);
  std::string sql = "CREATE TABLE rows(c0";
  for (int i = 1; i < given->columns; ++i) sql += fmt::format(",c{}", i);
  if (int status = sqlite3_declare_vtab(database, (sql + ")").c_str()); status != SQLITE_OK) return status;
  *made = new Table{{}, given};
  return SQLITE_OK;
}

int disconnect(sqlite3_vtab* table) {
  delete static_cast<Table*>(table);
  return SQLITE_OK;
}

int plan_scan(sqlite3_vtab*, sqlite3_index_info*) { return SQLITE_OK; }

int open_cursor(sqlite3_vtab* table, sqlite3_vtab_cursor** made) {
  const BulkRows* rows = static_cast<Table*>(table)->rows;
  *made = new Cursor{{}, rows, 0, std::vector<int64_t>(static_cast<size_t>(rows->columns))};
  return SQLITE_OK;
}

int close_cursor(sqlite3_vtab_cursor* cursor) {
  delete static_cast<Cursor*>(cursor);
  return SQLITE_OK;
}

void look(Cursor& cursor) {
  if (cursor.at < cursor.rows->count) cursor.rows->fill(cursor.at, cursor.values.data());
}

int begin(sqlite3_vtab_cursor* given, int, const char*, int, sqlite3_value**) {
  auto& cursor = static_cast<Cursor&>(*given);
  cursor.at = 0;
  look(cursor);
  return SQLITE_OK;
}

int next(sqlite3_vtab_cursor* given) {
  auto& cursor = static_cast<Cursor&>(*given);
  ++cursor.at;
  look(cursor);
  return SQLITE_OK;
}

int at_end(sqlite3_vtab_cursor* given) {
  const auto& cursor = static_cast<const Cursor&>(*given);
  return cursor.at >= cursor.rows->count;
}

int column(sqlite3_vtab_cursor* given, sqlite3_context* result, int which) {
  sqlite3_result_int64(result, static_cast<Cursor*>(given)->values[static_cast<size_t>(which)]);
  return SQLITE_OK;
}

int row_id(sqlite3_vtab_cursor* given, sqlite3_int64* id) {
  *id = static_cast<sqlite3_int64>(static_cast<Cursor*>(given)->at);
  return SQLITE_OK;
}

const sqlite3_module kModule = [] {
  sqlite3_module module{};
  module.xConnect = connect, module.xDisconnect = disconnect, module.xBestIndex = plan_scan;
  module.xOpen = open_cursor, module.xClose = close_cursor, module.xFilter = begin, module.xNext = next;
  module.xEof = at_end, module.xColumn = column, module.xRowid = row_id;
  return module;
}();

}  // namespace

int insert_rows(sqlite3* database, const std::string& table, const std::string& columns, const BulkRows& rows) {
  int status = sqlite3_create_module(database, "cairn_rows", &kModule, const_cast<BulkRows*>(&rows));
  if (status != SQLITE_OK) return status;
  std::string sql = fmt::format("INSERT INTO {}({}) SELECT * FROM cairn_rows", table, columns);
  status = sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr);
  int dropped = sqlite3_create_module(database, "cairn_rows", nullptr, nullptr);
  return status != SQLITE_OK ? status : dropped;
}

}  // namespace cairn::profile
