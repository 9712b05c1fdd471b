// SPDX-License-Identifier: MIT
#include "window/explain.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "trace/words.h"

namespace feign {
namespace {

std::string duration(uint64_t ns) {
  char text[40];
  const double v = static_cast<double>(ns);
  if (ns >= 1'000'000'000)
    snprintf(text, sizeof text, "%.4g s", v / 1e9);
  else if (ns >= 1'000'000)
    snprintf(text, sizeof text, "%.4g ms", v / 1e6);
  else if (ns >= 1000)
    snprintf(text, sizeof text, "%.4g us", v / 1e3);
  else
    snprintf(text, sizeof text, "%" PRIu64 " ns", ns);
  return text;
}

std::string result_of(const feign_activity& a) {
  if (a.marks & FEIGN_NO_RESULT) return "?";
  if (a.result < 0 && a.result > -4096)
    if (const char* name = strerrorname_np(static_cast<int>(-a.result)); name != nullptr)
      return std::string("-") + name;
  return std::to_string(a.result);
}

bool at_position(const feign_op_info& op) {
  return op.kind == FEIGN_KIND_READ || op.kind == FEIGN_KIND_WRITE;
}

}  // namespace

Explain::Copy::Copy(const feign_activity& from)
    : a(from),
      values(from.values, from.values + from.value_count),
      depends(from.marks & FEIGN_DEPENDS ? Record::of(&from)->depends : std::vector<Dependency>{}) {
  a.values = nullptr;
}

Explain::Entry* Explain::find(uint32_t stage, uint64_t id) const {
  const auto at = places_.find({stage, id});
  return at == places_.end() ? nullptr : at->second;
}

Explain::Entry& Explain::add(uint32_t stage, const feign_activity& a, int64_t number) {
  Entry& e = entries_.emplace_back();
  e.number = number;
  e.first = Copy(a);
  comes_to(stage, a.id, e);
  return e;
}

void Explain::comes_to(uint32_t stage, uint64_t id, Entry& e) {
  e.place = {stage, id};
  places_[e.place] = &e;
  if (e.number + 1 == static_cast<int64_t>(count_)) last_[stage] = id;
}

bool Explain::wants(uint32_t stage, uint64_t id) const {
  auto last = last_.find(stage);
  if (last == last_.end()) last = last_.find(kNeverCame);
  return last == last_.end() || id <= last->second;
}

void Explain::provided(const feign_activity& a) {
  if (provided_ == count_) return;
  add(0, a, static_cast<int64_t>(provided_++));
}

void Explain::by_others(const feign_activity& a) {
  if (!wants(0, a.id)) return;
  ++injected_;
  add(0, a).events.push_back({"resolve", "injected: a process that is not in the trace did it"});
}

void Explain::before(uint32_t stage, feign_activity* const* items, size_t due) {
  before_.clear();
  for (size_t i = 0; i < due; ++i)
    if (find(stage, items[i]->id) != nullptr) before_.emplace_back(i, Copy(*items[i]));
}

void Explain::merged(uint32_t stage, uint64_t from, uint64_t into) {
  if (wants(stage, from)) merged_[from] = into;
  if (Entry* e = find(stage, into)) ++e->took_in;
}

void Explain::after(uint32_t stage, const std::string& modifier, feign_activity* const* items,
                    const std::vector<bool>& emitted, feign_activity* const* out,
                    size_t out_count) {
  for (const auto& [i, was] : before_) {
    Entry& e = *find(stage, was.a.id);
    if (emitted[i]) {
      comes_to(stage + 1, items[i]->id, e);
      const std::string what = changes(stage, was, Copy(*items[i]));
      if (what.empty()) continue;
      ++changed_;
      e.events.push_back({modifier, what});
      continue;
    }
    if (e.number + 1 == static_cast<int64_t>(count_)) last_[kNeverCame] = was.a.id;
    if (const auto at = merged_.find(was.a.id); at != merged_.end()) {
      ++merges_;
      e.events.push_back({modifier, "merged into " + number_of(stage, at->second)});
    } else {
      ++dropped_;
      e.events.push_back({modifier, "dropped; its think time goes to the stream's next"});
    }
  }
  for (size_t i = 0, item = 0; i < out_count; ++i) {
    while (item < emitted.size() && !emitted[item]) ++item;
    const feign_activity& a = *out[i];
    if (item < emitted.size() && items[item] == &a) {
      ++item;
    } else if (wants(stage + 1, a.id)) {
      ++injected_;
      add(stage + 1, a).events.push_back({modifier, "injected"});
    }
  }
  merged_.clear();
}

std::string Explain::number_of(uint32_t stage, uint64_t id) const {
  const Entry* e = find(stage, id);
  if (e == nullptr) return "one past the last shown";
  return e->number < 0 ? "an injected one" : std::to_string(e->number);
}

std::string Explain::stream(uint32_t id) const {
  return stream_in_words(id, tables_.streams.info(id));
}

std::string Explain::argument(const feign_activity& a, const feign_arg_info& arg) const {
  uint64_t value = 0;
  if (arg.slot == FEIGN_SLOT_VALUE || !value_of(a, arg, value)) return "";  // rare, or not kept
  std::string text;
  char number[24];
  switch (arg.type) {
    case FEIGN_ARG_PATH:
    case FEIGN_ARG_STRING:
      return "\"" + std::string(tables_.strings.text(static_cast<uint32_t>(value))) + "\"";
    case FEIGN_ARG_FD:
      return value != 0 ? "#" + std::to_string(value) : "";
    case FEIGN_ARG_FLAGS:
      add_flag_names(text, arg, value);
      return text;
    case FEIGN_ARG_MODE:
      snprintf(number, sizeof number, "0%" PRIo64, value);
      return number;
    default:
      return std::to_string(static_cast<int64_t>(value));
  }
}

std::string Explain::call(const feign_activity& a) const {
  const feign_op_info* op = tables_.ops.info(a.op);
  if (op == nullptr) return "op-" + std::to_string(a.op);
  std::string text = strcmp(op->layer, "posix") != 0 ? std::string(op->layer) + ":" : "";
  text += std::string(op->name) + "(";
  bool first = true;
  for (uint32_t i = 0; i < op->arg_count; ++i) {
    const feign_arg_info& arg = op->args[i];
    if (arg.slot == FEIGN_SLOT_HANDLE && op->kind == FEIGN_KIND_OPEN) continue;
    const std::string value = argument(a, arg);
    if (value.empty()) continue;
    text += (first ? "" : ", ") + std::string(arg.name) + "=" + value;
    first = false;
  }
  text += ")";
  if (!(a.marks & FEIGN_INJECTED)) text += " = " + result_of(a);
  if (at_position(*op)) text += "  at " + std::to_string(a.offset);
  return text;
}

// Field by field: what was → what is.
std::string Explain::changes(uint32_t stage, const Copy& from, const Copy& to) const {
  const feign_activity &a = from.a, &b = to.a;
  const feign_op_info *was = tables_.ops.info(a.op), *is = tables_.ops.info(b.op);
  std::string out;
  const auto field = [&](const char* name, const std::string& old, const std::string& now) {
    if (old != now) out += (out.empty() ? "" : ", ") + std::string(name) + " " + old + " → " + now;
  };
  const auto text = [&](uint32_t id) {
    return "\"" + std::string(tables_.strings.text(id)) + "\"";
  };
  field("call", was != nullptr ? was->name : "?", is != nullptr ? is->name : "?");
  field("stream", stream(a.stream), stream(b.stream));
  field("path", text(a.path), text(b.path));
  field("path2", text(a.path2), text(b.path2));
  field("handle", "#" + std::to_string(a.handle), "#" + std::to_string(b.handle));
  field("handle2", "#" + std::to_string(a.handle2), "#" + std::to_string(b.handle2));
  field("file", std::to_string(a.file), std::to_string(b.file));
  field("offset", std::to_string(a.offset), std::to_string(b.offset));
  field("length", std::to_string(a.length), std::to_string(b.length));
  std::string old_flags = std::to_string(a.flags), new_flags = std::to_string(b.flags);
  for (uint32_t i = 0; is != nullptr && i < is->arg_count; ++i)
    if (is->args[i].slot == FEIGN_SLOT_FLAGS) {
      old_flags = argument(a, is->args[i]);
      new_flags = argument(b, is->args[i]);
    }
  field("flags", old_flags, new_flags);
  const bool data = is != nullptr && (is->kind == FEIGN_KIND_READ || is->kind == FEIGN_KIND_WRITE);
  if (data)
    field("memory, past a page", std::to_string(a.mode / 2), std::to_string(b.mode / 2));
  else
    field("mode", std::to_string(a.mode), std::to_string(b.mode));
  field("result", result_of(a), result_of(b));
  field("think time", duration(a.compute_ns), duration(b.compute_ns));
  field("waiting", duration(a.sync_ns), duration(b.sync_ns));
  field("start", duration(a.start_ns), duration(b.start_ns));
  field("duration", duration(a.duration_ns), duration(b.duration_ns));
  const auto list = [](const std::vector<uint64_t>& values) {
    std::string all = "[";
    for (const uint64_t v : values) all += (all.size() > 1 ? " " : "") + std::to_string(v);
    return all + "]";
  };
  field("values", list(from.values), list(to.values));
  const auto dependencies = [&](const std::vector<Dependency>& depends) {
    std::string all;
    for (const Dependency& d : depends)
      all += (all.empty() ? "" : " and ") + number_of(stage, d.id) + " of stream " +
             std::to_string(d.stream) + " (" + std::string(tables_.strings.text(d.rule)) + ")";
    return all.empty() ? std::string("nothing") : all;
  };
  field("waits for", dependencies(from.depends), dependencies(to.depends));
  return out;
}

std::string Explain::text() const {
  std::string out =
      "explain      " + std::to_string(provided_) +
      (provided_ < count_ ? " activities, all of the trace" : " activities, from the first") +
      ": as recorded, and below what modifiers made of them\n\n";
  size_t width = 0;
  for (const Entry& e : entries_)
    for (const Event& event : e.events) width = std::max(width, event.modifier.size());
  uint64_t untouched = 0;
  // By id; of two with the same one, what moved on to it came before what a stage dropped there.
  std::vector<const Entry*> in_order;
  for (const Entry& e : entries_) in_order.push_back(&e);
  std::sort(in_order.begin(), in_order.end(), [](const Entry* a, const Entry* b) {
    return std::pair(a->place.second, b->place.first) < std::pair(b->place.second, a->place.first);
  });
  for (const Entry* entry : in_order) {
    const Entry& e = *entry;
    const feign_activity& a = e.first.a;
    std::string number = e.number < 0 ? "+" : std::to_string(e.number);
    out += std::string(number.size() < 5 ? 5 - number.size() : 0, ' ') + number + "  [" +
           stream(a.stream) + "] " + call(a);
    const std::string_view path = tables_.strings.text(a.path);
    const feign_op_info* op = tables_.ops.info(a.op);
    if (!path.empty() && a.handle != 0 && (op == nullptr || op->kind != FEIGN_KIND_OPEN))
      out += "  " + std::string(path);
    if (e.number >= 0 && a.place != 0) {
      const std::string place = tables_.place(a.place);
      out += "  (" + place.substr(place.rfind('/') + 1) + ")";
    }
    out += '\n';
    for (const Event& event : e.events)
      out += "         " + event.modifier + std::string(width - event.modifier.size(), ' ') + "  " +
             event.what + "\n";
    if (e.took_in != 0)
      out += "         " + std::string(width, ' ') + "  does the work of " +
             std::to_string(e.took_in) + " more, merged into it\n";
    untouched += e.events.empty() && e.took_in == 0;
  }
  out += "\n             " + std::to_string(changed_) + " changed, " + std::to_string(injected_) +
         " injected, " + std::to_string(merges_) + " merged, " + std::to_string(dropped_) +
         " dropped; " + std::to_string(untouched) + " as recorded\n";
  return out;
}

}  // namespace feign
