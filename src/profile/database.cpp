// The recording as an SQLite file with the platform's tables: times in ns, texts interned in STRING_IDS.
#include <sqlite3.h>

#include <map>
#include <memory>

#include "profile/bulk_rows.h"
#include "profile/files.h"
#include "support/error.h"
#include "support/part_file.h"

namespace cairn::profile {
namespace {

// TASK and COMPUTE_TASK_INFO are views: what stays the same over the executions of a step is kept once.
constexpr const char* kSchema = R"(
PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE; PRAGMA page_size=16384;
CREATE TABLE META_DATA(name TEXT, value TEXT);
CREATE TABLE HOST_INFO(hostUid TEXT, hostName TEXT);
CREATE TABLE SESSION_TIME_INFO(startTimeNs INTEGER, endTimeNs INTEGER);
CREATE TABLE STRING_IDS(id INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE CAIRN_STEP(id INTEGER PRIMARY KEY, planId INTEGER, modelId INTEGER, taskId INTEGER, name INTEGER, opType INTEGER,
  taskType INTEGER, kernel INTEGER, scriptLine INTEGER, inputShapes INTEGER, inputDataTypes INTEGER, inputFormats INTEGER,
  outputShapes INTEGER, outputDataTypes INTEGER, outputFormats INTEGER, flops REAL, bytes REAL, backward INTEGER);
CREATE TABLE CAIRN_SOURCE(stepId INTEGER, name INTEGER, opType INTEGER, scriptLine INTEGER);
CREATE TABLE CAIRN_TASK(globalTaskId INTEGER PRIMARY KEY, sinceStartNs INTEGER, durationNs INTEGER, insideNs INTEGER,
  stepId INTEGER, streamId INTEGER, connectionId INTEGER);
CREATE TABLE CANN_API(startNs INTEGER, endNs INTEGER, type INTEGER, globalTid INTEGER, connectionId INTEGER PRIMARY KEY,
  name INTEGER);
CREATE TABLE STEP_TRACE(modelId INTEGER, iterationId INTEGER, hostStep INTEGER, fpStartNs INTEGER, bpEndNs INTEGER,
  iterationEndNs INTEGER, iterationTimeNs INTEGER, fpToBpNs INTEGER, refreshNs INTEGER, dataAugNs INTEGER, busyNs INTEGER,
  opNs INTEGER, gapNs INTEGER);
CREATE TABLE MSTX_EVENTS(startNs INTEGER, endNs INTEGER, eventType INTEGER, rangeId INTEGER, category INTEGER,
  message INTEGER, globalTid INTEGER, endGlobalTid INTEGER, domainId INTEGER, connectionId INTEGER);
CREATE TABLE NPU_OP_MEM(operatorName INTEGER, planId INTEGER, firstTaskId INTEGER, lastTaskId INTEGER, size INTEGER);
CREATE VIEW TASK AS SELECT (SELECT startTimeNs FROM SESSION_TIME_INFO) + sinceStartNs AS startNs,
  (SELECT startTimeNs FROM SESSION_TIME_INFO) + sinceStartNs + durationNs AS endNs, 0 AS deviceId, connectionId, globalTaskId,
  (SELECT value FROM META_DATA WHERE name = 'PID') AS globalPid, taskType, 4294967295 AS contextId, streamId, taskId, modelId
  FROM CAIRN_TASK JOIN CAIRN_STEP ON stepId = id;
CREATE VIEW COMPUTE_TASK_INFO AS SELECT name, globalTaskId, NULL AS blockNum, NULL AS mixBlockNum, taskType, opType,
  inputFormats, inputDataTypes, inputShapes, outputFormats, outputDataTypes, outputShapes, NULL AS attrInfo
  FROM CAIRN_TASK JOIN CAIRN_STEP ON stepId = id;
BEGIN;
)";

class Database {
 public:
  explicit Database(const std::string& path) : path_(path), file_(path, false) {
    sqlite3* made = nullptr;
    // It is there: where a signal's handler has removed it, no other takes its place.
    int status = sqlite3_open_v2(file_.part().c_str(), &made, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
    handle_.reset(made);
    check(status);
  }

  /// Everything is in: the file has its name from here on.
  void close() {
    run("COMMIT");
    check(sqlite3_close(handle_.release()));
    file_.commit();
  }

  void run(const char* sql) { check(sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr)); }

  void insert(const char* table, const char* columns, const BulkRows& rows) {
    check(insert_rows(handle_.get(), table, columns, rows));
  }

  /// An INSERT whose values are bound in order.
  class Insert {
   public:
    Insert(Database& database, const char* table, int columns) : database_(database) {
      std::string sql = fmt::format("INSERT INTO {} VALUES(?", table);
      for (int i = 1; i < columns; ++i) sql += ",?";
      sqlite3_stmt* made = nullptr;
      database.check(sqlite3_prepare_v3(database.handle_.get(), (sql + ")").c_str(), -1, SQLITE_PREPARE_PERSISTENT,
                                        &made, nullptr));
      statement_.reset(made);
    }
    template <class... Values>
    void add(const Values&... values) {
      int column = 0;
      (bind(++column, values), ...);
      if (sqlite3_step(statement_.get()) != SQLITE_DONE) database_.check(SQLITE_ERROR);
      sqlite3_reset(statement_.get());
    }

   private:
    void bind(int column, int64_t value) { sqlite3_bind_int64(statement_.get(), column, value); }
    void bind(int column, uint64_t value) { bind(column, static_cast<int64_t>(value)); }
    void bind(int column, uint32_t value) { bind(column, int64_t{value}); }
    void bind(int column, uint16_t value) { bind(column, int64_t{value}); }
    void bind(int column, double value) { sqlite3_bind_double(statement_.get(), column, value); }
    void bind(int column, std::nullptr_t) { sqlite3_bind_null(statement_.get(), column); }
    void bind(int column, const std::string& value) {
      sqlite3_bind_text(statement_.get(), column, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
    }
    void bind(int column, const std::optional<int64_t>& value) {
      if (value)
        bind(column, *value);
      else
        bind(column, nullptr);
    }
    struct Finalize {
      void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
    };
    Database& database_;
    std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  };

