// SPDX-License-Identifier: MIT
// The text of strace, piece by piece: a small tokenizer that knows strings, brackets and descriptor
// annotations, and the ends of lines.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>

namespace feign::strace {

constexpr uint64_t kSecond = 1'000'000'000;

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
}

// What strace prints for the call of a process that is gone when it asks; older ones one more.
constexpr std::string_view kNoName = "???";
// Begins a line of a stack (-k).
constexpr std::string_view kFrame = " > ";
constexpr const char* kNoEnd = "the arguments do not end: want CALL(…) = RESULT";
constexpr const char* kLostNewline =
    "more text behind its result: a lost newline, or another system's trace?";

// The name that a call begins with.
std::string_view name_of_call(std::string_view text);

// Reads along a piece of text.
struct Scan {
  const char* p;
  const char* end;

  explicit Scan(std::string_view text) : p(text.data()), end(text.data() + text.size()) {}
  bool done() const { return p == end; }
  char peek() const { return p == end ? '\0' : *p; }
  bool take(char c) {
    if (peek() != c || p == end) return false;
    ++p;
    return true;
  }
  [[gnu::always_inline]] bool take(std::string_view text) {
    if (p == end || *p != text[0]) return false;  // the usual case
    if (static_cast<size_t>(end - p) < text.size() || memcmp(p, text.data(), text.size()) != 0)
      return false;
    p += text.size();
    return true;
  }
  // An editor may have made tabs of blanks.
  bool at_blank() const { return p != end && (*p == ' ' || *p == '\t'); }
  void blanks() {
    while (at_blank()) ++p;
  }
  std::string_view rest() const { return {p, static_cast<size_t>(end - p)}; }
  // Decimal digits, before `most`; how many that were.
  ptrdiff_t decimal(const char* most, uint64_t& value) {
    const char* at = p;
    uint64_t v = 0;
    for (unsigned d; at != most && (d = static_cast<unsigned char>(*at) - unsigned{'0'}) < 10; ++at)
      v = v * 10 + d;
    const ptrdiff_t count = at - p;
    p = at;
    value = v;
    return count;
  }
  // … false if there are none, or more than a time or an id can have.
  bool digits(uint64_t& value) {
    const ptrdiff_t count = decimal(end, value);
    return count != 0 && count <= 18;
  }
  // The digits after a point, as nanoseconds; what is finer is left out.
  uint64_t nanoseconds() {
    constexpr uint64_t kUnits[] = {1'000'000'000, 100'000'000, 10'000'000, 1'000'000, 100'000,
                                   10'000,        1'000,       100,        10,        1};
    uint64_t v = 0;
    const ptrdiff_t count = decimal(end - p > 9 ? p + 9 : end, v);
    v *= kUnits[count];
    while (is_digit(peek())) ++p;
    return v;
  }

  // A C number: decimal, octal (leading 0), hexadecimal, with a sign. False if there is none.
  bool number(int64_t& value) {
    const char* start = p;
    bool negative = false;
    if (peek() == '-') {
      negative = true;
      ++p;
    }
    if (!is_digit(peek())) {
      p = start;
      return false;
    }
    int base = 10;
    if (*p == '0' && p + 1 != end && (p[1] == 'x' || p[1] == 'X')) {
      base = 16;
      p += 2;
    } else if (*p == '0' && p + 1 != end && is_digit(p[1])) {
      base = 8;
      ++p;
    }
    uint64_t magnitude = 0;
    if (base == 10) {
      const char* const first = p;
      if (decimal(end, magnitude) < 20) {  // the usual case: it cannot have overflowed
        value = static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
        return true;
      }
      p = first;
    }
    const auto [stop, error] = std::from_chars(p, end, magnitude, base);
    if (error != std::errc{}) {
      p = start;
      return false;
    }
    p = stop;
    value = static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
    return true;
  }

  // Past "flags=": strace -N says what each argument is called, and always does of clone's.
  void skip_name() {
    if (p == end || *p < 'a' || *p > 'z') return;
    const char* at = p;
    while (at != end && is_name(*at)) ++at;
    if (at != end && *at == '=') p = at + 1;
  }

