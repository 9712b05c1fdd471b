// SPDX-License-Identifier: MIT
// Provider stdio-program: does random calls of stdio on the files of a directory, for real, and
// gives what they came to. A replay must come to the same.
#define FEIGN_NO_SHORT_FORM
#include <fcntl.h>
#include <feign.h>

#include <cerrno>
#include <cstdio>
#include <iterator>
#include <map>
#include <new>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace {

struct Options {
  const char* dir;
  uint64_t seed;
};
constexpr feign_option kOptions[] = {
    {"dir", FEIGN_OPT_TEXT, offsetof(Options, dir), nullptr, nullptr, 0, 0, "Where to work."},
    {"seed", FEIGN_OPT_UINT, offsetof(Options, seed), "1", nullptr, 0, 0, "Which program."},
};

struct Call {
  const char* name;
  std::string path;
  int fd = -1, old_fd = -1;
  uint64_t offset = 0, length = 0;
  uint32_t flags = 0;
  int64_t result = 0;
};

struct Program {
  const feign_host* host;
  uint32_t stream = 0;
  std::vector<Call> calls;
  size_t at = 0;
  std::mt19937_64 random;
  std::map<int, FILE*> files;  // by descriptor
  std::map<int, std::string> names;
  std::set<std::string> in_use;

  uint64_t below(uint64_t n) { return random() % n; }
  static int64_t said(FILE* f, int64_t result) {
    return result <= 0 && ferror(f) ? -errno : result;
  }

  void open(const std::string& dir, FILE* old) {
    static constexpr struct {
      const char* mode;
      uint32_t flags;
    } kModes[] = {{"r", O_RDONLY},
                  {"r+", O_RDWR},
                  {"w", O_WRONLY | O_CREAT | O_TRUNC},
                  {"w+", O_RDWR | O_CREAT | O_TRUNC},
                  {"a", O_WRONLY | O_CREAT | O_APPEND},
                  {"a+", O_RDWR | O_CREAT | O_APPEND},
                  {"wx", O_WRONLY | O_CREAT | O_TRUNC | O_EXCL}};
    const auto& how = kModes[below(std::size(kModes))];
    Call c{old != nullptr ? "freopen" : "fopen", dir + "/f" + std::to_string(below(6))};
    c.flags = how.flags;
    // What one stream still has in its buffer another one cannot see: a file has one at a time.
    if (!in_use.insert(c.path).second) return;
    if (old != nullptr) {
      c.old_fd = fileno(old);
      in_use.erase(names[c.old_fd]);
      files.erase(c.old_fd);
    }
    FILE* f =
        old != nullptr ? freopen(c.path.c_str(), how.mode, old) : fopen(c.path.c_str(), how.mode);
    c.result = f != nullptr ? fileno(f) : -errno;
    if (f == nullptr) in_use.erase(c.path);
    if (f == nullptr && old != nullptr) fclose(old);  // it is closed, but glibc has not freed it
    if (f != nullptr) files[fileno(f)] = f, names[fileno(f)] = c.path;
    calls.push_back(c);
  }

  void close(FILE* f) {
    Call c{"fclose", ""};
    c.fd = fileno(f);
    in_use.erase(names[c.fd]);
    files.erase(c.fd);
    c.result = fclose(f) == 0 ? 0 : -errno;
    calls.push_back(c);
  }

  // A change of direction needs a position to be set in between (fopen(3)): each call has one.
  void use(FILE* f) {
    static char buffer[20000];
    Call c{"fseek", ""};
    c.fd = fileno(f);
    c.flags = static_cast<uint32_t>(below(3));
    c.offset = c.flags == SEEK_SET ? below(9000) : 0;
    c.result = fseek(f, static_cast<long>(c.offset), static_cast<int>(c.flags)) == 0 ? 0 : -errno;
    calls.push_back(c);
    clearerr(f);
    Call d{"", ""};
    d.fd = c.fd;
    d.length = 1 + below(sizeof buffer - 1);
    switch (below(8)) {
      case 0:
        d.name = "ftell";
        d.length = 0;
        d.result = ftell(f);
        break;
      case 1:
        d.name = "fread";
        d.result = said(f, static_cast<int64_t>(fread(buffer, 1, d.length, f)));
        break;
      case 2:
        d.name = "fwrite";
        d.result = said(f, static_cast<int64_t>(fwrite(buffer, 1, d.length, f)));
        break;
      case 3: {
        d.name = "fgets";
        const long before = ftell(f);
        const auto size = static_cast<int>(d.length + 1);  // 1 tries nothing
        d.result = said(f, fgets(buffer, size, f) != nullptr ? ftell(f) - before : 0);
        d.length = d.result > 0 ? static_cast<uint64_t>(d.result) : 1;
        break;
      }
      case 4:
        d.name = "fgetc";
        d.length = 1;
        d.result = said(f, fgetc(f) != EOF ? 1 : 0);
        break;
      case 5:
        d.name = "fputc";
        d.length = 1;
        d.result = said(f, fputc('x', f) != EOF ? 1 : 0);
        break;
      case 6:
        d.name = "fprintf";
        d.length = 100;
        d.result = said(f, fprintf(f, "%100d", 1));
        break;
      default:
        d.name = "fflush";
        d.length = 0;
        d.result = fflush(f) == 0 ? 0 : -errno;
    }
    calls.push_back(d);
  }

