// SPDX-License-Identifier: MIT
#include "tracetext/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/number.h"

namespace tracetext {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string_view first_name(std::string_view text) {
  size_t n = 0;
  while (n < text.size() && is_name(text[n])) ++n;
  return text.substr(0, n);
}

bool number_of(std::string_view text, int64_t& value) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text[0] == '0') {
    base = 8;
    text.remove_prefix(1);
  }
  uint64_t magnitude = 0;
  if (!feign::to_number(text, magnitude, base)) return false;
  value = static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
  return true;
}

std::string unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char c = text[++i];
    const bool hex = c == 'x' && i + 1 < text.size();
    if (hex || (c >= '0' && c <= '7')) {
      const char* from = text.data() + i + (hex ? 1 : 0);
      const size_t most = std::min<size_t>(hex ? 2 : 3, text.size() - i - (hex ? 1 : 0));
      unsigned value = 0;
      const auto [stop, error] = std::from_chars(from, from + most, value, hex ? 16 : 8);
      if (error == std::errc{}) {
        out += static_cast<char>(value);
        i = static_cast<size_t>(stop - text.data()) - 1;
        continue;
      }
    }
    static constexpr std::string_view kLetters = "ntrvf", kBytes = "\n\t\r\v\f";
    const size_t at = kLetters.find(c);
    out += at == std::string_view::npos ? c : kBytes[at];
  }
  return out;
}

size_t past(std::string_view text, size_t i) {
  if (text[i] != '"') return i + 1;
  for (++i; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return i + 1;
    }
  }
  return std::string_view::npos;  // it does not end
}

std::string_view Comments::without(std::string_view line) {
  if (!inside && line.find("/*") == std::string_view::npos) return line;
  plain_.clear();
  for (size_t i = 0; i < line.size();) {
    const std::string_view rest = line.substr(i);
    if (inside) {
      const size_t end = rest.find("*/");
      if (end == std::string_view::npos) break;
      inside = false;
      i += end + 2;
    } else if (rest.starts_with("/*")) {
      inside = true;
      i += 2;
    } else {
      const size_t end = std::min(past(line, i), line.size());
      plain_ += line.substr(i, end - i);
      i = end;
    }
  }
  return plain_;
}

namespace {

constexpr uint64_t kSecond = 1'000'000'000;

// Seconds as COMPUTE has them, exactly to the nanosecond where they are written without an
// exponent.
bool seconds_of(std::string_view text, uint64_t& ns) {
  uint64_t whole = 0, part = 0, unit = kSecond;
  size_t i = 0;
  for (; i < text.size() && is_digit(text[i]) && i < 10; ++i)
    whole = whole * 10 + static_cast<uint64_t>(text[i] - '0');
  const bool any = i != 0;
  if (i < text.size() && text[i] == '.')
    for (++i; i < text.size() && is_digit(text[i]); ++i)
      if (unit > 1) part += static_cast<uint64_t>(text[i] - '0') * (unit /= 10);
  if (any && i == text.size()) {
    ns = whole * kSecond + part;
    return true;
  }
  double value = 0;
  if (!feign::to_number(text, value) || !(value >= 0 && value < 1e9)) return false;
  ns = static_cast<uint64_t>(std::llround(value * 1e9));
  return true;
}

}  // namespace

feign::Result<Event> File::next() {
  std::string_view line;
  while (true) {
    auto more = lines_->next(line);
    unreadable_ = !more && !lines_->cut_short();
    if (!more && std::exchange(cut_, true)) return Event{};  // said once
    if (!more) return std::move(more.error());
    if (!*more) {
      if (std::exchange(comments_.inside, false))  // said once
        return feign::Error(FEIGN_ERR_ARGUMENT,
                            where() + ": the file ends in a comment: want \"*/\"");
      return Event{};
    }
    line = trimmed(comments_.without(line));
    if (!line.empty()) break;
  }
  const std::string_view name = first_name(line);
  Event event;
  event.kind = name == "WAIT"      ? Event::kWait
               : name == "SIGNAL"  ? Event::kSignal
               : name == "COMPUTE" ? Event::kCompute
                                   : Event::kCall;
  event.text = line;
  const auto wrong = [&](const char* want) {
    return feign::Error(FEIGN_ERR_ARGUMENT,
                        where() + ": \"" + std::string(line.substr(0, 60)) + "\": want " + want);
  };
  if (name.empty() || name.size() == line.size() || line[name.size()] != '(')
    return wrong("CALL(…) = RESULT, COMPUTE(SECONDS), WAIT(NODE), SIGNAL(NODE) or /* a comment */");
  if (event.kind == Event::kCall) return event;
  std::string_view inside = line.substr(name.size() + 1);
  if (inside.ends_with(';')) inside.remove_suffix(1);
  inside = trimmed(inside);
  if (!inside.ends_with(')')) return wrong("a closing parenthesis at the end");
  inside = trimmed(inside.substr(0, inside.size() - 1));
  if (event.kind == Event::kCompute) {
    if (!seconds_of(inside, event.value)) return wrong("COMPUTE(SECONDS), such as 0.000148622");
    return event;
  }
  int64_t node = -1;
  if (!number_of(inside, node) || node < 0 || node > std::numeric_limits<int32_t>::max())
    return wrong("a node's number");
  event.value = static_cast<uint64_t>(node);
  return event;
}

}  // namespace tracetext
