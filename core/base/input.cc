// SPDX-License-Identifier: MIT
#include "base/input.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/number.h"

namespace feign {

struct Input::Impl {
  enum class Kind { kPlain, kGzip, kZstd };
  std::string path;
  int fd = -1;
  Kind kind = Kind::kPlain;
  z_stream inflate{};
  bool inflate_made = false;
  bool inflating = false;  // in the middle of a member
  ZSTD_DStream* zstd = nullptr;
  size_t zstd_hint = 0;  // 0: between frames
  static constexpr size_t kRaw = size_t{128} << 10;
  static constexpr size_t kFirst = size_t{4} << 10;  // what is no archive is read without `raw`
  std::unique_ptr<char[]> raw = std::make_unique_for_overwrite<char[]>(kRaw);
  size_t raw_begin = 0, raw_end = 0;
  bool raw_over = false;
  bool cut_short = false;
  uint64_t taken = 0;  // bytes of the file before `raw`

  ~Impl() {
    if (inflate_made) inflateEnd(&inflate);
    if (zstd != nullptr) ZSTD_freeDStream(zstd);
    if (fd >= 0) close(fd);
  }

  // What the file has next; 0 at its end.
  Result<size_t> some(char* to, size_t size) {
    ssize_t got;
    do got = ::read(fd, to, size);
    while (got < 0 && errno == EINTR);
    if (got < 0) return errno_error("read " + path, errno);
    return static_cast<size_t>(got);
  }
  // More compressed bytes; false at the end of the file.
  Result<bool> refill() {
    if (raw_begin < raw_end) return true;
    if (raw_over) return false;
    auto got = some(raw.get(), kRaw);
    if (!got) return std::move(got.error());
    taken += raw_end;
    raw_begin = 0;
    raw_end = *got;
    raw_over = *got == 0;
    return *got != 0;
  }
  Error damaged(const char* what) {
    return {FEIGN_ERR_ARGUMENT, path + ": damaged " + what + " data, at byte " +
                                    std::to_string(taken + raw_begin) + " or before"};
  }
  Error ends(const char* what) {
    cut_short = true;
    return {FEIGN_ERR_ARGUMENT, path + ": the " + what + " data ends in the middle"};
  }
};

Input::Input(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Input::~Input() = default;
const std::string& Input::path() const { return impl_->path; }
bool Input::cut_short() const { return impl_->cut_short; }

namespace {

// Traces have a file a process or rank: as many as this process may open, if it asks to.
bool raises_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return false;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

}  // namespace

Result<std::unique_ptr<Input>> Input::open(const std::string& path) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  do impl->fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  while (impl->fd < 0 && errno == EMFILE && raises_limit());
  if (impl->fd < 0) return errno_error("open " + path, errno);
  struct stat st {};
  if (fstat(impl->fd, &st) == 0 && S_ISDIR(st.st_mode))
    return Error(FEIGN_ERR_ARGUMENT, path + ": is a directory, want a file");
  // A pipe may give them one by one.
  constexpr size_t kTells = 4;
  while (impl->raw_end < kTells && !impl->raw_over) {
    auto some = impl->some(impl->raw.get() + impl->raw_end, Impl::kFirst - impl->raw_end);
    if (!some) return std::move(some.error());
    impl->raw_end += *some;
    impl->raw_over = *some == 0;
  }
  const auto* head = reinterpret_cast<const unsigned char*>(impl->raw.get());
  if (impl->raw_end >= 2 && head[0] == 0x1f && head[1] == 0x8b) {
    impl->kind = Impl::Kind::kGzip;
    if (inflateInit2(&impl->inflate, 15 + 16) != Z_OK)
      return Error(FEIGN_ERR_NOMEM, path + ": out of memory");
    impl->inflate_made = impl->inflating = true;
  } else if (impl->raw_end >= kTells && memcmp(head, "\x28\xb5\x2f\xfd", 4) == 0) {
    impl->kind = Impl::Kind::kZstd;
    impl->zstd = ZSTD_createDStream();
    if (impl->zstd == nullptr) return Error(FEIGN_ERR_NOMEM, path + ": out of memory");
    // A frame may ask for any window; 128 MiB is what the zstd command allows by default.
    ZSTD_DCtx_setParameter(impl->zstd, ZSTD_d_windowLogMax, 27);
  }
  return std::unique_ptr<Input>(new Input(std::move(impl)));
}

Result<size_t> Input::read(char* to, size_t size) {
  Impl& in = *impl_;
  if (in.kind == Impl::Kind::kPlain && in.raw_begin == in.raw_end && !in.raw_over)
    return in.some(to, size);
  while (true) {
    auto more = in.refill();
    if (!more) return std::move(more.error());
    if (in.kind == Impl::Kind::kPlain) {
      const size_t n = std::min(size, in.raw_end - in.raw_begin);
      memcpy(to, in.raw.get() + in.raw_begin, n);
      in.raw_begin += n;
      return n;
    }
    if (in.kind == Impl::Kind::kGzip) {
      if (!*more) {
        if (!in.inflating) return size_t{0};
        return in.ends("gzip");
      }
      if (!in.inflating) {  // a further member of the same file
        if (inflateReset(&in.inflate) != Z_OK) return in.damaged("gzip");
        in.inflating = true;
      }
      in.inflate.next_in = reinterpret_cast<Bytef*>(in.raw.get() + in.raw_begin);
      in.inflate.avail_in = static_cast<uInt>(in.raw_end - in.raw_begin);
      in.inflate.next_out = reinterpret_cast<Bytef*>(to);
      in.inflate.avail_out = static_cast<uInt>(std::min<size_t>(size, 1u << 30));
      const uInt room = in.inflate.avail_out;
      const int status = inflate(&in.inflate, Z_NO_FLUSH);
      in.raw_begin = in.raw_end - in.inflate.avail_in;
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
        return in.damaged("gzip");
      if (status == Z_STREAM_END) in.inflating = false;
      if (room != in.inflate.avail_out) return size_t{room} - in.inflate.avail_out;
      continue;
    }
    if (!*more) {
      if (in.zstd_hint == 0) return size_t{0};
      return in.ends("zstd");
    }
    ZSTD_inBuffer from{in.raw.get() + in.raw_begin, in.raw_end - in.raw_begin, 0};
    ZSTD_outBuffer out{to, size, 0};
    const size_t status = ZSTD_decompressStream(in.zstd, &out, &from);
    if (ZSTD_isError(status)) return in.damaged("zstd");
    in.raw_begin += from.pos;
    in.zstd_hint = status;
    if (out.pos != 0) return out.pos;
  }
}

namespace {
constexpr std::string_view kMark = "\xEF\xBB\xBF";  // that some editors put before UTF-8
}

Result<bool> Lines::next(std::string_view& line) {
  auto more = one(line);
  if (more && *more && number_ == 1 && line.starts_with(kMark)) line.remove_prefix(kMark.size());
  return more;
}

Result<bool> Lines::one(std::string_view& line) {
  size_t scanned = begin_;
  while (true) {
    if (const void* found = memchr(buffer_.get() + scanned, '\n', end_ - scanned)) {
      const auto at = static_cast<size_t>(static_cast<const char*>(found) - buffer_.get());
      line = {buffer_.get() + begin_, at - begin_};
      begin_ = at + 1;
      ++number_;
      complete_ = true;
      return true;
    }
    if (at_end_) {
      if (begin_ == end_) return false;
      line = {buffer_.get() + begin_, end_ - begin_};
      begin_ = end_;
      ++number_;
      complete_ = false;
      return true;
    }
    scanned = end_ - begin_;
    memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    if (end_ > kLongest)
      return Error(FEIGN_ERR_ARGUMENT, path() + ":" + std::to_string(number_ + 1) +
                                           ": a line of more than 256 MiB, want text lines");
    if (size_ - end_ < kChunk / 2) {
      auto larger = std::make_unique_for_overwrite<char[]>(size_ * 2);
      memcpy(larger.get(), buffer_.get(), end_);
      buffer_ = std::move(larger);
      size_ *= 2;
    }
    auto got = input_->read(buffer_.get() + end_, size_ - end_);
    if (!got) return std::move(got.error());
    end_ += *got;
    at_end_ = *got == 0;
  }
}

bool can_be_read_again(const std::string& path) {
  struct stat st {};
  return stat(path.c_str(), &st) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode);
}

