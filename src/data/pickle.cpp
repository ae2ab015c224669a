// The machine of Python's pickle format (pickletools documents its codes), cut down to plain values and NumPy arrays.
#include "data/pickle.h"

#include <algorithm>

namespace cairn::data {
namespace {

using Is = Pickled::Is;

constexpr std::string_view kReconstruct = "_reconstruct", kFromBuffer = "_frombuffer";

/// numpy.core.multiarray._reconstruct, numpy._core.numeric._frombuffer, ... by their last names.
std::string_view numpy_name(std::string_view global) {
  if (!global.starts_with("numpy.")) return {};
  return global.substr(global.rfind('.') + 1);
}

/// Bytes that Python 3 wrote as text: each one a character below 256.
std::string from_latin(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<uint8_t>(text[i]);
    const bool two = (c & 0xfc) == 0xc0 && i + 1 < text.size();
    bytes.push_back(static_cast<char>(two ? (c & 3) << 6 | (static_cast<uint8_t>(text[++i]) & 0x3f) : c));
  }
  return bytes;
}

}  // namespace

Pickle::Pickle(std::string_view bytes, std::string path) : bytes_(bytes), path_(std::move(path)) {
  for (uint8_t code = 0; code != '.';) step(code = static_cast<uint8_t>(take(1)[0]));
  root_ = pop();
}

const Pickled* Pickle::find(std::string_view key) const {
  if (root_.is != Is::dict) return nullptr;
  for (size_t i = 0; i + 1 < root_.items->size(); i += 2)
    if (const Pickled& each = (*root_.items)[i]; each.is == Is::text && each.text == key) return &(*root_.items)[i + 1];
  return nullptr;
}

void Pickle::refuse(std::string_view why) const { fail(ErrorKind::io, path_, "Invalid file, {} at byte {}", why, at_); }

std::string_view Pickle::take(uint64_t size) {
  if (size > bytes_.size() - at_) refuse("the pickle ends early");
  at_ += size;
  return bytes_.substr(at_ - size, size);
}

uint64_t Pickle::number(int bytes) {
  uint64_t value = 0;
  const std::string_view from = take(static_cast<uint64_t>(bytes));
  for (int i = bytes; i-- > 0;) value = value << 8 | static_cast<uint8_t>(from[static_cast<size_t>(i)]);
  return value;
}

std::string_view Pickle::line() {
  const size_t end = bytes_.find('\n', at_);
  if (end == std::string_view::npos) refuse("the pickle ends early");
  const std::string_view text = take(end - at_);
  take(1);
  return text;
}

Pickled& Pickle::top() {
  if (stack_.empty() || stack_.back().is == Is::mark) refuse("the pickle takes a value that it did not make");
  return stack_.back();
}

Pickled Pickle::pop() {
  const Pickled value = top();
  stack_.pop_back();
  return value;
}

std::vector<Pickled> Pickle::since_mark() {
  const auto mark =
      std::find_if(stack_.rbegin(), stack_.rend(), [](const Pickled& each) { return each.is == Is::mark; });
  if (mark == stack_.rend()) refuse("the pickle ends a list that it did not begin");
  std::vector<Pickled> items(mark.base(), stack_.end());
  stack_.erase(mark.base() - 1, stack_.end());
  return items;
}

std::string_view Pickle::keep(std::string text) {
  kept_ += text.size();
  if (kept_ > bytes_.size() + 65536) refuse("more texts than the file holds");
  return texts_.emplace_back(std::move(text));
}

void Pickle::put_sequence(std::vector<Pickled> items, Is is) {
  put({is, 0, {}, &sequences_.emplace_back(std::move(items))});
}

std::vector<Pickled> Pickle::last(size_t count) {
  std::vector<Pickled> items(count);
  for (size_t i = count; i-- > 0;) items[i] = pop();
  return items;
}

void Pickle::recall(uint64_t place) {
  const auto found = memo_.find(place);
  if (found == memo_.end()) refuse("the pickle recalls a value that it did not keep");
  put(found->second);
}

void Pickle::extend(std::vector<Pickled> items, Is is) {
  if (top().is != is || (is == Is::dict && items.size() % 2))
    refuse("the pickle adds to something else than a list or dict");
  top().items->insert(top().items->end(), items.begin(), items.end());
}

