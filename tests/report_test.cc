// SPDX-License-Identifier: MIT
// What a report is written with. The oracle is nlohmann-json, which reads what is written, and
// replaces what is no UTF-8.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "base/histogram.h"
#include "report/format.h"
#include "report/json_writer.h"

namespace {

using namespace feign;
using Json = nlohmann::ordered_json;

TEST(Format, CutsNothingOff) {
  for (const size_t length : {size_t{0}, size_t{510}, size_t{511}, size_t{512}, size_t{5000}}) {
    const std::string text(length, 'x');
    EXPECT_EQ(feign::format("%s%d", text.c_str(), 7), text + "7");
  }
}

TEST(JsonWriter, WritesWhatNlohmannJsonWouldPrint) {
  Json want{{"text", "a\"b\\c\n\x01"},
            {"empty", Json::object()},
            {"none", Json::array()},
            {"rows", {{1, 2}, {3, 4}}},
            {"deep", {{"in", {{{"at", -7}, {"yes", true}}, {{"nothing", nullptr}}}}}},
            {"half", 0.5},
            {"three", 3.0}};

  JsonWriter j;
  j.object([&] {
    j.add("text", "a\"b\\c\n\x01");
    j.object("empty", [] {});
    j.array("none", [] {});
    j.array("rows", [&] {
      j.row(1, 2);
      j.row(3, 4);
    });
    j.object("deep", [&] {
      j.array("in", [&] {
        j.object([&] {
          j.add("at", -7);
          j.add("yes", true);
        });
        j.object([&] { j.add("nothing", nullptr); });
      });
    });
    j.add("half", 0.5);
    j.add("three", 3.0);
  });

  EXPECT_EQ(j.take(), want.dump(2));
}

TEST(JsonWriter, NumbersComeBackAsTheyWere) {
  std::mt19937_64 random(1);
  const double few[] = {0, -0.0, 1e-9, 1e300, 5e-324, 0.1, 123456789.0, 1e15, 1e22};
  std::vector<double> reals(std::begin(few), std::end(few));
  for (int i = 0; i < 1000; ++i) reals.push_back(std::ldexp(static_cast<double>(random()), -80));
  const uint64_t most = UINT64_MAX;
  const int64_t least = INT64_MIN;

  JsonWriter j;
  j.object([&] {
    j.add("most", most);
    j.add("least", least);
    j.add("infinite", std::numeric_limits<double>::infinity());
    j.array("reals", [&] {
      for (const double r : reals) j.add(r);
    });
  });
  const Json got = Json::parse(j.take());

  EXPECT_EQ(got["most"].get<uint64_t>(), most);
  EXPECT_EQ(got["least"].get<int64_t>(), least);
  EXPECT_TRUE(got["infinite"].is_null());
  EXPECT_EQ(got["reals"].get<std::vector<double>>(), reals);
  for (const Json& r : got["reals"]) EXPECT_TRUE(r.is_number_float());
}

TEST(JsonWriter, AnyBytesAreText) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random() % 12, ' ');
    for (char& c : bytes) c = static_cast<char>(i % 2 != 0 ? random() : ' ' + random() % 95);

    JsonWriter j;
    j.object([&] { j.add("text", bytes); });

    EXPECT_EQ(j.take(),
              "{\n  \"text\": " + Json(bytes).dump(-1, ' ', false, Json::error_handler_t::replace) +
                  "\n}");
  }
}

TEST(Histogram, PercentilesAreWithinABucketOfTheLeastSamplesThatTheShareIsNotAbove) {
  std::mt19937_64 random(3);
  constexpr double kShares[] = {0, 0.5, 0.9, 0.99, 0.999, 1};
  constexpr size_t kThousandths[] = {0, 500, 900, 990, 999, 1000};
  for (const size_t count : {1, 2, 3, 10, 100, 1000, 5000}) {
    Histogram h;
    std::vector<uint64_t> samples;
    for (size_t i = 0; i < count; ++i) {
      samples.push_back(random() >> (1 + random() % 63));
      h.add(samples.back());
    }
    std::sort(samples.begin(), samples.end());

    const auto got = h.percentiles(kShares);

    for (size_t i = 0; i < std::size(kShares); ++i) {
      const size_t rank = std::max<size_t>((kThousandths[i] * count + 999) / 1000, 1);
      const uint64_t want = samples[rank - 1];
      EXPECT_GE(got[i], want);
      EXPECT_LE(got[i], want + want / 32 + 1);
      EXPECT_EQ(got[i], h.percentile(kShares[i]));
    }
  }
  EXPECT_EQ(Histogram().percentile(0.5), 0u);
}

}  // namespace
