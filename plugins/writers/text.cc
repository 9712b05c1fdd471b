// SPDX-License-Identifier: MIT
// Writer text: one readable line an activity (docs/text-format.md). For eyes, diff and grep;
// nothing reads it back.

#include <cerrno>
#include <cinttypes>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/output.h"
#include "feign.hpp"
#include "trace/words.h"

namespace {

struct Options {
  const char* file;
};
constexpr feign_option kOptions[] = {
    {"file", FEIGN_OPT_TEXT, offsetof(Options, file), "-", nullptr, 0, 0,
     "File to write; - is standard output."},
};

class Text {
 public:
  Text(const feign_host* h, const Options& o) : host(h), name(o.file) {}
  ~Text() {
    if (to != nullptr && to != stdout) fclose(to);
  }

  feign_status start() {
    if (name == "-") {
      to = stdout;
      return FEIGN_OK;
    }
    if (!file.open(name)) return io_error("open");
    to = fdopen(file.fd(), "w");
    if (to == nullptr) return io_error("open");
    (void)file.keep_fd();
    return FEIGN_OK;
  }
  feign_status write(const feign_activity& a) { return print(a) ? FEIGN_OK : io_error("write"); }
  feign_status finish() {
    if (to == stdout) return fflush(to) == 0 ? FEIGN_OK : io_error("write");
    if (fclose(std::exchange(to, nullptr)) != 0 || !file.finish()) return io_error("write");
    return FEIGN_OK;
  }

 private:
  feign_status io_error(const char* what) const {
    const int e = errno;
    return host->fail(host, FEIGN_ERR_IO,
                      (std::string(what) + " " + name + ": " + strerror(e)).c_str());
  }

  void add(const char* how, ...) __attribute__((format(printf, 2, 3))) {
    char buffer[128];
    va_list args;
    va_start(args, how);
    vsnprintf(buffer, sizeof buffer, how, args);
    va_end(args);
    line += buffer;
  }

  void quoted(uint32_t id) {
    size_t length = 0;
    const char* text = host->text(host, id, &length);
    line += '"';
    for (size_t i = 0; i < length; ++i) {
      const auto c = static_cast<unsigned char>(text[i]);
      if (c == '"' || c == '\\') {
        line += '\\';
        line += static_cast<char>(c);
      } else if (c == '\n') {
        line += "\\n";
      } else if (c == '\t') {
        line += "\\t";
      } else if (c < 0x20 || c == 0x7F) {
        add("\\x%02x", c);
      } else {
        line += static_cast<char>(c);  // UTF-8 stays as it is
      }
    }
    line += '"';
  }

  void argument(const feign_activity& a, const feign_arg_info& arg) {
    uint64_t value = 0;
    if (!feign::value_of(a, arg, value)) return;
    switch (arg.type) {
      case FEIGN_ARG_PATH:
      case FEIGN_ARG_STRING:
        quoted(static_cast<uint32_t>(value));
        break;
      case FEIGN_ARG_FD:
        add("#%" PRIu64, value);
        break;
      case FEIGN_ARG_FLAGS:
        feign::add_flag_names(line, arg, value);
        break;
      case FEIGN_ARG_MODE:
        add("0%" PRIo64, value);
        break;
      case FEIGN_ARG_LIST:
        line += '[';
        for (uint32_t i = arg.index; i < a.value_count; ++i)
          add("%s%" PRIu64, i > arg.index ? " " : "", a.values[i]);
        line += ']';
        break;
      default:
        // A pointer to an offset. Ranks, tags and keys of MPI's may be -1.
        if (arg.slot == FEIGN_SLOT_VALUE && value == FEIGN_NO_OFFSET &&
            std::string_view(arg.name).starts_with("off")) {
          line += "NULL";
          break;
        }
        add("%" PRId64, static_cast<int64_t>(value));
    }
  }

  static bool not_told(const feign_activity& a, const feign_arg_info& arg) {
    if (arg.index >= a.value_count) return true;
    if (a.values[arg.index] == FEIGN_UNKNOWN) return arg.type != FEIGN_ARG_LIST;
    return arg.type == FEIGN_ARG_STRING && a.values[arg.index] == 0;
  }