void Pickle::step(uint8_t code) {
  auto text = [&](int bytes) { put({Is::text, 0, take(number(bytes))}); };
  auto integer = [&](int64_t value) { put({Is::integer, value}); };
  switch (code) {
    case 0x80: return void(take(1));  // protocol
    case 0x95: return void(take(8));  // frame
    case '.': return;
    case '(': return put({Is::mark});
    case '0': return void(pop());
    case 'N': return put({});
    case 0x88:
    case 0x89: return integer(code == 0x88);
    case 'I': return integer(std::strtoll(std::string(line()).c_str(), nullptr, 10));
    case 'J': return integer(static_cast<int32_t>(number(4)));
    case 'K': return integer(static_cast<int64_t>(number(1)));
    case 'M': return integer(static_cast<int64_t>(number(2)));
    case 0x8a: {
      const auto size = static_cast<int>(number(1));
      if (size > 8) refuse("an integer of more than 64 bits");
      const int unused = 64 - 8 * size;
      return integer(size ? static_cast<int64_t>(number(size) << unused) >> unused : 0);
    }
    case 'U':
    case 'C':
    case 0x8c: return text(1);
    case 'T':
    case 'B':
    case 'X': return text(4);
    case 0x8d:
    case 0x8e:
    case 0x96: return text(8);
    case ']':
    case ')': return put_sequence({});
    case '}': return put_sequence({}, Is::dict);
    case 'l':
    case 't': return put_sequence(since_mark());
    case 'd': return put_sequence(since_mark(), Is::dict);
    case 0x85:
    case 0x86:
    case 0x87: return put_sequence(last(code - 0x84u));
    case 'a': return extend(last(1), Is::sequence);
    case 's': return extend(last(2), Is::dict);
    case 'e': return extend(since_mark(), Is::sequence);
    case 'u': return extend(since_mark(), Is::dict);
    case 'q': return remember(number(1));
    case 'r': return remember(number(4));
    case 0x94: return remember(memo_.size());
    case 'h': return recall(number(1));
    case 'j': return recall(number(4));
    case 'c':
    case 0x93: {
      const std::string_view module = code == 'c' ? line() : std::string_view();
      const std::vector<Pickled> names =
          code == 'c' ? std::vector<Pickled>{{Is::text, 0, module}, {Is::text, 0, line()}} : last(2);
      return put({Is::global, 0, keep(fmt::format("{}.{}", names[0].text, names[1].text))});
    }
    case 'R': return call();
    case 'b': return build();
    default: refuse(fmt::format("the pickle's code 0x{:02x}, which no list of arrays needs,", code));
  }
}

const Pickled& Pickle::argument(const std::vector<Pickled>& from, size_t index, Is is) const {
  if (index >= from.size() || from[index].is != is) refuse("an array that NumPy did not write");
  return from[index];
}

void Pickle::call() {
  const Pickled arguments = pop(), callee = pop();
  if (arguments.is != Is::sequence || callee.is != Is::global) refuse("a call of something that has no name");
  const std::vector<Pickled>& given = *arguments.items;
  const std::string_view numpy = numpy_name(callee.text);
  if (callee.text == "_codecs.encode") return put({Is::text, 0, keep(from_latin(argument(given, 0, Is::text).text))});
  if (numpy == "dtype") return put({Is::type, 0, argument(given, 0, Is::text).text});
  if (numpy == "scalar") {
    PickledArray one;
    fill(one, {Is::sequence, 0, {}, &sequences_.emplace_back()}, argument(given, 0, Is::type),
         argument(given, 1, Is::text));
    int64_t value = 0;
    std::memcpy(&value, one.bytes.data(), one.bytes.size());
    return put({one.type[0] == 'f' ? Is::none : Is::integer, value});
  }
  if (numpy != kReconstruct && numpy != kFromBuffer)
    refuse(fmt::format("{}, which the file asks to call and no list of arrays needs,", callee.text.substr(0, 80)));
  PickledArray& array = arrays_.emplace_back();
  put({Is::array, 0, {}, nullptr, &array});
  if (numpy == kReconstruct) return;  // a state follows
  if (argument(given, 3, Is::text).text != "C") refuse("an array in another order than rows");
  fill(array, argument(given, 2, Is::sequence), argument(given, 1, Is::type), argument(given, 0, Is::text));
}

void Pickle::build() {
  const Pickled state = pop();
  if (state.is != Is::sequence) refuse("a state that NumPy did not write");
  const Pickled& object = top();
  if (object.is == Is::type) {
    if (argument(*state.items, 1, Is::text).text == ">") refuse("an array of big-endian numbers");
  } else if (object.is == Is::array) {
    if (argument(*state.items, 3, Is::integer).integer) refuse("an array in another order than rows");
    fill(*object.array, argument(*state.items, 1, Is::sequence), argument(*state.items, 2, Is::type),
         argument(*state.items, 4, Is::text));
  } else {
    refuse("a state of something that is no array");
  }
}

void Pickle::fill(PickledArray& array, const Pickled& shape, const Pickled& type, const Pickled& bytes) {
  const std::string_view name = type.text;
  if (name.size() != 2 || !std::strchr("biuf", name[0]) || name[1] < '1' || name[1] > '8')
    refuse("an array of no numbers");
  uint64_t size = static_cast<uint64_t>(name[1] - '0');
  Shape dims;
  for (const Pickled& each : *shape.items) {
    if (each.is != Is::integer || each.integer < 0) refuse("an array's shape");
    size = each.integer && size > bytes.text.size() / static_cast<uint64_t>(each.integer)
               ? UINT64_MAX
               : size * static_cast<uint64_t>(each.integer);
    dims.push_back(each.integer);
    if (size == UINT64_MAX) break;
  }
  if (size != bytes.text.size()) refuse("an array of other size than its shape");
  array = {std::string(name), std::move(dims), bytes.text};
}

}  // namespace cairn::data
