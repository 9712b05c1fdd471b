// SPDX-License-Identifier: MIT
#include "providers/strace/text.h"

#include <algorithm>

namespace feign::strace {

std::string_view name_of_call(std::string_view text) {
  if (text.starts_with(kNoName)) return text.substr(0, text.find_first_not_of('?'));
  size_t length = 0;
  while (length < text.size() && is_name(text[length])) ++length;
  return text.substr(0, length);
}

namespace {
bool in_path(char c) {
  return is_name(c) || std::string_view("/.-").find(c) != std::string_view::npos;
}
}  // namespace

bool is_of_strace(std::string_view text) {
  constexpr std::string_view kName = "strace";
  const size_t end = std::min(text.find(": "), text.size());
  std::string_view by = text.substr(0, end);
  if (end == text.size() || !std::all_of(by.begin(), by.end(), in_path)) return false;
  by.remove_prefix(by.rfind('/') + 1);
  if (!by.starts_with(kName)) return false;
  by.remove_prefix(kName.size());
  return by.empty() || is_digit(by[0]) || std::string_view("-_.").find(by[0]) != by.npos;
}

size_t message_at(std::string_view text, int64_t& attached) {
  constexpr std::string_view kProcess = "Process ", kBy = "strace";
  size_t at = text.rfind(kProcess);
  if (at == std::string_view::npos) return at;
  Scan s(text.substr(at + kProcess.size()));
  int64_t pid = 0;
  if (!s.number(pid)) return std::string_view::npos;
  if (s.take(" attached"))
    attached = pid;
  else if (!s.take(" detached") && !s.take(" suspended") && !s.take(" resumed"))
    return std::string_view::npos;
  if (!s.done() && !s.take(" (") && !s.take(" with ") && !s.take(" - interrupt to quit"))
    return std::string_view::npos;
  const size_t name = text.substr(0, at).rfind(kBy);
  const std::string_view by = name != text.npos ? text.substr(name, at - name) : "";
  // "strace: ", or "strace-4.26: " of another one.
  if (by.ends_with(": ") && std::all_of(by.begin(), by.end() - 2, in_path)) {
    size_t path = at = name;
    while (path > 0 && in_path(text[path - 1])) --path;
    if (text.substr(0, path).ends_with('*')) ++path;  // the end of a comment before it
    at = std::min(at, text.find('/', path));
    size_t dots = 0;  // ./strace, ../strace; three are the end of a text that is cut
    while (text[at] == '/' && at - dots > path && text[at - dots - 1] == '.') ++dots;
    if (dots < 3) at -= dots;
  }
  return at;
}

size_t end_of_call(std::string_view text) {
  constexpr std::string_view kEquals = "= ", kBlanks = " \t";
  for (size_t at = text.rfind(kEquals); at != text.npos; at = text.rfind(kEquals, at - 1)) {
    const size_t close = text.substr(0, at).find_last_not_of(kBlanks);
    if (close == text.npos) break;
    const char result = at + kEquals.size() < text.size() ? text[at + kEquals.size()] : '\0';
    if (text[close] == ')' && close + 1 != at &&
        (is_digit(result) || result == '-' || result == '?'))
      return close;
    if (at == 0) break;
  }
  return text.npos;
}

std::string_view count_of(std::string_view text) {
  Scan s(text);
  s.p += name_of_call(text).size();
  if (!s.take('(') || !s.skip_argument() || !s.take(',') || !s.skip_argument() || !s.take(','))
    return {};
  s.blanks();
  s.skip_name();
  const char* const from = s.p;
  while (is_digit(s.peek())) ++s.p;
  return {from, static_cast<size_t>(s.p - from)};
}

std::string_view result_of(std::string_view end) {
  const std::string_view text = end.substr(end.find('=') + 2);
  return text.substr(0, text.find_first_of(" \t\r"));
}

bool is_message(std::string_view text) {
  for (const char* const how :
       {"--- SIG", "--- stopped", "+++ exited", "+++ killed", "+++ superseded"})
    if (text.starts_with(how)) return true;
  return (text.starts_with("+++ ") && text.ends_with(" +++")) ||
         (text.starts_with("--- ") && text.ends_with(" ---"));
}

std::string_view first_of_write(std::string_view write) {
  const size_t quote = write.find(", \"");
  if (quote == write.npos) return {};
  const std::string_view text = write.substr(quote + 3);
  return text.substr(0, text.find_first_of("\"\\", text.starts_with('\\') ? 1 : 0));
}

bool ends_write(std::string_view write, std::string_view end) {
  const std::string_view result = result_of(end), count = count_of(write);
  if (!is_digit(result[0])) return true;
  if (!count.starts_with(result)) return false;
  // Digits behind the number are what was written.
  std::string_view text = first_of_write(write);
  if (text.starts_with("\\x3")) text.remove_prefix(3);
  return count == result || text.starts_with(count[result.size()]);
}

std::string without_output(std::string_view text) {
  const size_t close = end_of_call(text);
  std::string_view count = count_of(text);
  if (close == text.npos || count.empty()) return {};
  const std::string_view end = text.substr(close), result = result_of(end);
  std::string whole(text.data(), count.data());
  whole += count.starts_with(result) ? result : count;
  return whole += end;
}

std::string without_colours(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b' && i + 1 < text.size() && text[i + 1] == '[') {
      i += 2;
      while (i < text.size() && !((text[i] | 32) >= 'a' && (text[i] | 32) <= 'z')) ++i;
      continue;
    }
    plain += text[i];
  }
  return plain;
}

