// SPDX-License-Identifier: MIT
#include "record/record.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <linux/futex.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iterator>
#include <optional>
#include <system_error>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "base/output.h"
#include "base/program.h"
#include "base/progress.h"
#include "base/umask.h"
#include "capture/format.h"
#include "record/hook_image.h"
#include "record/program.h"
#include "trace/native.h"
#include "trace/own_layer.h"

#ifndef FEIGN_CAPTURE_DIR
#define FEIGN_CAPTURE_DIR "/usr/local/lib/feign"
#endif

namespace feign {
namespace {

// Of LD_PRELOAD.
constexpr const char* kParts = ": ";
constexpr const char* kNoPath = "no library can be preloaded from a path with a colon or blank";

constexpr int kPopulateWrite = 23;                           // MADV_POPULATE_WRITE
constexpr uint64_t kAhead = 1 << 20, kMostAhead = 64 << 20;  // bytes of records made in advance
constexpr uint64_t kLongPause = 100'000;  // ns: what a look at the thread's clock is 1 % of

volatile pid_t g_child = 0;
feign_control* volatile g_control = nullptr;

// What a terminal sends reaches the command by itself.
void pass_on(int signal, siginfo_t* from, void*) {
  if (g_child <= 0) return;
  g_passed_on_ns.store(now_ns());
  if (from->si_code != SI_KERNEL) kill(g_child, signal);
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void start_or_stop(int) {
  if (feign_control* c = g_control;
      c != nullptr && __atomic_xor_fetch(&c->paused, 1, __ATOMIC_RELAXED) != 0)
    __atomic_fetch_add(&c->pauses, 1, __ATOMIC_RELAXED);
}

// The same moment by both clocks: the closest of some tries.
void moment(uint64_t& tick, uint64_t& ns) {
  uint64_t best = UINT64_MAX;
  for (int i = 0; i < 20; ++i) {
    const uint64_t before = record_ticks();
    const uint64_t now = now_ns();
    const uint64_t after = record_ticks();
    if (after - before >= best) continue;
    best = after - before;
    tick = before + best / 2;
    ns = now;
  }
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// libfeign-capture.so: beside the command as it was built or installed, or where it was to be
// installed.
std::string capture_library() {
  std::vector<std::string> places;
  if (const std::string program = own_program(); !program.empty()) {
    const std::string above = folder_of(folder_of(program));
    places.push_back(above + "/capture");
    const std::string installed = FEIGN_CAPTURE_DIR;
    for (const char* lib : {"/lib", "/lib64"})
      if (const size_t at = installed.rfind(lib + std::string("/")); at != std::string::npos)
        places.push_back(above + installed.substr(at));
  }
  places.push_back(FEIGN_CAPTURE_DIR);
  for (const std::string& place : places)
    if (const std::string path = place + "/libfeign-capture.so"; access(path.c_str(), R_OK) == 0)
      return path;
  return {};
}

// The libraries whose system calls are hooked: those of this process, which are what others will
// load.
std::vector<std::string> libraries() {
  std::vector<std::string> out;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& list = *static_cast<std::vector<std::string>*>(data);
        const std::string name = info->dlpi_name != nullptr ? info->dlpi_name : "";
        if (name.find("/libc.so.6") != std::string::npos ||
            name.find("/ld-linux") != std::string::npos)
          list.push_back(name);
        return 0;
      },
      &out);
  for (const std::string& name : std::vector<std::string>(out))
    if (name.find("/libc.so.6") != std::string::npos)
      for (const char* other :
           {"libpthread.so.0", "librt.so.1", "libaio.so.1", "libaio.so.1t64", "liburing.so.2"})
        if (const std::string path = folder_of(name) + "/" + other; access(path.c_str(), R_OK) == 0)
          out.push_back(path);
  return out;
}

// A third party's layers, by the libraries that `feign generate` made the source of.
struct Third {
  std::string preload;             // their paths, each with a colon behind it
  std::vector<std::string> names;  // of their layers
  std::string described;           // for the file `layers`
};

Result<Third> third_parties(const std::vector<std::string>& libraries) {
  Third out;
  for (const std::string& given : libraries) {
    const auto bad = [&](const std::string& why) {
      return Error(FEIGN_ERR_ARGUMENT, "--with " + given + ": " + why);
    };
    std::array<char, 4096> real{};
    if (realpath(given.c_str(), real.data()) == nullptr) return bad(strerror(errno));
    const std::string path = real.data();
    if (path.find_first_of(kParts) != std::string::npos) return bad(kNoPath);
    void* const library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) return bad(dlerror());
    const auto* const layer =
        static_cast<const feign_layer*>(dlsym(library, "feign_capture_layer_v1"));
    if (layer == nullptr || layer->struct_size < sizeof(feign_layer))
      return bad("want a capture library that feign generate made the source of");
    const std::string name = layer->name;
    if (name.empty() || name.size() >= sizeof feign_control::third[0] || layer->op_count > 4095)
      return bad("layer \"" + name + "\": want a name of 1 to 31 characters, and at most 4095 ops");
    for (const char* const ours : {"posix", "stdio", "mpi", "mpiio"})
      if (name == ours) return bad("layer " + name + " is one of feign's own");
    if (std::find(out.names.begin(), out.names.end(), name) != out.names.end())
      return bad("layer " + name + " is there already: want each once");
    if (out.names.size() == sizeof feign_control::third / sizeof feign_control::third[0])
      return bad("want at most " + std::to_string(out.names.size()) + " such libraries");
    out.preload += path + ":";
    out.names.push_back(name);
    out.described += text_of(*layer);
    dlclose(library);
  }
  return out;
}

Result<void> write_text(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return errno_error("open " + path, errno);
  const ssize_t written = write(fd, text.data(), text.size());
  const int error = errno;
  close(fd);
  if (written == static_cast<ssize_t>(text.size())) return {};
  return errno_error("write " + path, written < 0 ? error : ENOSPC);
}

// Which layers are to be recorded, as bits.
Result<uint32_t> layers_of(const RecordOptions& o, const Third& third) {
  if (o.layers.empty()) return ~uint32_t{0};
  std::vector<std::pair<std::string, uint32_t>> known = {{"posix", FEIGN_CAPTURE_POSIX},
                                                         {"stdio", FEIGN_CAPTURE_STDIO},
                                                         {"mpi", FEIGN_CAPTURE_MPI},
                                                         {"mpiio", FEIGN_CAPTURE_MPIIO}};
  for (uint32_t i = 0; i < third.names.size(); ++i)
    known.emplace_back(third.names[i], FEIGN_CAPTURE_THIRD + i);
  uint32_t bits = 0;
  for (const std::string& name : o.layers) {
    const auto at =
        std::find_if(known.begin(), known.end(), [&](const auto& k) { return k.first == name; });
    if (at == known.end()) {
      std::string want;
      for (const auto& k : known) want += (want.empty() ? "" : ", ") + k.first;
      return Error(FEIGN_ERR_ARGUMENT, "--layer " + name + ": want one of " + want +
                                           (third.names.empty() ? "; others by --with" : ""));
    }
    bits |= 1u << at->second;
  }
  return bits;
}

}  // namespace

