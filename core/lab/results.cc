// SPDX-License-Identifier: MIT
#include "lab/results.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/log.h"
#include "base/output.h"

namespace feign {
namespace {

constexpr std::string_view kBegin = "{\"schema\": \"feign-lab/1\",\n\"lab\": ";
constexpr std::string_view kRuns = ",\n\"runs\": [";
constexpr std::string_view kEnd = "\n]}\n";

bool write_fully(int fd, std::string_view text, off_t at) {
  while (!text.empty()) {
    const ssize_t n = pwrite(fd, text.data(), text.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

Result<std::string> read_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Error(FEIGN_ERR_ARGUMENT, errno_error("open " + path, errno).text());
  std::string text;
  char part[1 << 13];
  ssize_t n = 0;
  while ((n = ::read(fd, part, sizeof part)) > 0) text.append(part, static_cast<size_t>(n));
  const int e = errno;
  ::close(fd);
  if (n < 0) return Error(FEIGN_ERR_ARGUMENT, errno_error("read " + path, e).text());
  return text;
}

// A device or FIFO has no end, and nothing to find again.
Result<void> keeps_results(const std::string& path) {
  struct stat st {};
  if (stat(path.c_str(), &st) != 0 || S_ISREG(st.st_mode)) return {};
  return Error(FEIGN_ERR_ARGUMENT,
               path + (S_ISDIR(st.st_mode) ? ": is a directory" : ": is no regular file") +
                   ", want a file for results");
}

// A name in a directory is on disk when the directory is.
void sync_directory(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string dir = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int fd = ::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) {
    (void)fsync(fd);
    ::close(fd);
  }
}

}  // namespace

std::string json_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Results::Results(Results&& o) noexcept
    : path_(std::move(o.path_)),
      head_(std::move(o.head_)),
      runs_(std::move(o.runs_)),
      fd_(std::exchange(o.fd_, -1)),
      lock_(std::exchange(o.lock_, -1)),
      torn_(o.torn_) {}

Results::~Results() {
  if (fd_ >= 0) ::close(fd_);
  if (lock_ < 0) return;
  unlink((path_ + ".lock").c_str());
  ::close(lock_);
}

// A run that the rest of Feign can rely on.
static bool is_run(const Json& run) {
  const auto text = [&](const char* name) { return run.contains(name) && run[name].is_string(); };
  return run.is_object() && text("cell") && text("label") && text("trace") && text("root") &&
         text("status") && text("by") && run.contains("repeat") &&
         run["repeat"].is_number_unsigned() &&
         (run["status"] != "ok" || (run.contains("seconds") && run["seconds"].is_number()));
}

static bool is_head(const Json& head) {
  if (!head.is_object() || !head.contains("cells") || !head["cells"].is_array() ||
      !head.contains("baseline") || !head["baseline"].is_string() || !head.contains("seed") ||
      !head["seed"].is_number_unsigned())
    return false;
  for (const Json& cell : head["cells"])
    for (const char* name : {"cell", "trace", "root", "label"})
      if (!cell.is_object() || !cell.contains(name) || !cell[name].is_string()) return false;
  return true;
}

Result<void> Results::parse(const std::string& text) {
  const auto at = [&](size_t line) { return path_ + ":" + std::to_string(line) + ": "; };
  if (!text.starts_with(kBegin))
    return Error(FEIGN_ERR_ARGUMENT,
                 at(1) +
                     "is not what `feign lab` writes: want results that begin with "
                     "{\"schema\": \"feign-lab/1\"");
  size_t line = 2, begin = kBegin.size(), end = text.find(kRuns, begin);
  if (end == std::string::npos)
    return Error(FEIGN_ERR_ARGUMENT, at(line) + "ends early: want \"runs\"");
  head_ = Json::parse(text.begin() + static_cast<ptrdiff_t>(begin),
                      text.begin() + static_cast<ptrdiff_t>(end), nullptr, false);
  if (!is_head(head_)) return Error(FEIGN_ERR_ARGUMENT, at(line) + "\"lab\" is damaged");
  size_t bad = 0;
  begin = end + kRuns.size();
  bool ended = false;
  for (line = 4; begin < text.size(); begin = end, ++line) {
    if (text[begin] == '\n') ++begin;
    end = std::min(text.find('\n', begin), text.size());
    std::string_view one(text.data() + begin, end - begin);
    if (one == "]}") {
      ended = bad == 0;
      continue;
    }
    if (one.ends_with(',')) one.remove_suffix(1);
    if (one.find_first_not_of(std::string_view(" \0", 2)) == std::string_view::npos) continue;
    Json run = Json::parse(one.begin(), one.end(), nullptr, false);
    if (!is_run(run)) {
      if (bad == 0) bad = line;
      continue;
    }
    // Only the end can have been torn by a crash.
    if (bad != 0) return Error(FEIGN_ERR_ARGUMENT, at(bad) + "is damaged: want a run");
    runs_.push_back(std::move(run));
  }
  torn_ = bad != 0 || !ended;
  return {};
}

Result<Results> Results::load(const std::string& path) {
  Results r(path);
  auto text = read_file(path);
  if (!text) return std::move(text.error());
  if (auto parsed = r.parse(*text); !parsed) return std::move(parsed.error());
  return r;
}

Results Results::of(Json head, std::vector<Json> runs) {
  Results r("");
  r.head_ = std::move(head);
  r.runs_ = std::move(runs);
  return r;
}

Result<Results> Results::look(const std::string& path, const Json& head) {
  if (auto may = keeps_results(path); !may) return std::move(may.error());
  if (access(path.c_str(), F_OK) == 0) return load(path);
  Results r(path);
  r.head_ = head;
  return r;
}

Result<Results> Results::open(const std::string& path, const Json& head) {
  if (auto may = keeps_results(path); !may) return std::move(may.error());
  Results r(path);
  // The document is replaced when its head is, so the lock is not on it.
  const std::string lock = path + ".lock";
  r.lock_ = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (r.lock_ < 0)
    return Error(FEIGN_ERR_ARGUMENT, errno_error("write " + lock, errno).text() +
                                         ": want --results FILE where it may be written");
  struct stat mine {
  }, st{};
  if (flock(r.lock_, LOCK_EX | LOCK_NB) != 0 || fstat(r.lock_, &mine) != 0 ||
      ::stat(lock.c_str(), &st) != 0 || mine.st_ino != st.st_ino) {
    ::close(std::exchange(r.lock_, -1));
    return Error(FEIGN_ERR_ARGUMENT, path + ": another `feign lab` is adding to it");
  }
  const bool there = ::stat(path.c_str(), &st) == 0;
  if (there) {
    auto text = read_file(path);
    if (!text) return std::move(text.error());
    if (auto parsed = r.parse(*text); !parsed) return std::move(parsed.error());
    if (r.torn_)
      log(FEIGN_LOG_WARN, path + ": its end was torn; the run that it had is done again");
  }
  if (!there || r.torn_ || r.head_ != head) {
    r.head_ = head;
    if (auto written = r.write_all(); !written) return std::move(written.error());
  }
  r.fd_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (r.fd_ < 0) return errno_error("open " + path, errno);
  return r;
}

Result<void> Results::write_all() {
  std::string part;
  const int fd = open_part(path_, part);
  if (fd < 0) return Error(FEIGN_ERR_ARGUMENT, errno_error("write " + part, errno).text());
  std::string text = std::string(kBegin) + json_line(head_) + std::string(kRuns);
  for (size_t i = 0; i < runs_.size(); ++i) text += (i != 0 ? ",\n" : "\n") + json_line(runs_[i]);
  text += kEnd;
  const bool good = write_fully(fd, text, 0) && fsync(fd) == 0;
  const int e = errno;
  ::close(fd);
  if (!good || rename(part.c_str(), path_.c_str()) != 0) {
    const int why = good ? errno : e;
    unlink(part.c_str());
    return errno_error("write " + path_, why);
  }
  sync_directory(path_);
  return {};
}

Result<void> Results::add(Json run) {
  const off_t size = lseek(fd_, 0, SEEK_END);
  const off_t at = size - static_cast<off_t>(kEnd.size());
  const std::string text = (runs_.empty() ? "\n" : ",\n") + json_line(run) + std::string(kEnd);
  if (size < 0 || !write_fully(fd_, text, at) || fdatasync(fd_) != 0) {
    const int e = errno;
    // What is there stays a document.
    (void)(write_fully(fd_, kEnd, at) && ftruncate(fd_, size) == 0);
    return errno_error("write " + path_, e);
  }
  runs_.push_back(std::move(run));
  return {};
}

}  // namespace feign