 private:
  void check(int status) const {
    if (status != SQLITE_OK) fail(ErrorKind::io, path_, "cannot be written: {}", sqlite3_errmsg(handle_.get()));
  }
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close(handle); }
  };
  std::string path_;
  PartFile file_;
  std::unique_ptr<sqlite3, Close> handle_;
};

class Filler {
 public:
  Filler(Database& database, const Recording& recording, const Analysis& analysis)
      : database_(database), recording_(recording), analysis_(analysis), strings_(database, "STRING_IDS", 2) {}

  void fill() {
    add_session();
    add_steps();
    add_tasks();
    add_runs();
    add_ranges();
    add_iterations();
  }

 private:
  int64_t intern(const std::string& text) {
    auto [entry, fresh] = ids_.try_emplace(text, static_cast<int64_t>(ids_.size()));
    if (fresh) strings_.add(entry->second, text);
    return entry->second;
  }
  int64_t real(int64_t ns) const { return real_time(recording_, ns); }

  void add_session() {
    Database::Insert meta(database_, "META_DATA", 2);
    meta.add(std::string("SCHEMA_VERSION"), std::string("1.0.0"));
    meta.add(std::string("PID"), recording_.session.pid);
    Database::Insert(database_, "HOST_INFO", 2).add(recording_.session.host, recording_.session.host);
    int64_t end = recording_.session.monotonic_ns;
    for (const Record& run : recording_.runs) end = std::max(end, run.end_ns);
    Database::Insert(database_, "SESSION_TIME_INFO", 2).add(recording_.session.real_ns, real(end));
  }

  void add_steps() {
    Database::Insert steps(database_, "CAIRN_STEP", 18), sources(database_, "CAIRN_SOURCE", 4),
        memory(database_, "NPU_OP_MEM", 5);
    int64_t id = 0;
    for (const PlanInfo& plan : recording_.plans) {
      first_.push_back(id);
      uint32_t number = 0;
      for (const StepInfo& step : plan.steps) {
        const std::string line = step.sources.empty() ? "" : step.sources[0].location;
        steps.add(id, plan.serial, plan.model, number++, intern(step.name), intern(step.type), intern(task_type(step)),
                  intern(step.kernel), intern(line), intern(step.inputs.shapes), intern(step.inputs.types),
                  intern(step.inputs.formats), intern(step.outputs.shapes), intern(step.outputs.types),
                  intern(step.outputs.formats), step.flops, step.bytes, int64_t{step.backward});
        for (const SourceNode& source : step.sources)
          sources.add(id, intern(source.name), intern(source.op), intern(source.location));
        ++id;
      }
      for (const BufferInfo& buffer : plan.buffers)
        memory.add(intern(plan.steps[buffer.first].name), plan.serial, buffer.first, buffer.last, buffer.bytes);
    }
  }

  void add_tasks() {
    database_.insert("CAIRN_TASK", "sinceStartNs, durationNs, insideNs, stepId, streamId, connectionId",
                     {recording_.ops.size(), 6, [&](size_t i, int64_t* values) {
                        const Record& op = recording_.ops[i];
                        values[0] = op.begin_ns - recording_.session.monotonic_ns, values[1] = op.end_ns - op.begin_ns;
                        values[2] = op.end_ns - op.begin_ns - analysis_.ops[i].self;
                        values[3] = first_[op.plan] + op.step, values[4] = op.thread, values[5] = op.run;
                      }});
  }

  void add_runs() {
    Database::Insert runs(database_, "CANN_API", 6);
    int64_t type = intern("model"), name = intern("cairn_model_run");
    std::map<uint32_t, bool> seen;
    for (const Record& run : recording_.runs)
      if (seen.try_emplace(run.run, true).second)
        runs.add(real(run.begin_ns), real(run.end_ns), type, recording_.session.pid << 32 | run.thread, run.run, name);
  }

  void add_ranges() {
    constexpr int64_t kPushPop = 1, kNoConnection = 4294967295;
    Database::Insert ranges(database_, "MSTX_EVENTS", 10);
    int64_t domain = recording_.ranges.empty() ? 0 : intern("default"), id = 0;
    for (const Record& range : recording_.ranges) {
      int64_t thread = recording_.session.pid << 32 | range.thread;
      ranges.add(real(range.begin_ns), real(range.end_ns), kPushPop, id++, nullptr,
                 intern(recording_.range_names[range.step]), thread, thread, domain, kNoConnection);
    }
  }

  void add_iterations() {
    Database::Insert steps(database_, "STEP_TRACE", 13);
    for (const Iteration& each : analysis_.iterations)
      steps.add(each.model, each.number, each.host_step, real(each.fp_start), real(each.bp_end), real(each.end),
                each.period, each.fp_to_bp(), each.refresh(), each.data_aug, each.busy(), each.ops, each.gaps);
  }

  Database& database_;
  const Recording& recording_;
  const Analysis& analysis_;
  Database::Insert strings_;
  std::map<std::string, int64_t> ids_;
  std::vector<int64_t> first_;  // step ids of each plan's step 0
};

}  // namespace

void write_database(const Recording& recording, const Analysis& analysis, const std::string& path) {
  Database database(path);
  database.run(kSchema);
  {
    Filler filler(database, recording, analysis);
    filler.fill();
  }
  database.close();
}

}  // namespace cairn::profile
