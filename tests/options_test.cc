// SPDX-License-Identifier: MIT
// Options: what may be typed, what it becomes, and what is said about the rest.
#include "plugin/options.h"

#include <gtest/gtest.h>

#include <cstring>
#include <iterator>

#include "plugin/plugin.h"

namespace feign {
namespace {

struct Values {
  uint32_t flag, choice;
  uint64_t count, size;
  double ratio;
  const char* text;
  const char* const* list;
  uint64_t pause;
  const char* needed;
};

constexpr const char* kChoices[] = {"reads", "writes", "both", nullptr};
constexpr feign_option kOptions[] = {
    {"flag", FEIGN_OPT_BOOL, offsetof(Values, flag), "no", nullptr, 0, 0, "A flag."},
    {"keep", FEIGN_OPT_ENUM, offsetof(Values, choice), "both", kChoices, 0, 0, "What to keep."},
    {"count", FEIGN_OPT_UINT, offsetof(Values, count), "1", nullptr, 1, 100, "A number."},
    {"size", FEIGN_OPT_SIZE, offsetof(Values, size), "64k", nullptr, 4096, UINT64_MAX, "A size."},
    {"ratio", FEIGN_OPT_REAL, offsetof(Values, ratio), "0.5", nullptr, 0, 0, "A share."},
    {"text", FEIGN_OPT_TEXT, offsetof(Values, text), "", nullptr, 0, 0, "A text."},
    {"list", FEIGN_OPT_TEXTS, offsetof(Values, list), nullptr, nullptr, 0, 0, "Some texts."},
    {"pause", FEIGN_OPT_DURATION, offsetof(Values, pause), "10ms", nullptr, 0, 60'000'000'000,
     "A time."},
};
constexpr feign_option kNeeded[] = {
    {"file", FEIGN_OPT_TEXT, offsetof(Values, needed), nullptr, nullptr, 0, 0, "The trace."}};

feign_component component(const feign_option* options, uint32_t count) {
  feign_component c{};
  c.struct_size = sizeof c;
  c.role = FEIGN_MODIFIER;
  c.name = "sample";
  c.options = options;
  c.option_count = count;
  c.option_stride = sizeof(feign_option);
  c.options_size = sizeof(Values);
  return c;
}
const feign_component kSample = component(kOptions, std::size(kOptions));

using Given = GivenOptions;

const Values& of(const OptionValues& values) { return *static_cast<const Values*>(values.data()); }

std::string error_of(const Given& given) {
  auto values = OptionValues::parse(kSample, given);
  return values ? "" : values.error().text();
}

TEST(Options, FallbacksFillWhatIsNotGiven) {
  auto values = OptionValues::parse(kSample, {});

  ASSERT_TRUE(values) << values.error().text();
  const Values& v = of(*values);
  EXPECT_EQ(v.flag, 0u);
  EXPECT_EQ(v.choice, 2u);
  EXPECT_EQ(v.count, 1u);
  EXPECT_EQ(v.size, 65536u);
  EXPECT_EQ(v.ratio, 0.5);
  EXPECT_STREQ(v.text, "");
  ASSERT_NE(v.list, nullptr);
  EXPECT_EQ(v.list[0], nullptr);
  EXPECT_EQ(v.pause, 10'000'000u);
}

TEST(Options, EveryTypeTakesWhatIsGiven) {
  auto values = OptionValues::parse(kSample, {{"flag", "on"},
                                              {"keep", "writes"},
                                              {"count", "100"},
                                              {"size", "2GiB"},
                                              {"ratio", "1e-3"},
                                              {"text", "a, b = c"},
                                              {"list", "one"},
                                              {"pause", "1.5s"},
                                              {"list", ""},
                                              {"list", "three"}});

  ASSERT_TRUE(values) << values.error().text();
  const Values& v = of(*values);
  EXPECT_EQ(v.flag, 1u);
  EXPECT_EQ(v.choice, 1u);
  EXPECT_EQ(v.count, 100u);
  EXPECT_EQ(v.size, uint64_t{2} << 30);
  EXPECT_EQ(v.ratio, 1e-3);
  EXPECT_STREQ(v.text, "a, b = c");
  EXPECT_STREQ(v.list[0], "one");
  EXPECT_STREQ(v.list[1], "");
  EXPECT_STREQ(v.list[2], "three");
  EXPECT_EQ(v.list[3], nullptr);
  EXPECT_EQ(v.pause, 1'500'000'000u);
}

TEST(Options, TextsStayWhereTheyAreWhenTheValuesMove) {
  auto values = OptionValues::parse(kSample, {{"text", "short"}, {"list", "s"}});
  ASSERT_TRUE(values);

  const OptionValues moved = std::move(*values);

  EXPECT_STREQ(of(moved).text, "short");
  EXPECT_STREQ(of(moved).list[0], "s");
}

struct Number {
  const char* option;
  const char* text;
  int64_t value;  // -1: refused
};

class OptionNumbers : public ::testing::TestWithParam<Number> {};

TEST_P(OptionNumbers, AreWhatTheySay) {
  const Number& n = GetParam();

  auto values = OptionValues::parse(kSample, {{n.option, n.text}});

  ASSERT_EQ(static_cast<bool>(values), n.value >= 0) << n.text;
  if (!values) return;
  const bool size = std::strcmp(n.option, "size") == 0;
  const bool pause = std::strcmp(n.option, "pause") == 0;
  const Values& v = of(*values);
  EXPECT_EQ(size ? v.size : pause ? v.pause : v.count, static_cast<uint64_t>(n.value)) << n.text;
}

INSTANTIATE_TEST_SUITE_P(
    All, OptionNumbers,
    ::testing::Values(
        Number{"size", "4096", 4096}, Number{"size", "4k", 4096}, Number{"size", "4K", 4096},
        Number{"size", "4kb", 4096}, Number{"size", "4KiB", 4096}, Number{"size", "4096b", 4096},
        Number{"size", "1m", 1 << 20}, Number{"size", "1t", int64_t{1} << 40},
        Number{"size", "4095", -1}, Number{"size", "", -1}, Number{"size", "k", -1},
        Number{"size", "4 k", -1}, Number{"size", "-4k", -1}, Number{"size", "4ki", -1},
        Number{"size", "4096ib", -1}, Number{"size", "4x", -1}, Number{"size", "99999999t", -1},
        Number{"size", "18446744073709551616", -1}, Number{"size", "+4096", -1},
        Number{"pause", "0", 0}, Number{"pause", "5", -1}, Number{"pause", "5ns", 5},
        Number{"pause", "5us", 5000}, Number{"pause", "5ms", 5'000'000},
        Number{"pause", "0.5s", 500'000'000}, Number{"pause", "1m", 60'000'000'000},
        Number{"pause", "1.000000001s", 1'000'000'001}, Number{"pause", "0.9ns", 0},
        Number{"pause", "1h", -1}, Number{"pause", "1.s", -1}, Number{"pause", ".5s", -1},
        Number{"pause", "1.2.3s", -1}, Number{"pause", "1d", -1}, Number{"pause", "s", -1},
        Number{"pause", "9999999999999h", -1}, Number{"pause", "1.0000000001s", -1},
        Number{"count", "1", 1}, Number{"count", "007", 7}, Number{"count", "0", -1},
        Number{"count", "101", -1}, Number{"count", "1k", -1}, Number{"count", "0x10", -1}));

TEST(Options, BooleansAreTheEightWordsAndNoOther) {
  for (const char* yes : {"yes", "on", "true", "1"})
    EXPECT_EQ(of(*OptionValues::parse(kSample, {{"flag", yes}})).flag, 1u) << yes;
  for (const char* no : {"no", "off", "false", "0"})
    EXPECT_EQ(of(*OptionValues::parse(kSample, {{"flag", no}})).flag, 0u) << no;
  for (const char* other : {"", "maybe", "YES", "2", "yes "})
    EXPECT_NE(error_of({{"flag", other}}), "") << other;
}

TEST(Options, RealsAreFiniteAndWhole) {
  for (const char* wrong : {"", "x", "1,5", "1.5x", "inf", "nan", "1e999", " 1"})
    EXPECT_NE(error_of({{"ratio", wrong}}), "") << wrong;
}

TEST(OptionErrors, NameTheChoices) {
  EXPECT_EQ(error_of({{"keep", "some"}}), "keep=some: want reads|writes|both");
}

TEST(OptionErrors, NameTheRange) {
  EXPECT_EQ(error_of({{"count", "101"}}), "count=101: want 1 to 100");
  EXPECT_EQ(error_of({{"size", "1k"}}), "size=1k: want at least 4k");
  EXPECT_EQ(error_of({{"pause", "2m"}}), "pause=2m: want 0 to 1m");
}

TEST(OptionErrors, SayHowANumberIsWritten) {
  EXPECT_EQ(error_of({{"pause", "5"}}),
            "pause=5: want a time with its unit such as 10ms, 1.5s or 2m, 0 to 1m");
}

TEST(OptionErrors, ListWhatThereIsForAnUnknownOne) {
  EXPECT_EQ(error_of({{"nonsense", "1"}}),
            "unknown option \"nonsense\"; it has: flag, keep, count, size, ratio, text, "
            "list, pause");
}

TEST(OptionErrors, GuessWhatWasMeant) {
  const std::string text = error_of({{"puase", "1s"}});

  EXPECT_TRUE(text.ends_with("; did you mean pause?")) << text;
}

TEST(OptionErrors, SayThatThereAreNone) {
  const feign_component none = component(nullptr, 0);

  auto values = OptionValues::parse(none, {{"x", "1"}});

  ASSERT_FALSE(values);
  EXPECT_EQ(values.error().text(), "unknown option \"x\"; it has none");
}

TEST(OptionErrors, SayWhatARequiredOneIsFor) {
  auto values = OptionValues::parse(component(kNeeded, 1), {});

  ASSERT_FALSE(values);
  EXPECT_EQ(values.error().text(), "option \"file\" is missing: The trace.");
}

TEST(OptionErrors, NameOneThatIsGivenTwice) {
  EXPECT_EQ(error_of({{"count", "1"}, {"count", "2"}}),
            "count=2: option \"count\" is given twice, count=1 before");
}

TEST(OptionErrors, RefuseNulBytes) { EXPECT_NE(error_of({{"text", std::string("a\0b", 3)}}), ""); }

// A table that is right but for one thing.
class BrokenTable : public ::testing::Test {
 protected:
  BrokenTable() { std::copy(std::begin(kOptions), std::end(kOptions), rows_); }
  std::string fault() {
    auto checked = check_options(table_);
    return checked ? "" : checked.error().text();
  }
  feign_option rows_[std::size(kOptions)];
  feign_component table_ = component(rows_, std::size(kOptions));
};

TEST_F(BrokenTable, IsNotWithoutABreak) { EXPECT_EQ(fault(), ""); }

TEST_F(BrokenTable, HasAnOptionPastItsStruct) {
  table_.options_size = offsetof(Values, pause) + 4;

  EXPECT_EQ(fault(), "option \"pause\" ends at byte 56 of an options struct of 52");
}

TEST_F(BrokenTable, HasAnOptionFarPastItsStruct) {
  rows_[0].offset = UINT32_MAX - 3;

  EXPECT_NE(fault().find("option \"flag\" ends at byte 4294967296"), std::string::npos) << fault();
}

TEST_F(BrokenTable, HasAnUnalignedOption) {
  rows_[2].offset = 4;

  EXPECT_EQ(fault(), "option \"count\" lies at offset 4, want a multiple of 8");
}

TEST_F(BrokenTable, HasAFallbackThatDoesNotParse) {
  rows_[1].fallback = "some";

  EXPECT_EQ(fault(),
            "option \"keep\": its fallback does not parse: keep=some: want reads|writes|both");
}

TEST_F(BrokenTable, HasAnEnumWithoutChoices) {
  rows_[1].choices = nullptr;

  EXPECT_EQ(fault(), "option \"keep\" is an enum without choices");
}

TEST_F(BrokenTable, HasAnOptionTwice) {
  rows_[5].name = "flag";

  EXPECT_EQ(fault(), "option \"flag\" is in the table twice");
}

TEST_F(BrokenTable, HasAnOptionOfNoType) {
  rows_[0].type = 9;

  EXPECT_EQ(fault(), "option \"flag\" has type 9, want a feign_option_type");
}

TEST_F(BrokenTable, HasANameThatCannotBeTyped) {
  rows_[0].name = "Flag";

  EXPECT_EQ(fault(), "option 1 has the name \"Flag\", want [a-z][a-z0-9-]*");
}

TEST_F(BrokenTable, HasNoHelp) {
  rows_[0].help = "";

  EXPECT_EQ(fault(), "option \"flag\" has no help text");
}

TEST_F(BrokenTable, HasAnEmptyRange) {
  rows_[2].min = 5;
  rows_[2].max = 4;

  EXPECT_EQ(fault(), "option \"count\" has min 5 above max 4");
}

TEST_F(BrokenTable, HasAStrideThatIsTooSmall) {
  table_.option_stride = 8;

  EXPECT_NE(fault().find("option_stride is 8"), std::string::npos) << fault();
}

TEST_F(BrokenTable, HasNoRows) {
  table_.options = nullptr;

  EXPECT_EQ(fault(), "option_count is 8 and options is null");
}

TEST(OptionTable, MayHaveLongerRowsThanThisHeaderKnows) {
  struct LongRow {
    feign_option row;
    uint64_t later;
  };
  const LongRow rows[] = {{kOptions[2], 1}, {kOptions[5], 2}};
  feign_component c = component(&rows[0].row, 2);
  c.option_stride = sizeof(LongRow);

  auto values = OptionValues::parse(c, {{"text", "x"}, {"count", "7"}});

  ASSERT_TRUE(check_options(c));
  ASSERT_TRUE(values) << values.error().text();
  EXPECT_STREQ(of(*values).text, "x");
  EXPECT_EQ(of(*values).count, 7u);
}

TEST(Options, ANameAloneIsEnoughForYesOrNoOnly) {
  static constexpr const char* kAnswers[] = {"no", "small", "yes", nullptr};
  static constexpr feign_option kAnswer = {
      "touch", FEIGN_OPT_ENUM, offsetof(Values, choice), "no", kAnswers, 0, 0, "An answer."};
  const feign_component answers = component(&kAnswer, 1);

  auto flag = OptionValues::parse(kSample, {{"flag", std::nullopt}});
  auto answer = OptionValues::parse(answers, {{"touch", std::nullopt}});

  ASSERT_TRUE(flag) << flag.error().text();
  EXPECT_EQ(of(*flag).flag, 1u);
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(of(*answer).choice, 2u);
  EXPECT_EQ(error_of({{"keep", std::nullopt}}), "keep: want keep=reads|writes|both");
  EXPECT_EQ(error_of({{"count", std::nullopt}}), "count: want count=N, a whole number, 1 to 100");
  EXPECT_EQ(error_of({{"text", std::nullopt}}), "text: want text=TEXT: A text.");
  EXPECT_EQ(error_of({{"list", std::nullopt}}), "list: want list=TEXT: Some texts.");
  EXPECT_EQ(error_of({{"text", "yes"}}), "");
}

TEST(PluginSpec, IsTakenApartAtCommas) {
  auto spec = parse_plugin_spec("./a.so,x=1,flag,text=a\\,b\\\\c=d", "--plugin");

  ASSERT_TRUE(spec) << spec.error().text();
  EXPECT_EQ(spec->name, "./a.so");
  EXPECT_EQ(spec->where, "--plugin");
  const Given want = {{"x", "1"}, {"flag", std::nullopt}, {"text", "a,b\\c=d"}};
  EXPECT_EQ(spec->options, want);
}

TEST(PluginSpec, KeepsAnEmptyValueAndOtherBackslashes) {
  auto spec = parse_plugin_spec("a,x=,y=\\n\\", "");

  ASSERT_TRUE(spec);
  const Given want = {{"x", ""}, {"y", "\\n\\"}};
  EXPECT_EQ(spec->options, want);
}

TEST(PluginSpec, WithoutANameIsRefused) {
  auto spec = parse_plugin_spec(",x=1", "--plugin");

  ASSERT_FALSE(spec);
  EXPECT_EQ(spec.error().text(),
            "--plugin: \",x=1\": names no plug-in: want NAME-OR-PATH[,key=value…]");
}

TEST(PluginSpec, WithAnEmptyKeyIsRefused) {
  EXPECT_FALSE(parse_plugin_spec("a,,b", "--plugin"));
  EXPECT_FALSE(parse_plugin_spec("a,=1", "--plugin"));
}

TEST(DidYouMean, GuessesWithinTwoEdits) {
  EXPECT_EQ(did_you_mean("streace", {"feign", "strace", "text"}), "; did you mean strace?");
  EXPECT_EQ(did_you_mean("xyz", {"feign", "strace", "text"}), "");
  EXPECT_EQ(did_you_mean(std::string(100000, 'a'), {"feign"}), "");
}

}  // namespace
}  // namespace feign
