// Python's view of sources, samplers, and writers of files of rows.
#include "data/mindrecord.h"
#include "data/opened.h"
#include "data/tfrecord.h"
#include "data_module.h"

namespace cairn_python {

namespace {

std::function<HostRows(int64_t)> rows_callback(nb::object open) {
  return [call = Callback(std::move(open))](int64_t epoch) -> HostRows {
    nb::gil_scoped_acquire lock;
    return [next = Callback(call(epoch))]() -> std::optional<Row> {
      nb::gil_scoped_acquire lock;
      nb::object row = next();
      return row.is_none() ? std::nullopt : std::optional(row_of(row));
    };
  };
}

/// kind: files or images, whose values are paths; rows, an array each; slices of one array.
TableColumn table_column(nb::object name, nb::object kind, nb::object values) {
  TableColumn column{nb::cast<std::string>(name), {}, false, {}, {}};
  const std::string told = nb::cast<std::string>(kind);
  column.decode = told == "images";
  if (told == "files" || told == "images")
    column.files = nb::cast<Names>(values);
  else if (told == "rows")
    column.rows = row_of(values);
  else
    column.slices = array_of(values);
  return column;
}

MindSchema mind_schema(nb::handle columns) {
  MindSchema schema;
  for (nb::handle each : columns) {
    MindColumn column{nb::cast<std::string>(nb::object(each[0])), nb::cast<std::string>(nb::object(each[1])),
                      std::nullopt};
    if (!nb::object(each[2]).is_none()) column.shape = nb::cast<Shape>(nb::object(each[2]));
    schema.push_back(std::move(column));
  }
  return schema;
}

nb::list schema_list(const MindSchema& schema) {
  nb::list columns;
  for (const MindColumn& column : schema)
    columns.append(nb::make_tuple(column.name, column.type, column.shape ? nb::cast(*column.shape) : nb::none()));
  return columns;
}

}  // namespace

void add_sources(nb::module_& module) {
  module.def("table", [](std::string operation, nb::list columns, const SamplerHandle& sampler, std::string where) {
    std::vector<TableColumn> told;
    for (nb::handle each : columns) told.push_back(table_column(each[0], each[1], each[2]));
    return made(table(std::move(operation), std::move(told), sampler.sampler, std::move(where)));
  });
  module.def("generator", [](nb::object open, Names columns, std::string where) {
    return made(host_rows(rows_callback(std::move(open)), columns, where));
  });
  module.def("numbered",
             [](int64_t count, nb::object read, Names columns, const SamplerHandle& sampler, std::string where) {
               auto rows = [call = Callback(std::move(read))](int64_t index) {
                 nb::gil_scoped_acquire lock;
                 return row_of(call(index));
               };
               return made(host_numbered(count, std::move(rows), columns, sampler.sampler, where));
             });
  module.def("chosen",
             [](const Pipeline& source, nb::list row, int64_t count, const SamplerHandle& sampler, std::string where) {
               return made(chosen(source_of(source), row_of(row), count, sampler.sampler, where));
             });
  module.def("mnist", [](std::vector<std::pair<std::string, std::string>> files, const SamplerHandle& sampler,
                         std::string where) { return made(mnist(files, sampler.sampler, where)); });
  module.def("cifar", [](Names files, int labels, Names columns, const SamplerHandle& sampler, std::string where) {
    return made(cifar(files, labels, columns, sampler.sampler, where));
  });
  module.def("cifar_files", &cifar_files);
  module.def("text_files", [](Names files, const SamplerHandle& sampler, std::string where) {
    return made(text_files(files, sampler.sampler, where));
  });
  module.def("csv_files", [](Names files, std::string delimiter, std::vector<std::vector<std::string>> columns,
                             bool header, const SamplerHandle& sampler, std::string where) {
    std::vector<CsvColumn> told;
    for (const auto& each : columns) told.push_back({each.at(0), kind_of(each.at(1)), each.at(2)});
    return made(csv_files(files, delimiter.at(0), std::move(told), header, sampler.sampler, where));
  });
  module.def("csv_header",
             [](const std::string& file, const std::string& delimiter) { return csv_header(file, delimiter.at(0)); });
  module.def("tfrecord", [](Names files, nb::list features, const SamplerHandle& sampler, std::string where) {
    std::vector<Feature> told;
    for (nb::handle each : features) {
      Feature feature{nb::cast<std::string>(nb::object(each[0])), std::nullopt, std::nullopt};
      if (!nb::object(each[1]).is_none()) feature.kind = kind_of(nb::cast<std::string>(nb::object(each[1])));
      if (!nb::object(each[2]).is_none()) feature.shape = nb::cast<Shape>(nb::object(each[2]));
      told.push_back(std::move(feature));
    }
    return made(unlocked([&] { return tfrecord(files, std::move(told), sampler.sampler, where); }));
  });
  module.def("mindrecord", [](Names files, Names columns, const SamplerHandle& sampler, std::string where) {
    return made(unlocked([&] { return mindrecord(files, columns, sampler.sampler, where); }));
  });
  module.def("mindrecord_shards", &mindrecord_shards);
  module.def("mindrecord_schema", [](const std::string& path) { return schema_list(mindrecord_schema(path)); });
  module.def("check_schema", [](nb::list columns) { check_schema(mind_schema(columns)); });
}

void add_samplers(nb::module_& module) {
  nb::class_<SamplerHandle>(module, "Sampler").def("add_child", [](SamplerHandle& sampler, const SamplerHandle& child) {
    sampler.sampler->child = child.sampler;
  });
  module.def("sequential_sampler",
             [](int64_t start, int64_t most) { return SamplerHandle{sequential_sampler(start, most)}; });
  module.def("random_sampler",
             [](bool replacement, int64_t most) { return SamplerHandle{random_sampler(replacement, most)}; });
  module.def("distributed_sampler", [](int64_t shards, int64_t shard, bool shuffle, int64_t offset, int64_t most) {
    return SamplerHandle{distributed_sampler(shards, shard, shuffle, offset, most)};
  });
  module.def("class_sampler", [](int64_t each, bool shuffle, std::string column, int64_t most) {
    return SamplerHandle{class_sampler(each, shuffle, column, most)};
  });
  module.def("subset_sampler", [](std::vector<int64_t> rows, bool shuffle, int64_t most) {
    return SamplerHandle{subset_sampler(std::move(rows), shuffle, most)};
  });
  module.def("weighted_sampler", [](std::vector<double> weights, bool replacement, int64_t most) {
    return SamplerHandle{weighted_sampler(std::move(weights), replacement, most)};
  });
  module.def("host_sampler", [](nb::object order, int64_t most) {
    auto rows = [call = Callback(std::move(order))](int64_t count, int64_t epoch) {
      nb::gil_scoped_acquire lock;
      return nb::cast<std::vector<int64_t>>(call(count, epoch));
    };
    return SamplerHandle{host_sampler(rows, most)};
  });
}

void add_writers(nb::module_& module) {
  nb::class_<MindWriter>(module, "MindWriter")
      .def("__init__",
           [](MindWriter* at, Names files, nb::list schema, Names index, int64_t header_size, int64_t page_size) {
             new (at) MindWriter(std::move(files), mind_schema(schema), std::move(index), header_size, page_size);
           })
      .def("write",
           [](MindWriter& writer, nb::handle row) {
             const Row values = row_of(row);
             unlocked([&] { writer.write(values); });
           })
      .def("commit", [](MindWriter& writer) { unlocked([&] { writer.commit(); }); });
  module.def("schema_of", [](Names columns, nb::handle row) { return schema_list(schema_of(columns, row_of(row))); });
  nb::class_<TfrecordWriter>(module, "TfrecordWriter")
      .def(nb::init<const std::string&>())
      .def("write", [](TfrecordWriter& writer, Names columns, nb::handle row) { writer.write(columns, row_of(row)); })
      .def("commit", [](TfrecordWriter& writer) { unlocked([&] { writer.commit(); }); });
}

}  // namespace cairn_python
