// SPDX-License-Identifier: MIT
#include "cli/common.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/log.h"
#include "base/output.h"
#include "cli/kinds.h"
#include "cli/line.h"
#include "plugin/options.h"
#include "replay/ranks.h"

namespace feign {

ProgressLine::ProgressLine(bool quiet) : on_(!quiet && isatty(STDERR_FILENO)) {}

void ProgressLine::show(const char* stage, uint64_t done, uint64_t total) {
  if (!on_) return;
  const uint64_t now = now_ns();
  if (now - begin_ < 1'000'000'000 || now - last_ < 100'000'000) return;
  last_ = now;
  if (stage != stage_) {
    stage_ = stage;
    stage_begin_ = now;
  }
  char line[160];
  int n = snprintf(line, sizeof line, "\r%s  %llu", stage, static_cast<unsigned long long>(done));
  if (total != 0 && done <= total) {
    const double share = static_cast<double>(done) / static_cast<double>(total);
    n += snprintf(line + n, sizeof line - static_cast<size_t>(n), " of %llu  %.0f %%",
                  static_cast<unsigned long long>(total), share * 100);
    if (done != 0 && now > stage_begin_ + 500'000'000) {
      const double left = static_cast<double>(now - stage_begin_) / 1e9 * (1 - share) / share;
      n += snprintf(line + n, sizeof line - static_cast<size_t>(n), "  %d:%02d left",
                    static_cast<int>(left) / 60, static_cast<int>(left) % 60);
    }
  }
  n += snprintf(line + n, sizeof line - static_cast<size_t>(n), "\033[K");
  if (write(STDERR_FILENO, line, static_cast<size_t>(n)) < 0) on_ = false;
  shown_ = true;
}

void ProgressLine::erase() {
  if (shown_ && write(STDERR_FILENO, "\r\033[K", 4) < 0) on_ = false;
  shown_ = false;
}

int failed(const Error& error) {
  if (launched().rank != 0) {
    // Rank 0 says it. mpirun ends all as soon as one has, and this wait with them.
    sleep(2);
    return kBad;
  }
  log(FEIGN_LOG_ERROR, error.text());
  return kBad;
}

int put(const std::string& text, const std::string& output) {
  auto done = put_text(text, output);
  return done ? kDone : failed(done.error());
}

void Common::verbosity(CLI::App& a) {
  a.add_flag("-q,--quiet", quiet, "No progress line, no report unless it is asked for");
  a.add_flag("-v,--verbose", verbose, "Say more; twice: still more");
}

void Common::report(CLI::App& a) {
  a.add_flag("--json", json, "Print the report as one JSON object (docs/report.md)");
  a.add_option("-o,--output", output, "Where the report goes, instead of standard output")
      ->type_name("FILE");
  a.add_option("--require", require,
               "Exit with 1 if a smaller share of activities came back as recorded (0.995, 99.5%)")
      ->type_name("SHARE");
  verbosity(a);
}

void Common::explaining(CLI::App& a) {
  a.add_option("--explain", explain,
               "Say, for the first N activities [20], which modifier changed, injected, merged "
               "or dropped what")
      ->type_name("[N]")
      ->check(between(uint64_t{1}, uint64_t{1} << 32))
      ->expected(1);
}

void Common::replaying(CLI::App& a) {
  a.add_option("--root", root, "Directory that stands for / ; nothing outside it is touched")
      ->type_name("DIR");
  a.add_option(
       "--pace", settings["pace"],
       "afap: as fast as possible; think[,scale=F]: with the recorded pauses; timed[,scale=F]: "
       "each activity at its recorded time [afap]")
      ->type_name("afap|think|timed");
  a.add_option("--order", settings["order"],
               "trace: as recorded over all streams; depend: side by side, but nothing overtakes "
               "what it needs; stream: side by side, only each stream's own order [trace; under "
               "mpirun depend, but for what its messages order]")
      ->type_name("trace|depend|stream");
  a.add_option(
       "--content", settings["content"],
       "What prepared and written files hold: sparse (the default; no bytes), zeros, random "
       "or ratio=N (to compress N:1)")
      ->type_name("sparse|zeros|random|ratio=N");
  a.add_option("--max-bytes", settings["max-bytes"],
               "Write no more than this, prepared files included (default: 95 % of what is free)")
      ->type_name("SIZE");
  a.add_option(
       "--compute", settings["compute"],
       "How pauses are passed: busy (what was computing keeps a processor busy, the rest is "
       "slept), hybrid (asleep, but for the last stretch), sleep, spin, or awake (hybrid, on "
       "processors kept from sleeping deeply) [think: busy, timed: awake where "
       "that is permitted]")
      ->type_name("busy|hybrid|sleep|spin|awake");
  a.add_option("--streams-per-core", settings["streams-per-core"],
               "Threads a processor; more streams than that share them [256 threads in all]")
      ->type_name("N");
  a.add_flag_callback(
      "--pin", [this] { settings["pin"] = "yes"; }, "Keep each thread on one processor");
  a.add_option("--map", map,
               "Under mpirun: which rank replays which recorded ones: block, cyclic, or a file of "
               "lines RECORDED[-RECORDED] RANK [rank r replays r]")
      ->type_name("block|cyclic|FILE");
  a.add_option("--patience", patience,
               "Under mpirun: how long a call may wait for other ranks before all is ended [a "
               "minute and twice the trace's length]")
      ->type_name("TIME");
  a.add_flag("--no-prepare", no_prepare, "Do not make what must exist before the first call");
  explaining(a);
  a.add_option("--drop-caches", drop_caches,
               "When all is prepared, start cold: all (the machine's caches, where that is "
               "permitted) or files (those below the root)")
      ->type_name("all|files")
      ->check(one_of({"all", "files"}));
  a.add_option("--before", before,
               "A command for sh, after that and before the first call (FEIGN_ROOT is the root)")
      ->type_name("COMMAND");
  a.add_option("--waits", waits, "Write down every wait: who, how long, for whom, by which rule")
      ->type_name("FILE");
  a.add_option("--activities", activities,
               "Write down what was done when, a record an activity (docs/lab-format.md)")
      ->type_name("FILE");
  a.add_option("--html", html, "The report as a page with plots and timelines (docs/lab.md)")
      ->type_name("FILE");
  report(a);
}

void Common::reading(CLI::App& a) {
  a.add_option("--provider", provider,
               "Read with this provider, instead of the one that recognises the file")
      ->type_name("NAME[,key=value...]");
  a.add_option("--with", with, "Put this modifier in; several in the order given")
      ->type_name("NAME[,key=value...]")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  a.add_option("--ranks", ranks, "Only these MPI ranks; with ^ in front, all but these")
      ->type_name("0,3-5");
  a.add_flag("--keep-going", keep_going, "Count and skip lines that cannot be understood");
  a.add_option("--cwd", cwd, "The program's working directory, where the trace does not tell it")
      ->type_name("DIR");
}

Result<std::vector<PluginSpec>> specs(const std::vector<std::string>& texts, const char* where,
                                      uint32_t roles) {
  std::vector<PluginSpec> out;
  for (const std::string& text : texts) {
    auto spec = parse_plugin_spec(text, where);
    if (!spec) return std::move(spec.error());
    spec->roles = roles;
    out.push_back(std::move(*spec));
  }
  return out;
}

Result<std::vector<PluginSpec>> reading(const Common& c, Plugins& plugins) {
  Result<PluginSpec> first = PluginSpec{};
  std::vector<std::string> traces = c.traces;
  std::replace(traces.begin(), traces.end(), std::string("-"), std::string("/dev/stdin"));
  std::map<std::string_view, int> times;
  for (const std::string& trace : traces)
    if (++times[trace] == 2)
      log(FEIGN_LOG_WARN, trace +
                              ": is given twice: all that it has is done twice, side by side, "
                              "on the same files (--with replicate makes copies that have "
                              "files of their own)");
  if (c.provider.empty()) {
    first = provider_for(traces, plugins);
  } else {
    first = parse_plugin_spec(c.provider, "--provider");
    if (first) {
      first->roles = FEIGN_PROVIDER;
      for (const std::string& trace : traces) first->options.emplace_back("file", trace);
    }
  }
  if (!first) return std::move(first.error());
  GivenOptions flags;
  if (c.keep_going) flags.emplace_back("keep-going", "yes");
  if (c.statistics) flags.emplace_back("statistics", "yes");
  if (!c.cwd.empty()) flags.emplace_back("cwd", c.cwd);
  for (auto& [name, value] : flags) {
    if (!has_option(*first, FEIGN_PROVIDER, name, plugins))
      return Error(FEIGN_ERR_ARGUMENT,
                   "--" + name + ": is not for traces that provider " + first->name + " reads");
    first->options.emplace_back(name, std::move(value));
  }
  auto list = specs(c.with, "--with", kWith);
  if (!list) return list;
  if (!c.ranks.empty()) {
    auto filter = filter_of_ranks(c.ranks);
    if (!filter) return std::move(filter.error()).within("--ranks " + c.ranks);
    filter->where = "--ranks " + c.ranks;
    list->insert(list->begin(), std::move(*filter));
  }
  list->insert(list->begin(), std::move(*first));
  return list;
}

}  // namespace feign