Result<std::string> head_of(const std::string& path, size_t size) {
  if (!can_be_read_again(path))
    return Error(FEIGN_ERR_ARGUMENT,
                 path +
                     ": is no regular file, and what is in a pipe can be read only once: want a "
                     "file, or --provider NAME, which says what it is");
  return first_bytes(path, size);
}

Result<std::string> first_bytes(const std::string& path, size_t size) {
  auto input = Input::open(path);
  if (!input) return std::move(input.error());
  std::string head;
  char part[size_t{8} << 10];
  while (head.size() < size) {
    auto got = (*input)->read(part, std::min(sizeof part, size - head.size()));
    if (!got) {
      if (!head.empty()) break;  // what came before the damage still tells what it is
      return std::move(got.error());
    }
    if (*got == 0) break;
    head.append(part, *got);
  }
  if (head.starts_with(kMark)) head.erase(0, kMark.size());
  return head;
}

std::optional<uint64_t> number_of(std::string_view file) {
  for (const std::string_view end : {".gz", ".zst"})
    if (file.ends_with(end)) file.remove_suffix(end.size());
  const size_t dot = file.rfind('.');
  if (dot == std::string_view::npos || dot + 1 == file.size()) return {};
  uint64_t number = 0;
  if (!to_number(file.substr(dot + 1), number)) return {};
  return number;
}

// With stat and readdir: std::filesystem brings all of libstdc++'s locales into each plug-in that
// reads a trace.
std::vector<std::string> files_of(const std::string& name) {
  struct stat st {};
  const bool there = ::stat(name.c_str(), &st) == 0;
  // What feign record leaves behind, and what feign convert makes for SIOX.
  if (there && S_ISDIR(st.st_mode))
    for (const char* const inside : {"/records", "/activities.dat"})
      if (::stat((name + inside).c_str(), &st) == 0) return {name + inside};
  if (there) return {name};
  const size_t slash = name.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : name.substr(0, slash + 1);
  const std::string start = name.substr(folder.size()) + ".";
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(folder.empty() ? "." : folder.c_str()),
                                                    closedir);
  std::vector<std::pair<uint64_t, std::string>> found;
  while (const dirent* entry = entries ? readdir(entries.get()) : nullptr) {
    const std::string_view file = entry->d_name;
    if (!file.starts_with(start)) continue;
    const auto number = number_of(file.substr(start.size() - 1));
    if (number) found.emplace_back(*number, folder + std::string(file));
  }
  if (found.empty()) return {name};
  std::sort(found.begin(), found.end());
  std::vector<std::string> files;
  for (auto& [value, file] : found) files.push_back(std::move(file));
  return files;
}

}  // namespace feign
