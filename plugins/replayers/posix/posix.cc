// SPDX-License-Identifier: MIT
// Replayer posix: makes the calls of layers posix and stdio below a root.
//
// No path may lead out of the root. A call by path is made relative to its directory, which is
// opened with openat2(RESOLVE_IN_ROOT) and kept; the last component is then used without following
// a link, and only if it is one the whole path is resolved again in the root. So the usual call
// costs what it cost the application: one system call. Which call is made how comes from
// layers/posix.h and layers/stdio.h.
#include <linux/magic.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "base/buffer.h"
#include "base/content.h"
#include "feign.hpp"
#include "layers/posix_ops.h"
#include "replayers/posix/calls.h"
#include "replayers/root.h"

namespace feign {
namespace {

// How to do one op.
struct Doing {
  int64_t (*make)(Context& c, const feign_activity& a, int fd) = nullptr;
  feign_kind kind = FEIGN_KIND_OTHER;
  Effect effect = Effect::kUse;
  bool needs_descriptor = false;

  bool grows() const { return kind == FEIGN_KIND_WRITE || effect == Effect::kFallocate; }
  // Bytes of storage that the call wants, if it comes back as recorded. (What it is asked to copy
  // may be far more than there is.)
  uint64_t wants(const feign_activity& a) const {
    if (effect == Effect::kFallocate) return a.flags & FALLOC_FL_PUNCH_HOLE ? 0 : a.length;
    return a.result >= 0 ? static_cast<uint64_t>(a.result) : a.length;
  }
};

// Memory behind a buffer; longer ones are the same over and over.
constexpr size_t kWriteMemory = size_t{1} << 22, kReadMemory = size_t{1} << 24;
// So much of what is read into is there before the first call.
constexpr size_t kReadyMemory = size_t{1} << 18;

#include "layers/posix_replay.inc"
#include "layers/stdio_replay.inc"

const Doing* doing_of(const Replayer& r, uint32_t op) {
  if (op < std::size(kPosixDoings)) [[likely]]
    return &kPosixDoings[op];
  const uint32_t stdio = op - r.stdio + 1;
  return op >= r.stdio && stdio < std::size(kStdioDoings) ? &kStdioDoings[stdio] : nullptr;
}

// On these the kernel asks the file system, or another machine, for names that it was told before.
// (statfs(2); the cluster file systems' numbers are from their own sources)
bool may_forget_names(const struct statfs& fs) {
  constexpr long kTypes[] = {0x65735546 /* FUSE */,
                             0x6969 /* NFS */,
                             0xFE534D42 /* SMB2 */,
                             0xFF534D42 /* CIFS */,
                             0x517B /* SMB */,
                             0x01021997 /* 9p */,
                             0x00C36400 /* Ceph */,
                             0x0BD00BD0 /* Lustre */,
                             0x47504653 /* GPFS */,
                             0x5346414F /* AFS */,
                             0x73757245 /* Coda */,
                             0x7461636F /* OCFS2 */,
                             0x01161970 /* GFS2 */};
  return std::find(std::begin(kTypes), std::end(kTypes), fs.f_type) != std::end(kTypes);
}

}  // namespace

feign_status Replayer::start() {
  feign_status status = FEIGN_OK;
  const feign_run* const run = run_below_root(host, status);
  if (run == nullptr) return status;
  if (!descriptors.ready()) throw std::bad_alloc();
  stdio = host->op(host, "stdio", "fopen");
  const bool own = options.content[0] != '\0';
  auto content = Content::parse(own ? options.content : run->content);
  // There is no writing of holes.
  if (!own && content && content->kind == Content::kSparse) content->kind = Content::kRandom;
  if (!content)
    return host->fail(
        host, FEIGN_ERR_ARGUMENT,
        (std::string("content=") + options.content + ": want " + Content::kForms).c_str());
  root = run->root_fd;
  if (FEIGN_HAS(run, common) && run->common != nullptr)
    names.common = static_cast<feign::Common*>(run->common);
  struct statfs fs {};
  if (::fstatfs(root, &fs) != 0) fs = {};
  asks_again =
      options.lookup == kLookupNamed || (options.lookup == kLookupAuto && may_forget_names(fs));
  in_memory = fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
  alone = FEIGN_HAS(run, alone) && run->alone != 0;
  several = run->ranks > 1;
  room.limit(*run);
  tell = std::min<uint64_t>(uint64_t{1} << 20, room.most() / 64);
  nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  // The kernel moves at most 0x7ffff000 bytes a call. Memory is only used where a call touches it.
  buffer_size =
      static_cast<size_t>(std::clamp<uint64_t>(run->max_length, size_t{64} << 10, 0x7ffff000));
  write_buffer = map_buffer(buffer_size + kPage, kWriteMemory);
  if (write_buffer == nullptr)
    return host->fail(host, FEIGN_ERR_NOMEM,
                      ("out of memory: no " + std::to_string(buffer_size) +
                       " bytes of address space for what the longest call reads or writes; want a "
                       "higher limit (ulimit -v)")
                          .c_str());
  // Not zeros: a storage system that compresses or deduplicates must not have it too easy.
  if (content->kind == Content::kRandom)
    content->fill(write_buffer, std::min(buffer_size, kWriteMemory), 1);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    // All recorded processes' descriptors are this one's. Who may have more, has them (as many as
    // the kernel gives a process if nobody says otherwise).
    rlimit more = {rlim_t{1} << 20, rlim_t{1} << 20};
    if (limit.rlim_max >= more.rlim_max || setrlimit(RLIMIT_NOFILE, &more) != 0)
      more = {limit.rlim_max, limit.rlim_max};
    limit = more;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  // The kernel's table of descriptors grows now: once there are threads, that takes milliseconds.
  const int far = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 16384)) - 1;
  if (const int copy = ::fcntl(root, F_DUPFD_CLOEXEC, far); copy >= 0) ::close(copy);
  return FEIGN_OK;
}

