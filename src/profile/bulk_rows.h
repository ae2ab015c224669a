// Many rows of integers into a table of SQLite's in one statement: SQLite takes them from a virtual table, in
// half the time of binding them row by row.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <functional>
#include <string>

namespace cairn::profile {

struct BulkRows {
  size_t count;
  int columns;
  std::function<void(size_t row, int64_t* values)> fill;  // must not throw
};

/// Adds the rows to `table`, as the columns named in `columns`. SQLite's status.
int insert_rows(sqlite3* database, const std::string& table, const std::string& columns, const BulkRows& rows);

}  // namespace cairn::profile
