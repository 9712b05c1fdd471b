// SPDX-License-Identifier: MIT
// The command: which one the user typed; its file in commands/ does the rest.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/near.h"
#include "base/program.h"
#include "cli/cli.h"
#include "cli/command.h"
#include "cli/common.h"

namespace feign {
namespace {

void on_signal(int signal) {
  // The first asks for an end with a report, the second does not ask. One to this process and one
  // to its group come at once (timeout(1), a batch system): they are one. So are one that a command
  // got and those that its remains send to their group because of it (`trap 'kill 0' EXIT`).
  constexpr uint64_t kAtOnce = 250'000'000;
  static std::atomic<uint64_t> first{0};
  uint64_t before = 0;
  const uint64_t passed_on = g_passed_on_ns.load();
  const uint64_t now = now_ns();
  if (passed_on != 0 && now - passed_on <= kAtOnce) return;
  if (!first.compare_exchange_strong(before, now) && now - before > kAtOnce) _exit(128 + signal);
  g_stop_signal.store(signal);
}

// What was ignored as it began stays so, also in the commands that it starts; what is handled here
// is not ignored there.
void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) return;
  action = {};
  action.sa_handler = handler;
  sigaction(signal, &action, nullptr);
}

struct Entry {
  const char *name, *summary;  // no summary: not for people
  MakeCommand* make;
};
constexpr Entry kCommands[] = {
    {"replay", "Replay a trace below another directory", make_replay},
    {"run", "Run the pipeline of a YAML file (docs/pipeline-file.md)", make_run},
    {"info", "What is in a trace", make_info},
    {"convert", "Write a trace in another format", make_convert},
    {"discover", "Trace a parallel program with who waits for whom, found by slowing nodes down",
     make_discover},
    {"discover-post", nullptr, make_discover_post},
    {"inspect", "What plug-ins there are, and what they offer", make_inspect},
    {"record", "Run a command and keep a trace of it (docs/record.md); the status is the command's",
     make_record},
    {"generate",
     "Make capture library, replayer and reference page of a library's annotated header "
     "(docs/layers.md)",
     make_generate},
    {"check", "Prove a plug-in against the contract, in a process of its own", make_check},
    {"lab", "Measure variants against a baseline, as a YAML file says (docs/lab.md)", make_lab}};

// What is wrong with a first word that is no option; nothing if it is a command.
std::string unknown_command(const CLI::App& app, const std::string& word) {
  std::string known;
  std::vector<std::string> names = {"help"};
  for (const CLI::App* s : app.get_subcommands(nullptr)) {
    if (s->get_name() == word) return "";
    names.push_back(s->get_name());
    known += names.back() + ", ";
  }
  const bool file = access(word.c_str(), F_OK) == 0;
  return word + ": no such command (there are: " + known + "help" +
         (file ? "); for a trace: feign info " + word + ", feign replay " + word + " --root DIR"
               : ")" + did_you_mean(word, names));
}

// Which option was meant by one that there is not.
std::string meant(const CLI::App& app) {
  const std::vector<std::string> extra = app.remaining(true);
  const auto chosen = app.get_subcommands();
  std::vector<std::string> names;
  for (const CLI::Option* o : (chosen.empty() ? app : *chosen.front()).get_options())
    for (const std::string& name : o->get_lnames()) names.push_back("--" + name);
  return extra.empty() ? "" : did_you_mean(extra[0].substr(0, extra[0].find('=')), names);
}

// An option or a file's name without its value (a script's variable that is not set) is not one
// that nobody gave. Words of another program are its own.
void want_values(CLI::App& app, bool program) {
  for (CLI::Option* o : app.get_options())
    if (o->get_items_expected_max() > 0 && !(o->get_positional() && program)) {
      const std::string want = "want " + (o->get_positional() ? "a name" : o->get_type_name());
      o->check([want](const std::string& text) { return text.empty() ? want : std::string(); });
    }
}

// The words that were typed; "feign help replay" is "feign replay --help".
std::vector<std::string> typed(int argc, char** argv) {
  std::vector<std::string> words(argv, argv + argc);
  if (argc < 2 || words[1] != "help") return words;
  words.erase(words.begin() + 1);
  words.emplace_back("--help");
  if (words[1] == "help") words.erase(words.begin() + 1);
  return words;
}