namespace {

// What is read into: of a thread, not of a stream, of which there may be thousands.
struct ReadBuffer {
  char* memory;
  size_t size, unit;
};
[[gnu::tls_model("initial-exec")]] thread_local ReadBuffer t_read_buffer;

char* new_read_buffer(size_t size, size_t unit) {
  thread_local struct Owner {
    ~Owner() { unmap(); }
    void unmap() {
      if (t_read_buffer.memory != nullptr) munmap(t_read_buffer.memory, t_read_buffer.size);
      t_read_buffer.memory = nullptr;
    }
  } owner;
  owner.unmap();
  t_read_buffer = {map_buffer(size, unit), size, unit};
  // Its first pages now: a fault in a call takes as long as the call.
  if (t_read_buffer.memory != nullptr)
    (void)madvise(t_read_buffer.memory, std::min(size, kReadyMemory), MADV_POPULATE_WRITE);
  return t_read_buffer.memory;
}

// Null when out of memory.
inline char* read_buffer(const Replayer& r) {
  const size_t size = r.buffer_size + kPage, unit = r.options.verify ? SIZE_MAX : kReadMemory;
  const ReadBuffer& b = t_read_buffer;
  if (b.memory != nullptr && b.size == size && b.unit == unit) [[likely]]
    return b.memory;
  return new_read_buffer(size, unit);
}

// Descriptors of a thread's own need no lock at each call, but end with it: what the trace left
// open must be closed before, not by destroy().
void own_descriptors(Replayer& r) {
  thread_local struct Owner {
    Replayer* of = nullptr;
    ~Owner() {
      if (of == nullptr) return;
      of->locks.close_all();
      of->descriptors.close_all();
    }
  } owner;
  if (r.alone && owner.of == nullptr && ::unshare(CLONE_FILES) == 0) owner.of = &r;
}

}  // namespace

Context::Context(Replayer& of, const feign_stream_info& info)
    : r(&of), out_buffer(of.write_buffer), process(process_of(info)) {
  own_descriptors(of);
  read_buffer = feign::read_buffer(of);
  if (read_buffer == nullptr) throw std::bad_alloc();
  if (!of.options.verify) return;
  out_buffer = fill_buffer = map_buffer(of.buffer_size + kPage, SIZE_MAX);
  if (out_buffer == nullptr) throw std::bad_alloc();
}

