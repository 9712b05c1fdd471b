// SPDX-License-Identifier: MIT
#include "replay/path.h"

#include <algorithm>

namespace feign {

void Timeline::add(const Mark& mark) {
  if (marks_.size() == kMarks) {
    for (size_t i = 1; i < kMarks / 2; ++i) marks_[i] = marks_[2 * i];
    marks_.resize(kMarks / 2);
    every_ns_ *= 2;
  }
  marks_.push_back(mark);
  next_ns_ = mark.ns + every_ns_;
}

Timeline::Mark Timeline::at(uint64_t ns) const {
  const auto after = std::upper_bound(marks_.begin(), marks_.end(), ns,
                                      [](uint64_t n, const Mark& m) { return n < m.ns; });
  if (after == marks_.begin()) return {};
  const Mark& a = *(after - 1);
  if (after == marks_.end()) return a;
  const Mark& b = *after;
  const double share = static_cast<double>(ns - a.ns) / static_cast<double>(b.ns - a.ns);
  const auto between = [&](uint64_t from, uint64_t to) {
    return from + static_cast<uint64_t>(share * static_cast<double>(to - from));
  };
  return {ns, between(a.call_ns, b.call_ns), between(a.pause_ns, b.pause_ns),
          between(a.activities, b.activities)};
}

const Waited* WaitLog::last_up_to(uint64_t id) const {
  size_t low = 0, high = list_.size();
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (nth(middle).id <= id)
      low = middle + 1;
    else
      high = middle;
  }
  return low == 0 ? nullptr : &nth(low - 1);
}

CriticalPath critical_path(const std::vector<WorkerTime>& workers, uint64_t begin_ns) {
  constexpr size_t kLongest = 8;
  CriticalPath path;
  const auto last =
      std::max_element(workers.begin(), workers.end(),
                       [](const auto& a, const auto& b) { return a.last_ns < b.last_ns; });
  if (last == workers.end() || last->last_ns == 0) return path;
  auto at = static_cast<size_t>(last - workers.begin());
  uint64_t end_ns = last->last_ns, id = UINT64_MAX;
  uint32_t stream = last->last_stream;
  path.complete = true;
  const auto longer = [](const PathStep& a, const PathStep& b) {
    return a.to_ns - a.from_ns > b.to_ns - b.from_ns;
  };
  // Every step goes to a lower id, so this ends.
  while (true) {
    const WorkerTime& w = workers[at];
    const Waited* waited = w.waits->last_up_to(id);
    if (waited == nullptr && !w.waits->complete()) {  // what it waited for then is not known
      path.complete = false;
      path.from_ns = end_ns - begin_ns;
      break;
    }
    const uint64_t from_ns =
        std::min(end_ns, waited != nullptr ? waited->to_ns : std::max(w.first_ns, begin_ns));
    const Timeline::Mark a = w.timeline->at(from_ns), b = w.timeline->at(end_ns);
    PathStep step;
    step.stream = stream;
    step.from_ns = from_ns - begin_ns;
    step.to_ns = end_ns - begin_ns;
    step.call_ns = b.call_ns - a.call_ns;
    step.pause_ns = b.pause_ns - a.pause_ns;
    step.activities = b.activities - a.activities;
    if (waited != nullptr) {
      step.stream = waited->stream;
      step.waited_for = waited->for_stream;
      step.rule = waited->rule;
      step.op = waited->op;
      step.place = waited->place;
    }
    path.call_ns += step.call_ns;
    path.pause_ns += step.pause_ns;
    ++path.steps;
    path.longest.push_back(step);
    if (path.longest.size() > 4 * kLongest) {
      std::nth_element(path.longest.begin(), path.longest.begin() + kLongest, path.longest.end(),
                       longer);
      path.longest.resize(kLongest);
    }
    path.to_ns = std::max(path.to_ns, step.to_ns);
    path.from_ns = step.from_ns;
    if (waited == nullptr || waited->for_worker >= workers.size()) break;
    at = waited->for_worker;
    id = waited->for_id;
    stream = waited->for_stream;
    end_ns = from_ns;
  }
  std::sort(path.longest.begin(), path.longest.end(), longer);
  if (path.longest.size() > kLongest) path.longest.resize(kLongest);
  std::sort(path.longest.begin(), path.longest.end(),
            [](const auto& a, const auto& b) { return a.from_ns < b.from_ns; });
  return path;
}

std::vector<double> concurrency(const std::vector<WorkerTime>& workers, uint64_t begin_ns,
                                uint64_t end_ns) {
  constexpr uint64_t kParts = 10;
  std::vector<double> out(kParts);
  if (end_ns <= begin_ns) return {};
  const uint64_t length = end_ns - begin_ns;
  for (uint64_t i = 0; i < kParts; ++i) {
    const uint64_t from = begin_ns + length * i / kParts, to = begin_ns + length * (i + 1) / kParts;
    if (to == from) return {};
    for (const WorkerTime& w : workers)
      out[i] += static_cast<double>(w.timeline->at(to).call_ns - w.timeline->at(from).call_ns);
    out[i] /= static_cast<double>(to - from);
  }
  return out;
}

}  // namespace feign
