// Tokens and their places, tables of files and arrays, and rows that are kept.
#include <gtest/gtest.h>

#include <cstring>

#include "data/cache.h"
#include "data/source.h"
#include "data/tokenizers.h"

namespace cairn::data {
namespace {

std::string told(const Tokens& tokens) {
  std::string text;
  for (const Token& token : tokens) text += fmt::format("{}@{}-{} ", token.text, token.begin, token.end);
  return text;
}

TEST(Tokens, LieWhereTheirBytesAre) {
  EXPECT_EQ(told(by_whitespace(" a\u3000b\tcd ")), "a@1-2 b@5-6 cd@7-9 ");
  EXPECT_EQ(told(by_character("x\u00e9")), "x@0-1 \u00e9@1-3 ");
  EXPECT_EQ(told(by_script("ab\u5317\u4eac!", false)), "ab@0-2 \u5317\u4eac@2-8 !@8-9 ");
  EXPECT_EQ(told(by_pattern("a1b22", Pattern("[0-9]+"), nullptr)), "a@0-1 b@2-3 ");
  const Pattern two("[0-9]{2}");
  EXPECT_EQ(told(by_pattern("a1b22", Pattern("[0-9]+"), &two)), "a@0-1 b@2-3 22@3-5 ");
}

TEST(Tokens, OfBertKeepSpecialWordsAndSplitWhatStandsAlone) {
  EXPECT_EQ(told(basic_tokens("[CLS]Don't \u5317x", {.lower_case = true})),
            "[CLS]@0-5 don@5-8 '@8-9 t@9-10 \u5317@11-14 x@14-15 ");
  EXPECT_EQ(told(basic_tokens("[CLSx [unused12] [unused]", {})),
            "[@0-1 CLSx@1-5 [unused12]@6-16 [@17-18 unused@18-24 ]@24-25 ");
  EXPECT_EQ(told(basic_tokens("\u00c9\u0301", {.lower_case = true})), "e@0-1 ");
}

TEST(Tokens, OfTextThatIsNoUtf8EndWithoutReadingBeyondIt) {
  for (std::string_view text : {std::string_view("\xff\xfe"), std::string_view("a\xe5\x8c"),
                                std::string_view("\xf0\x9f", 2), std::string_view("[unused1")}) {
    EXPECT_FALSE(basic_tokens(text, {.lower_case = true}).empty());
    EXPECT_FALSE(by_character(text).empty());
  }
}

TEST(Tokens, OfPiecesAreTheLongestAndWholeWordsWhereThereAreNone) {
  auto words = std::make_shared<Vocabulary>(Vocabulary{{"wel", 0}, {"##come", 1}, {"##c", 2}, {"w", 3}});
  Tokens pieces;
  for (const char* word : {"welcome", "welx", "welcomewelcome"})
    add_pieces({word, 10, 10 + std::strlen(word)}, {words, "##", "[UNK]", 13}, pieces);
  EXPECT_EQ(told(pieces), "wel@10-13 ##come@13-17 [UNK]@10-14 [UNK]@10-24 ");
}

TEST(Patterns, ThatAreWrongAreToldWithThePlace) {
  try {
    Pattern("a(b");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("'a(b' is wrong at character"), std::string::npos) << error.what();
  }
}

struct Counted : Source {
  Counted() : Source("counted", {"x"}, sequential_sampler(0, 0), "") {}
  int64_t count() const override { return 10; }
  Row read(int64_t index) const override {
    ++made;
    Array array = Array::make(Kind::i64, {100});
    std::fill_n(array.write<int64_t>(), 100, index);
    return {array};
  }
  mutable std::atomic<int> made = 0;
};

TEST(Caches, MakeRowsOnceAndHandOutWhatWasMade) {
  for (int workers : {0, 3})
    for (bool spills : {false, true}) {
      auto source = std::make_shared<Counted>();
      auto cache = std::make_shared<RowCache>(4 * 800, spills);
      Iterator rows(cached(source, cache, 0, ""), {.workers = workers});
      for (int epoch = 0; epoch < 3; ++epoch)
        for (int64_t i = 0; std::optional<Row> row = rows.next(); ++i) EXPECT_EQ((*row)[0].as<int64_t>()[99], i);
      EXPECT_EQ(cache->stats().bytes, 4 * 800);
      EXPECT_EQ(source->made, spills ? 10 : 10 + 2 * 6);
    }
}

TEST(Tables, HoldColumnsOfAsManyRowsEach) {
  const Array three = Array::make(Kind::u8, {3}), two = Array::make(Kind::u8, {2});
  EXPECT_THROW(
      table("t", {{"a", {}, false, {}, three}, {"b", {}, false, {two, two}, {}}}, sequential_sampler(0, 0), ""), Error);
  EXPECT_THROW(table("t", {{"a", {}, false, {}, Array::make(Kind::u8, {})}}, sequential_sampler(0, 0), ""), Error);
  EXPECT_EQ(
      table("t", {{"a", {}, false, {}, three}, {"b", {}, false, {two, two, three}, {}}}, sequential_sampler(0, 0), "")
          ->size(),
      3);
}

}  // namespace
}  // namespace cairn::data