namespace {

// With verify: what is written depends on file and position, and what is read is compared.
int64_t verified(Context& c, const feign_activity& a, int fd, const Doing& doing) {
  Written& written = c.r->written;
  const bool known = a.file != 0 && !(a.marks & (FEIGN_INHERITED | FEIGN_APPENDS));
  const bool from_buffer = doing.kind == FEIGN_KIND_WRITE && doing.effect != Effect::kCopy;
  // At the end of the file, wherever that is: where it was in the trace.
  if (from_buffer && a.file != 0) Written::fill(c.fill_buffer, a.file, a.offset, c.fit(a.length));
  const int64_t result = doing.make(c, a, fd);
  if (result < 0) return result;
  const auto moved = static_cast<uint64_t>(result);
  switch (doing.effect) {
    case Effect::kCopy:
      if (a.value_count > 3)
        written.forget(static_cast<uint32_t>(a.values[2]), a.values[3], a.values[3] + moved);
      return result;
    case Effect::kAio:
      if (a.flags == IOCB_CMD_PWRITE || a.flags == IOCB_CMD_PWRITEV)
        written.forget(a.file, a.marks & FEIGN_APPENDS ? 0 : a.offset,
                       a.marks & FEIGN_APPENDS ? UINT64_MAX : a.offset + a.length);
      return result;
    case Effect::kIoctl:
      written.forget(a.file, a.offset, a.length != 0 ? a.offset + a.length : UINT64_MAX);
      return result;
    case Effect::kFallocate: {
      constexpr uint32_t kMoves = FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE;
      if (a.flags & ~uint32_t{FALLOC_FL_KEEP_SIZE})
        written.forget(a.file, a.offset, a.flags & kMoves ? UINT64_MAX : a.offset + a.length);
      return result;
    }
    default:
      break;
  }
  if (doing.kind == FEIGN_KIND_OPEN && (a.flags & O_TRUNC)) written.forget(a.file, 0, UINT64_MAX);
  if (doing.kind == FEIGN_KIND_SIZE) written.forget(a.file, a.length, UINT64_MAX);
  if (from_buffer && (a.marks & FEIGN_APPENDS)) written.forget(a.file, 0, UINT64_MAX);
  if (!known) return result;
  if (from_buffer) written.add(a.file, a.offset, moved);
  if (doing.kind == FEIGN_KIND_READ && !written.same(a.file, a.offset, c.read_buffer, moved))
    return -EBADMSG;
  return result;
}

// The call, with its data where in memory a modifier wants it.
int64_t made(Context& c, const feign_activity& a, int fd, const Doing& doing) {
  if (c.r->asks_again) c.look_up(a);
  const auto once = [&] {
    return c.r->options.verify ? verified(c, a, fd, doing) : doing.make(c, a, fd);
  };
  const auto past = static_cast<ptrdiff_t>(a.mode / 2 % kPage);
  const bool data = doing.kind == FEIGN_KIND_READ || doing.kind == FEIGN_KIND_WRITE;
  if (past == 0 || !data) [[likely]]
    return once();
  c.move_buffers(past);
  const int64_t result = once();
  c.move_buffers(-past);
  return result;
}

// Failed for a reason that lies in the process or the machine of then, not in the files: made again
// it would succeed, and change what did not change. (Of several file systems, or one that could not
// be written, one is made here; and nothing is executed.)
bool by_circumstance(int64_t result) {
  switch (-result) {
    case EFAULT:
    case EINTR:
    case EIO:
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EXDEV:
    case EROFS:
    case ETXTBSY:
    case EBADF:
    case EBADFD:
    case E2BIG:
    case EBUSY:
    case EDEADLK:
    case EOPNOTSUPP:
      return true;
    default:
      return -result >= 512;  // ERESTARTSYS and its like
  }
}

// Refused for its arguments, not all of which are in a trace (flags that the kernel does not know,
// an address, a descriptor that is none), or for what the recorded process might not do: whose the
// files were is not replayed, and this one may. Of links and positions EINVAL is a usual answer,
// which programs ask for.
bool by_arguments(const feign_activity& a, const Doing& doing) {
  switch (-a.result) {
    case EINVAL:
      return doing.kind != FEIGN_KIND_SEEK && doing.effect != Effect::kReadlink;
    case EEXIST:
      return doing.effect == Effect::kMap;  // MAP_FIXED_NOREPLACE
    case EAGAIN:  // another process's lease; not in memory yet (RWF_NOWAIT); a full context
      return doing.kind == FEIGN_KIND_OPEN || doing.kind == FEIGN_KIND_READ ||
             doing.kind == FEIGN_KIND_WRITE || doing.effect == Effect::kAio;
    case ENOENT:
      return a.handle != 0 && doing.kind != FEIGN_KIND_LIST;  // an empty path
    case EOVERFLOW:  // for a program of 32 bits; or a copy from where no offset may be
      return doing.kind != FEIGN_KIND_SEEK;
    case EACCES:
    case EPERM:
    case ENAMETOOLONG:  // a path goes by directories here, and is shorter or longer than then
    case ERANGE:        // for attributes, not all of which are made
      return true;
    default:
      return false;
  }
}

// Moved fewer bytes than were asked for, and not since the file ended there: as many are moved
// again, or the rest would come twice. (A copy ends early at a signal or limit; what RWF_NOWAIT
// reads, where memory has no more.)
bool falls_short(const feign_activity& a, const Doing& doing) {
  if (a.result < 0 || static_cast<uint64_t>(a.result) >= a.length) return false;
  switch (doing.effect) {
    case Effect::kWrite:
    case Effect::kPwrite:
    case Effect::kPwrite2:
      return true;
    case Effect::kCopy:
      return a.result != 0;
    case Effect::kPread2:
      return a.result != 0 && (a.flags & RWF_NOWAIT) != 0;
    default:
      return false;
  }
}

// Of a call on a stream: what was in its buffer, or was to be written, was not written whole.
// (A stream writes less than it is asked to only then; one that is not for writing says EBADF.)
bool lost_bytes(const Context& c, const feign_activity& a, const Doing& doing) {
  if (a.handle == 0 || (a.marks & FEIGN_NO_RESULT)) return false;
  const bool writes = doing.kind == FEIGN_KIND_WRITE;
  // (Nothing at all is what printf("") writes.)
  if (a.result >= 0) return writes && a.result != 0 && static_cast<uint64_t>(a.result) < a.length;
  if (doing.kind == FEIGN_KIND_CLOSE && a.result == -EBADF) return c.unwritten(a);
  return a.result != -EBADF && by_circumstance(a.result) &&
         (writes || doing.kind == FEIGN_KIND_FLUSH || doing.kind == FEIGN_KIND_CLOSE ||
          c.unwritten(a));
}

// Why a call is not made that has to do with no file below the root.
const char* why_not(const feign_activity& a, const Doing& doing) {
  if (!(a.marks & FEIGN_NOT_A_FILE))
    return "on a file that was open before the trace began, which the trace does not name";
  if (a.marks & FEIGN_NO_STORAGE) return "on /dev, /proc or /sys: no storage";
  if (a.path == 0 && a.handle == 0 && a.handle2 == 0 && a.value_count == 0)
    return "no path was recorded, or its form alone made the call fail";
  if (a.path == 0 && a.handle != 0 && doing.effect == Effect::kOpen)
    return "opened from a directory that nothing tells (open_tree, fsmount …)";
  return "on a pipe, socket, terminal or the like";
}

}  // namespace

