// SPDX-License-Identifier: MIT
#include "lab/timeline.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <span>

#include "feign.h"
#include "replay/activity_log.h"

namespace feign {
namespace {

constexpr size_t kMostBlocks = 200'000, kMostAccesses = 100'000, kMostFiles = 6;
constexpr uint32_t kMixed = UINT32_MAX;

// A log in memory, as far as it is used.
class Log {
 public:
  ~Log() {
    if (data_ != nullptr) munmap(data_, size_);
  }
  Result<void> open(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno_error("open " + path, errno);
    struct stat st {};
    fstat(fd, &st);
    size_ = static_cast<size_t>(st.st_size);
    void* at = size_ >= sizeof(ActivityLogHeader)
                   ? mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0)
                   : MAP_FAILED;
    ::close(fd);
    const Error bad(FEIGN_ERR_ARGUMENT, path + ": is no file of `feign replay --activities`");
    if (at == MAP_FAILED) return bad;
    data_ = static_cast<char*>(at);
    memcpy(&header_, data_, sizeof header_);
    const uint64_t room = (size_ - sizeof header_) / sizeof(DoneActivity);
    if (memcmp(header_.magic, "FEIGNACT", 8) != 0 || header_.version != 1 ||
        header_.record_size != sizeof(DoneActivity) || header_.count > room ||
        header_.names_at != sizeof header_ + header_.count * sizeof(DoneActivity))
      return bad;
    names_ = Json::parse(data_ + header_.names_at, data_ + size_, nullptr, false);
    for (const char* name : {"ops", "streams", "paths"})
      if (!names_.is_object() || !names_.contains(name) || !names_[name].is_object()) return bad;
    return {};
  }
  std::span<const DoneActivity> records() const {
    return {reinterpret_cast<const DoneActivity*>(data_ + sizeof header_), header_.count};
  }
  const ActivityLogHeader& header() const { return header_; }
  const Json& names() const { return names_; }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
  ActivityLogHeader header_{};
  Json names_;
};

struct Block {
  uint64_t start, end, busy;
  uint32_t op;
};
using Lanes = std::map<uint32_t, std::vector<Block>>;  // by stream

// Activities of a stream that are no further apart than `gap` are one block; of different ops only
// if `mix`. False if that is more than a page takes.
bool merge(std::span<const DoneActivity> records, uint64_t begin, uint64_t gap, bool mix,
           Lanes& lanes) {
  lanes.clear();
  size_t blocks = 0;
  for (const DoneActivity& a : records) {
    const uint64_t start = a.start_ns - std::min(a.start_ns, begin);
    std::vector<Block>& lane = lanes[a.stream];
    if (gap != 0 && !lane.empty()) {
      Block& last = lane.back();
      if (start >= last.start && start <= last.end + gap && (mix || last.op == a.op)) {
        if (last.op != a.op) last.op = kMixed;
        last.end = std::max(last.end, start + a.duration_ns);
        last.busy += a.duration_ns;
        continue;
      }
    }
    if (++blocks > kMostBlocks) return false;
    lane.push_back({start, start + a.duration_ns, a.duration_ns, a.op});
  }
  return true;
}

std::string base64(const void* data, size_t size) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto* at = static_cast<const unsigned char*>(data);
  std::string out;
  out.reserve((size + 2) / 3 * 4);
  for (size_t i = 0; i < size; i += 3) {
    const size_t n = std::min<size_t>(3, size - i);
    const uint32_t v = uint32_t{at[i]} << 16 | (n > 1 ? uint32_t{at[i + 1]} << 8 : 0) |
                       (n > 2 ? uint32_t{at[i + 2]} : 0);
    for (size_t k = 0; k < 4; ++k) out += k <= n ? kDigits[v >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

template <typename T>
std::string column(const std::vector<T>& values) {
  return base64(values.data(), values.size() * sizeof(T));
}

uint32_t kind_of(const Json& names, uint32_t op) {
  const std::string key = std::to_string(op);
  const Json& ops = names["ops"];
  return ops.contains(key) && ops[key].is_object() ? ops[key].value("kind", 0U) : 0;
}

// What report_page.html has colours for.
unsigned colour_of(uint32_t kind) {
  switch (kind) {
    case FEIGN_KIND_READ:
      return 0;
    case FEIGN_KIND_WRITE:
      return 1;
    case FEIGN_KIND_FLUSH:
      return 3;
    case FEIGN_KIND_OTHER:
    case FEIGN_KIND_PROCESS:
      return 4;
    default:
      return 2;
  }
}

std::string stream_text(const Json& names, uint32_t stream) {
  const std::string key = std::to_string(stream);
  const Json& streams = names["streams"];
  if (streams.contains(key) && streams[key].is_object()) {
    const int64_t rank = streams[key].value("rank", int64_t{-1});
    const int64_t thread = streams[key].value("thread", int64_t{-1});
    if (rank >= 0) return "rank " + std::to_string(rank);
    if (thread > 0) return "pid " + std::to_string(thread);
  }
  return "stream " + key;
}

void add_accesses(const Log& log, uint64_t begin, uint64_t unit, Json& out) {
  const auto records = log.records();
  std::map<uint32_t, uint32_t> kinds;  // by op
  const auto moves = [&](const DoneActivity& a) {
    const auto [at, fresh] = kinds.try_emplace(a.op, 0);
    if (fresh) at->second = kind_of(log.names(), a.op);
    return (at->second == FEIGN_KIND_READ || at->second == FEIGN_KIND_WRITE) && a.result > 0 &&
           a.path != 0 && a.offset < uint64_t{1} << 62;
  };
  std::map<uint32_t, uint64_t> bytes;  // by path
  for (const DoneActivity& a : records)
    if (moves(a)) bytes[a.path] += static_cast<uint64_t>(a.result);
  std::vector<std::pair<uint64_t, uint32_t>> order;
  for (const auto& [path, n] : bytes) order.emplace_back(n, path);
  std::sort(order.rbegin(), order.rend());
  order.resize(std::min(order.size(), kMostFiles));
  std::map<uint32_t, uint8_t> places;
  out["files"] = Json::array();
  for (const auto& [n, path] : order) {
    places.emplace(path, static_cast<uint8_t>(places.size()));
    const std::string key = std::to_string(path);
    const Json& paths = log.names()["paths"];
    out["files"].push_back(paths.contains(key) ? paths[key] : Json("?"));
  }
  uint64_t count = 0;
  for (const DoneActivity& a : records) count += moves(a) && places.contains(a.path);
  const uint64_t every = count / kMostAccesses + 1;
  struct Access {
    uint32_t at;
    double offset, size;
    uint8_t what;
  };
  std::vector<Access> list;
  uint64_t number = 0;
  for (const DoneActivity& a : records) {
    if (!moves(a) || !places.contains(a.path) || number++ % every != 0) continue;
    const bool writes = kinds[a.op] == FEIGN_KIND_WRITE;
    list.push_back({static_cast<uint32_t>((a.start_ns - std::min(a.start_ns, begin)) / unit),
                    static_cast<double>(a.offset), static_cast<double>(a.result),
                    static_cast<uint8_t>(places[a.path] * 2 + writes)});
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const Access& a, const Access& b) { return a.at < b.at; });
  std::vector<uint32_t> at;
  std::vector<double> offset, size;
  std::vector<uint8_t> what;
  for (const Access& a : list) {
    at.push_back(a.at);
    offset.push_back(a.offset);
    size.push_back(a.size);
    what.push_back(a.what);
  }
  out["io_count"] = count;
  out["io_sampled"] = every > 1;
  out["io_at"] = column(at);
  out["io_offset"] = column(offset);
  out["io_size"] = column(size);
  out["io_what"] = column(what);
}

}  // namespace

Result<Json> timeline(const std::string& path) {
  Log log;
  if (auto opened = log.open(path); !opened) return std::move(opened.error());
  const auto records = log.records();
  uint64_t begin = log.header().begin_ns, end = begin;
  for (const DoneActivity& a : records) {
    begin = std::min(begin, a.start_ns);
    end = std::max(end, a.start_ns + a.duration_ns);
  }
  const uint64_t span = end - begin, unit = span / 4'000'000'000 + 1;

  Lanes lanes;
  bool merged = false;
  uint64_t gap = 0;
  for (int round = 0; !merge(records, begin, gap, round > 8, lanes); ++round) {
    merged = true;
    gap = gap == 0 ? span / 8000 + 1 : gap * 2;
    if (round > 40) return Error(FEIGN_ERR_ARGUMENT, path + ": has too many streams for a page");
  }

  Json out;
  out["seconds"] = static_cast<double>(span) / 1e9;
  out["unit"] = static_cast<double>(unit) / 1e9;
  out["activities"] = records.size();
  out["merged"] = merged;
  out["streams"] = Json::array();
  out["first"] = Json::array();
  out["ops"] = Json::array();
  out["kinds"] = Json::array();
  std::map<uint32_t, uint16_t> ops;
  std::vector<uint32_t> start, duration, busy;
  std::vector<uint16_t> op;
  for (auto& [stream, lane] : lanes) {
    std::sort(lane.begin(), lane.end(),
              [](const Block& a, const Block& b) { return a.start < b.start; });
    out["streams"].push_back(stream_text(log.names(), stream));
    out["first"].push_back(start.size());
    for (const Block& b : lane) {
      const auto [at, fresh] = ops.try_emplace(b.op, static_cast<uint16_t>(ops.size()));
      if (fresh) {
        const std::string key = std::to_string(b.op);
        const Json& known = log.names()["ops"];
        out["ops"].push_back(b.op == kMixed ? "several"
                             : known.contains(key) && known[key].is_object()
                                 ? known[key].value("name", "?")
                                 : "?");
        out["kinds"].push_back(b.op == kMixed ? 4 : colour_of(kind_of(log.names(), b.op)));
      }
      start.push_back(static_cast<uint32_t>(b.start / unit));
      duration.push_back(static_cast<uint32_t>((b.end - b.start) / unit));
      busy.push_back(static_cast<uint32_t>(std::min(b.busy, b.end - b.start) / unit));
      op.push_back(at->second);
    }
  }
  out["first"].push_back(start.size());
  out["start"] = column(start);
  out["duration"] = column(duration);
  out["busy"] = column(busy);
  out["op"] = column(op);
  add_accesses(log, begin, unit, out);
  return out;
}

}  // namespace feign