namespace {

// The control page of a recording that goes on: a command that cuts the file short takes it away,
// and whoever looks at it next would end by SIGBUS. Then it is zeros.
class PageGuard {
 public:
  explicit PageGuard(feign_control* page) {
    g_page = page;
    struct sigaction action {};
    action.sa_sigaction = put_zeros;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &action, &before_);
  }
  PageGuard(const PageGuard&) = delete;
  PageGuard& operator=(const PageGuard&) = delete;
  ~PageGuard() {
    sigaction(SIGBUS, &before_, nullptr);
    g_page = nullptr;
  }

 private:
  static void put_zeros(int, siginfo_t* info, void*) {
    char* const page = reinterpret_cast<char*>(g_page);
    const char* const at = static_cast<const char*>(info->si_addr);
    if (page == nullptr || at < page || at >= page + FEIGN_CAPTURE_UNIT ||
        mmap(page, FEIGN_CAPTURE_UNIT, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
      signal(SIGBUS, SIG_DFL);  // somebody else's: it comes again
  }

  static inline feign_control* volatile g_page = nullptr;
  struct sigaction before_ {};
};

}  // namespace

// The file records, its control page mapped; and, while a command runs, a thread that makes the
// file's next pages, so that the program which is recorded finds them made.
class RecordsFile {
 public:
  ~RecordsFile() {
    stop();
    if (map_ != nullptr) munmap(map_, FEIGN_CAPTURE_UNIT);
    if (fd_ >= 0) close(fd_);
  }
  Result<void> make(const std::string& raw, const RecordOptions& o, const Third& third,
                    uint32_t layers);
  feign_control& page() { return *map_; }
  // Without a thread (a limit of them, or of memory) programs make the pages themselves.
  void start() {
    try {
      ahead_ = std::thread([this] { make_pages(); });
    } catch (const std::system_error& e) {
      log(FEIGN_LOG_DEBUG, std::string("record: no thread that makes pages: ") + e.what());
    }
  }
  void stop() {
    if (!ahead_.joinable()) return;
    over_ = true;
    __atomic_fetch_add(&map_->woken, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &map_->woken, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    ahead_.join();
  }
  bool make_pages(uint64_t until);
  // Where somebody removed the file: what is in it, anew. Whether it was so.
  Result<bool> put_back(const std::string& raw);

 private:
  void make_pages();
  Result<uint64_t> copy_hooks(const std::string& path);

  feign_control* map_ = nullptr;
  int fd_ = -1;
  std::string described_;
  std::thread ahead_;
  std::atomic<bool> over_ = false;
};

// False: no more can be made (a full disk, the end of the file); programs find out for themselves.
bool RecordsFile::make_pages(uint64_t until) {
  constexpr uint64_t kPiece = 256 << 10;
  feign_control& c = *map_;
  uint64_t most = c.size;
  if (c.max_bytes != 0) most = std::min(most, c.max_bytes + c.first);
  until = std::min(until, most);
  uint64_t ready = std::max(c.ready, __atomic_load_n(&c.bytes, __ATOMIC_RELAXED));
  ready = ready / FEIGN_CAPTURE_UNIT * FEIGN_CAPTURE_UNIT;
  while (ready < until) {
    const uint64_t piece = std::min(kPiece, until - ready);
    void* at = mmap(nullptr, piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd_,
                    static_cast<off_t>(ready));
    if (at == MAP_FAILED) return false;
    madvise(at, piece, MADV_RANDOM);
    const bool made = madvise(at, piece, kPopulateWrite) == 0;
    munmap(at, piece);
    if (!made) return false;
    ready += piece;
    __atomic_store_n(&c.ready, ready, __ATOMIC_RELEASE);
  }
  return true;
}

// Asleep until half of what it made is taken: a thread that wakes up every few milliseconds to look
// is felt by programs that keep all processors busy.
void RecordsFile::make_pages() {
  using namespace std::chrono_literals;
  feign_control& c = *map_;
  uint64_t margin = kAhead;
  auto last = std::chrono::steady_clock::now();
  while (true) {
    const uint32_t woken = __atomic_load_n(&c.woken, __ATOMIC_SEQ_CST);  // before the look at over_
    if (over_) break;
    const uint64_t bytes = __atomic_load_n(&c.bytes, __ATOMIC_SEQ_CST);
    if (c.ready < bytes + margin / 2) {
      const auto now = std::chrono::steady_clock::now();
      margin = now - last < 20ms ? std::min(margin * 2, kMostAhead) : std::max(margin / 2, kAhead);
      last = now;
      if (!make_pages(bytes + margin) || c.ready < bytes + margin) break;
    }
    const uint64_t wake_at = c.ready - margin / 2;
    __atomic_store_n(&c.wake_at, wake_at, __ATOMIC_SEQ_CST);
    // A program that was killed, or may make no calls, does not wake it.
    constexpr timespec kAtMost{0, 100'000'000};
    if (__atomic_load_n(&c.bytes, __ATOMIC_SEQ_CST) <= wake_at)
      syscall(SYS_futex, &c.woken, FUTEX_WAIT, woken, &kAtMost, nullptr, 0);
  }
  __atomic_store_n(&c.wake_at, 0, __ATOMIC_SEQ_CST);
}

namespace {

// The first bytes of a file to a place in another; how many it had of them.
Result<uint64_t> copy(int from, uint64_t most, const std::string& path, int to, uint64_t place) {
  std::vector<char> buffer(1 << 20);
  uint64_t done = 0;
  while (done < most) {
    const ssize_t n = pread(from, buffer.data(), std::min<uint64_t>(buffer.size(), most - done),
                            static_cast<off_t>(done));
    if (n < 0) return errno_error("read " + path, errno);
    if (n == 0) break;
    for (ssize_t at = 0; at < n;) {
      const ssize_t put = pwrite(to, buffer.data() + at, static_cast<size_t>(n - at),
                                 static_cast<off_t>(place + done));
      if (put <= 0) return errno_error("write what is in " + path, put < 0 ? errno : ENOSPC);
      at += put;
      done += static_cast<uint64_t>(put);
    }
  }
  return done;
}

}  // namespace

// Behind the control page; how many bytes, whole pages, it was.
Result<uint64_t> RecordsFile::copy_hooks(const std::string& path) {
  const int from = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (from < 0) return errno_error("open " + path, errno);
  auto done = copy(from, UINT64_MAX, path, fd_, FEIGN_CAPTURE_UNIT);
  close(from);
  if (!done) return done;
  return (*done + FEIGN_CAPTURE_UNIT - 1) / FEIGN_CAPTURE_UNIT * FEIGN_CAPTURE_UNIT;
}

Result<bool> RecordsFile::put_back(const std::string& raw) {
  const std::string records = raw + "/records";
  struct stat ours {};
  struct stat there {};
  if (fstat(fd_, &ours) == 0 && stat(records.c_str(), &there) == 0 && ours.st_dev == there.st_dev &&
      ours.st_ino == there.st_ino)
    return false;
  if (mkdir(raw.c_str(), 0777) != 0 && errno != EEXIST) return errno_error("mkdir " + raw, errno);
  const int to = open(records.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (to < 0) return errno_error("open " + records, errno);
  auto done = copy(fd_, std::min(map_->bytes, map_->size), records, to, 0);
  close(to);
  if (!done) return std::move(done.error());
  if (!described_.empty())
    if (auto written = write_text(raw + "/layers", described_); !written)
      return std::move(written.error());
  return true;
}

Result<void> RecordsFile::make(const std::string& raw, const RecordOptions& o, const Third& third,
                               uint32_t layers) {
  // As large as the file system lets a file be, up to a size that any address space has room for.
  const std::string records = raw + "/records";
  fd_ = open(records.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd_ < 0) return errno_error("open " + records, errno);
  uint64_t size = uint64_t{64} << 30;
  rlimit space{};
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
    size = std::min<uint64_t>(size, space.rlim_cur / 4) & ~uint64_t{0xFFFF};
  // Before it is mapped: a file that grows is zeroed from its end to the end of its last page.
  while (ftruncate(fd_, static_cast<off_t>(size)) != 0) {
    if ((size /= 2) < uint64_t{4} << 20) return errno_error("make room in " + records, errno);
  }
  const uint64_t none = 0;  // the disk has room for it, or this says not
  void* map = MAP_FAILED;
  if (pwrite(fd_, &none, sizeof none, 0) == sizeof none)
    map = mmap(nullptr, FEIGN_CAPTURE_UNIT, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (map == MAP_FAILED) return errno_error("map " + records, errno);
  map_ = static_cast<feign_control*>(map);
  feign_control& c = *map_;
  c.version = FEIGN_CAPTURE_VERSION;
  if (o.all_users && (fchmod(fd_, 0666) != 0 || chmod(raw.c_str(), 0755) != 0))
    return errno_error("chmod " + records, errno);
  c.owner = o.all_users ? 0 : geteuid() + 1;
  c.paused = c.pauses = o.paused;
  c.max_bytes = std::min(o.max_bytes, size);
  c.size = size;
  auto hooks = copy_hooks(raw + "/hooks");
  if (!hooks) return std::move(hooks.error());
  c.first = c.bytes = FEIGN_CAPTURE_UNIT + *hooks;
  c.sample = o.sample;
  c.layers = layers;
  for (size_t i = 0; i < third.names.size(); ++i)
    memcpy(c.third[i], third.names[i].c_str(), third.names[i].size() + 1);
  if (!third.names.empty()) {
    described_ = third.described;
    if (auto written = write_text(raw + "/layers", described_); !written) return written;
  }
  gethostname(c.host, sizeof c.host - 1);
  moment(c.tick_0, c.ns_0);
  timespec real{};
  clock_gettime(CLOCK_REALTIME, &real);
  c.real_ns =
      static_cast<uint64_t>(real.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(real.tv_nsec);
  if (o.cpu_time) {
    // How fast its counter is, to a thousandth.
    uint64_t tick = 0, ns = 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    moment(tick, ns);
    c.rate = ((tick - c.tick_0) << 20) / std::max<uint64_t>(ns - c.ns_0, 1);
    c.long_pause = (kLongPause * c.rate) >> 20;
  }
  c.magic = FEIGN_CAPTURE_MAGIC;
  return {};
}

namespace {

// From here on signals wait until there is a command that they can be passed on to.
class Signals {
 public:
  Signals() {
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGBUS);  // see PageGuard
    sigprocmask(SIG_BLOCK, &all, &before_);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals() { restore(); }
  void restore() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  // One that came meanwhile and asks for an end; 0: none.
  int waiting() const {
    sigset_t pending;
    sigpending(&pending);
    for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
      if (sigismember(&pending, s) == 1 && sigismember(&before_, s) == 0 && !is_ignored(s))
        return s;
    return 0;
  }

 private:
  sigset_t before_;
};

// Runs it, and passes signals on to it.
Result<int> run(const std::string& program, const std::vector<std::string>& command,
                Signals& signals, RawFolder* folder = nullptr) {
  if (const int signal = signals.waiting(); signal != 0)
    return Error(FEIGN_ERR_IO,
                 "interrupted by signal " + std::to_string(signal) + " before the command began");
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) return errno_error("fork", errno);
  if (child == 0) {
    for (int s = 1; s < 32; ++s)
      if (!is_ignored(s)) signal(s, SIG_DFL);
    if (children_were_ignored()) signal(SIGCHLD, SIG_IGN);
    signals.restore();
    execvp(program.c_str(), argv.data());  // the path is known; a script without #! goes to sh
    const int error = errno;
    log(FEIGN_LOG_ERROR, "record: run " + errno_error(program, error).text());
    _exit(error == ENOENT ? 127 : 126);
  }
  g_child = child;
  if (folder != nullptr) folder->make_pages_ahead();  // a thread with all signals blocked
  constexpr int kEnd[] = {SIGINT, SIGTERM};  // a terminal that is closed does not end the writing
  struct sigaction act {
  }, own[std::size(kEnd)]{};
  act.sa_sigaction = pass_on;
  act.sa_flags = SA_RESTART | SA_SIGINFO;
  for (size_t i = 0; i < std::size(kEnd); ++i) sigaction(kEnd[i], &act, &own[i]);
  for (const int s : {SIGQUIT, SIGHUP, SIGUSR2}) sigaction(s, &act, nullptr);
  act.sa_handler = start_or_stop;
  act.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &act, nullptr);
  signals.restore();
  siginfo_t ended{};
  while (waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  // From here on they are feign's own, and end the writing of the trace. (Until then the number is
  // the command's, or its remains'.)
  for (size_t i = 0; i < std::size(kEnd); ++i) sigaction(kEnd[i], &own[i], nullptr);
  g_child = 0;
  int status = 0;
  waitpid(child, &status, 0);
  if (folder != nullptr) folder->ended();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// A variable of the environment, for a while.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = getenv(name); old != nullptr) before_ = old;
    setenv(name, value.c_str(), 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() {
    if (before_)
      setenv(name_, before_->c_str(), 1);
    else
      unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

Result<int> run_recorded(const std::string& program, const std::vector<std::string>& command,
                         Signals& signals, RawFolder& folder) {
  const Variable preload("LD_PRELOAD", folder.preload), capture("FEIGN_CAPTURE", folder.path);
  // Or its runtime ends a program in which another library comes first.
  const char* const asan = getenv("ASAN_OPTIONS");
  const Variable order("ASAN_OPTIONS",
                       FEIGN_CAPTURE_ASAN + (asan != nullptr ? ":" + std::string(asan) : ""));
  return run(program, command, signals, &folder);
}

// What a program's start and end take longer with the library in it, in ticks: of one that does
// nothing, without it and with it in turns, the least. (On a busy machine a median tells nothing.)
// It is recorded into the folder. 0: not known.
uint64_t start_cost(const RawFolder& folder) {
  constexpr size_t kTimes = 7;
  const auto program = program_of("true");
  if (!program) return 0;
  const std::array<std::string, 2> more = {"LD_PRELOAD=" + folder.preload,
                                           "FEIGN_CAPTURE=" + folder.path};
  std::array<std::vector<char*>, 2> environments;  // without it, with it
  for (char** e = environ; *e != nullptr; ++e) {
    environments[0].push_back(*e);
    if (strncmp(*e, "LD_PRELOAD=", 11) != 0 && strncmp(*e, "FEIGN_CAPTURE=", 14) != 0)
      environments[1].push_back(*e);
  }
  for (const std::string& e : more) environments[1].push_back(const_cast<char*>(e.c_str()));
  std::array<char*, 2> argv = {const_cast<char*>(program->c_str()), nullptr};
  std::array<std::array<uint64_t, kTimes>, 2> took{};
  for (auto& environment : environments) environment.push_back(nullptr);
  for (size_t i = 0; i < 2 * kTimes; ++i) {
    const uint64_t from = record_ticks();
    pid_t child = 0;
    int status = 0;
    if (posix_spawn(&child, argv[0], nullptr, nullptr, argv.data(), environments[i % 2].data()) !=
            0 ||
        waitpid(child, &status, 0) != child || status != 0)
      return 0;
    took[i % 2][i / 2] = record_ticks() - from;
  }
  const uint64_t without = *std::min_element(took[0].begin(), took[0].end());
  const uint64_t with = *std::min_element(took[1].begin(), took[1].end());
  return with > without ? with - without : 0;
}

// What asks for a library in the program.
Result<void> strace_is_able(const RecordOptions& o) {
  std::string asked;
  if (!o.with.empty()) asked = "--with " + o.with.front();
  for (const std::string& layer : o.layers)
    if (layer != "posix") asked = "--layer " + layer;
  if (o.sample != 1) asked = "--sample " + std::to_string(o.sample);
  if (o.max_bytes != 0) asked = "--max-size";
  if (o.mpi) asked = "--mpi";
  if (o.cpu_time) asked = "--cpu-time";
  if (o.paused) asked = "--paused";
  if (o.all_users) asked = "--all-users";
  if (asked.empty()) return {};
  return Error(FEIGN_ERR_ARGUMENT, asked + ": --tracer strace puts no library into the program");
}

Result<Recorded> by_strace(const RecordOptions& o, const std::string& program, Signals& signals) {
  auto strace = program_of("strace");
  if (!strace) return Error(FEIGN_ERR_UNSUPPORTED, "--tracer strace: strace is not installed");
  Recorded r;
  r.raw = o.output + ".strace";
  if (access(r.raw.c_str(), F_OK) == 0)
    return Error(FEIGN_ERR_ARGUMENT, r.raw +
                                         ": is there already, and strace's output would take its "
                                         "place: remove it, or choose another -o");
  std::vector<std::string> command = {"strace", "-f", "-ttt", "-T", "-y", "-s", "0", "-o", r.raw};
  // Names in directories, vectors and descriptors in messages are whole; what an exec is given is
  // the user's own. -q: no words of its own but that a process ended, which no call tells of one
  // that is killed.
  command.insert(command.end(), {"-e", "abbrev=execve", "-q", "--"});
  // A program may say the name that it was called by. strace finds it as we did, but for what $PATH
  // does not say.
  const bool found = getenv("PATH") != nullptr && !program.starts_with("./");
  command.push_back(found ? o.command.front() : program);
  command.insert(command.end(), o.command.begin() + 1, o.command.end());
  auto status = run(*strace, command, signals);
  if (!status) return std::move(status.error());
  r.status = *status;
  struct stat st {};
  r.anything = stat(r.raw.c_str(), &st) == 0 && st.st_size != 0;
  return r;
}

}  // namespace

void remove_raw(const std::string& raw, bool for_use_again) {
  // Not by the listing alone: there may be no descriptor left.
  const auto remove = [&](const std::string& name) { unlink((raw + "/" + name).c_str()); };
  remove("records");
  remove("layers");
  if (!for_use_again) remove("hooks");
  if (DIR* d = opendir(raw.c_str()); d != nullptr) {
    while (const dirent* e = readdir(d)) {
      const std::string name = e->d_name;
      if (name.starts_with("records.") || name.starts_with("making.")) remove(name);
    }
    closedir(d);
  } else {
    unlink(raw.c_str());
  }
  if (!for_use_again) rmdir(raw.c_str());
}

uint64_t record_ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return now_ns();
#endif
}

RawFolder::RawFolder() = default;
RawFolder::~RawFolder() = default;

Result<void> RawFolder::open(const std::string& name, const RecordOptions& o) {
  auto third = third_parties(o.with);
  if (!third) return std::move(third.error());
  auto layers = layers_of(o, *third);
  if (!layers) return std::move(layers.error());
  const std::string library = capture_library();
  if (library.empty())
    return Error(
        FEIGN_ERR_UNSUPPORTED,
        "libfeign-capture.so is not there (it is built for x86-64); --tracer strace does without");
  if (library.find_first_of(kParts) != std::string::npos)
    return Error(FEIGN_ERR_UNSUPPORTED, library + ": " + kNoPath);
  // Wrappers of layers above the system calls, before the library that they are made with.
  preload = library;
  if (std::find(o.layers.begin(), o.layers.end(), "stdio") != o.layers.end())
    preload = folder_of(library) + "/libfeign-capture-stdio.so:" + preload;
  if (o.mpi) {
    const std::string wrappers = folder_of(library) + "/libfeign-capture-mpi.so";
    if (access(wrappers.c_str(), R_OK) != 0)
      return Error(FEIGN_ERR_UNSUPPORTED,
                   "--mpi: " + wrappers + " is not there: feign was built without Open MPI");
    preload = wrappers + ":" + preload;
  }
  preload = third->preload + preload;
  const std::string own = preload;
  if (own.size() >= sizeof feign_control::preload)
    return Error(FEIGN_ERR_ARGUMENT, own + ": these libraries' paths are too long (1,023 bytes)");
  if (const char* old = getenv("LD_PRELOAD"); old != nullptr && *old != '\0')
    preload += std::string(":") + old;
  const bool again = mkdir(name.c_str(), 0777) != 0;
  if (again && errno != EEXIST) return errno_error("mkdir " + name, errno);
  std::array<char, 4096> real{};
  path = name;
  if (realpath(name.c_str(), real.data()) == nullptr) return errno_error(name, errno);
  path = real.data();
  if (path.size() > 380)
    return Error(FEIGN_ERR_ARGUMENT,
                 path + ": this path is too long for the capture library (380 bytes)");
  if (!again) {
    HookImages images;
    const auto add = [&](const std::string& file, bool by_number) {
      auto image = images.add(file, by_number);
      if (image && image->sites != 0)
        log(FEIGN_LOG_DEBUG, "record: " + file + ": " + std::to_string(image->hooked) + " of " +
                                 std::to_string(image->sites) + " system calls are hooked");
      return image;
    };
    for (const std::string& file : libraries())
      if (auto image = add(file, false); !image && file.find("/libc.so.6") != std::string::npos)
        return std::move(image.error());
    // Programs of the command that enter the kernel by themselves, as fio does for io_uring. The
    // first one runs; of the others, if they are started, the trace tells.
    for (const std::string& word : o.command)
      if (const auto program = program_of(word)) {
        auto image = add(*program, true);
        if (&word != &o.command.front()) continue;
        const std::string which = "system calls that a program makes by itself, not through libc (";
        if (!image)
          notes.push_back("not in it: " + which + image.error().text() +
                          "): --tracer strace sees them");
        else if (image->hooked < image->sites)
          notes.push_back("not in it: " + std::to_string(image->sites - image->hooked) + " of " +
                          std::to_string(image->sites) + " " + which + *program +
                          ": no room for a jump there): --tracer strace sees them");
      }
    if (auto written = images.write(path + "/hooks"); !written) return written;
  }
  file_ = std::make_unique<RecordsFile>();
  if (auto made = file_->make(path, o, *third, *layers); !made) return made;
  control = &file_->page();
  memcpy(control->preload, own.c_str(), own.size() + 1);
  control->umask = umask_now() + 1;
  (void)file_->make_pages(control->first + kAhead);
  return {};
}

void RawFolder::make_pages_ahead() { file_->start(); }

void RawFolder::ended() {
  file_->stop();
  moment(control->tick_1, control->ns_1);
  control->ended = 1;
}

Result<bool> RawFolder::put_back() { return file_->put_back(path); }

void RawFolder::close() {
  control = nullptr;
  file_.reset();
}

Result<Recorded> record_command(const RecordOptions& o) {
  Signals signals;
  auto program = program_of(o.command.front());
  if (!program) return std::move(program.error());
  if (o.output == "-")
    return Error(FEIGN_ERR_ARGUMENT,
                 "-o -: is no regular file, want a file's name (./- for one of that name)");
  // What is recorded lies beside it, and is kept there if it cannot be written.
  if (struct stat st{}; stat(o.output.c_str(), &st) == 0 && !S_ISREG(st.st_mode))
    return Error(FEIGN_ERR_ARGUMENT,
                 "-o " + o.output +
                     (S_ISDIR(st.st_mode) ? ": is a directory" : ": is no regular file") +
                     ", want a file's name");
  if (auto may = may_be_written(o.output); !may)
    return Error(may.error().code(), "-o " + may.error().text());
  if (!can_be_written(o.output)) return errno_error("-o " + o.output, errno);
  if (o.tracer == "strace") {
    if (auto able = strace_is_able(o); !able) return std::move(able.error());
    return by_strace(o, *program, signals);
  }
  if (const std::string why = why_not_recorded(*program); !why.empty())
    return Error(FEIGN_ERR_UNSUPPORTED, why);
  if (o.sample > 1 && (o.mpi || !o.with.empty() ||
                       std::any_of(o.layers.begin(), o.layers.end(),
                                   [](const std::string& layer) { return layer != "posix"; })))
    return Error(FEIGN_ERR_ARGUMENT,
                 "--sample " + std::to_string(o.sample) +
                     ": takes of system calls, want no layer but posix with it");

  Recorded r;
  r.raw = o.output + ".raw";
  if (access(r.raw.c_str(), F_OK) == 0)
    return Error(FEIGN_ERR_ARGUMENT, r.raw +
                                         ": is there already, from a recording that did not end "
                                         "or still goes on: \"feign convert " +
                                         r.raw + " " + o.output +
                                         "\" makes a trace of it; remove it then");
  RawFolder folder;
  // Of a command that did not begin nothing is left. (What is open has a name still on FUSE.)
  struct Leftovers {
    RawFolder& folder;
    bool remain = false;
    ~Leftovers() {
      if (remain || folder.path.empty()) return;
      folder.close();
      remove_raw(folder.path);
    }
  } leftovers{folder};
  if (auto made = folder.open(r.raw, o); !made) return std::move(made.error());
  r.raw = folder.path;
  // Once more, without what was recorded to find out.
  const uint64_t start = start_cost(folder);
  remove_raw(r.raw, true);
  if (auto made = folder.open(r.raw, o); !made) return std::move(made.error());
  folder.control->start = start;
  const PageGuard guard(folder.control);
  g_control = folder.control;
  auto status = run_recorded(*program, o.command, signals, folder);
  g_control = nullptr;
  if (!status) return std::move(status.error());
  r.status = *status;
  const feign_control& c = *folder.control;
  if (c.magic != FEIGN_CAPTURE_MAGIC)
    return Error(FEIGN_ERR_IO, "the command overwrote or cut short " + r.raw +
                                   "/records, to which it was recorded");
  r.anything = c.processes != 0;
  r.notes.insert(r.notes.end(), folder.notes.begin(), folder.notes.end());
  auto removed = folder.put_back();
  if (!removed)
    r.notes.push_back("the command removed " + r.raw + ": " + removed.error().text());
  else if (*removed)
    r.notes.push_back("the command removed " + r.raw +
                      ": programs that it started afterwards are not in the trace");
  r.gaps = gaps_of(c);
  leftovers.remain = true;
  return r;
}

}  // namespace feign