feign_status Replayer::execute(Context& c, const feign_activity& a, feign_outcome& outcome) {
  c.outcome = &outcome;
  c.read_buffer = read_buffer(*this);
  if (c.read_buffer == nullptr) throw std::bad_alloc();
  const Doing* const found = doing_of(*this, a.op);
  if (found == nullptr || found->make == nullptr) {
    c.skip("not a call of layer posix or stdio");
    return FEIGN_OK;
  }
  const Doing& doing = *found;
  int fd = -1;
  if (a.handle != 0) fd = descriptors.get(a.handle);
  if (a.marks & (FEIGN_NOT_A_FILE | FEIGN_INHERITED)) {
    const bool process = doing.kind == FEIGN_KIND_PROCESS;
    if (!process && ((a.marks & FEIGN_NOT_A_FILE) || a.path == 0)) {
      c.skip(why_not(a, doing));
      return FEIGN_OK;
    }
    if (!process && a.handle != 0 && !(a.marks & FEIGN_NOT_A_FILE)) {
      if (fd < 0) fd = c.inherited(a.handle, a.path);
      if (fd < 0) {
        outcome.result = fd;
        return FEIGN_OK;
      }
      c.place(a, doing.effect, fd);
    }
    if (doing.effect == Effect::kCopy && a.handle2 != 0 && a.path2 != 0)
      (void)c.inherited(a.handle2, a.path2);
  }
  if (doing.needs_descriptor && fd < 0) {
    outcome.result = -EBADF;
    return FEIGN_OK;
  }
  if ((a.marks & FEIGN_DIRECTORY) && doing.effect == Effect::kSeek) c.lists_anew(a);
  if (a.op >= stdio && lost_bytes(c, a, doing)) [[unlikely]] {
    c.lose(a, doing.effect);
    return FEIGN_OK;
  }
  const bool conversion = a.op >= stdio && doing.kind == FEIGN_KIND_WRITE;  // EILSEQ, EOVERFLOW
  if (a.result < 0 && (conversion || by_circumstance(a.result) || by_arguments(a, doing))) {
    // Linux gives a descriptor up even when close() fails, but not when it was none.
    if (doing.effect == Effect::kClose && a.result != -EBADF) (void)made(c, a, fd, doing);
    outcome.result = c.emulated(a.result);
    return FEIGN_OK;
  }
  if (doing.grows() && room.full(c.bytes + doing.wants(a))) {
    outcome.result = c.too_much();
    return FEIGN_OK;
  }
  if (falls_short(a, doing)) {
    feign_activity less = a;
    less.length = static_cast<uint64_t>(a.result);
    outcome.result = made(c, less, fd, doing);
    return FEIGN_OK;
  }
  outcome.result = made(c, a, fd, doing);
  if ((a.marks & FEIGN_INHERITED) && doing.effect == Effect::kSeek)
    c.is_elsewhere(a, fd, outcome.result);
  const bool by_name = a.handle == 0 || doing.kind == FEIGN_KIND_OPEN;
  if (outcome.result == -EACCES && (a.result >= 0 || a.result == -ENODATA) &&
      c.permit(a, by_name ? -1 : fd)) [[unlikely]]
    outcome.result = made(c, a, fd, doing);
  if (doing.grows() && outcome.result >= 0) {
    // Told to the others now and then: a limit need not be kept to the byte.
    c.bytes +=
        doing.effect == Effect::kFallocate ? doing.wants(a) : static_cast<uint64_t>(outcome.result);
    if (c.bytes >= tell) room.add(std::exchange(c.bytes, 0));
  }
  return FEIGN_OK;
}

