// SPDX-License-Identifier: MIT
// Paths as text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace feign {

// What the kernel puts behind the name of what has none any more (proc(5)).
constexpr std::string_view kGone = " (deleted)";
inline bool is_gone(std::string_view said) {
  return said.starts_with('/') && said.ends_with(kGone);
}

// Longer than any that a program got to: trees that deep are kept account of no more.
constexpr size_t kLongestPath = size_t{16} << 10;

// Takes the first component off a path; empty ones and "." are none. Empty when there is no more.
inline std::string_view take_component(std::string_view& rest) {
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('/'), rest.size());
    const std::string_view part = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!part.empty() && part != ".") return part;
  }
  return {};
}

// The last component of a path that has no slash at its end.
inline std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// What entries add to getdents64's results (getdents(2)): "." and ".."; a name.
constexpr int32_t kNoEntries = 48;
inline int32_t entry_bytes(size_t length) { return static_cast<int32_t>((length + 27) / 8 * 8); }
inline int32_t entry_bytes(std::string_view name) { return entry_bytes(name.size()); }

// Names of our own for what listings had so many bytes of entries for, and that no call names: how
// many of the bytes the next one takes (one of the most has 252 letters), and the name.
constexpr int32_t kLeastEntry = 24;
inline int64_t unnamed_entry_bytes(int64_t bytes) { return bytes > 272 ? 32 : bytes; }
inline std::string unnamed_entry(uint32_t number, int64_t bytes) {
  std::string name = "~" + std::to_string(number);
  name.resize(static_cast<size_t>(bytes) - 20, '~');
  return name;
}

// The file that a root has which was empty when it was first used (docs/decisions/0005). It is none
// of the entries that were listed.
constexpr const char* kRootMark = ".feign";

// The path without empty, "." and ".." components (taken lexically), with a leading and without a
// trailing slash.
inline std::string clean_path(std::string_view path) {
  std::string out;
  out.reserve(path.size() + 1);
  for (std::string_view part; !(part = take_component(path)).empty();) {
    if (part == "..") {
      const size_t slash = out.rfind('/');
      out.resize(slash == std::string::npos ? 0 : slash);
      continue;
    }
    out += '/';
    out += part;
  }
  if (out.empty()) out = "/";
  return out;
}

// What feign_activity.path2 says of a link in an open's path: where it leads, and what of the path
// is behind it.
struct LinkTold {
  std::string_view target, rest;
};
inline LinkTold link_told(std::string_view path2) {
  size_t at = path2.find("/./");
  if (at == path2.npos) at = path2.ends_with("/.") ? path2.size() - 2 : path2.size();
  return {path2.substr(0, at), path2.substr(std::min(at + 2, path2.size()))};
}

namespace glob {

// How long the first sign of a glob is if it fits the character, else 0: a literal, ?, [set] or \x.
inline size_t one(const char* glob, char c) {
  if (*glob == '?') return c != '/' ? 1 : 0;
  if (*glob == '\\' && glob[1] != '\0') return glob[1] == c ? 2 : 0;
  if (*glob != '[') return *glob == c && c != '\0' ? 1 : 0;
  const char* at = glob + 1;
  const bool other = *at == '!' || *at == '^';
  if (other) ++at;
  bool found = false;
  const char* const first = at;
  for (; *at != '\0' && (*at != ']' || at == first); ++at) {
    const bool range = at[1] == '-' && at[2] != '\0' && at[2] != ']';
    found |= range ? *at <= c && c <= at[2] : *at == c;
    if (range) at += 2;
  }
  if (*at == '\0') return *glob == c ? 1 : 0;  // no set: a bracket
  return found != other && c != '/' ? static_cast<size_t>(at - glob) + 1 : 0;
}

}  // namespace glob

// Whether a path is one of a glob's: * within a component, ** across.
inline bool glob_fits(const char* pattern, const char* path) {
  // The last star of each kind, and where what it stands for ends: that is tried longer and longer.
  const char *star = nullptr, *star_end = nullptr, *deep = nullptr, *deep_end = nullptr;
  while (true) {
    if (pattern[0] == '*' && pattern[1] == '*') {
      deep = pattern += 2;
      deep_end = path;
      star = nullptr;
    } else if (*pattern == '*') {
      star = ++pattern;
      star_end = path;
    } else if (*pattern == '\0' && *path == '\0') {
      return true;
    } else if (const size_t length = *path != '\0' ? glob::one(pattern, *path) : 0; length != 0) {
      pattern += length;
      ++path;
    } else if (star != nullptr && *star_end != '\0' && *star_end != '/') {
      path = ++star_end;
      pattern = star;
    } else if (deep != nullptr && *deep_end != '\0') {
      path = ++deep_end;
      pattern = deep;
      star = nullptr;
    } else {
      return false;
    }
  }
}

}  // namespace feign
