// Script lines out of TensorFlow's GraphDebugInfo: stacks by "node@function", in a graph or beside a SavedModel.
#include <unordered_map>

#include "frontends/script_line.h"
#include "frontends/tensorflow/fields.h"
#include "frontends/tensorflow/graph_def.h"

namespace cairn::tensorflow {
namespace {

struct StackFrame {
  int64_t file = 0, line = 0;
};

struct StackTrace {
  std::vector<StackFrame> frames;
  std::vector<uint64_t> ids;  // of frames, in place of them
};

class DebugInfo {
 public:
  explicit DebugInfo(Wire wire) : model_(wire.model()) {
    while (wire.next()) {
      model_.charge(256);
      switch (wire.field()) {
        case field::debug_info::files: files_.push_back(wire.bytes()); break;
        case field::debug_info::traces: {
          const Entry entry = read_entry(wire.message("GraphDebugInfo.traces"));
          by_name_[entry.name] = read_trace(entry.value, wire);
          break;
        }
        case field::debug_info::frames_by_id: {
          const Entry entry = read_entry(wire.message("GraphDebugInfo.frames_by_id"));
          frames_[entry.id] = read_frame({entry.value, "FileLineCol", model_, wire.depth() + 1});
          break;
        }
        case field::debug_info::traces_by_id: {
          const Entry entry = read_entry(wire.message("GraphDebugInfo.traces_by_id"));
          traces_[entry.id] = read_trace(entry.value, wire);
          break;
        }
        case field::debug_info::name_to_trace_id: {
          const Entry entry = read_entry(wire.message("GraphDebugInfo.name_to_trace_id"));
          ids_[entry.name] = entry.number;
          break;
        }
        default: wire.skip();
      }
    }
  }

  void tell(std::vector<Node>& nodes, std::string_view function) const {
    for (Node& node : nodes) {
      const StackTrace* trace = find(fmt::format("{}@{}", node.name, function));
      if (trace == nullptr && function.empty()) trace = find(std::string(node.name));
      if (trace != nullptr)
        if (std::string line = line_of(*trace); !line.empty()) node.location = model_.keep(std::move(line));
    }
  }

 private:
  struct Entry {
    std::string_view name, value;
    uint64_t id = 0, number = 0;
  };

  /// A map entry whose key is a text or a number, as is its value.
  static Entry read_entry(Wire wire) {
    Entry entry;
    while (wire.next()) {
      const bool key = wire.field() == field::map_entry::key, text = wire.is_message();
      if (text)
        (key ? entry.name : entry.value) = wire.bytes();
      else
        (key ? entry.id : entry.number) = wire.fixed64();
    }
    return entry;
  }

  static StackFrame read_frame(Wire wire) {
    StackFrame frame;
    while (wire.next()) {
      switch (wire.field()) {
        case field::stack_frame::file_index: frame.file = wire.integer(); break;
        case field::stack_frame::line: frame.line = wire.integer(); break;
        default: wire.skip();
      }
    }
    return frame;
  }

  StackTrace read_trace(std::string_view bytes, const Wire& outer) const {
    StackTrace trace;
    Wire wire(bytes, "StackTrace", model_, outer.depth() + 1);
    while (wire.next()) {
      model_.charge(32);
      switch (wire.field()) {
        case field::stack_trace::frames: trace.frames.push_back(read_frame(wire.message("FileLineCol"))); break;
        case field::stack_trace::frame_ids: {
          std::string packed;
          wire.append_fixed(packed);
          model_.charge(packed.size());
          trace.ids.resize(packed.size() / sizeof(uint64_t));
          std::memcpy(trace.ids.data(), packed.data(), trace.ids.size() * sizeof(uint64_t));
          break;
        }
        default: wire.skip();
      }
    }
    return trace;
  }

  const StackTrace* find(const std::string& key) const {
    if (auto found = by_name_.find(key); found != by_name_.end()) return &found->second;
    auto id = ids_.find(key);
    auto found = id == ids_.end() ? traces_.end() : traces_.find(id->second);
    return found == traces_.end() ? nullptr : &found->second;
  }

  std::string line_of(const StackTrace& trace) const {
    std::vector<ScriptFrame> frames;
    auto add = [&](const StackFrame& frame) {
      if (frame.file >= 0 && frame.file < static_cast<int64_t>(files_.size()))
        frames.push_back({files_[static_cast<size_t>(frame.file)], frame.line});
    };
    for (const StackFrame& frame : trace.frames) add(frame);
    for (uint64_t id : trace.ids)
      if (auto found = frames_.find(id); found != frames_.end()) add(found->second);
    return script_line(frames);
  }

  ModelBytes& model_;
  std::vector<std::string_view> files_;
  std::unordered_map<std::string_view, StackTrace> by_name_;
  std::unordered_map<std::string_view, uint64_t> ids_;  // of traces
  std::unordered_map<uint64_t, StackFrame> frames_;
  std::unordered_map<uint64_t, StackTrace> traces_;
};

}  // namespace

void add_script_lines(GraphDef& graph, Wire debug_info) {
  const DebugInfo lines(debug_info);
  lines.tell(graph.nodes, "");
  for (FunctionDef& function : graph.functions) lines.tell(function.nodes, function.name);
}

}  // namespace cairn::tensorflow
