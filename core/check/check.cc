// SPDX-License-Identifier: MIT
// `feign check PATH`: runs a plug-in's components against the rules of feign.h with made-up
// activities. The plug-in runs in a child process, so that one that crashes or hangs is a broken
// rule in words.
#include "check/check.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/fd.h"
#include "base/output.h"
#include "base/progress.h"
#include "check/rules.h"
#include "plugin/object.h"
#include "plugin/options.h"
#include "plugin/plugin.h"
#include "report/format.h"
#include "trace/native.h"
#include "trace/record.h"
#include "window/pipeline.h"

namespace feign {
namespace check {
namespace {

// --- rules for all -------------------------------------------------------------------------------

Verdict check_wrong_options(const feign_component& c) {
  const auto taken = [&](const std::string& key, const std::string& value) {
    return static_cast<bool>(OptionValues::parse(c, {{key, value}}));
  };
  if (taken("no-such-option", "1")) return fail("an unknown option is taken");
  for (uint32_t i = 0; i < c.option_count; ++i) {
    const feign_option& o = option_at(c, i);
    if (o.type == FEIGN_OPT_TEXT || o.type == FEIGN_OPT_TEXTS) continue;
    if (taken(o.name, "no-such-value"))
      return fail(std::string(o.name) + "=no-such-value is taken");
    if (o.type != FEIGN_OPT_ENUM && o.type != FEIGN_OPT_BOOL && taken(o.name, "1..2"))
      return fail(std::string(o.name) + "=1..2 is taken");
  }
  return ok();
}

// Skipped where it wants more options, or what is not to be had here.
Verdict check_create(const Component& component, Place& place) {
  Tables tables;
  auto instance = create(component, tables, place);
  if (instance) return ok();
  const std::string& why = instance.error().text();
  const bool lacks = instance.error().code() == FEIGN_ERR_ARGUMENT ||
                     instance.error().code() == FEIGN_ERR_UNSUPPORTED;
  return lacks && why.find(kSilent) == std::string::npos ? skip(why) : fail(why);
}

// The strong symbols that a shared object exports. Weak ones come from templates of the C++
// library.
Verdict check_symbols(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(in), {}};
  const auto get = [&](auto& to, uint64_t offset) {
    if (offset > file.size() || sizeof to > file.size() - offset) return false;
    std::memcpy(&to, file.data() + offset, sizeof to);
    return true;
  };
  ElfW(Ehdr) head;
  if (!get(head, 0)) return skip("the file cannot be read");
  std::string others;
  bool found_table = false;
  for (unsigned i = 0; i < head.e_shnum; ++i) {
    ElfW(Shdr) table, names;
    if (!get(table, head.e_shoff + uint64_t{i} * sizeof table)) break;
    if (table.sh_type != SHT_DYNSYM) continue;
    if (!get(names, head.e_shoff + uint64_t{table.sh_link} * sizeof names)) break;
    found_table = true;
    for (uint64_t at = 0; at + sizeof(ElfW(Sym)) <= table.sh_size; at += sizeof(ElfW(Sym))) {
      ElfW(Sym) symbol;
      if (!get(symbol, table.sh_offset + at)) break;
      // The bind is in the same place in both classes.
      if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_BIND(symbol.st_info) != STB_GLOBAL) continue;
      const uint64_t name_at = uint64_t{names.sh_offset} + symbol.st_name;
      if (name_at >= file.size()) continue;
      const std::string name = file.data() + name_at;
      if (name.starts_with("__odr_asan.")) continue;  // AddressSanitizer's own
      if (name != "feign_plugin_v1") others += (others.empty() ? "" : ", ") + name;
    }
  }
  if (!found_table) return skip("it has no section headers");
  if (others.size() > 200) others = others.substr(0, 200) + " …";
  return others.empty() ? ok() : fail("it exports more than feign_plugin_v1: " + others);
}

// The parent, which gets what is printed, has the last word.
constexpr const char* kPrintsNothing = "prints nothing on standard output";

void check_all(const PluginSpec& spec, const std::string& directory, Rules& rules) {
  const std::string& path = spec.name;
  Place place;
  place.options = spec.options;
  const std::vector<std::string> args = as_arguments(spec.options);
  place.directory = directory;
  place.run.root_fd = open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  place.run.root = place.directory.c_str();

  ShortFormNumbers numbers;
  Result<Object> object = Error(FEIGN_ERR_PLUGIN, "not loaded");
  bool valid = false;
  rules.run("loads", [&] {
    object = load_object(path, args, numbers);
    return ok();
  });
  if (!object) {
    rules.tell(kUnloadable, object.error().text());
    return;
  }
  const bool short_form = object->short_form != nullptr;
  rules.run("its tables are valid", [&] {
    auto checked = check_object(*object);
    valid = static_cast<bool>(checked);
    return valid ? ok() : fail(checked.error().text());
  });
  rules.run("exports one symbol", [&] {
    return short_form ? skip("it is of the short form") : check_symbols(object->path);
  });
  if (!valid) return;
  for (const auto& [key, value] : spec.options) {
    bool known = short_form;
    for (const feign_component* const* c = object->plugin->components; *c != nullptr; ++c) {
      const feign_option* option = option_named({*c, object->plugin, path, short_form}, key);
      if (option == nullptr) continue;
      known = true;
      const auto taken = OptionValues::takes(**c, *option, value);
      if (taken) continue;
      rules.tell(kUnloadable, std::string((*c)->name) + ": " + taken.error().text());
      return;
    }
    if (known) continue;
    rules.tell(kUnloadable, path + ": nothing in it has an option \"" + key + "\"");
    return;
  }
  for (const feign_component* const* c = object->plugin->components; *c != nullptr; ++c) {
    const Component component{*c, object->plugin, object->path, short_form};
    const std::string name = role_name((*c)->role) + (" " + std::string((*c)->name));
    rules.run(name + ": options that are wrong are refused", [&] {
      return short_form ? skip("it is of the short form") : check_wrong_options(**c);
    });
    Verdict created;
    rules.run(name + ": can be created", [&] { return created = check_create(component, place); });
    const std::string lacks = created.kind == Verdict::kSkip ? created.why : "";
    switch ((*c)->role) {
      case FEIGN_PROVIDER:
        check_provider(component, place, rules, name, lacks);
        break;
      case FEIGN_MODIFIER:
        check_modifier(component, place, rules, name, lacks);
        break;
      case FEIGN_REPLAYER:
        check_replayer(component, place, rules, name, lacks);
        break;
      case FEIGN_WRITER:
        check_writer(component, place, rules, name);
        break;
      default:
        break;  // who joins ranks has no rules that one process alone could show
    }
  }
  // finalize() of a short form
  rules.run("ends", [&] {
    object->short_form.reset();
    return ok();
  });
  rules.run(kPrintsNothing, [&] {
    std::fflush(stdout);
    return short_form ? skip("it is of the short form") : ok();  // as far as is known here
  });
}

// --- the parent ----------------------------------------------------------------------------------

// How a child ended, if that was not of its own accord; "" if it was.
std::string ending(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    if (signal == SIGALRM)
      return "did not come back within " + std::to_string(kSecondsPerRule) + " s";
    return "killed by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
  }
  if (WEXITSTATUS(status) != 0)
    return "ended the process with exit status " + std::to_string(WEXITSTATUS(status));
  return "";
}

