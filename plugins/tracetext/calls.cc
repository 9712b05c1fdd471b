// SPDX-License-Identifier: MIT
#include "tracetext/calls.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "layers/posix_ops.h"
#include "tracetext/text.h"

namespace tracetext {

Calls::Calls(const feign_host* host, std::string_view cwd)
    : host_(host), cwd_(host->intern(host, cwd.data(), cwd.size())) {
  for (int e = 1; e < 134; ++e)
    if (const char* name = strerrorname_np(e)) errors_[name] = e;
  errors_["EWOULDBLOCK"] = EAGAIN;
  errors_["EOPNOTSUPP"] = EOPNOTSUPP;
  errors_["EDEADLOCK"] = EDEADLK;
}

const Known& Calls::known(std::string_view name) {
  if (const auto at = names_.find(name); at != names_.end()) return at->second;
  const auto at = names_.emplace(name, Known{}).first;
  Known& k = at->second;
  k.name = at->first.c_str();
  k.op = host_->op(host_, "posix", k.name);
  for (const feign::CallAlias& alias : feign::posix_aliases())
    if (k.op == 0 && name == alias.name)
      k.op = host_->op(host_, "posix", feign::posix_calls()[alias.op].name);
  const feign_op_info* info = host_->op_info(host_, k.op);
  if (info == nullptr) {
    k.left_out = "no description of this call";
    for (const feign::LeftOutCall& call : feign::posix_left_outs())
      if (name == call.name) k.left_out = call.why;
    return k;
  }
  k.kind = info->kind;
  for (uint32_t i = 0; i < info->arg_count; ++i) {
    k.all.push_back(&info->args[i]);
    if (info->args[i].slot != FEIGN_SLOT_NONE) k.kept.push_back(&info->args[i]);
  }
  return k;
}

// Sums of names and numbers.
bool Calls::flags(const feign_arg_info& arg, std::string_view text, uint64_t& value) {
  value = 0;
  while (true) {
    const size_t bar = text.find('|');
    const std::string_view part = trimmed(text.substr(0, bar));
    int64_t number = 0;
    if (number_of(part, number)) {
      value |= static_cast<uint64_t>(number);
    } else {
      const auto* end = arg.names + arg.name_count;
      const auto* at =
          std::find_if(arg.names, end, [&](const feign_name& n) { return part == n.name; });
      if (at == end) return false;
      value |= at->value;
    }
    if (bar == std::string_view::npos) return true;
    text = text.substr(bar + 1);
  }
}

// `data`: it reads or writes; a list is the lengths of its parts then.
bool Calls::argument(const feign_arg_info& arg, std::string_view text, bool data,
                     feign_activity& a) {
  uint64_t value = 0;
  int64_t number = 0;
  switch (arg.type) {
    case FEIGN_ARG_FD:
      if (text == "AT_FDCWD") {
        value = FEIGN_CWD;
      } else if (number_of(text, number) && number >= std::numeric_limits<int32_t>::min() &&
                 number <= std::numeric_limits<int32_t>::max()) {
        value = number == -100 ? FEIGN_CWD : FEIGN_FD(number);
      } else {
        return wrong("want a descriptor");
      }
      break;
    case FEIGN_ARG_PATH:
    case FEIGN_ARG_STRING:
      if (text == "NULL") break;
      if (text.size() < 2 || text.front() != '"' || text.back() != '"')
        return wrong("want a text in quotes, or NULL");
      {
        const std::string plain = unescaped(text.substr(1, text.size() - 2));
        if (plain.find('\0') != plain.npos)
          return wrong("want a text without a NUL, which ends it");
        value = host_->intern(host_, plain.data(), plain.size());
      }
      break;
    case FEIGN_ARG_LIST:
      if (text.starts_with('[') && text.ends_with(']')) {
        std::string_view rest = text.substr(1, text.size() - 2);
        if (values_.size() < arg.index) values_.resize(arg.index);
        uint64_t sum = 0;
        while (!trimmed(rest).empty()) {
          const size_t comma = rest.find(',');
          if (!number_of(trimmed(rest.substr(0, comma)), number))
            return wrong("want numbers, as in [10, 20]");
          values_.push_back(static_cast<uint64_t>(number));
          sum += static_cast<uint64_t>(number);
          if (comma == std::string_view::npos) break;
          rest = rest.substr(comma + 1);
        }
        if (data) a.length = sum;
        return true;
      }
      if (text == "NULL") return true;
      if (!number_of(text, number)) return wrong("want numbers, as in [10, 20], or their sum");
      if (data) a.length = static_cast<uint64_t>(number);
      return true;
    default:
      if (text == "NULL") {
        value = arg.slot == FEIGN_SLOT_VALUE ? FEIGN_NO_OFFSET : 0;
      } else if (!flags(arg, text, value)) {
        return wrong(arg.name_count != 0 ? "want a number or names of flags" : "want a number");
      } else if ((arg.slot == FEIGN_SLOT_FLAGS || arg.slot == FEIGN_SLOT_MODE) &&
                 static_cast<int64_t>(value) != static_cast<int32_t>(value) &&
                 value != static_cast<uint32_t>(value)) {
        return wrong("want a number of at most 32 bits");
      }
  }
  switch (arg.slot) {
    case FEIGN_SLOT_HANDLE:
      a.handle = static_cast<uint32_t>(value);
      break;
    case FEIGN_SLOT_HANDLE2:
      a.handle2 = static_cast<uint32_t>(value);
      break;
    case FEIGN_SLOT_PATH:
      a.path = static_cast<uint32_t>(value);
      break;
    case FEIGN_SLOT_PATH2:
      a.path2 = static_cast<uint32_t>(value);
      break;
    case FEIGN_SLOT_OFFSET:
      a.offset = value;
      break;
    case FEIGN_SLOT_LENGTH:
      a.length = value;
      break;
    case FEIGN_SLOT_FLAGS:
      a.flags = static_cast<uint32_t>(value);
      break;
    case FEIGN_SLOT_MODE:
      a.mode = static_cast<uint32_t>(value);
      break;
    case FEIGN_SLOT_VALUE:
      if (values_.size() <= arg.index) values_.resize(arg.index + size_t{1});
      values_[arg.index] = value;
      break;
    default:
      break;
  }
  return true;
}

bool Calls::result(std::string_view text, feign_activity& a) {
  if (text == "?") {
    a.marks |= FEIGN_NO_RESULT;
    return true;
  }
  size_t n = 0;
  while (n < text.size() && !is_blank(text[n])) ++n;
  if (!number_of(text.substr(0, n), a.result))
    return wrong("the result is \"" + std::string(text.substr(0, 40)) +
                 "\": want a number, -1 ENAME or ?");
  text = trimmed(text.substr(n));
  if (a.result == -1) {
    // Without its reason, a failure cannot be compared.
    const std::string_view name = first_name(text);
    if (const auto at = errors_.find(name); at != errors_.end())
      a.result = -at->second;
    else
      a.marks |= FEIGN_NO_RESULT;
    text = trimmed(text.substr(name.size()));
  }
  if (!text.empty() && !(text.front() == '(' && text.back() == ')'))
    return wrong("\"" + std::string(text.substr(0, 40)) +
                 "\" after the result: want the end of the line");
  return true;
}

bool Calls::parse(std::string_view text, const Known& call, feign_activity& a) {
  error_.clear();
  arguments_.clear();
  values_.clear();
  if (text.ends_with(';')) text = trimmed(text.substr(0, text.size() - 1));
  size_t i = text.find('(') + 1, from = i;
  int depth = 0;
  for (bool closed = false; !closed;) {
    if (i >= text.size()) return wrong("the arguments do not end: want CALL(…) = RESULT");
    const char c = text[i];
    if (c == '[' || c == '{' || c == '(') ++depth;
    closed = c == ')' && depth == 0;
    if (closed || (c == ',' && depth == 0)) {
      arguments_.push_back(trimmed(text.substr(from, i - from)));
      from = i + 1;
    } else if (c == ']' || c == '}' || c == ')') {
      --depth;
    }
    i = past(text, i);
  }
  if (arguments_.size() == 1 && arguments_[0].empty()) arguments_.clear();
  std::string_view rest = trimmed(text.substr(i));
  if (!rest.starts_with('=')) return wrong("there is no result: want \") = RESULT\"");
  if (!result(trimmed(rest.substr(1)), a)) return false;

  // With buffers and the like, or, as //TRACE writes it, without.
  const size_t given = arguments_.size();
  const auto& args = given == call.all.size() ? call.all : call.kept;
  size_t least = args.size();
  while (least > 0 &&
         (args[least - 1]->slot == FEIGN_SLOT_MODE || args[least - 1]->slot == FEIGN_SLOT_VALUE))
    --least;
  if (given > args.size() || given < least) {
    std::string want;
    for (const feign_arg_info* arg : call.kept)
      want += (want.empty() ? "" : ", ") + std::string(arg->name);
    return wrong(std::to_string(given) + " arguments, want " + std::to_string(call.kept.size()) +
                 ": " + want);
  }
  const bool data = call.kind == FEIGN_KIND_READ || call.kind == FEIGN_KIND_WRITE;
  for (size_t k = 0; k < given; ++k) {
    if (args[k]->slot == FEIGN_SLOT_NONE) continue;
    if (argument(*args[k], arguments_[k], data, a)) continue;
    error_ = "argument " + std::to_string(k + 1) + " (" + args[k]->name + ") is \"" +
             std::string(arguments_[k].substr(0, 40)) + "\": " + error_;
    return false;
  }
  if (a.path != 0 && (a.handle == 0 || a.handle == FEIGN_CWD)) {
    const char* path = host_->text(host_, a.path, nullptr);
    if (path[0] != '/' && path[0] != '\0') a.file = cwd_;
  }
  return true;
}

}  // namespace tracetext