  void run(const std::string& dir) {
    for (int i = 0; i < 3; ++i) {  // what is there before the trace begins
      FILE* f = fopen((dir + "/f" + std::to_string(i)).c_str(), "w");
      for (int line = 0; line < 400; ++line) fprintf(f, "%d a line of this file\n", line);
      fclose(f);
    }
    for (int step = 0; step < 200; ++step) {
      const auto any = files.empty() ? files.end() : std::next(files.begin(), below(files.size()));
      const uint64_t what = below(10);
      if (any == files.end() || (what == 0 && files.size() < 5)) {
        open(dir, nullptr);
      } else if (what == 1) {
        close(any->second);
      } else if (what == 2 && below(3) == 0) {
        open(dir, any->second);
      } else if (what == 3 && below(4) == 0) {
        Call c{"remove", dir + "/f" + std::to_string(below(6))};
        c.result = remove(c.path.c_str()) == 0 ? 0 : -errno;
        calls.push_back(c);
      } else {
        use(any->second);
      }
    }
    while (!files.empty()) close(files.begin()->second);
    for (int i = 0; i < 6; ++i) {  // the trace tells how long each is
      Call c{"fopen", dir + "/f" + std::to_string(i)};
      FILE* f = fopen(c.path.c_str(), "r");
      c.result = f != nullptr ? fileno(f) : -errno;
      calls.push_back(c);
      if (f == nullptr) continue;
      Call end{"fseek", ""}, tell{"ftell", ""};
      end.fd = tell.fd = fileno(f);
      end.flags = SEEK_END;
      end.result = fseek(f, 0, SEEK_END);
      tell.result = ftell(f);
      calls.insert(calls.end(), {end, tell});
      close(f);
    }
  }
};

feign_status create(const feign_host* host, const void* options, void** self) noexcept {
  const auto& o = *static_cast<const Options*>(options);
  auto* p = new (std::nothrow) Program{host};
  if (p == nullptr) return FEIGN_ERR_NOMEM;
  feign_stream_info info{};
  info.struct_size = sizeof info;
  info.rank = -1;
  info.process = info.thread = 1;
  p->stream = host->stream(host, &info);
  p->random.seed(o.seed);
  p->run(o.dir);
  *self = p;
  return FEIGN_OK;
}

feign_status next(void* self, size_t want, feign_sink* out) noexcept {
  auto& p = *static_cast<Program*>(self);
  for (size_t i = 0; i < want; ++i) {
    if (p.at == p.calls.size()) return FEIGN_END;
    const Call& c = p.calls[p.at++];
    feign_activity* a = out->make(out);
    if (a == nullptr) return FEIGN_ERR_NOMEM;
    a->stream = p.stream;
    a->op = p.host->op(p.host, "stdio", c.name);
    a->start_ns = 1000 * p.at;
    a->path = p.host->intern(p.host, c.path.data(), c.path.size());
    if (c.fd >= 0) a->handle = FEIGN_FD(c.fd);
    if (c.old_fd >= 0) a->handle2 = FEIGN_FD(c.old_fd);
    a->offset = c.offset;
    a->length = c.length;
    a->flags = c.flags;
    a->result = c.result;
    a->place = FEIGN_PLACE(0, p.at);
    if (const feign_status status = out->emit(out, a); status < 0) return status;
  }
  return FEIGN_OK;
}

void destroy(void* self) noexcept { delete static_cast<Program*>(self); }

constexpr feign_provider kApi = {sizeof kApi, 0, create, next, destroy, nullptr};
constexpr feign_component kComponent = {sizeof kComponent,
                                        FEIGN_PROVIDER,
                                        "stdio-program",
                                        "Random calls of stdio, and what they came to.",
                                        &kApi,
                                        kOptions,
                                        std::size(kOptions),
                                        sizeof(feign_option),
                                        sizeof(Options),
                                        0};
constexpr const feign_component* kComponents[] = {&kComponent, nullptr};

}  // namespace

extern "C" FEIGN_EXPORT const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "stdio-program", "1", "MIT", kComponents};
