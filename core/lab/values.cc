// SPDX-License-Identifier: MIT
#include "lab/values.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "cli/kinds.h"
#include "lab/settings.h"
#include "plugin/options.h"

namespace feign {
namespace {

constexpr size_t kMostValues = 10'000;  // more than anybody can wait for: a mistake in a range

// 65536 as "64KiB", so that labels can be read.
std::string size_text(uint64_t n) {
  static constexpr std::pair<uint64_t, const char*> kUnits[] = {
      {uint64_t{1} << 30, "GiB"}, {uint64_t{1} << 20, "MiB"}, {uint64_t{1} << 10, "KiB"}};
  for (const auto& [unit, name] : kUnits)
    if (n != 0 && n % unit == 0) return std::to_string(n / unit) + name;
  return std::to_string(n);
}

std::string time_text(uint64_t ns) {
  static constexpr std::pair<uint64_t, const char*> kUnits[] = {
      {1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "us"}};
  for (const auto& [unit, name] : kUnits)
    if (ns != 0 && ns % unit == 0) return std::to_string(ns / unit) + name;
  return std::to_string(ns) + "ns";
}

}  // namespace

std::string number_text(double v) {
  char text[40];
  snprintf(text, sizeof text, "%.12g", v);
  return text;
}

std::string joined(const LabValue& value) {
  std::string out;
  for (const std::string& v : value) out += (out.empty() ? "" : "+") + v;
  return out;
}

// {from: 1, to: 64, factor: 2}, with numbers, sizes or times.
Result<std::vector<LabValue>> Values::range(const std::string& name, yaml_node_t& n) {
  const std::string form = "want {from, to, step or factor}";
  auto parts = d_.pairs(n, name + ": " + form);
  if (!parts) return std::move(parts.error());
  struct Bound {
    yaml_node_t* node = nullptr;
    std::string text;
  } from, to, step, factor;
  for (auto& [key, value] : *parts) {
    Bound* b = key == "from"     ? &from
               : key == "to"     ? &to
               : key == "step"   ? &step
               : key == "factor" ? &factor
                                 : nullptr;
    if (b == nullptr)
      return d_.error(d_.key(n, key), name + ": unknown key \"" + key + "\": " + form);
    auto text = d_.scalar(*value, name + ": " + key + ": want a number, a size or a time");
    if (!text) return std::move(text.error());
    *b = {value, *text};
  }
  if (from.node == nullptr || to.node == nullptr ||
      (step.node == nullptr) == (factor.node == nullptr))
    return d_.error(n, name + ": " + form);
  // What kind of value it is, its bounds say.
  enum { kNumber, kSize, kTime } kind = kNumber;
  const auto plain = [](const std::string& t, double& v) {
    char* end = nullptr;
    v = strtod(t.c_str(), &end);
    return end != t.c_str() && *end == '\0' && std::isfinite(v);
  };
  const auto value = [&](const Bound& b, double& v) {
    uint64_t u = 0;
    if (kind == kNumber) return plain(b.text, v);
    const bool good = kind == kSize ? parse_size(b.text, u) : parse_duration(b.text, u);
    v = static_cast<double>(u);
    return good;
  };
  double f = 0, t = 0, s = 0;
  bool good = false;
  for (const auto k : {kNumber, kSize, kTime}) {
    kind = k;
    if (value(from, f) && value(to, t)) {
      good = true;
      break;
    }
  }
  if (!good)
    return d_.error(n, name + ": from " + from.text + " to " + to.text +
                           ": want two numbers, two sizes or two times");
  if (f > t) return d_.error(*to.node, name + ": to " + to.text + " is below from " + from.text);
  if (step.node != nullptr) {
    if (!value(step, s) || s <= 0)
      return d_.error(*step.node, name + ": step \"" + step.text + "\": want more than 0");
  } else {
    if (!plain(factor.text, s) || s <= 1)
      return d_.error(*factor.node, name + ": factor \"" + factor.text + "\": want more than 1");
    if (f <= 0)
      return d_.error(*from.node,
                      name + ": from " + from.text + ": with a factor, want more than 0");
  }
  std::vector<LabValue> out;
  std::string last;
  for (uint64_t i = 0; i <= kMostValues; ++i) {
    const double v = step.node != nullptr ? f + s * static_cast<double>(i)
                                          : f * std::pow(s, static_cast<double>(i));
    if (v > t * (1 + 1e-9)) break;
    const std::string text = kind == kSize   ? size_text(static_cast<uint64_t>(v + 0.5))
                             : kind == kTime ? time_text(static_cast<uint64_t>(v + 0.5))
                                             : number_text(v);
    if (text != last) out.push_back({text});
    last = text;
    if (i == kMostValues)
      return d_.error(n,
                      name + ": more than " + std::to_string(kMostValues) + " values, want fewer");
  }
  return out;
}

Result<std::vector<LabValue>> Values::of(const std::string& name, yaml_node_t& n) {
  if (n.type == YAML_MAPPING_NODE) return range(name, n);
  std::vector<LabValue> out;
  const auto one = [&](yaml_node_t& v) -> Result<void> {
    LabValue several;
    if (v.type == YAML_SEQUENCE_NODE) {
      for (auto* i = v.data.sequence.items.start; i < v.data.sequence.items.top; ++i) {
        auto text = d_.scalar(*d_.node(*i), name + ": want a value");
        if (!text) return std::move(text.error());
        several.push_back(*text);
      }
      if (several.empty()) return d_.error(v, name + ": want a value");
    } else {
      auto text = d_.scalar(v, name + ": want a value, a list or a range");
      if (!text) return std::move(text.error());
      several.push_back(*text);
    }
    if (std::find(out.begin(), out.end(), several) != out.end())
      return d_.error(v, name + ": \"" + joined(several) + "\" is there twice");
    out.push_back(std::move(several));
    return {};
  };
  if (auto done = d_.each(n, one); !done) return std::move(done.error());
  if (out.empty()) return d_.error(n, name + ": want a value");
  return out;
}

Result<std::vector<LabValue>> Values::of_setting(const std::string& name, yaml_node_t& n) {
  auto list = of(name, n);
  if (!list) return list;
  for (LabValue& v : *list) {
    if (bool pin = false; name == "pin" && v.size() == 1 && parse_truth(v[0], pin))
      v[0] = pin ? "yes" : "no";
    if (v.size() != 1 || !good_setting(name, v[0]))
      return d_.error(n, name + ": \"" + joined(v) + "\": want " + setting(name)->want);
    if (name == "replayer") {
      Error why(FEIGN_OK, "");
      auto spec = parse_plugin_spec(v[0], d_.at(n));
      if (!spec) return std::move(spec.error());
      if (!fits(*spec, FEIGN_REPLAYER, plugins_, why)) return d_.error(n, why.text());
    }
  }
  return list;
}

}  // namespace feign
