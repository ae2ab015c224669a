// Transforms of texts.
#include <charconv>
#include <cmath>
#include <limits>

#include "data/tokenizers.h"
#include "data/transforms.h"

namespace cairn::data {

namespace {

std::vector<std::string_view> texts_of(const Array& array) {
  if (!array.type.is_text()) fail(ErrorKind::invalid_argument, "", "expects texts, but got {}", name_of(array.type));
  std::vector<std::string_view> texts;
  for (int64_t i = 0; i < array.count(); ++i) {
    const std::string_view text = array.view().substr(static_cast<size_t>(i) * array.type.size, array.type.size);
    texts.push_back(text.substr(0, text.find_last_not_of('\0') + 1));
  }
  return texts;
}

Array array_of_texts(const std::vector<std::string>& texts, Shape shape) {
  size_t width = 1;
  for (const std::string& text : texts) width = std::max(width, text.size());
  Array made = Array::make(Type{Kind::text, static_cast<uint32_t>(width)}, std::move(shape));
  std::memset(made.bytes(), 0, made.size());
  for (size_t i = 0; i < texts.size(); ++i) std::memcpy(made.bytes() + i * width, texts[i].data(), texts[i].size());
  return made;
}

std::string text_option(const Options& options, const std::string& name, const std::string& otherwise = "") {
  auto found = options.arrays.find(name);
  return found == options.arrays.end() ? otherwise : std::string(texts_of(found->second).at(0));
}

/// Tokens of the one column, and where they begin and end.
Apply giving_tokens(const Options& options, std::function<Tokens(const Array&)> tokenize) {
  const bool with_offsets = options.one("with_offsets", 0) != 0;
  return [=](Row& columns, Random&) {
    if (columns.size() != 1) fail(ErrorKind::invalid_argument, "", "expects one column, but got {}", columns.size());
    Tokens tokens = tokenize(columns[0]);
    if (tokens.empty()) tokens.emplace_back();
    std::vector<std::string> texts;
    Array begins = Array::make(Kind::u32, {std::ssize(tokens)}), ends = Array::make(Kind::u32, {std::ssize(tokens)});
    for (size_t i = 0; i < tokens.size(); ++i) {
      texts.push_back(std::move(tokens[i].text));
      begins.write<uint32_t>()[i] = static_cast<uint32_t>(tokens[i].begin);
      ends.write<uint32_t>()[i] = static_cast<uint32_t>(tokens[i].end);
    }
    columns[0] = array_of_texts(texts, {std::ssize(texts)});
    if (with_offsets) columns.insert(columns.end(), {std::move(begins), std::move(ends)});
  };
}

std::string_view one_text(const Array& array) {
  const std::vector<std::string_view> texts = texts_of(array);
  if (texts.size() != 1)
    fail(ErrorKind::invalid_argument, "", "the input should be a scalar with string datatype, but got {} texts",
         texts.size());
  return texts[0];
}

Apply tokenizing(const Options& options, std::function<Tokens(std::string_view)> tokenize) {
  return giving_tokens(options,
                       [tokenize = std::move(tokenize)](const Array& array) { return tokenize(one_text(array)); });
}

Apply each_text(std::function<std::string(std::string_view)> change) {
  return each_column([change = std::move(change)](const Array& array, Random&) {
    std::vector<std::string> made;
    for (std::string_view text : texts_of(array)) made.push_back(change(text));
    return array_of_texts(made, array.shape);
  });
}

Apply whitespace_tokenizer(const Options& options) { return tokenizing(options, by_whitespace); }
Apply character_tokenizer(const Options& options) { return tokenizing(options, by_character); }

Apply script_tokenizer(const Options& options) {
  const bool keep = options.one("keep_whitespace", 0) != 0;
  return tokenizing(options, [keep](std::string_view text) { return by_script(text, keep); });
}

Apply regex_tokenizer(const Options& options) {
  auto delimiter = std::make_shared<Pattern>(text_option(options, "delim_pattern"));
  const std::string keep = text_option(options, "keep_delim_pattern");
  auto kept = keep.empty() ? nullptr : std::make_shared<Pattern>(keep);
  return tokenizing(options, [=](std::string_view text) { return by_pattern(text, *delimiter, kept.get()); });
}

BasicOptions basic_options(const Options& options) {
  return {options.one("lower_case", 0) != 0, options.one("keep_whitespace", 0) != 0,
          options.one("preserve_unused", 1) != 0, static_cast<Form>(static_cast<int>(options.one("form", 0)))};
}

std::shared_ptr<const Vocabulary> vocabulary_of(const Options& options) {
  auto made = std::make_shared<Vocabulary>();
  if (!options.has("words")) fail(ErrorKind::invalid_argument, "", "option 'words' is missing");
  const std::vector<std::string_view> words = texts_of(options.arrays.at("words"));
  const Array numbers = cast(options.arrays.at("numbers"), Kind::i64);
  if (numbers.count() != std::ssize(words))
    fail(ErrorKind::invalid_argument, "", "{} words have {} numbers", words.size(), numbers.count());
  for (size_t i = 0; i < words.size(); ++i) made->emplace(words[i], numbers.as<int64_t>()[i]);
  return made;
}

PieceOptions piece_options(const Options& options) {
  return {vocabulary_of(options), text_option(options, "suffix_indicator", "##"), text_option(options, "unknown_token"),
          static_cast<size_t>(options.one("max_bytes_per_token", 100))};
}

Apply basic_tokenizer(const Options& options) {
  return tokenizing(options,
                    [basic = basic_options(options)](std::string_view text) { return basic_tokens(text, basic); });
}

Apply wordpiece_tokenizer(const Options& options) {
  return giving_tokens(options, [pieces = piece_options(options)](const Array& array) {
    Tokens made;
    for (std::string_view word : texts_of(array)) add_pieces({std::string(word), 0, word.size()}, pieces, made);
    return made;
  });
}

Apply bert_tokenizer(const Options& options) {
  return tokenizing(options, [basic = basic_options(options), pieces = piece_options(options)](std::string_view text) {
    Tokens made;
    for (const Token& word : basic_tokens(text, basic)) add_pieces(word, pieces, made);
    return made;
  });
}

Apply case_fold(const Options&) {
  return each_text([](std::string_view text) { return normalized(text, Form::folded); });
}

Apply normalize_utf8(const Options& options) {
  const auto form = static_cast<Form>(static_cast<int>(options.one("form")));
  return each_text([form](std::string_view text) { return normalized(text, form); });
}

Apply regex_replace(const Options& options) {
  auto pattern = std::make_shared<Pattern>(text_option(options, "pattern"));
  const std::string with = text_option(options, "replace");
  const bool all = options.one("replace_all", 1) != 0;
  return each_text([=](std::string_view text) { return pattern->replaced(text, with, all); });
}

Apply lookup(const Options& options) {
  const std::shared_ptr<const Vocabulary> words = vocabulary_of(options);
  const auto kind = static_cast<Kind>(static_cast<int>(options.one("kind")));
  std::optional<int64_t> unknown;
  if (options.has("unknown")) unknown = static_cast<int64_t>(options.one("unknown"));
  return each_column([=](const Array& array, Random&) {
    Array numbers = Array::make(Kind::i64, array.shape);
    int64_t i = 0;
    for (std::string_view word : texts_of(array)) {
      auto found = words->find(std::string(word));
      if (found == words->end() && !unknown)
        fail(ErrorKind::invalid_argument, "", "word: {} does not exist in vocab, and unknown_token is not specified",
             printable(word));
      numbers.write<int64_t>()[i++] = found == words->end() ? *unknown : found->second;
    }
    return cast(numbers, kind);
  });
}

/// Runs of n texts as one, with so many pads before and behind as a run needs at most.
Apply ngram(const Options& options) {
  const std::string left = text_option(options, "left"), right = text_option(options, "right"),
                    separator = text_option(options, "separator", " ");
  const auto before = static_cast<int64_t>(options.one("left_count", 0)),
             after = static_cast<int64_t>(options.one("right_count", 0));
  return each_column([=, lengths = options.all("n")](const Array& array, Random&) {
    std::vector<std::string> made;
    const std::vector<std::string_view> words = texts_of(array);
    for (double each : lengths) {
      const auto length = static_cast<int64_t>(each);
      std::vector<std::string_view> padded(static_cast<size_t>(std::min(before, length - 1)), left);
      padded.insert(padded.end(), words.begin(), words.end());
      padded.insert(padded.end(), static_cast<size_t>(std::min(after, length - 1)), right);
      if (length > std::ssize(padded)) made.emplace_back();
      for (int64_t at = 0; at + length <= std::ssize(padded); ++at)
        made.push_back(fmt::format("{}", fmt::join(padded.begin() + at, padded.begin() + at + length, separator)));
    }
    return array_of_texts(made, {std::ssize(made)});
  });
}

Apply sliding_window(const Options& options) {
  const auto width = static_cast<int64_t>(options.one("width"));
  return each_column([width](const Array& array, Random&) {
    if (array.shape.size() != 1)
      fail(ErrorKind::invalid_argument, "", "SlidingWindow works on a 1D input, but got rank {}", array.shape.size());
    const int64_t count = std::max<int64_t>(array.shape[0] - width + 1, 0);
    Array made = Array::make(array.type, {count, count ? width : 0});
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(made.bytes() + i * width * array.type.size, array.data + i * array.type.size,
                  width * array.type.size);
    return made;
  });
}

/// Numbers as C reads them: blanks before are passed over, integers end where digits do.
template <class T>
T number_of_text(std::string_view text, Type type) {
  const std::string copy(text);
  char* end = nullptr;
  errno = 0;
  bool fits = true;
  T made{};
  if constexpr (std::is_floating_point_v<T>) {
    made = static_cast<T>(std::strtod(copy.c_str(), &end));
    fits = errno != ERANGE && (std::isinf(made) == std::isinf(std::strtod(copy.c_str(), nullptr)));
  } else if constexpr (std::is_unsigned_v<T>) {
    const unsigned long long value = std::strtoull(copy.c_str(), &end, 10);
    fits = errno != ERANGE && value <= std::numeric_limits<T>::max() && copy.find('-') == std::string::npos;
    made = static_cast<T>(value);
  } else {
    const long long value = std::strtoll(copy.c_str(), &end, 10);
    fits = errno != ERANGE && value >= std::numeric_limits<T>::min() && value <= std::numeric_limits<T>::max();
    made = static_cast<T>(value);
  }
  if (end == copy.c_str() || !fits)
    fail(ErrorKind::invalid_argument, "", "'{}' is no number, or does not fit {}", printable(text), name_of(type));
  return made;
}

Apply to_number(const Options& options) {
  const auto kind = static_cast<Kind>(static_cast<int>(options.one("kind")));
  const bool half = kind == Kind::f16;
  return each_column([=](const Array& array, Random&) {
    Array made = Array::make(half ? Kind::f32 : kind, array.shape);
    int64_t i = 0;
    for (std::string_view text : texts_of(array))
      with_number(made.type.kind, [&](auto zero) {
        using T = decltype(zero);
        if constexpr (!std::is_same_v<T, bool>) made.write<T>()[i++] = number_of_text<T>(text, made.type);
      });
    return half ? cast(made, kind) : made;
  });
}

Apply truncate(const Options& options) {
  const auto most = static_cast<int64_t>(options.one("max_seq_len"));
  return each_column([most](const Array& array, Random&) {
    if (array.shape.empty() || array.shape[0] <= most) return array;
    Array made = array;
    made.shape[0] = most;
    return made;
  });
}

Apply add_token(const Options& options) {
  const std::string token = text_option(options, "token");
  const bool begin = options.one("begin", 1) != 0;
  return each_column([=](const Array& array, Random&) {
    if (array.shape.size() != 1)
      fail(ErrorKind::invalid_argument, "", "AddToken works on a 1D input, but got rank {}", array.shape.size());
    std::vector<std::string> texts;
    for (std::string_view text : texts_of(array)) texts.emplace_back(text);
    texts.insert(begin ? texts.begin() : texts.end(), token);
    return array_of_texts(texts, {std::ssize(texts)});
  });
}

/// Two sequences, cut from the longer one's end until both fit.
Apply truncate_pair(const Options& options) {
  const auto most = static_cast<int64_t>(options.one("max_length"));
  return [most](Row& columns, Random&) {
    if (columns.size() != 2 || columns[0].shape.size() != 1 || columns[1].shape.size() != 1)
      fail(ErrorKind::invalid_argument, "", "expects two columns of one dimension");
    int64_t &first = columns[0].shape[0], &second = columns[1].shape[0];
    while (first + second > most) --(first > second ? first : second);
  };
}

constexpr TransformRow kTextTransforms[] = {{"whitespace_tokenizer", whitespace_tokenizer},
                                            {"character_tokenizer", character_tokenizer},
                                            {"script_tokenizer", script_tokenizer},
                                            {"regex_tokenizer", regex_tokenizer},
                                            {"basic_tokenizer", basic_tokenizer},
                                            {"wordpiece_tokenizer", wordpiece_tokenizer},
                                            {"bert_tokenizer", bert_tokenizer},
                                            {"case_fold", case_fold},
                                            {"normalize_utf8", normalize_utf8},
                                            {"regex_replace", regex_replace},
                                            {"lookup", lookup},
                                            {"ngram", ngram},
                                            {"sliding_window", sliding_window},
                                            {"to_number", to_number},
                                            {"truncate", truncate},
                                            {"add_token", add_token},
                                            {"truncate_pair", truncate_pair}};

}  // namespace

std::span<const TransformRow> text_transforms() { return kTextTransforms; }

}  // namespace cairn::data