// What the plug-in prints is none of the result: it is shown on standard error.
class Printed {
 public:
  explicit Printed(Fd end) : end_(std::move(end)) {}

  // What is there, at once.
  void show() {
    char part[4096];
    const ssize_t n = read(end_.get(), part, sizeof part);
    ended_ = n <= 0;
    if (ended_) return;
    std::fwrite(part, 1, static_cast<size_t>(n), stderr);
    if (begin_.size() < kKept) begin_.append(part, std::min<size_t>(n, kKept - begin_.size()));
  }
  // Who goes on printing is none of the plug-in's threads.
  void show_rest() {
    constexpr int kMostLeft = 256;
    pollfd from = waits();
    for (int i = 0; i < kMostLeft && !ended_ && poll(&from, 1, 0) > 0; ++i) show();
  }
  pollfd waits() const { return {ended_ ? -1 : end_.get(), POLLIN, 0}; }
  bool any() const { return !begin_.empty(); }
  std::string first_line() const { return begin_.substr(0, begin_.find('\n')); }

 private:
  static constexpr size_t kKept = 200;
  const Fd end_;
  bool ended_ = false;
  std::string begin_;
};

// What the rules came to, said as it is told, and counted.
class Score {
 public:
  explicit Score(const Printed& printed) : printed_(printed) {}

  // A line that the child wrote.
  void told(char what, const std::string& text) {
    open_ = what == kBegin;
    switch (what) {
      case kBegin:
        rule_ = text;
        break;
      case kGood:
        good();
        break;
      case kBad:
        bad(text);
        break;
      case kSkipped:
        std::printf("skip %s: %s\n", rule_.c_str(), text.c_str());
        ++skipped_;
        break;
      case kUnloadable:
        unloadable_ = text;
        break;
      default:
        break;
    }
    std::fflush(stdout);
  }
  // The child ended, with `status` of waitpid().
  void ended(int status) {
    if (const std::string how = ending(status); !how.empty())
      bad(how);
    else if (open_)
      bad("ended the process");
  }
  // The exit status of all.
  Result<int> say(const std::string& path) const {
    const auto said = put_text(
        format("%s: %u ok, %u failed, %u skipped\n", path.c_str(), good_, bad_, skipped_), "");
    if (!said) return said.error();
    return bad_ == 0 ? 0 : 1;
  }
  const std::string& unloadable() const { return unloadable_; }