// What stands below "feign" itself.
void describe(CLI::App& app) {
  app.set_version_flag("--version",
                       "feign " FEIGN_VERSION " (plug-in ABI " + std::to_string(FEIGN_ABI_MAJOR) +
                           "." + std::to_string(FEIGN_ABI_MINOR) + ")",
                       "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.require_subcommand(0, 1);
  app.footer(
      "Each command has its own --help. First steps:\n"
      "  feign record -o app.feign -- COMMAND            record\n"
      "  feign info app.feign                            look at it\n"
      "  feign replay app.feign --root /mnt/other        do it again below another directory");
}

// An option's empty value is not the next word; of the first `own` words, which are feign's.
Result<void> want_no_empty_value(const std::vector<std::string>& words, size_t own) {
  for (size_t i = 0; i < own; ++i)
    if (words[i].starts_with("--") && words[i].find('=') == words[i].size() - 1)
      return Error(FEIGN_ERR_ARGUMENT, words[i] + ": want a value behind it");
  return {};
}

// --explain alone is --explain 20, and does not take a file's name for its number.
void complete_explain(std::vector<std::string>& words) {
  for (size_t i = 1; i < words.size(); ++i)
    if (words[i] == "--explain" &&
        (i + 1 == words.size() ||
         words[i + 1].find_first_not_of("0123456789") != std::string::npos))
      words[i] = "--explain=20";
}

// The words into the options; an exit status where that is all.
std::optional<int> parse(CLI::App& app, std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  try {
    app.parse(static_cast<int>(pointers.size()), pointers.data());
    return std::nullopt;
  } catch (const CLI::Success& e) {
    std::ostringstream asked;  // for help, or the version
    app.exit(e, asked, asked);
    return put(asked.str(), "");
  } catch (const CLI::ParseError& e) {
    std::string sub;
    for (const CLI::App* s : app.get_subcommands()) sub = " " + s->get_name();
    const bool extra = e.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
    log(FEIGN_LOG_ERROR, e.what() + (extra ? meant(app) : std::string()));
    log(FEIGN_LOG_ERROR, "try: feign" + sub + " --help");
    return kBad;
  }
}

// A command, and what of the words is another program's.
int run_command(Command& command, std::vector<std::string> program) {
  if (!program.empty()) {
    std::vector<std::string>& whole = *command.program();
    if (!whole.empty())
      return failed(Error(FEIGN_ERR_ARGUMENT, whole.front() + ": want the whole command after --"));
    whole = std::move(program);
  }
  return command.run();
}

int main(int argc, char** argv) {
  std::vector<std::string> words = typed(argc, argv);
  const std::string first = words.size() > 1 ? words[1] : "";
  const auto chosen = std::find_if(std::begin(kCommands), std::end(kCommands),
                                   [&](const Entry& e) { return first == e.name; });
  CLI::App app(
      "Takes a trace of what an application did to storage, lets plug-ins change it, and does it "
      "again somewhere else.",
      "feign");
  describe(app);

  // Where the first word is a command, the others and their options need not be made.
  Common common;
  struct Taken {
    CLI::App* app;
    std::unique_ptr<Command> command;
  };
  std::vector<Taken> commands;
  for (const Entry& e : kCommands) {
    if (chosen != std::end(kCommands) ? chosen != &e : e.summary == nullptr) continue;
    CLI::App* const sub = app.add_subcommand(e.name, e.summary != nullptr ? e.summary : "");
    sub->footer("");  // not what stands below all commands
    commands.push_back({sub, e.make(common)});
    Command& command = *commands.back().command;
    command.takes(*sub);
    want_values(*sub, command.program() != nullptr);
  }
  const auto pipeline = make_pipeline(common);
  CLI::App *completion = nullptr, *man = nullptr;
  std::string shell;
  if (chosen == std::end(kCommands)) {
    pipeline->takes(app);
    want_values(app, false);
    completion = app.add_subcommand("completion", "Print a shell completion script");
    completion->add_option("SHELL", shell, "For which shell")
        ->type_name("bash")
        ->required()
        ->check(one_of({"bash"}));
    man = app.add_subcommand("man", "Print the manual page (roff)");
    for (CLI::App* const sub : {completion, man}) sub->footer("");
  }

  if (completion != nullptr && !first.empty() && first[0] != '-') {
    const std::string said = unknown_command(app, first);
    if (!said.empty()) return failed(Error(FEIGN_ERR_ARGUMENT, said));
  }
  const bool runs = chosen != std::end(kCommands) && commands[0].command->program() != nullptr;
  size_t own = static_cast<size_t>(std::find(words.begin(), words.end(), "--") - words.begin());
  std::vector<std::string> program;
  // What stands after -- is another program's, whatever it looks like.
  if (runs && own < words.size()) {
    program.assign(words.begin() + static_cast<ptrdiff_t>(own) + 1, words.end());
    words.resize(own);
  } else if (runs) {
    own = 0;  // any word may be
  }
  if (auto checked = want_no_empty_value(words, own); !checked) return failed(checked.error());
  complete_explain(words);
  handle(SIGPIPE, [](int) {});
  handle(SIGXFSZ, [](int) {});  // a file that grows past the limit is EFBIG, not the end
  if (const auto status = parse(app, words)) return *status;

  set_log_level(common.verbose >= 2   ? FEIGN_LOG_DEBUG
                : common.verbose == 1 ? FEIGN_LOG_INFO
                                      : FEIGN_LOG_WARN);
  for (const int asks : {SIGINT, SIGTERM, SIGHUP}) handle(asks, on_signal);

  for (const auto& [sub, command] : commands)
    if (*sub) return run_command(*command, std::move(program));
  if (completion != nullptr && *completion) return put(bash_completion(app), "");
  if (man != nullptr && *man) return put(man_page(app), "");
  if (!common.plugins.empty()) return pipeline->run();
  std::cerr << app.help();
  return kBad;
}

}  // namespace
}  // namespace feign

// A plug-in, or what it links, may call exit(): then nothing was done, whatever status it gives.
static pid_t g_running = 0;  // who has not come back from main()
static void told_to_exit() {
  if (g_running != getpid()) return;
  feign::log(FEIGN_LOG_ERROR, "a plug-in ended the process: it called exit()");
  _exit(2);
}

// Where one of descriptors 0 to 2 is closed, what is opened first would be it, and be written what
// is said there. These can be neither read nor written, and are closed in commands that are
// started.
static void hold_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (fcntl(fd, F_GETFD) < 0)
      (void)open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

int main(int argc, char** argv) {
  hold_standard_descriptors();
  (void)feign::children_were_ignored();
  g_running = getpid();
  (void)atexit(told_to_exit);
  const struct Back {
    ~Back() { g_running = 0; }
  } back;
  try {
    return feign::main(argc, argv);
  } catch (const std::bad_alloc&) {
    feign::log(FEIGN_LOG_ERROR, "out of memory");
  } catch (const std::exception& e) {
    feign::log(FEIGN_LOG_ERROR, std::string("a fault of feign's own: ") + e.what());
  }
  return 2;
}
