// SPDX-License-Identifier: MIT
// Modifier scale: the same work with longer or shorter pauses, or with larger or smaller requests.
//
// Sizes are scaled as if each file were stretched: a position p becomes factor times p, rounded
// down, and a range what lies between its ends. So what followed on what still does, whatever the
// factor, and results fit to what is asked.
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <new>
#include <vector>

#include "feign.hpp"

namespace {

struct Options {
  double think, size;
};
constexpr feign_option kOptions[] = {
    {"think", FEIGN_OPT_REAL, offsetof(Options, think), "1", nullptr, 0, 0,
     "Pauses, and times of start (for pace timed), are so many times as long; 0: there are none."},
    {"size", FEIGN_OPT_REAL, offsetof(Options, size), "1", nullptr, 0, 0,
     "Requests, positions and files are so many times as large. For O_DIRECT, a whole number."},
};

class Scale {
 public:
  Scale(const feign_host* host, const Options& o) : host_(host), options_(o) {
    for (const char* name : {"fadvise64", "arm_fadvise64_64", "readahead", "sync_file_range",
                             "sync_file_range2", "io_submit"})
      ranges_.push_back(host->op(host, "posix", name));
    for (const char* name : {"copy_file_range", "sendfile", "splice"})
      copies_.push_back(host->op(host, "posix", name));
    ioctl_ = host->op(host, "posix", "ioctl");
  }

  feign_status start() const {
    if (!(options_.think >= 0 && options_.think <= 1e9))
      return wrong("think", options_.think, "want a factor from 0 to 1e9");
    if (!(options_.size > 0 && options_.size <= 1e6))
      return wrong("size", options_.size, "want a factor above 0, up to 1e6");
    if (options_.think == 1 && options_.size == 1)  // as one of several in a lab, it is right
      host_->log(host_, FEIGN_LOG_WARN, "think and size are 1: all stays as it is");
    return FEIGN_OK;
  }
  feign_status process(const feign_window& in, feign_sink* out) {
    for (size_t i = 0; i < in.due; ++i) {
      feign_activity& a = *in.items[i];
      if (options_.think != 1) {
        a.compute_ns = times(a.compute_ns, options_.think);
        a.sync_ns = times(a.sync_ns, options_.think);
        a.start_ns = times(a.start_ns, options_.think);
      }
      if (options_.size != 1)
        if (const feign_status s = sizes(a); s < 0) return s;
      if (const feign_status s = out->emit(out, &a); s < 0) return s;
    }
    return FEIGN_OK;
  }

 private:
  feign_status wrong(const char* name, double value, const char* want) const {
    char text[96];
    std::snprintf(text, sizeof text, "%s=%g: %s", name, value, want);
    return host_->fail(host_, FEIGN_ERR_ARGUMENT, text);
  }
  static uint64_t times(uint64_t n, double factor) {
    const double scaled = static_cast<double>(n) * factor;
    return scaled >= 0x1p62 ? uint64_t{1} << 62 : static_cast<uint64_t>(scaled);
  }
  uint64_t at(uint64_t position) const { return times(position, options_.size); }

  feign_status sizes(feign_activity& a) {
    const feign_op_info* info = host_->op_info(host_, a.op);
    if (info == nullptr || (a.marks & FEIGN_NOT_A_FILE)) return FEIGN_OK;
    if (strcmp(info->layer, "posix") != 0 && strcmp(info->layer, "stdio") != 0) return FEIGN_OK;
    switch (info->kind) {
      case FEIGN_KIND_READ:
      case FEIGN_KIND_WRITE:
        if (a.op == ioctl_) return clone(a);
        if (contains(copies_, a.op)) return copy(a);
        return data(a);
      case FEIGN_KIND_SEEK:
        seek(a);
        return FEIGN_OK;
      case FEIGN_KIND_SIZE:
        range(a);
        return FEIGN_OK;
      case FEIGN_KIND_STAT:
        if (S_ISREG(a.mode) && a.result == 0) a.length = at(a.length);
        return FEIGN_OK;
      default:
        if (contains(ranges_, a.op)) range(a);
        return FEIGN_OK;
    }
  }
  static bool contains(const std::vector<uint32_t>& ops, uint32_t op) {
    return std::find(ops.begin(), ops.end(), op) != ops.end();
  }

