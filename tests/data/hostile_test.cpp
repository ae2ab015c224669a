// MindRecord files made to harm whoever reads them.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>

#include "data/mindrecord.h"
#include "support/files.h"

namespace cairn::data {
namespace {

constexpr int64_t kHeader = 1 << 14, kPage = 1 << 24;

/// A file of one row with this text.
std::string written(const std::string& name, const std::string& text) {
  const std::string path = std::filesystem::path(testing::TempDir()) / name;
  MindWriter writer({path}, {{"y", "string", std::nullopt}}, {}, kHeader, kPage);
  writer.write({Array::of_text(text)});
  writer.commit();
  return path;
}

std::string refusal(const std::string& path) {
  try {
    mindrecord({path}, {}, sequential_sampler(0, 0), "")->read(0);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(HostileMindRecord, NestedValuesOfARowAreRefused) {
  const std::string text(2'000'000, 't'), path = written("nested", text);
  std::string file = read_file(path);
  const size_t at = file.find(text), map = 9;  // the row: a map of "y" to the text, with the lengths of both
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(refusal(path), "");
  file.replace(at - map + 1, text.size() + map - 1, text.size() + map - 1, '\x91');
  std::ofstream(path, std::ios::binary) << file;
  EXPECT_NE(refusal(path).find("is damaged"), std::string::npos) << refusal(path);
}

TEST(HostileMindRecord, AnIndexThatIsAQueryWithoutEndIsRefused) {
  const std::string path = written("endless", "text");
  sqlite3* base = nullptr;
  ASSERT_EQ(sqlite3_open((path + ".db").c_str(), &base), SQLITE_OK);
  const char* change =
      "DROP TABLE INDEXES; CREATE VIEW INDEXES AS WITH RECURSIVE c(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM c) "
      "SELECT "
      "x AS ROW_ID, 0 AS PAGE_ID_RAW, 0 AS PAGE_OFFSET_RAW, 8 AS PAGE_OFFSET_RAW_END, 0 AS PAGE_ID_BLOB, 0 AS "
      "PAGE_OFFSET_BLOB, 8 AS PAGE_OFFSET_BLOB_END FROM c";
  ASSERT_EQ(sqlite3_exec(base, change, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(base);
  sqlite3_close(base);
  EXPECT_NE(refusal(path).find("its index cannot be read: interrupted"), std::string::npos) << refusal(path);
}

}  // namespace
}  // namespace cairn::data