bool duration_of(std::string_view text, uint64_t& ns) {
  if (text.empty() || text.back() != '>') return false;
  const size_t open = text.rfind('<');
  if (open == std::string_view::npos) return false;
  Scan d(text.substr(open + 1));
  uint64_t whole = 0;
  if (!d.digits(whole) || !d.take('.') || whole >= 1'000'000'000) return false;
  ns = whole * kSecond + d.nanoseconds();
  return true;
}

namespace {

// Whether a call follows, or part of one, or a number, as behind dtruss's results.
bool is_another_call(std::string_view text) {
  const auto is_number = [](char c) { return is_digit(c) || c == '.' || c == ':'; };
  bool number = false;
  Scan s(text.substr(std::min(text.find_first_not_of(" \t\r"), text.size())));
  if (s.take("[pid"))
    while (!s.done() && !s.take(']')) ++s.p;
  for (; s.at_blank() || is_number(s.peek()); ++s.p) number |= !s.at_blank();
  if (s.done()) return number;
  const std::string_view name = name_of_call(s.rest());
  return s.take("<... ") || (!name.empty() && s.rest().substr(name.size()).starts_with('(') &&
                             end_of_call(s.rest()) != text.npos);
}

}  // namespace

bool ends_early(Scan& s) {
  if (s.peek() == '<' && !s.skip_angle()) return false;
  const std::string_view rest = s.rest();
  if (is_another_call(rest)) return true;
  const size_t open = rest.find(" <");
  if (open == rest.npos) return false;
  Scan time(rest.substr(open + 2));
  uint64_t whole = 0;
  if (!time.digits(whole) || !time.take('.')) return false;
  (void)time.nanoseconds();
  if (!time.take('>')) return false;
  time.blanks();
  return !time.done();
}

bool is_made_up(std::string_view behind_result) {
  if (behind_result.find(" (INJECTED") == behind_result.npos) return false;  // mostly
  std::string_view text = behind_result;
  if (uint64_t ns = 0; duration_of(text, ns)) text = text.substr(0, text.rfind(" <"));
  constexpr std::string_view kDelayed = " (DELAYED)";
  if (text.ends_with(kDelayed)) text.remove_suffix(kDelayed.size());
  return text.ends_with(" (INJECTED)") || text.ends_with(" (INJECTED: args, retval)");
}

bool is_of_writer_text(std::string_view text) {
  const size_t open = text.find(" ["), end = text.find("] ", open), call = text.find('(');
  return is_digit(text[0]) && open != text.npos && end < call && call != text.npos &&
         text.substr(open, end - open).find('/') != text.npos;
}

bool is_head_of_counts(std::string_view text) {
  constexpr std::string_view kTitles[] = {"%",          "time",  "seconds", "shortest", "longest",
                                          "usecs/call", "calls", "errors",  "syscall"};
  size_t words = 0;
  for (size_t at = text.find_first_not_of(' '); at != text.npos; ++words) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (std::find(std::begin(kTitles), std::end(kTitles), text.substr(at, end - at)) ==
        std::end(kTitles))
      return false;
    at = text.find_first_not_of(' ', end);
  }
  return words > 1;
}

namespace {
// Past a line's number, but for the last of the blanks behind it: what follows may begin with one.
bool skip_number(Scan& s, uint64_t& number) {
  s.blanks();
  const bool zero = s.peek() == '0';  // 01:00:00 is a time
  if (!s.digits(number)) return false;
  if (s.take('\t') || (!zero && s.take(':'))) return true;
  if (s.peek() != ' ') return false;
  s.blanks();
  --s.p;
  return true;
}
}  // namespace

bool is_numbered(std::string_view text) {
  uint64_t lines = 0, last = 0;
  for (size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
    uint64_t number = 0;
    Scan s(text.substr(0, end));
    if (s.rest().find_first_not_of(" \t\r") == text.npos) continue;  // nl gives these no number
    const bool has_one = skip_number(s, number);
    const bool first = lines++ < kNumbered;
    if (first ? !has_one || number != lines : has_one && number <= last) return false;
    if (has_one) last = number;
  }
  return lines >= kNumbered;
}

std::string_view without_number(std::string_view line) {
  Scan s(line);
  uint64_t number = 0;
  return skip_number(s, number) ? s.rest() : line;
}

std::string without_numbers(std::string_view text) {
  std::string plain;
  for (size_t at = 0, end = 0; at < text.size(); at = end) {
    end = std::min(text.find('\n', at), text.size() - 1) + 1;
    plain += without_number(text.substr(at, end - at));
  }
  return plain;
}

void unescape(std::string_view text, std::string& out) {
  out.clear();
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c != '\\' || i + 1 == text.size()) {
      out += c;
      continue;
    }
    c = text[++i];
    switch (c) {
      case 'n':
        out += '\n';
        break;
      case 't':
        out += '\t';
        break;
      case 'r':
        out += '\r';
        break;
      case 'v':
        out += '\v';
        break;
      case 'f':
        out += '\f';
        break;
      case 'x': {
        unsigned value = 0;
        size_t digits = 0;
        while (digits < 2 && i + 1 < text.size() &&
               isxdigit(static_cast<unsigned char>(text[i + 1]))) {
          const char h = text[++i];
          value = value * 16 + static_cast<unsigned>(is_digit(h) ? h - '0' : (h | 32) - 'a' + 10);
          ++digits;
        }
        out += static_cast<char>(value);
        break;
      }
      default:
        if (c >= '0' && c <= '7') {
          unsigned value = static_cast<unsigned>(c - '0');
          for (int digits = 1;
               digits < 3 && i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '7';
               ++digits)
            value = value * 8 + static_cast<unsigned>(text[++i] - '0');
          out += static_cast<char>(value);
        } else {
          out += c;
        }
    }
  }
}

}  // namespace feign::strace