  // Past a string that starts here, quotes included; false if it does not end.
  bool skip_string() {
    ++p;
    while (p != end && *p != '"') p += *p == '\\' && p + 1 != end ? 2 : 1;
    if (p == end) return false;
    ++p;
    return true;
  }
  // Past <…> that starts here: nested; "->" is an arrow between brackets (a connection's ends,
  // whose names stand in quotes), and in a path if nothing follows that may follow one. (In a path,
  // newer strace writes "\76".)
  bool skip_angle() {
    const bool path = p != end && p + 1 != end && p[1] == '/';
    if (path)  // the usual case: nothing in it
      if (const auto* const at = static_cast<const char*>(memchr(p, '>', rest().size()));
          at != nullptr && at[-1] != '-' &&
          memchr(p + 1, '<', static_cast<size_t>(at - p) - 1) == nullptr) {
        p = at + 1;
        return true;
      }
    int depth = 0, brackets = 0;
    for (; p != end; ++p) {
      if (*p == '<') ++depth;
      if (!path) {
        brackets += *p == '[' ? 1 : *p == ']' ? -1 : 0;
        if (*p == '"' && brackets > 0) {
          if (!skip_string()) return false;
          --p;
        }
      }
      if (*p != '>') continue;
      if (p[-1] == '-' && (path ? !may_follow_path(p + 1) : brackets > 0)) continue;
      if (--depth == 0) {
        ++p;
        return true;
      }
    }
    return false;
  }
  bool may_follow_path(const char* at) const {
    return at == end || strchr(",) (]}", *at) != nullptr;
  }
  // To the comma or the closing parenthesis that ends this argument; false at the end of the text.
  bool skip_argument() {
    int depth = 0;
    while (p != end) {
      switch (*p) {
        case '"':
          if (!skip_string()) return false;
          continue;
        case '(':
        case '[':
        case '{':
          ++depth;
          break;
        case ')':
          if (depth == 0) return true;
          [[fallthrough]];
        case ']':
        case '}':
          --depth;
          break;
        case '<':
          // An annotation follows a descriptor; "a << b" and "<0.1>" do not occur in arguments.
          if (p + 1 != end && p[1] == '<') {
            ++p;
            break;
          }
          if (!skip_angle()) return false;
          continue;
        case '/':
          if (p + 1 != end && p[1] == '*') {
            const std::string_view left = rest();
            const size_t close = left.find("*/");
            if (close == std::string_view::npos) return false;
            p += close + 2;
            continue;
          }
          break;
        case ',':
          if (depth == 0) return true;
          break;
        default:
          break;
      }
      ++p;
    }
    return false;
  }
};

// Whether it is a message of strace's own: "strace: WARNING: …", "/usr/bin/strace-4.26: …".
bool is_of_strace(std::string_view text);

// Where what strace says of a process begins, which on a terminal may break a call's line:
// "strace: Process 8 attached", of old without "strace: ", with a path where it was called by
// one; npos if the line does not end so. `attached`: the process, if it joins.
size_t message_at(std::string_view text, int64_t& attached);

// The parenthesis of ") = RESULT" that ends the line of a call; npos if it does not end so.
size_t end_of_call(std::string_view text);

// The number in write(1, "text"..., 129; what the program wrote may follow it. Empty: there is
// none.
std::string_view count_of(std::string_view text);

// The result behind end_of_call(), as it is printed.
std::string_view result_of(std::string_view end);

// What `write` writes first, up to what strace shows escaped.
std::string_view first_of_write(std::string_view write);

// Whether it is a signal or the end of a process: "--- SIGINT {…} ---", "+++ exited with 0 +++". (A
// program may write "+++ b/file".)
bool is_message(std::string_view text);

// Whether the end of a call that was found, ") = 5", may be that of `write`, which wrote that many;
// what the program wrote may hold other calls' ends.
bool ends_write(std::string_view write, std::string_view end);

// A line of write() without what the program wrote, which may hold anything. Its digits and the
// number's cannot be told apart but by the result. Empty: it is no such line.
std::string without_output(std::string_view text);

std::string without_colours(std::string_view text);

// "<0.000010>" at the end of a line: the call's duration.
bool duration_of(std::string_view text, uint64_t& ns);

// Whether another call follows the result of one, behind which the scan stands, or anything its
// duration.
bool ends_early(Scan& s);

// Whether strace made up the result that the text stands behind, and made no call (-e inject).
bool is_made_up(std::string_view behind_result);

// The first line of a table of counts (-c, -C), with whatever columns (-U).
bool is_head_of_counts(std::string_view text);

// A line of writer text: "0 0.000100000 [1 100/100] read(fd=#1 …".
bool is_of_writer_text(std::string_view text);

constexpr uint64_t kNumbered = 5;  // lines tell whether all have a number
// Whether the lines of a text that begins so have their numbers before them (cat -n, nl, grep -n,
// what is copied from an editor): the first are 1, 2, 3, 4 and 5, and none comes again. Processes
// may be called so too, but those have more than a line.
bool is_numbered(std::string_view text);

// A line without the number before it, if there is one.
std::string_view without_number(std::string_view line);
std::string without_numbers(std::string_view text);

// Undoes C escapes into `out`.
void unescape(std::string_view text, std::string& out);

}  // namespace feign::strace
