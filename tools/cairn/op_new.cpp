// cairn op new: the beginning of an operator.
#include <filesystem>

#include "op_verb.h"
#include "support/files.h"

namespace cairn::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSource = R"cpp(// The operator @DOMAIN@.@NAME@.
#include <cairn/op.hpp>

#include <cmath>

                                      using namespace cairn::op;

                                      CAIRN_OPS(registry) {
                                        registry.add(Row("@DOMAIN@.@NAME@", "x * sigmoid(scale * x)")
                                                         .input("x", floats)
                                                         .attribute("scale", 1.0)
                                                         .result("y")
                                                         .elementwise()
                                                         .shape([](ShapeRule& rule) { rule.result(rule.input(0)); })
                                                         .kernel([](Kernel& kernel) {
                                                           kernel.with_type_of<float, double>(0, [&](auto zero) {
                                                             using T = decltype(zero);
                                                             const auto x = kernel.input<T>(0);
                                                             const auto y = kernel.output<T>(0);
                                                             const T scale = static_cast<T>(kernel.number("scale"));
                                                             for (size_t i = 0; i < x.size(); ++i)
                                                               y[i] = x[i] / (1 + std::exp(-scale * x[i]));
                                                           });
                                                         })
                                                         .gradient([](Gradient& g) {
                                                           const double scale = g.number("scale");
                                                           const Value s = sigmoid(g.x(0) * scale);
                                                           g.set(0, g.dy(0) * (s + g.x(0) * scale * s * (1 - s)));
                                                         })
                                                         .test("f32[2, 3]")
                                                         .test("f64[4] {scale = 1.5}")
                                                         .test("f32[0]"));
                                      }
)cpp";

constexpr const char* kCMake = R"cmake(# cmake -S . -B build && cmake --build build && cairn op test build/lib@NAME@.so
cmake_minimum_required(VERSION 3.16)
project(@NAME@ LANGUAGES CXX)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

set(CAIRN_INCLUDE "@INCLUDE@" CACHE PATH "folder of cairn/op.hpp; `cairn op include` prints it")
add_library(@NAME@ SHARED @NAME@.cpp)
target_compile_features(@NAME@ PRIVATE cxx_std_17)
set_target_properties(@NAME@ PROPERTIES CXX_VISIBILITY_PRESET hidden)
target_include_directories(@NAME@ PRIVATE ${CAIRN_INCLUDE})
)cmake";

std::string filled(std::string text, const std::vector<std::pair<std::string, std::string>>& values) {
  for (const auto& [name, value] : values)
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + value.size()))
      text.replace(at, name.size(), value);
  return text;
}

bool is_identifier(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) return false;
  return text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == text.npos;
}

}  // namespace

std::string include_folder() {
  const fs::path beside = fs::canonical("/proc/self/exe").parent_path().parent_path();
  std::vector<fs::path> places = {beside / "include", beside.parent_path() / "include"};
  for (const char* lib : {"lib", "lib64"})
    if (fs::is_directory(beside / lib))
      for (const auto& entry : fs::directory_iterator(beside / lib))
        places.push_back(entry.path() / "site-packages" / "cairn" / "include");
  for (const fs::path& place : places)
    if (fs::exists(place / "cairn" / "op.hpp")) return place.string();
  fail(ErrorKind::not_found, "cairn/op.hpp", "is neither beside this program nor in the Python package beside it");
}

void new_op(const std::string& name, const std::string& given) {
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0 || !is_identifier(std::string_view(name).substr(dot + 1)))
    fail(ErrorKind::invalid_argument, name, "is no name of an operator, expected domain.name, as acme.gelu");
  const std::string own = name.substr(dot + 1);
  const fs::path folder = given.empty() ? own : expand_home(given);
  if (fs::exists(folder) && !fs::is_empty(folder))
    fail(ErrorKind::invalid_argument, folder.string(), "exists already; name another with --folder");
  const std::vector<std::pair<std::string, std::string>> values = {
      {"@DOMAIN@", name.substr(0, dot)}, {"@NAME@", own}, {"@INCLUDE@", include_folder()}};
  fs::create_directories(folder);
  write_file((folder / (own + ".cpp")).string(), filled(kSource, values));
  write_file((folder / "CMakeLists.txt").string(), filled(kCMake, values));
  fmt::print("wrote {0}/{1}.cpp and {0}/CMakeLists.txt\n", folder.string(), own);
  fmt::print("next: cmake -S {0} -B {0}/build && cmake --build {0}/build && cairn op test {0}/build/lib{1}.so\n",
             folder.string(), own);
}

}  // namespace cairn::cli
