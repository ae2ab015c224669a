// What each name of PyTorch becomes in MindSpore: the rows of data/torch_mindspore.txt, whose head says how they are written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cairn::migrate {

struct TorchParameter {
  enum class Need : uint8_t { required, optional, absent, rest } need;
  std::string_view name;
  std::string_view only;  // the one literal that it may be; then it is dropped
};

struct TorchRow {
  enum class How : uint8_t { direct, combination, missing } how;
  std::string name;  // canonical: torch.nn.Linear, torch.Tensor:view
  bool call;         // it has a parameter list; otherwise it is about the name itself
  bool only_torch;   // a method that no other library's objects have: the receiver need not be known
  std::vector<TorchParameter> parameters;
  std::string target;  // template of the new text; of a missing one the reason and a sketch
  std::string note;    // what differs all the same
};

/// The rows of a canonical name, in the order in which they are tried; none when the table does not hold it.
const std::vector<TorchRow>& torch_rows(std::string_view name);
/// Whether a method of this name belongs to tensors of torch alone.
bool is_torch_method(std::string_view method);
/// What MindSpore calls the thing, of names without a row of their own; "" when nothing is known.
std::string_view torch_nearest(std::string_view name);
/// The Python text of a definition that new text stands on, by its name; "" when it is none of ours.
std::string_view torch_helper(std::string_view name);
/// The module from which a MindSpore script imports this bare name; "" when it is none that templates use.
std::string_view mindspore_module(std::string_view name);

/// The class that a call of this canonical name of torch gives, "" when unknown or not a tensor.
std::string torch_result(std::string_view name);

}  // namespace cairn::migrate