  // From `begin`, what so many bytes come to.
  uint64_t length(uint64_t begin, uint64_t bytes) const { return at(begin + bytes) - at(begin); }

  void range(feign_activity& a) const {
    if (a.offset > INT64_MAX || a.length > INT64_MAX) return;
    a.length = length(a.offset, a.length);
    a.offset = at(a.offset);
  }

  feign_status data(feign_activity& a) {
    if (a.offset > INT64_MAX || a.length > INT64_MAX) return FEIGN_OK;
    const uint64_t begin = a.offset;
    if (a.result > 0) {
      const bool whole = static_cast<uint64_t>(a.result) == a.length;
      a.result = static_cast<int64_t>(length(begin, static_cast<uint64_t>(a.result)));
      a.length = length(begin, a.length);
      if (whole) a.result = static_cast<int64_t>(a.length);
    } else {
      a.length = length(begin, a.length);
    }
    a.offset = at(begin);
    if (a.value_count == 0) return FEIGN_OK;
    values_.assign(a.values, a.values + a.value_count);  // of a vector: lengths
    uint64_t from = begin;
    for (uint64_t& one : values_) {
      const uint64_t was = std::min<uint64_t>(one, INT64_MAX);
      one = length(from, was);
      from += was;
    }
    return host_->set_values(host_, &a, values_.data(), a.value_count);
  }

  // From one file to another: the positions in both (layers/posix.h; NULL is the current one).
  feign_status copy(feign_activity& a) {
    const uint64_t begin = a.offset > INT64_MAX ? 0 : a.offset;
    const bool whole = a.result > 0 && static_cast<uint64_t>(a.result) == a.length;
    // As many bytes on both sides, although their positions may be rounded otherwise.
    a.length = at(std::min<uint64_t>(a.length, INT64_MAX));
    if (a.result > 0)
      a.result = whole ? static_cast<int64_t>(a.length)
                       : static_cast<int64_t>(at(static_cast<uint64_t>(a.result)));
    a.offset = at(begin);
    if (a.value_count == 0) return FEIGN_OK;
    values_.assign(a.values, a.values + a.value_count);
    for (const size_t i : {size_t{0}, size_t{1}, size_t{3}})
      if (i < values_.size() && values_[i] != FEIGN_NO_OFFSET) values_[i] = at(values_[i]);
    return host_->set_values(host_, &a, values_.data(), a.value_count);
  }

  // Of one file's bytes: where they begin in it is among the values.
  feign_status clone(feign_activity& a) {
    range(a);
    if (a.value_count < 3) return FEIGN_OK;
    values_.assign(a.values, a.values + a.value_count);
    values_[2] = at(values_[2]);
    return host_->set_values(host_, &a, values_.data(), a.value_count);
  }

  // Where it leads to, and by how far: from wherever it starts.
  void seek(feign_activity& a) const {
    const auto by = static_cast<int64_t>(a.offset);
    if (a.result <= 0) {  // nowhere, to the beginning, or the result does not say (fseek)
      a.offset = by < 0 ? 0 - at(0 - a.offset) : at(a.offset);
      return;
    }
    int64_t from = 0;
    const bool none = __builtin_sub_overflow(a.result, by, &from) || from < 0;
    const auto to = static_cast<int64_t>(at(static_cast<uint64_t>(a.result)));
    if (!none)
      a.offset = static_cast<uint64_t>(to - static_cast<int64_t>(at(static_cast<uint64_t>(from))));
    a.result = to;
  }

  const feign_host* host_;
  Options options_;
  std::vector<uint32_t> ranges_, copies_;
  uint32_t ioctl_ = 0;
  std::vector<uint64_t> values_;
};

constexpr feign_modifier kApi = feign::modifier<Scale, Options>();
constexpr feign_component kComponent = feign::component<Options>(
    kApi, "scale", "Longer or shorter pauses, larger or smaller requests.", kOptions);
constexpr const feign_component* kComponents[] = {&kComponent, nullptr};

}  // namespace

FEIGN_ROLES(FEIGN_MODIFIER);
extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "scale", FEIGN_VERSION, "MIT", kComponents};
