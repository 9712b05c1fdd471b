// SPDX-License-Identifier: MIT
// The report of one process of a replay, for the one that prints what came of all.
#include <cstring>

#include "report/report.h"

namespace feign {
namespace {

// One description for both ways: Put writes each field, Take reads it.
struct Put {
  std::string bytes;
  void number(uint64_t v) { bytes.append(reinterpret_cast<const char*>(&v), sizeof v); }
  void text(const std::string& s) {
    number(s.size());
    bytes += s;
  }
};

struct Take {
  const std::string& bytes;
  size_t at = 0;
  bool bad = false;
  uint64_t number() {
    uint64_t v = 0;
    if (bytes.size() - at < sizeof v) {
      bad = true;
      return 0;
    }
    memcpy(&v, bytes.data() + at, sizeof v);
    at += sizeof v;
    return v;
  }
  std::string text() {
    const uint64_t size = number();
    if (size > bytes.size() - at) {
      bad = true;
      return {};
    }
    at += size;
    return bytes.substr(at - size, size);
  }
};

constexpr uint64_t OpReport::*kOpNumbers[] = {&OpReport::activities,
                                              &OpReport::replayed,
                                              &OpReport::emulated,
                                              &OpReport::matched,
                                              &OpReport::mismatched,
                                              &OpReport::skipped,
                                              &OpReport::bytes_read,
                                              &OpReport::bytes_written,
                                              &OpReport::recorded_bytes_read,
                                              &OpReport::recorded_bytes_written};
constexpr uint64_t RankReport::*kRankNumbers[] = {
    &RankReport::streams,          &RankReport::activities,
    &RankReport::mismatched,       &RankReport::first_ns,
    &RankReport::last_ns,          &RankReport::io_ns,
    &RankReport::communication_ns, &RankReport::pause_ns,
    &RankReport::wait_ns,          &RankReport::bytes,
    &RankReport::ready_ns,         &RankReport::memory};

void put(Put& to, const Histogram& h) {
  std::string buckets;
  uint64_t n = 0;
  Put list;
  h.each([&](size_t i, uint64_t samples) {
    list.number(i);
    list.number(samples);
    ++n;
  });
  to.number(n);
  to.bytes += list.bytes;
  to.number(h.sum());
  to.number(h.count() == 0 ? UINT64_MAX : h.min());
  to.number(h.max());
}

void take(Take& from, Histogram& h) {
  for (uint64_t n = from.number(); n != 0 && !from.bad; --n) {
    const uint64_t i = from.number();
    h.add_bucket(i, from.number());
  }
  const uint64_t sum = from.number(), min = from.number();
  h.add_sums(sum, min, from.number());
}

}  // namespace

std::string packed(const Report& r) {
  Put to;
  uint64_t ops = 0;
  for (const auto& op : r.ops) ops += op != nullptr;
  to.number(ops);
  for (uint32_t id = 0; id < r.ops.size(); ++id) {
    if (!r.ops[id]) continue;
    to.number(id);
    for (const auto field : kOpNumbers) to.number((*r.ops[id]).*field);
    put(to, r.ops[id]->latency);
    put(to, r.ops[id]->recorded_latency);
  }
  to.number(r.mismatches.size());
  for (const auto& [key, m] : r.mismatches) {
    to.number(std::get<0>(key));
    to.number(static_cast<uint64_t>(std::get<1>(key)));
    to.number(static_cast<uint64_t>(std::get<2>(key)));
    to.number(m.count);
    to.number(m.first_place);
    to.number(m.first_id);
    to.text(m.first_path);
  }
  to.number(r.skips.size());
  for (const auto& [key, count] : r.skips) {
    to.number(key.first);
    to.text(key.second);
    to.number(count);
  }
  to.number(r.rules.size());
  for (const auto& [name, rule] : r.rules) {
    to.text(name);
    to.number(rule.count);
    to.number(rule.wait_ns);
    to.number(rule.longest_ns);
  }
  to.number(r.streams.size());
  for (const StreamReport& s : r.streams) {
    for (const uint64_t v :
         {uint64_t{s.stream}, s.activities, s.call_ns, s.pause_ns, s.wait_ns, s.idle_ns})
      to.number(v);
    put(to, s.lateness);
  }
  to.number(r.workers);
  uint64_t there = 0;
  for (const RankReport& rank : r.ranks) there += rank.there;
  to.number(there);
  for (const RankReport& rank : r.ranks) {
    if (!rank.there) continue;
    to.number(rank.rank);
    to.number(rank.failed);
    to.text(rank.stopped_by);
    for (const auto field : kRankNumbers) to.number(rank.*field);
  }
  return std::move(to.bytes);
}

bool add_packed(const std::string& bytes, Report& to) {
  Take from{bytes};
  for (uint64_t n = from.number(); n != 0 && !from.bad; --n) {
    const uint64_t id = from.number();
    if (id >= to.ops.size() + 65536) return false;
    OpReport op;
    for (const auto field : kOpNumbers) op.*field = from.number();
    take(from, op.latency);
    take(from, op.recorded_latency);
    to.op(static_cast<uint32_t>(id)).merge(op);
  }
  for (uint64_t n = from.number(); n != 0 && !from.bad; --n) {
    const auto op = static_cast<uint32_t>(from.number());
    const auto recorded = static_cast<int64_t>(from.number());
    Mismatch& m = to.mismatches[{op, recorded, static_cast<int64_t>(from.number())}];
    m.count += from.number();
    const uint64_t place = from.number(), id = from.number();
    std::string path = from.text();
    if (id >= m.first_id) continue;
    m.first_place = place;
    m.first_id = id;
    m.first_path = std::move(path);
  }
  for (uint64_t n = from.number(); n != 0 && !from.bad; --n) {
    const auto op = static_cast<uint32_t>(from.number());
    const std::string why = from.text();
    to.skips[{op, why}] += from.number();
  }
  for (uint64_t n = from.number(); n != 0 && !from.bad; --n) {
    RuleReport& rule = to.rules[from.text()];
    rule.count += from.number();
    rule.wait_ns += from.number();
    rule.longest_ns = std::max(rule.longest_ns, from.number());
  }
  for (uint64_t n = from.number(); n != 0 && !from.bad; --n) {
    StreamReport s;
    s.stream = static_cast<uint32_t>(from.number());
    s.activities = from.number();
    s.call_ns = from.number();
    s.pause_ns = from.number();
    s.wait_ns = from.number();
    s.idle_ns = from.number();
    take(from, s.lateness);
    to.streams.push_back(std::move(s));
  }
  to.workers += from.number();
  for (uint64_t n = from.number(); n != 0 && !from.bad; --n) {
    const uint64_t rank = from.number();
    if (rank >= to.ranks.size()) return false;
    to.ranks[rank].failed = from.number() != 0;
    to.ranks[rank].stopped_by = from.text();
    for (const auto field : kRankNumbers) to.ranks[rank].*field = from.number();
    to.ranks[rank].there = true;
  }
  return !from.bad;
}

}  // namespace feign