  const std::string& stream(uint32_t id) {
    if (id >= streams.size()) streams.resize(id + size_t{1});
    std::string& s = streams[id];
    if (s.empty()) {
      feign_stream_info info{};
      s = host->stream_info(host, id, &info) >= 0 ? feign::stream_in_words(id, info)
                                                  : std::to_string(id);
    }
    return s;
  }

  bool print(const feign_activity& a) {
    const feign_op_info* info = host->op_info(host, a.op);
    line.clear();
    add("%" PRIu64 " %" PRIu64 ".%09" PRIu64 " [", number++, a.start_ns / 1000000000,
        a.start_ns % 1000000000);
    line += stream(a.stream);
    line += "] ";
    if (info == nullptr) {
      add("op-%u(", a.op);
    } else {
      if (strcmp(info->layer, "posix") != 0) line += std::string(info->layer) + ":";
      line += info->name;
      line += '(';
      bool first = true;
      for (uint32_t i = 0; i < info->arg_count; ++i) {
        const feign_arg_info& arg = info->args[i];
        if (arg.slot == FEIGN_SLOT_NONE) continue;
        // A directory descriptor went into the absolute path.
        if (arg.slot == FEIGN_SLOT_HANDLE && info->kind == FEIGN_KIND_OPEN) continue;
        if ((arg.slot == FEIGN_SLOT_HANDLE && a.handle == 0) ||
            (arg.slot == FEIGN_SLOT_HANDLE2 && a.handle2 == 0) ||
            (arg.slot == FEIGN_SLOT_PATH2 && a.path2 == 0 && info->kind == FEIGN_KIND_LIST) ||
            (arg.slot == FEIGN_SLOT_VALUE && not_told(a, arg)))
          continue;
        if (!first) line += ", ";
        first = false;
        line += arg.name;
        line += '=';
        argument(a, arg);
      }
    }
    line += ") = ";
    if (a.marks & FEIGN_NO_RESULT) {
      line += '?';
    } else if (a.result < 0 && a.result > -4096 &&
               strerrorname_np(static_cast<int>(-a.result)) != nullptr) {
      add("-%s", strerrorname_np(static_cast<int>(-a.result)));
    } else {
      add("%" PRId64, a.result);
    }
    add(" <%" PRIu64 ".%09" PRIu64 ">", a.duration_ns / 1000000000, a.duration_ns % 1000000000);
    if (info != nullptr && info->kind == FEIGN_KIND_OPEN) {
      if (a.handle != 0) add(" handle=#%u", a.handle);
      if (a.handle2 != 0) add(" closed=#%u", a.handle2);
    }
    if (info != nullptr && (info->kind == FEIGN_KIND_READ || info->kind == FEIGN_KIND_WRITE) &&
        a.offset != FEIGN_NO_OFFSET)
      add(" at=%" PRIu64, a.offset);
    if (a.file != 0) add(" file=%u", a.file);
    if (a.path != 0 && a.handle != 0 && (info == nullptr || info->kind != FEIGN_KIND_OPEN)) {
      line += " path=";
      quoted(a.path);
    }
    if (FEIGN_DEPTH(a.marks) != 0) add(" depth=%u", FEIGN_DEPTH(a.marks));
    if (a.compute_ns != 0) add(" compute=%" PRIu64, a.compute_ns);
    if (a.marks & FEIGN_ASLEEP) line += " [asleep]";
    if (a.sync_ns != 0) add(" sync=%" PRIu64, a.sync_ns);
    if (a.marks & FEIGN_INJECTED) line += " [injected]";
    if (a.marks & FEIGN_NOT_A_FILE) line += " [not a file]";
    if (a.marks & FEIGN_INHERITED) line += " [opened before the trace]";
    line += '\n';
    return fwrite(line.data(), 1, line.size(), to) == line.size();
  }

  const feign_host* host;
  std::string name;
  feign::OutputFile file;
  FILE* to = nullptr;
  uint64_t number = 0;
  std::string line;
  std::vector<std::string> streams;  // by stream: what its column says
};

constexpr feign_writer kApi = feign::writer<Text, Options>(".txt");
constexpr feign_component kComponent =
    feign::component<Options>(kApi, "text", "Writes one readable line an activity.", kOptions);
constexpr const feign_component* kComponents[] = {&kComponent, nullptr};

}  // namespace

FEIGN_ROLES(FEIGN_WRITER);
extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "text", FEIGN_VERSION, "MIT", kComponents};