 private:
  void good() {
    // Whether it loads is known with the next line only.
    if (rule_ == "loads") return;
    if (rule_ == kPrintsNothing && printed_.any())
      return bad("it printed: " + printed_.first_line());
    std::printf("ok   %s\n", rule_.c_str());
    ++good_;
  }
  void bad(const std::string& why) {
    std::printf("FAIL %s: %s\n", rule_.c_str(), why.c_str());
    ++bad_;
  }

  const Printed& printed_;
  std::string rule_, unloadable_;
  bool open_ = false;  // a rule began
  unsigned good_ = 0, bad_ = 0, skipped_ = 0;
};

// What the child says, until it ends or an end is asked for.
void listen(Fd end, Printed& printed, Score& score) {
  FILE* const lines = fdopen(end.get(), "r");
  if (lines == nullptr) return;
  (void)end.release();
  // Unbuffered, poll() tells whether there is another line; nothing is read once an end is asked
  // for.
  setvbuf(lines, nullptr, _IONBF, 0);
  const auto more = [&] {
    constexpr int kLook_ms = 100;
    while (g_stop_signal.load() == 0) {
      pollfd from[] = {printed.waits(), {fileno(lines), POLLIN, 0}};
      if (poll(from, 2, kLook_ms) <= 0) continue;
      if (from[0].revents == 0) return true;
      printed.show();
    }
    return false;
  };
  char* line = nullptr;
  size_t room = 0;
  for (ssize_t n; more() && (n = getline(&line, &room, lines)) > 0;)
    score.told(line[0], {line + 1, static_cast<size_t>(n) - (line[n - 1] == '\n' ? 2 : 1)});
  free(line);
  fclose(lines);
}

// Two ends of a pipe, closed at the latest with this.
struct Pipe {
  Fd read = Fd(), write = Fd();
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return errno_error("make a pipe", errno);
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

// A process that goes through all rules, and tells into `told`; what is printed goes into `out`.
// Afterwards only it has the ends to write to.
Result<pid_t> start_child(const PluginSpec& spec, const std::string& directory, Pipe& told,
                          Pipe& out) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return errno_error("fork", errno);
  if (child == 0) {
    dup2(out.write.get(), STDOUT_FILENO);
    out = Pipe();
    told.read = Fd();
    signal(SIGALRM, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    // An end that is asked for ends a plug-in that hangs, too.
    for (const int asks : {SIGINT, SIGTERM, SIGHUP})
      if (signal(asks, SIG_DFL) == SIG_IGN) signal(asks, SIG_IGN);
    Rules rules(told.write.get());
    check_all(spec, directory, rules);
    _exit(0);
  }
  told.write = Fd();
  out.write = Fd();
  return child;
}

// Its rules, in a process of their own, by `directory`.
Result<int> check_in(const std::string& directory, const PluginSpec& spec) {
  auto told = make_pipe(), out = make_pipe();
  if (!told) return std::move(told.error());
  if (!out) return std::move(out.error());
  const auto child = start_child(spec, directory, *told, *out);
  if (!child) return child.error();
  Printed printed(std::move(out->read));
  Score score(printed);
  listen(std::move(told->read), printed, score);
  if (g_stop_signal.load() != 0) kill(*child, SIGKILL);
  int status = 0;
  while (waitpid(*child, &status, 0) < 0 && errno == EINTR) {
  }
  printed.show_rest();
  if (const int stop = g_stop_signal.load(); stop != 0 && WIFSIGNALED(status))
    return Error(FEIGN_ERR_IO, spec.name + ": interrupted by signal " + std::to_string(stop) +
                                   " before it was done");
  if (!score.unloadable().empty()) return Error(FEIGN_ERR_ARGUMENT, score.unloadable());
  score.ended(status);
  return score.say(spec.name);
}

}  // namespace
}  // namespace check

Result<int> check_command(const std::string& given) {
  PluginSpec spec;
  spec.name = given;
  // A path may have commas of its own.
  if (access(given.c_str(), F_OK) != 0) {
    auto parsed = parse_plugin_spec(given, "");
    if (!parsed) return std::move(parsed.error());
    spec = std::move(*parsed);
  }
  const char* tmp = getenv("TMPDIR");
  std::string directory =
      std::string(tmp != nullptr && *tmp != '\0' ? tmp : "/tmp") + "/feign-check-XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) return errno_error("make " + directory, errno);
  auto status = check::check_in(directory, spec);
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  return status;
}

}  // namespace feign