namespace {

constexpr const char* kTouches[] = {"small", "none", "read", "protection",
                                    nullptr};                              // as enum Touch
constexpr const char* kLookups[] = {"auto", "named", "nearest", nullptr};  // as enum Lookup
constexpr feign_option kOptions[] = {
    {"lookup", FEIGN_OPT_ENUM, offsetof(Options, lookup), "auto", kLookups, 0, 0,
     "Which names of a path are looked up for a call: as many as the program named it by, only the "
     "last one in a directory that is kept open, or auto: the first where the kernel may have to "
     "ask "
     "for names again (FUSE, NFS and other file systems over a network)."},
    {"touch", FEIGN_OPT_ENUM, offsetof(Options, touch), "small", kTouches, 0, 0,
     "Pages of mapped files, which no trace of system calls shows: those of mappings up to 128 "
     "KiB, "
     "which any access reads, none, all, or all are read or written as the mapping's protection "
     "says."},
    {"content", FEIGN_OPT_TEXT, offsetof(Options, content), "", nullptr, 0, 0,
     "What is written: zeros, random or ratio=N (one part in N is random, to compress N:1). Else "
     "as "
     "prepared files are filled, and random where those are sparse."},
    {"verify", FEIGN_OPT_BOOL, offsetof(Options, verify), "no", nullptr, 0, 0,
     "Write bytes that depend on file and position, and compare them where they are read again; a "
     "read that gets others fails with EBADMSG."},
};
constexpr const char* kLayers[] = {"posix", "stdio", nullptr};
constexpr feign_replayer kApi = replayer<Replayer, Options>(kLayers, true);
constexpr feign_component kComponent = component<Options>(
    kApi, "posix", "Makes the recorded file system calls below the root.", kOptions);
constexpr const feign_component* kComponents[] = {&kComponent, nullptr};

}  // namespace
}  // namespace feign

FEIGN_ROLES(FEIGN_REPLAYER);
extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "posix", FEIGN_VERSION, "MIT", feign::kComponents};
