// Python's view of the data library: pipelines, their operations and iterators, transforms.
#include "data/cache.h"
#include "data/images/images.h"
#include "data_module.h"

using namespace cairn::data;
using namespace cairn_python;

namespace {

HostMap map_callback(nb::object function) {
  return [call = Callback(std::move(function))](Row columns, int64_t epoch, int64_t row) {
    nb::gil_scoped_acquire lock;
    return row_of(call(tuple_of(std::move(columns)), epoch, row));
  };
}

HostPredicate predicate_callback(nb::object function) {
  return [call = Callback(std::move(function))](Row columns, int64_t epoch, int64_t row) {
    nb::gil_scoped_acquire lock;
    return nb::cast<bool>(call(tuple_of(std::move(columns)), epoch, row));
  };
}

std::function<HostGather(int64_t)> gather_callback(nb::object open) {
  return [call = Callback(std::move(open))](int64_t epoch) -> HostGather {
    nb::gil_scoped_acquire lock;
    return [take = Callback(call(epoch))](std::optional<Row> row) {
      nb::gil_scoped_acquire lock;
      std::vector<Row> rows;
      for (nb::handle each : take(row ? nb::object(tuple_of(std::move(*row))) : nb::none()))
        rows.push_back(row_of(each));
      return rows;
    };
  };
}

/// start(seed) gives an object with begin(columns, epoch, row), end(), drop() and most; it is let go of with the iterator.
std::function<std::shared_ptr<HostTeam>(uint64_t)> team_callback(nb::object start) {
  return [call = Callback(std::move(start))](uint64_t seed) {
    nb::gil_scoped_acquire lock;
    nb::object object = call(seed);
    auto team = std::make_shared<HostTeam>();
    team->begin = [begin = Callback(object.attr("begin"))](Row columns, int64_t epoch, int64_t row) {
      nb::gil_scoped_acquire lock;
      begin(tuple_of(std::move(columns)), epoch, row);
    };
    team->end = [end = Callback(object.attr("end"))] {
      nb::gil_scoped_acquire lock;
      return row_of(end());
    };
    team->drop = [drop = Callback(object.attr("drop"))] {
      nb::gil_scoped_acquire lock;
      try {
        drop();
      } catch (nb::python_error& error) {  // the pass has ended: nobody takes it
        error.discard_as_unraisable("what ends a row that nobody takes");
      }
    };
    team->most = nb::cast<size_t>(object.attr("most"));
    return team;
  };
}

/// While an exception is handled: throws it again with the place where it arose, if it is Python's.
void note_place(const std::string& place) {
  try {
    throw;
  } catch (nb::python_error& error) {
    nb::gil_scoped_acquire lock;
    if (!error.matches(PyExc_Exception)) throw;  // Ctrl-C is no fault of the row's
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    error.restore();
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    nb::borrow(value).attr("add_note")("in " + place);
    PyErr_Restore(type, value, trace);
    throw nb::python_error();
  } catch (...) {  // has no place for notes
  }
}

/// While an exception is handled: whether it is one of Python's that no script catches by Exception.
bool interrupts() {
  try {
    throw;
  } catch (nb::python_error& error) {
    nb::gil_scoped_acquire lock;
    return !error.matches(PyExc_Exception);
  } catch (...) {
    return false;
  }
}

/// Raises what a signal's handler raises.
void poll_signals() {
  nb::gil_scoped_acquire lock;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

class Rows {
 public:
  Rows(const Pipeline& pipeline, uint64_t seed, int workers, int ahead, int64_t memory, int64_t epoch, int64_t row)
      : iterator_(std::make_unique<Iterator>(
            pipeline.node, Settings{seed, workers, ahead, memory, poll_signals, note_place, interrupts}, epoch, row)) {}
  ~Rows() {
    nb::gil_scoped_release release;
    iterator_.reset();
  }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  nb::object next() {
    Dropped::get().release();
    std::optional<Row> row = unlocked([this] { return iterator_->next(); });
    return row ? nb::object(tuple_of(std::move(*row))) : nb::none();
  }
  void stop() {
    unlocked([this] { iterator_->stop(); });
    Dropped::get().release();
  }
  nb::tuple position() const {
    const Position at = iterator_->position();
    return nb::make_tuple(at.seed, at.epoch, at.row);
  }
  nb::dict report() const {
    nb::dict told;
    const Run* run = iterator_->run();
    if (!run) return told;
    nb::list operations;
    for (const Run::Told& each : run->operations()) {
      nb::dict row;
      row["operation"] = each.operation;
      row["where"] = each.where;
      row["rows"] = each.rows;
      row["busy_s"] = each.busy_s;
      row["waited_s"] = each.waited_s;
      row["queue"] = each.queue;
      row["ahead"] = each.ahead;
      operations.append(row);
    }
    told["operations"] = operations;
    told["bytes"] = run->held;
    told["most_bytes"] = run->most_held;
    return told;
  }

 private:
  std::unique_ptr<Iterator> iterator_;
};

nb::tuple applied(const Transform& transform, nb::handle columns, uint64_t seed) {
  Row row = row_of(columns);
  unlocked([&] {
    Random random{seed};
    transform.function->apply(row, random);
  });
  return tuple_of(std::move(row));
}

Kind kind_named(const std::string& name) { return kind_of(name); }

std::vector<Fill> fills_of(nb::handle list) {
  std::vector<Fill> fills;
  for (nb::handle each : list) {
    Fill fill;
    fill.column = nb::cast<std::string>(nb::object(each[0]));
    fill.any_shape = nb::object(each[1]).is_none();
    if (!fill.any_shape) fill.shape = nb::cast<Shape>(nb::object(each[1]));
    nb::object value = each[2];
    if (nb::isinstance<nb::str>(value))
      fill.text = nb::cast<std::string>(value);
    else if (nb::isinstance<nb::bytes>(value))
      fill.text = nb::borrow<nb::bytes>(value).c_str();
    else
      fill.value = nb::cast<double>(value);
    fills.push_back(std::move(fill));
  }
  return fills;
}

void add_operations(nb::module_& module) {
  module.def("map", [](const Pipeline& child, const std::vector<Transform*>& functions, Names inputs, Names outputs,
                       Names order, std::string where) {
    std::vector<FunctionPtr> all;
    for (const Transform* each : functions) all.push_back(each->function);
    return made(map(child.node, std::move(all), {inputs, outputs, order}, std::move(where)));
  });
  module.def("host_map", [](const Pipeline& child, nb::object function, Names inputs, Names outputs, Names order,
                            std::string name, std::string where) {
    return made(host_map(child.node, map_callback(std::move(function)), {inputs, outputs, order}, std::move(name),
                         std::move(where)));
  });
  module.def("host_parallel", [](const Pipeline& child, nb::object start, Names inputs, Names outputs, Names order,
                                 std::string name, std::string where) {
    return made(host_parallel(child.node, team_callback(std::move(start)), {inputs, outputs, order}, std::move(name),
                              std::move(where)));
  });
  nb::class_<RowCache>(module, "Cache").def(nb::init<int64_t, bool>()).def("stats", [](RowCache& cache) {
    const RowCache::Stats stats = cache.stats();
    nb::dict told;
    told["rows_in_memory"] = stats.rows_in_memory;
    told["rows_in_file"] = stats.rows_in_file;
    told["bytes"] = stats.bytes;
    told["found"] = stats.found;
    told["made"] = stats.made;
    return told;
  });
  module.def("cached", [](const Pipeline& child, std::shared_ptr<RowCache> cache, uint64_t region, std::string where) {
    return made(cached(child.node, std::move(cache), region, std::move(where)));
  });
  module.def("host_filter", [](const Pipeline& child, nb::object predicate, Names inputs, std::string where) {
    return made(host_filter(child.node, predicate_callback(std::move(predicate)), inputs, std::move(where)));
  });
  module.def("host_gather", [](const Pipeline& child, nb::object open, Names columns, std::string name,
                               std::string where) {
    return made(host_gather(child.node, gather_callback(std::move(open)), columns, std::move(name), std::move(where)));
  });
  module.def("batch", [](const Pipeline& child, int64_t size, bool drop, nb::list fills, std::string where) {
    return made(batch(child.node, size, drop, fills_of(fills), std::move(where)));
  });
  module.def(
      "bucket_batch",
      [](const Pipeline& child, Names columns, std::vector<int64_t> boundaries, std::vector<int64_t> sizes,
         nb::object length, nb::list fills, bool drop, std::string where) {
        Buckets buckets{std::move(columns), std::move(boundaries), std::move(sizes), nullptr, {}, drop};
        if (!length.is_none())
          buckets.length = [call = Callback(length)](const Row& row) {
            nb::gil_scoped_acquire lock;
            return nb::cast<int64_t>(call(tuple_of(row)));
          };
        for (nb::handle each : fills) buckets.fills.push_back(fills_of(each));
        return made(bucket_batch(child.node, std::move(buckets), std::move(where)));
      },
      nb::arg("child"), nb::arg("columns"), nb::arg("boundaries"), nb::arg("sizes"), nb::arg("length").none(),
      nb::arg("fills"), nb::arg("drop"), nb::arg("where"));
  module.def("shuffle", [](const Pipeline& child, int64_t buffer, bool once, std::string where) {
    return made(shuffle(child.node, buffer, once, std::move(where)));
  });
  module.def("repeat", [](const Pipeline& child, std::optional<int64_t> count, std::string where) {
    return made(repeat(child.node, count.value_or(kEndless), std::move(where)));
  });
  module.def("take", [](const Pipeline& child, int64_t count, std::string where) {
    return made(take(child.node, count, where));
  });
  module.def("skip", [](const Pipeline& child, int64_t count, std::string where) {
    return made(skip(child.node, count, where));
  });
  auto nodes = [](const std::vector<Pipeline*>& children) {
    std::vector<NodePtr> all;
    for (const Pipeline* each : children) all.push_back(each->node);
    return all;
  };
  module.def("sampled", [](const Pipeline& child, const SamplerHandle& sampler, std::string where) {
    return made(sampled(child.node, sampler.sampler, where));
  });
  module.def("stack", [](nb::list values, const std::string& column, nb::list fills) {
    Row rows = row_of(values);
    for (const Fill& fill : fills_of(fills)) fill_up(rows, fill);
    return numpy_of(stacked(rows, column));
  });
  module.def("zip", [=](const std::vector<Pipeline*>& all, std::string where) { return made(zip(nodes(all), where)); });
  module.def("concat",
             [=](const std::vector<Pipeline*>& all, std::string where) { return made(concat(nodes(all), where)); });
  module.def("rename", [](const Pipeline& child, Names from, Names to, std::string where) {
    return made(rename(child.node, from, to, where));
  });
  module.def("project", [](const Pipeline& child, Names columns, std::string where) {
    return made(project(child.node, columns, where));
  });
}

}  // namespace

NB_MODULE(_data, module) {
  nb::set_leak_warnings(false);  // iterators of a script's globals live until the process ends
  static PyObject* error_type = nb::object(nb::module_::import_("cairn._cairn").attr("Error")).release().ptr();
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const cairn::Error& error) {
      constexpr const char* kKinds[] = {"invalid_argument", "invalid_model", "unsupported", "not_found", "io",
                                        "out_of_memory",    "cancelled"};
      nb::object made = nb::borrow(error_type)(nb::str(error.what()));
      nb::setattr(made, "kind", nb::str(kKinds[static_cast<size_t>(error.kind())]));
      nb::setattr(made, "where", nb::str(error.where().c_str()));
      nb::setattr(made, "report", nb::none());
      PyErr_SetObject(error_type, made.ptr());
    }
  });
  nb::class_<Pipeline>(module, "Pipeline")
      .def_prop_ro("columns", [](const Pipeline& pipeline) { return pipeline.node->columns; })
      .def_prop_ro("operation", [](const Pipeline& pipeline) { return pipeline.node->operation; })
      .def("size",
           [](const Pipeline& pipeline) -> nb::object {  // none: only a pass tells, -1: endless
             const std::optional<int64_t> size = pipeline.node->size();
             return size ? nb::cast(*size == kEndless ? -1 : *size) : nb::none();
           })
      .def("count", [](const Pipeline& pipeline) { return source_of(pipeline)->count(); })
      .def("read", [](const Pipeline& pipeline, int64_t row) {
        auto source = source_of(pipeline);
        if (row < 0 || row >= source->count()) throw nb::index_error("no such row");
        return tuple_of(source->read_checked(row));
      });
  nb::class_<Transform>(module, "Transform")
      .def("__init__",
           [](Transform* at, const std::string& name, std::map<std::string, std::vector<double>> numbers,
              nb::dict arrays) {
             Options options{std::move(numbers), {}};
             for (auto [key, value] : arrays) options.arrays[nb::cast<std::string>(key)] = array_of(value);
             new (at) Transform{transform(name, options)};
           })
      .def("apply", applied);
  module.def("mixed", [](const std::vector<Transform*>& parts, std::vector<double> chances, bool shuffled,
                         int64_t count, double probability) {
    Mixture mixture{{}, std::move(chances), shuffled, count, probability};
    for (const Transform* each : parts) mixture.functions.push_back(each->function);
    return Transform{mixed(std::move(mixture))};
  });
  module.def("transform_names", &transform_names);
  module.def("kind", [](const std::string& name) { return static_cast<int>(kind_named(name)); });
  module.def("encode_png", [](nb::handle image) {
    const std::string file = encode_png(array_of(image));
    return nb::bytes(file.data(), file.size());
  });
  nb::class_<Rows>(module, "Rows")
      .def(nb::init<const Pipeline&, uint64_t, int, int, int64_t, int64_t, int64_t>())
      .def("next", &Rows::next)
      .def("stop", &Rows::stop)
      .def("position", &Rows::position)
      .def("report", &Rows::report);
  add_samplers(module);
  add_sources(module);
  add_operations(module);
  add_writers(module);
}
