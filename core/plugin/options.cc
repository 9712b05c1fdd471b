// SPDX-License-Identifier: MIT
// Options: the one place that turns typed text into values, so that every plug-in's options behave
// alike and every message about them reads alike.
#include "plugin/options.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/number.h"
#include "plugin/plugin.h"

namespace feign {
namespace {

constexpr uint32_t kMaxOptions = 1024;
constexpr uint32_t kMaxStride = 4096;
constexpr uint32_t kMaxOptionsSize = 1u << 20;

struct Unit {
  const char* name;
  uint64_t factor;
};
constexpr Unit kSizeUnits[] = {
    {"t", uint64_t{1} << 40}, {"g", uint64_t{1} << 30}, {"m", uint64_t{1} << 20}, {"k", 1024}};
constexpr Unit kTimeUnits[] = {
    {"h", 3'600'000'000'000}, {"m", 60'000'000'000}, {"s", 1'000'000'000},
    {"ms", 1'000'000},        {"us", 1'000},         {"ns", 1}};

size_t size_of(uint32_t type) {
  switch (type) {
    case FEIGN_OPT_BOOL:
    case FEIGN_OPT_ENUM:
      return sizeof(uint32_t);
    case FEIGN_OPT_UINT:
    case FEIGN_OPT_SIZE:
    case FEIGN_OPT_DURATION:
      return sizeof(uint64_t);
    case FEIGN_OPT_REAL:
      return sizeof(double);
    case FEIGN_OPT_TEXT:
    case FEIGN_OPT_TEXTS:
      return sizeof(const char*);
    default:
      return 0;
  }
}

bool parse_real(std::string_view text, double& value) {
  return to_number(text, value) && std::isfinite(value);
}

std::string with_unit(uint32_t type, uint64_t value) {
  if (value != 0 && type == FEIGN_OPT_SIZE)
    for (const Unit& u : kSizeUnits)
      if (value % u.factor == 0) return std::to_string(value / u.factor) + u.name;
  if (value != 0 && type == FEIGN_OPT_DURATION)
    for (const Unit& u : kTimeUnits)
      if (value % u.factor == 0) return std::to_string(value / u.factor) + u.name;
  return std::to_string(value);
}

bool bounded(const feign_option& o) {
  return (o.min != 0 || o.max != 0) &&
         (o.type == FEIGN_OPT_UINT || o.type == FEIGN_OPT_SIZE || o.type == FEIGN_OPT_DURATION);
}

// "1 to 4k", "at least 1".
std::string range(const feign_option& o) {
  if (o.max == UINT64_MAX) return "at least " + with_unit(o.type, o.min);
  return with_unit(o.type, o.min) + " to " + with_unit(o.type, o.max);
}

// What the text should have been.
std::string wanted(const feign_option& o) {
  std::string text;
  switch (o.type) {
    case FEIGN_OPT_BOOL:
      return "yes or no";
    case FEIGN_OPT_UINT:
      text = "a whole number";
      break;
    case FEIGN_OPT_SIZE:
      text = "a number of bytes such as 4096, 64k or 2g";
      break;
    case FEIGN_OPT_REAL:
      return "a number";
    case FEIGN_OPT_DURATION:
      text = "a time with its unit such as 10ms, 1.5s or 2m";
      break;
    case FEIGN_OPT_ENUM:
      return option_values(o);
    default:
      return "a text without NUL bytes";
  }
  if (bounded(o)) text += ", " + range(o);
  return text;
}

// Whether its name alone is enough.
bool takes_yes(const feign_option& o) {
  if (o.type == FEIGN_OPT_BOOL) return true;
  if (o.type != FEIGN_OPT_ENUM) return false;
  for (const char* const* c = o.choices; *c != nullptr; ++c)
    if (std::strcmp(*c, "yes") == 0) return true;
  return false;
}

// What is said of a name alone, where that says nothing.
std::string wanted_with_name(const feign_option& o) {
  const std::string name(o.name);
  switch (o.type) {
    case FEIGN_OPT_ENUM:
      return name + ": want " + name + "=" + option_values(o);
    case FEIGN_OPT_TEXT:
    case FEIGN_OPT_TEXTS:
      return name + ": want " + name + "=TEXT: " + o.help;
    default:
      return name + ": want " + name + "=" + option_values(o) + ", " + wanted(o);
  }
}

template <typename T>
void store(std::byte* to, const T& value) {
  std::memcpy(to, &value, sizeof value);
}

}  // namespace

bool parse_size(std::string_view text, uint64_t& value) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  std::string_view rest = lower;
  const bool has_byte = rest.ends_with("b");
  if (has_byte) rest.remove_suffix(1);
  const bool binary = has_byte && rest.ends_with("i");
  if (binary) rest.remove_suffix(1);
  uint64_t factor = 1;
  for (const Unit& u : kSizeUnits) {
    if (!rest.ends_with(u.name)) continue;
    factor = u.factor;
    rest.remove_suffix(1);
    break;
  }
  if (binary && factor == 1) return false;
  return to_number(rest, value) && !__builtin_mul_overflow(value, factor, &value);
}

bool parse_truth(std::string_view text, bool& value) {
  for (const char* yes : {"yes", "on", "true", "1"})
    if (text == yes) return value = true, true;
  for (const char* no : {"no", "off", "false", "0"})
    if (text == no) return value = false, true;
  return false;
}

// A number without a unit is refused: it would be guessed wrong half the time.
bool parse_duration(std::string_view text, uint64_t& value) {
  size_t digits = 0;
  while (digits < text.size() &&
         ((text[digits] >= '0' && text[digits] <= '9') || text[digits] == '.'))
    ++digits;
  std::string_view number = text.substr(0, digits);
  const std::string_view unit = text.substr(digits);
  uint64_t factor = 0;
  for (const Unit& u : kTimeUnits)
    if (unit == u.name) factor = u.factor;
  std::string_view fraction;
  if (const size_t dot = number.find('.'); dot != std::string_view::npos) {
    fraction = number.substr(dot + 1);
    number = number.substr(0, dot);
    if (fraction.empty() || fraction.size() > 9) return false;
  }
  if (!to_number(number, value)) return false;
  if (unit.empty()) return value == 0 && fraction.empty();
  if (factor == 0 || __builtin_mul_overflow(value, factor, &value)) return false;
  if (fraction.empty()) return true;
  uint64_t part = 0, scale = 1;
  if (!to_number(fraction, part)) return false;
  for (size_t i = 0; i < fraction.size(); ++i) scale *= 10;
  // Shortened first, so that the product fits into 64 bits whatever the unit.
  const uint64_t common = std::gcd(factor, scale);
  const uint64_t more = part * (factor / common) / (scale / common);
  return !__builtin_add_overflow(value, more, &value);
}

bool is_name(const char* text) {
  if (text == nullptr || *text < 'a' || *text > 'z') return false;
  for (; *text != '\0'; ++text)
    if (!((*text >= 'a' && *text <= 'z') || (*text >= '0' && *text <= '9') || *text == '-'))
      return false;
  return true;
}

const feign_option& option_at(const feign_component& component, uint32_t i) {
  const auto* bytes = reinterpret_cast<const std::byte*>(component.options);
  return *reinterpret_cast<const feign_option*>(bytes + size_t{i} * component.option_stride);
}

std::string option_values(const feign_option& option) {
  switch (option.type) {
    case FEIGN_OPT_BOOL:
      return "yes|no";
    case FEIGN_OPT_UINT:
      return "N";
    case FEIGN_OPT_SIZE:
      return "SIZE";
    case FEIGN_OPT_REAL:
      return "NUMBER";
    case FEIGN_OPT_DURATION:
      return "TIME";
    case FEIGN_OPT_TEXTS:
      return "TEXT…";
    case FEIGN_OPT_ENUM:
      break;
    default:
      return "TEXT";
  }
  std::string text;
  for (const char* const* c = option.choices; *c != nullptr; ++c)
    text += (text.empty() ? "" : "|") + std::string(*c);
  return text;
}

Result<void> OptionValues::set(const feign_option& o, const std::optional<std::string>& given) {
  if (!given && !takes_yes(o)) return Error(FEIGN_ERR_ARGUMENT, wanted_with_name(o));
  const std::string text = given.value_or("yes");
  std::byte* to = values_.get() + o.offset;
  const auto wrong = [&] {
    return Error(FEIGN_ERR_ARGUMENT, std::string(o.name) + "=" + text + ": want " + wanted(o));
  };
  switch (o.type) {
    case FEIGN_OPT_BOOL: {
      bool value = false;
      if (!parse_truth(text, value)) return wrong();
      store(to, uint32_t{value});
      return {};
    }
    case FEIGN_OPT_UINT:
    case FEIGN_OPT_SIZE:
    case FEIGN_OPT_DURATION: {
      uint64_t value = 0;
      const bool parsed = o.type == FEIGN_OPT_UINT   ? to_number(text, value)
                          : o.type == FEIGN_OPT_SIZE ? parse_size(text, value)
                                                     : parse_duration(text, value);
      if (!parsed) return wrong();
      if (bounded(o) && (value < o.min || value > o.max))
        return Error(FEIGN_ERR_ARGUMENT, std::string(o.name) + "=" + text + ": want " + range(o));
      store(to, value);
      return {};
    }
    case FEIGN_OPT_REAL: {
      double value = 0;
      if (!parse_real(text, value)) return wrong();
      store(to, value);
      return {};
    }
    case FEIGN_OPT_ENUM:
      for (uint32_t i = 0; o.choices[i] != nullptr; ++i) {
        if (text != o.choices[i]) continue;
        store(to, i);
        return {};
      }
      return wrong();
    default:
      if (text.find('\0') != std::string::npos) return wrong();
      store(to, texts_.emplace_back(text).c_str());
      return {};
  }
}

std::vector<std::string> as_arguments(const GivenOptions& given) {
  std::vector<std::string> list;
  for (const auto& [key, value] : given) list.push_back(key + "=" + value.value_or("yes"));
  return list;
}

OptionValues::OptionValues(const feign_component& component)
    // new[] of bytes is aligned for every type an option can have.
    : values_(std::make_unique<std::byte[]>(std::max<size_t>(component.options_size, 1))) {}

Result<void> OptionValues::takes(const feign_component& component, const feign_option& option,
                                 const std::optional<std::string>& value) {
  return OptionValues(component).set(option, value);
}

Result<OptionValues> OptionValues::parse(const feign_component& component,
                                         const GivenOptions& given) {
  OptionValues values(component);
  std::vector<std::string> names;
  for (uint32_t i = 0; i < component.option_count; ++i)
    names.emplace_back(option_at(component, i).name);
  for (const auto& [key, value] : given) {
    if (std::find(names.begin(), names.end(), key) != names.end()) continue;
    std::string known;
    for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
    return Error(FEIGN_ERR_ARGUMENT, "unknown option \"" + key + "\"; it has" +
                                         (known.empty() ? " none" : ": " + known) +
                                         did_you_mean(key, names));
  }
  for (uint32_t i = 0; i < component.option_count; ++i) {
    const feign_option& o = option_at(component, i);
    std::vector<const std::optional<std::string>*> typed;
    for (const auto& [key, value] : given)
      if (key == o.name) typed.push_back(&value);
    if (o.type == FEIGN_OPT_TEXTS) {
      std::vector<const char*>& list = values.lists_.emplace_back();
      const auto add = [&](const std::optional<std::string>& text) -> Result<void> {
        if (auto added = values.set(o, text); !added) return added;
        list.push_back(values.texts_.back().c_str());
        return {};
      };
      for (const auto* text : typed)
        if (auto added = add(*text); !added) return std::move(added.error());
      if (typed.empty() && o.fallback != nullptr)
        if (auto added = add(o.fallback); !added) return std::move(added.error());
      list.push_back(nullptr);
      store(values.values_.get() + o.offset, list.data());
      continue;
    }
    if (typed.size() > 1)
      return Error(FEIGN_ERR_ARGUMENT, std::string(o.name) + "=" + typed[1]->value_or("yes") +
                                           ": option \"" + o.name + "\" is given twice, " + o.name +
                                           "=" + typed[0]->value_or("yes") + " before");
    if (typed.empty() && o.fallback == nullptr)
      return Error(FEIGN_ERR_ARGUMENT,
                   "option \"" + std::string(o.name) + "\" is missing: " + o.help);
    if (auto set =
            values.set(o, typed.empty() ? std::optional<std::string>(o.fallback) : *typed[0]);
        !set)
      return std::move(set.error());
  }
  return values;
}

Result<void> check_options(const feign_component& c) {
  const auto broken = [](const std::string& why) { return Error(FEIGN_ERR_PLUGIN, why); };
  if (c.options_size > kMaxOptionsSize)
    return broken("options struct of " + std::to_string(c.options_size) + " bytes, want at most " +
                  std::to_string(kMaxOptionsSize));
  if (c.option_count == 0) return {};
  if (c.option_count > kMaxOptions)
    return broken(std::to_string(c.option_count) + " options, want at most " +
                  std::to_string(kMaxOptions));
  if (c.options == nullptr)
    return broken("option_count is " + std::to_string(c.option_count) + " and options is null");
  if (c.option_stride < sizeof(feign_option) || c.option_stride > kMaxStride ||
      c.option_stride % alignof(feign_option) != 0)
    return broken("option_stride is " + std::to_string(c.option_stride) +
                  ", want sizeof(feign_option), " + std::to_string(sizeof(feign_option)));
  for (uint32_t i = 0; i < c.option_count; ++i) {
    const feign_option& o = option_at(c, i);
    if (!is_name(o.name))
      return broken("option " + std::to_string(i + 1) + " has the name " +
                    (o.name == nullptr ? "null" : "\"" + std::string(o.name) + "\"") +
                    ", want [a-z][a-z0-9-]*");
    const std::string name = "option \"" + std::string(o.name) + "\"";
    for (uint32_t j = 0; j < i; ++j)
      if (std::strcmp(option_at(c, j).name, o.name) == 0)
        return broken(name + " is in the table twice");
    const size_t size = size_of(o.type);
    if (size == 0)
      return broken(name + " has type " + std::to_string(o.type) + ", want a feign_option_type");
    if (o.offset > c.options_size || size > c.options_size - o.offset)
      return broken(name + " ends at byte " + std::to_string(uint64_t{o.offset} + size) +
                    " of an options struct of " + std::to_string(c.options_size));
    if (o.offset % size != 0)
      return broken(name + " lies at offset " + std::to_string(o.offset) + ", want a multiple of " +
                    std::to_string(size));
    if (o.help == nullptr || *o.help == '\0') return broken(name + " has no help text");
    if (o.type == FEIGN_OPT_ENUM && (o.choices == nullptr || o.choices[0] == nullptr))
      return broken(name + " is an enum without choices");
    if (bounded(o) && o.min > o.max)
      return broken(name + " has min " + std::to_string(o.min) + " above max " +
                    std::to_string(o.max));
    if (o.fallback == nullptr) continue;
    // Parsed in a struct of its own, so that one row's fallback is judged alone.
    feign_component alone = c;
    alone.options = &o;
    alone.option_count = 1;
    if (auto parsed = OptionValues::parse(alone, {}); !parsed)
      return broken(name + ": its fallback does not parse: " + parsed.error().text());
  }
  return {};
}

Result<PluginSpec> parse_plugin_spec(const std::string& text, const std::string& where) {
  std::vector<std::string> parts(1);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == ',' || text[i + 1] == '\\'))
      parts.back() += text[++i];
    else if (text[i] == ',')
      parts.emplace_back();
    else
      parts.back() += text[i];
  }
  const auto wrong = [&](const std::string& why) {
    Error error(FEIGN_ERR_ARGUMENT, "\"" + text + "\": " + why);
    return where.empty() ? std::move(error) : std::move(error).within(where);
  };
  PluginSpec spec;
  spec.where = where;
  spec.name = parts[0];
  if (spec.name.empty()) return wrong("names no plug-in: want NAME-OR-PATH[,key=value…]");
  for (size_t i = 1; i < parts.size(); ++i) {
    const size_t equals = parts[i].find('=');
    std::string key = parts[i].substr(0, equals);
    if (key.empty())
      return wrong("its option " + std::to_string(i) + " is \"" + parts[i] + "\", want key=value");
    std::optional<std::string> value;
    if (equals != std::string::npos) value = parts[i].substr(equals + 1);
    spec.options.emplace_back(std::move(key), std::move(value));
  }
  return spec;
}

}  // namespace feign
