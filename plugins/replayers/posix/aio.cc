// SPDX-License-Identifier: MIT
// Asynchronous requests (io_submit(2)).
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <memory>
#include <mutex>

#include "replayers/posix/calls.h"

namespace feign {

std::shared_ptr<Replayer::Aio> Context::aio(const feign_activity& a, uint64_t requests) {
  const std::lock_guard lock(r->aio_mutex);
  std::shared_ptr<Replayer::Aio>& one = r->aio[{process, value(a, 0)}];
  if (one == nullptr) one = std::make_shared<Replayer::Aio>();
  if (one->context == 0 && syscall(SYS_io_setup, requests, &one->context) != 0) one->context = 0;
  return one;
}

// No larger than the recorded one: all contexts of a system share a limit (aio-max-nr).
int64_t Context::aio_setup(const feign_activity& a) {
  if (a.result < 0) return emulated(a.result);
  errno = 0;
  const uint64_t requests = value(a, 1);
  const auto one = requests != 0 ? aio(a, std::min(requests, kMostRequests)) : aio(a);
  return one->context != 0 ? 0 : -errno;
}

// A context that is full, as a replay may be ahead of the thread that gets the ends, gives up one
// end for each request: what is left fills it, so that nobody who waits lacks any.
int64_t Context::aio_submit(const feign_activity& a, int fd) {
  iocb request{};
  const bool writes = a.flags == IOCB_CMD_PWRITE || a.flags == IOCB_CMD_PWRITEV;
  const bool reads = a.flags == IOCB_CMD_PREAD || a.flags == IOCB_CMD_PREADV;
  if (!writes && !reads && a.flags != IOCB_CMD_FSYNC && a.flags != IOCB_CMD_FDSYNC)
    return skip("this kind of request is not replayed");
  const auto kept = aio(a);
  Replayer::Aio& to = *kept;
  if (to.context == 0) return -EAGAIN;
  request.aio_lio_opcode = static_cast<uint16_t>(a.flags);
  if (reads) request.aio_lio_opcode = IOCB_CMD_PREAD;
  if (writes) request.aio_lio_opcode = IOCB_CMD_PWRITE;
  request.aio_fildes = static_cast<uint32_t>(fd);
  if (reads || writes) {
    request.aio_buf = reinterpret_cast<uintptr_t>(reads ? read_buffer : r->write_buffer);
    request.aio_nbytes = fit(a.length);
    request.aio_offset = static_cast<int64_t>(a.offset);
    constexpr uint32_t kKept = RWF_DSYNC | RWF_SYNC | kRwfAppend | kRwfNoAppend;  // no mere hints
    request.aio_rw_flags = static_cast<__kernel_rwf_t>(a.mode & kKept);
  }
  iocb* requests = &request;
  to.under_way.fetch_add(1);
  int64_t result = checked(syscall(SYS_io_submit, to.context, 1L, &requests));
  // Who waits may take all ends before this thread comes to take one: it looks for a moment only,
  // and tries again.
  for (int tries = 0; result == -EAGAIN && a.result > 0 && tries < 60'000; ++tries) {
    io_event event{};
    timespec limit{0, 1'000'000};
    if (syscall(SYS_io_getevents, to.context, 1L, 1L, &event, &limit) == 1) {
      if (event.res < 0) to.failed = event.res;
      to.under_way.fetch_sub(1);
      to.got.fetch_add(1);
    }
    result = checked(syscall(SYS_io_submit, to.context, 1L, &requests));
  }
  if (result < 1) to.under_way.fetch_sub(1);
  return result;
}

// Waits for as many as came then. What is not under way another thread will submit, but for
// requests that failed or that the trace does not tell: for these it waits once, longer than the
// recorded call, and from then on for what is under way.
int64_t Context::aio_wait(const feign_activity& a) {
  if (a.result <= 0) return emulated(a.result);
  const auto kept = aio(a);
  Replayer::Aio& from = *kept;
  constexpr uint64_t kSecond = 1'000'000'000, kLook = kSecond / 10;
  io_event events[64];
  int64_t done = 0;
  for (uint64_t waited = 0;;) {
    // While this thread waits, a submitter may have got what it waits for.
    int64_t there = from.got.load();
    while (!from.got.compare_exchange_weak(there, there - std::min(there, a.result - done)))
      continue;
    there = std::min(there, a.result - done);
    if (const int64_t failed = there != 0 ? from.failed.exchange(0) : 0; failed < 0) return failed;
    done += there;
    const int64_t under_way = from.under_way.load();
    int64_t want = std::min<int64_t>(a.result - done, std::size(events));
    if (from.incomplete.load()) want = std::min(want, under_way);
    if (want <= 0) break;
    const uint64_t patience = under_way >= want ? 60 * kSecond : kSecond + 2 * a.duration_ns;
    timespec limit{0, static_cast<long>(kLook)};
    const long got = syscall(SYS_io_getevents, from.context, want, want, events, &limit);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -errno;
    from.under_way.fetch_sub(got);
    for (long i = 0; i < got; ++i)
      if (events[i].res < 0) return events[i].res;
    done += got;
    waited = got != 0 ? 0 : waited + kLook;
    if (waited >= patience) from.incomplete = true;
  }
  return done == a.result ? done : emulated(a.result);  // the rest was said of io_submit
}

int64_t Context::aio_destroy(const feign_activity& a) {
  const std::lock_guard lock(r->aio_mutex);
  const auto at = r->aio.find({process, value(a, 0)});
  if (at == r->aio.end()) return emulated(a.result);
  const int64_t result = checked(syscall(SYS_io_destroy, at->second->context));
  r->aio.erase(at);
  return result;
}

}  // namespace feign
