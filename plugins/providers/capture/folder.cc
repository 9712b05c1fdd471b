// SPDX-License-Identifier: MIT
// A raw folder (capture/format.h): which processes and lanes there are, on which hosts, and what
// their clocks have in common.
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "base/input.h"
#include "layers/mpi_ops.h"
#include "layers/mpiio_ops.h"
#include "layers/posix_ops.h"
#include "layers/stdio_ops.h"
#include "providers/capture/provider.h"

namespace feign::capture {
namespace {

constexpr uint64_t kUnit = FEIGN_CAPTURE_UNIT;

// A process that became a rank by its exec is that rank's before and after it too: its descriptors
// and its streams go on. By their keys, the programs of a process follow each other.
template <typename At>
void be_of_one_rank(At at, At end) {
  for (At next = at; at != end && ++next != end; at = next) {
    const Process& process = at->second;
    Process& other = next->second;
    if (process.pid == other.pid && other.rank < 0 &&
        !(process.key < other.key ? other.forked : process.forked))
      other.rank = process.rank;
  }
}

}  // namespace

feign_status Provider::read_records(const std::string& path, size_t number) {
  Host& host = hosts_[number];
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail("open " + path + ": " + strerror(errno), FEIGN_ERR_IO);
  struct stat st {};
  void* map = MAP_FAILED;
  if (fstat(fd, &st) == 0 && st.st_size > 0)
    map = mmap(nullptr, static_cast<size_t>(st.st_size), PROT_READ, MAP_PRIVATE | MAP_NORESERVE, fd,
               0);
  if (map == MAP_FAILED) {
    close(fd);
    return fail("map " + path + ": " + strerror(errno), FEIGN_ERR_IO);
  }
  const auto* const data = static_cast<const uint8_t*>(map);
  auto size = static_cast<size_t>(st.st_size);
  maps_.emplace_back(map, size);
  // Holes are not read: what was never given out is no data. A file system that tells of none
  // (FUSE, NFS before 4.2) has it read to where the count of what was given out says.
  const auto first = static_cast<off_t>(host.control.first);
  if (const off_t hole = lseek(fd, first, SEEK_HOLE); hole < 0 || hole >= st.st_size)
    size = std::min<size_t>(size, host.control.bytes);
  size_t at = 0;
  for (off_t from = lseek(fd, first, SEEK_DATA); from >= 0 && from < st.st_size;) {
    off_t to = lseek(fd, from, SEEK_HOLE);
    if (to < 0) to = st.st_size;
    for (at = std::max(at, static_cast<size_t>(from) / kUnit * kUnit);
         at + sizeof(feign_chunk_head) <= size && at < static_cast<size_t>(to);) {
      const auto chunk = load<feign_chunk_head>(data + at);
      if (chunk.magic != FEIGN_CAPTURE_CHUNK_MAGIC || chunk.size < sizeof chunk ||
          chunk.size > size - at) {
        at = (at / kUnit + 1) * kUnit;
        continue;
      }
      const ProcessKey key = {pid_on(number, chunk.own_pid), chunk.began};
      Process& process = processes_[key];
      process.key = key;
      process.host = &host;
      process.pid = key.first;
      process.parent = pid_on(number, chunk.parent);
      process.forked = chunk.forked != 0;
      if (chunk.rank != 0) process.rank = static_cast<int32_t>(chunk.rank - 1);
      auto& lane = lanes_[{key, chunk.lane}];
      if (!lane) {
        lane = std::make_unique<Lane>(*this, process);
        if (chunk.forked == 0 && chunk.lane == 1) starts_.emplace(key.first, chunk.began);
      }
      lane->add(data + at, chunk);
      if (chunk.began_ns != 0 && chunk.began > host.best_tick) {
        host.best_tick = chunk.began;
        host.best_ns = chunk.began_ns;
      }
      at += (size_t{chunk.size} + 7) / 8 * 8;  // of 32 bits it could be 0
    }
    from = lseek(fd, to, SEEK_DATA);
  }
  close(fd);
  return FEIGN_OK;
}

// The counters of all hosts, by that of the first. Between hosts that no message went between, what
// they took the time of day for says more than nothing.
void Provider::align() {
  const Host& main = hosts_.front();
  ns_per_tick_ = main.ns_per_tick();
  const auto by_day = [&](const Host& h) {
    const double ns = static_cast<double>(static_cast<int64_t>(h.control.real_ns) -
                                          static_cast<int64_t>(main.control.real_ns));
    return main.control.tick_0 + static_cast<uint64_t>(whole(ns / ns_per_tick_));
  };
  const auto named = [&](const char* name) -> Host* {
    for (Host& h : hosts_)
      if (strncmp(h.control.host, name, sizeof h.control.host) == 0) return &h;
    return nullptr;
  };
  for (int round = 0; round < 2; ++round)  // references first
    for (size_t i = 1; i < hosts_.size(); ++i) {
      Host& h = hosts_[i];
      const auto& [first, last] = h.control.aligned;
      const Host* const reference =
          h.control.reference[0] != '\0' && first.tick != 0 ? named(h.control.reference) : nullptr;
      if ((reference != nullptr) != (round == 1)) continue;
      h.ratio = h.ns_per_tick() / ns_per_tick_;
      if (reference == nullptr || reference == &h) {
        h.tick = h.control.tick_0;
        h.main_tick = by_day(h);
        aligned_.push_back({&h, "by the time of day, nothing was measured", 0});
        continue;
      }
      const auto theirs = [&](uint64_t t) { return reference->to_main(t); };
      h.tick = first.tick;
      h.main_tick = theirs(first.theirs);
      const double apart =
          (static_cast<double>(h.control.real_ns) - static_cast<double>(main.control.real_ns)) -
          (static_cast<double>(h.to_main(h.control.tick_0)) -
           static_cast<double>(main.control.tick_0)) *
              ns_per_tick_;
      std::array<char, 200> text{};
      uint64_t bound = first.bound;
      const double span = static_cast<double>(last.tick > first.tick ? last.tick - first.tick : 0);
      // Of a shorter while its clocks say better how fast they are.
      if (span * h.ns_per_tick() > 50e6) {
        bound = std::max(bound, last.bound);
        const double all = static_cast<double>(theirs(last.theirs) - theirs(first.theirs));
        const double clocks = h.ratio;
        h.ratio = all / span;
        snprintf(text.data(), text.size(),
                 "measured at both ends: time of day %+.3f ms, drift %+.2f ppm, exact to %.1f us",
                 apart / 1e6, (h.ratio / clocks - 1) * 1e6,
                 static_cast<double>(bound) * ns_per_tick_ / 1e3);
      } else {
        snprintf(text.data(), text.size(),
                 "measured once: time of day %+.3f ms, exact to %.1f us when MPI began",
                 apart / 1e6, static_cast<double>(bound) * ns_per_tick_ / 1e3);
      }
      aligned_.push_back({&h, text.data(), static_cast<double>(bound) * ns_per_tick_});
    }
}

feign_status Provider::read_control(const std::string& file, feign_control& c) const {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail("open " + file + ": " + strerror(errno), FEIGN_ERR_IO);
  const ssize_t size = read(fd, &c, sizeof c);
  close(fd);
  if (size != sizeof c || c.magic != FEIGN_CAPTURE_MAGIC)
    return fail(file + ": is not what feign record leaves behind");
  if (c.version != FEIGN_CAPTURE_VERSION)
    return fail(file + ": is of version " + std::to_string(c.version) + ", want " +
                std::to_string(FEIGN_CAPTURE_VERSION) +
                ": convert it with the feign that recorded it");
  c.host[sizeof c.host - 1] = c.reference[sizeof c.reference - 1] = '\0';
  return FEIGN_OK;
}

feign_status Provider::start() {
  if (options_.file[0] == nullptr) return fail("file: want the file \"records\" of a raw folder");
  if (options_.file[1] != nullptr)
    return fail(std::string(options_.file[1]) + ": a second folder: want one");
  const std::string file = options_.file[0];
  if (const feign_status s = read_control(file, control_); s < 0) return s;
  const struct {
    uint32_t number;
    const feign_layer& layer;
  } kLayers[] = {{FEIGN_CAPTURE_POSIX, posix_layer()},
                 {FEIGN_CAPTURE_STDIO, stdio_layer()},
                 {FEIGN_CAPTURE_MPI, mpi_layer()},
                 {FEIGN_CAPTURE_MPIIO, mpiio_layer()}};
  for (const auto& [number, layer] : kLayers) {
    ops_[number] = layer.op_count;
    if (const feign_status s = host_->register_layer(host_, &layer, &firsts_[number]); s < 0)
      return s;
  }
  const std::string records = options_.file[0];
  const std::string folder = records.substr(0, records.rfind('/') + 1);  // "" if it is here
  if (const feign_status s = read_third(folder + "layers"); s < 0) return s;
  hosts_.emplace_back().control = control_;
  std::vector<std::string> files = {records};
  if (DIR* d = opendir(folder.empty() ? "." : folder.c_str()); d != nullptr) {
    while (const dirent* e = readdir(d))
      if (strncmp(e->d_name, "records.", 8) == 0) files.push_back(folder + e->d_name);
    closedir(d);
  }
  std::sort(files.begin() + 1, files.end());
  for (size_t i = 1; i < files.size(); ++i)
    if (const feign_status s = read_control(files[i], hosts_.emplace_back().control); s < 0)
      return s;
  for (Host& h : hosts_) h.name = host_->intern(host_, h.control.host, strlen(h.control.host));
  for (size_t i = 0; i < files.size(); ++i)
    if (const feign_status s = read_records(files[i], i); s < 0) return s;
  be_of_one_rank(processes_.begin(), processes_.end());
  be_of_one_rank(processes_.rbegin(), processes_.rend());
  std::vector<Process*> by_age;
  for (auto& [key, process] : processes_) {
    by_pid_[key.first] = &process;
    by_age.push_back(&process);
  }
  std::stable_sort(by_age.begin(), by_age.end(), [](const Process* a, const Process* b) {
    return a->key.second < b->key.second;
  });
  for (Process* const process : by_age) {
    // The last program of the parent that had begun by then.
    auto at = processes_.lower_bound({process->parent, process->key.second});
    if (at == processes_.begin() || (--at)->first.first != process->parent) continue;
    if (process->forked) {
      process->made_by = &at->second;
      at->second.children.push_back(process);
    }
    // What a rank starts is that rank's, too.
    if (process->rank < 0) process->rank = at->second.rank;
  }
  for (Host& h : hosts_) {
    // A recording that was cut off did not say when it ended.
    if (h.control.ended || h.best_tick <= h.control.tick_0) {
      h.best_tick = h.control.tick_1;
      h.best_ns = h.control.ns_1;
    }
  }
  align();
  for (const auto& [key, process] : processes_)
    origin_ = std::min(origin_, process.host->to_main(key.second));
  for (auto& [key, lane] : lanes_) {
    if (const feign_status s = lane->fill(); s < 0) return s;
    if (lane->empty()) continue;
    later_.push_back(lane.get());
    recorded_.insert(lane->pid());
    threads_.insert(pid_on(static_cast<size_t>(lane->pid() >> 32), lane->thread()));
  }
  std::stable_sort(later_.begin(), later_.end(),
                   [](Lane* a, Lane* b) { return a->front().start > b->front().start; });
  return FEIGN_OK;
}

// What feign record wrote down of the layers of third parties, in the order of their numbers.
feign_status Provider::read_third(const std::string& path) {
  if (control_.third[0][0] == '\0') return FEIGN_OK;
  constexpr size_t kMost = size_t{16} << 20;
  const auto text = head_of(path, kMost);
  if (!text) return fail(text.error().text(), text.error().code());
  auto layers = read_layers(*text, path);
  if (!layers) return fail(layers.error().text());
  third_ = std::move(*layers);
  for (size_t i = 0; i < std::size(control_.third); ++i) {
    const std::string recorded(control_.third[i],
                               strnlen(control_.third[i], sizeof control_.third[i]));
    if (i >= third_.size() && !recorded.empty())
      return fail(path + ": does not have layer " + recorded + ", which was recorded");
    if (i >= third_.size()) break;
    const feign_layer& layer = third_[i]->layer();
    if (layer.op_count == 0 || layer.name != recorded)
      return fail(path + ": layer " + layer.name + ": is not the one that was recorded");
    const size_t number = FEIGN_CAPTURE_THIRD + i;
    ops_[number] = layer.op_count;
    if (const feign_status s = host_->register_layer(host_, &layer, &firsts_[number]); s < 0)
      return s;
  }
  return FEIGN_OK;
}

}  // namespace feign::capture
