// SPDX-License-Identifier: MIT
#include "discover/discover.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <set>

#include "base/clock.h"
#include "base/input.h"
#include "base/log.h"
#include "base/output.h"
#include "discover/calls.h"
#include "discover/hosts.h"
#include "discover/order.h"
#include "discover/patterns.h"
#include "discover/post.h"
#include "discover/run.h"
#include "discover/seen.h"
#include "nlohmann/json.hpp"
#include "record/program.h"
#include "record/record.h"
#include "report/format.h"

namespace feign::discover {
namespace {

namespace fs = std::filesystem;

// With --adaptive, no stretch without a look is longer than this share of a node's calls.
constexpr uint64_t kStretches = 4;
// Where more than this share of a node's calls are likely places, patterns say more.
constexpr uint64_t kEverywhere = 8;
// How often all is looked at anew when what was found cannot be.
constexpr int kAgain = 3;
// Replays under random delays show whether it matters where in a stretch a node went on: so many,
// in each of which a node is late by so many runs.
constexpr size_t kReplays = 256;
constexpr uint64_t kLate = 100;
// Of the pauses in the unthrottled run, so many of a node's longest may have been waits.
constexpr size_t kLongest = 2;
// When nobody has gone on at so many places in a row, it leaps to where somebody is likely to.
constexpr uint64_t kStays = 2;
// A place that is known to so many calls is looked at call by call.
constexpr int64_t kNear = 4;
// Beyond so much work patterns are not looked for.
constexpr uint64_t kMostPatterns = uint64_t{1} << 24;
// Nothing counts as blocked for less: some looks, and some ticks by which the kernel counts.
constexpr uint64_t kFloor = 4'000'000;

// A folder that is complete under its name, or gone. What one leaves behind whose owner was killed,
// the next of the same name takes away: nobody has its lock.
class Folder {
 public:
  ~Folder() {
    std::error_code ignored;
    if (!part_.empty()) fs::remove_all(part_, ignored);
    if (lock_ >= 0) close(lock_);
  }
  Result<void> make(const std::string& name) {
    std::error_code e;
    const fs::path target = fs::absolute(name, e).lexically_normal();
    name_ = target.has_filename() ? target : target.parent_path();
    if (fs::exists(name_, e) && !(fs::is_directory(name_, e) && fs::is_empty(name_, e)))
      return Error(FEIGN_ERR_ARGUMENT,
                   "-o " + name + ": is there already, want a new or empty directory");
    for (const auto& there : fs::directory_iterator(name_.parent_path(), e)) {
      const std::string path = there.path();
      if (!path.starts_with(name_.string() + kPart) ||
          path.size() != name_.string().size() + strlen(kPart) + 6)
        continue;
      const int left = lock(path, 0);
      std::error_code ignored;
      if (left >= 0) fs::remove_all(path, ignored);
      if (left >= 0) close(left);
    }
    std::string part = name_.string() + kPart + "XXXXXX";
    if (mkdtemp(part.data()) == nullptr) return errno_error("make directory " + part, errno);
    part_ = part;
    lock_ = lock(part_, O_CREAT);
    fs::permissions(part_, fs::perms(0755), e);
    return {};
  }
  Result<void> finish() {
    unlink(path(kOwner).c_str());
    if (rename(part_.c_str(), name_.c_str()) != 0)
      return errno_error("rename " + part_.string() + " to " + name_.string(), errno);
    part_.clear();
    return {};
  }
  std::string path(const std::string& name) const { return part_.string() + "/" + name; }
  std::string final_path(const std::string& name) const { return name_.string() + "/" + name; }

 private:
  static constexpr const char *kPart = ".part.", *kOwner = "owner";
  // -1: somebody has it, or there is none.
  static int lock(const std::string& folder, int flags) {
    const int fd = open((folder + "/" + kOwner).c_str(), O_RDWR | O_CLOEXEC | flags, 0600);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
    close(fd);
    return -1;
  }

  fs::path name_, part_;
  int lock_ = -1;
};

// "main/10" comes after "main/9".
bool natural_less(const std::string& a, const std::string& b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (isdigit(static_cast<unsigned char>(a[i])) && isdigit(static_cast<unsigned char>(b[j]))) {
      char *end_a = nullptr, *end_b = nullptr;
      const unsigned long long x = strtoull(a.c_str() + i, &end_a, 10);
      const unsigned long long y = strtoull(b.c_str() + j, &end_b, 10);
      if (x != y) return x < y;
      i = static_cast<size_t>(end_a - a.c_str());
      j = static_cast<size_t>(end_b - b.c_str());
    } else if (a[i] != b[j]) {
      return a[i] < b[j];
    } else {
      ++i, ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

// What two runs must agree in: with `tolerate`, not in texts and results.
std::string essence(const std::string& text, bool tolerate) {
  if (!tolerate) return text;
  return text.substr(0, text.find('('));
}

class Discovery {
 public:
  Discovery(const DiscoverOptions& options, Plugins& plugins, const Progress& progress)
      : options_(options), plugins_(plugins), progress_(progress) {}
  ~Discovery() {
    if (hosts_.size() != 0 && !plan_.raw.empty()) remove_raw(plan_.raw);
  }
  Result<DiscoverReport> run();

 private:
  struct Node {
    std::string key;
    NodeLog first;                    // the unthrottled run
    std::vector<uint64_t> least_gap;  // of each call, over the runs in which it was throttled
    std::unique_ptr<Frontier> frontier;
    std::vector<Order::Times> last;  // of its calls in the last run
    uint64_t usual_gap = 0;          // before a call, in the unthrottled run: the median
  };

  Result<RunOutcome> one_run(const std::string& throttled, const std::vector<uint64_t>& holds);
  void note_step(uint64_t found) {
    report_.steps.push_back({now_ns() - begin_, report_.holds, found});
  }
  Error failure(const RunOutcome& outcome, const std::string& throttled) const;
  Result<void> first_run();
  Result<void> choose_nodes();
  void held(uint32_t index, const Hold& hold);
  Result<void> once(uint32_t index, const std::vector<uint64_t>& holds);
  std::set<uint64_t> likely(uint32_t index, bool found) const;
  std::pair<uint64_t, uint64_t> likely_wait(uint32_t index, uint32_t other, uint64_t call) const;
  Result<void> explore(uint32_t index);
  Result<void> refine(uint32_t index, const std::vector<uint64_t>& holds);
  std::set<std::pair<uint32_t, uint64_t>> moved_by_delays(uint32_t index);
  bool accurate(const Frontier& frontier, const Frontier::Matters& matters) const;
  Result<void> throttle(uint32_t index);
  void conclude();
  Order order() const;
  void find_patterns();
  Result<void> compare(const RunOutcome& outcome, const std::string& throttled);
  Result<void> write_raw();
  Result<void> merge();
  Result<void> write_dependencies();
  uint64_t compute_of(const Node& node, size_t call) const;
  std::string work(const std::string& name) const { return folder_.path("work/" + name); }
  bool time_left() const {
    return options_.budget_ns == 0 || now_ns() - begin_ < options_.budget_ns;
  }

  const DiscoverOptions& options_;
  Plugins& plugins_;
  const Progress& progress_;
  DiscoverReport report_;
  Folder folder_;
  Post post_{""};
  Hosts hosts_;
  RunPlan plan_;
  std::map<std::string, Limits> limits_;
  std::vector<Node> nodes_;
  uint64_t begin_ = 0;
  std::vector<std::string> raw_files_;
  std::vector<SeenOrder> shown_;  // dependencies that the first run's trace shows
  Numbers numbers_;               // of the first run
  std::vector<uint32_t> index_;   // of nodes, by these
  bool ranked_ = false;           // nodes are ranks
};

// Launchers of MPI programs, whose calls are not looked into.
bool launches_mpi(const std::string& program) {
  const std::string name = fs::path(program).filename();
  for (const char* known : {"mpirun", "mpiexec", "orterun", "prterun", "srun", "oshrun"})
    if (name == known) return true;
  return false;
}

Result<RunOutcome> Discovery::one_run(const std::string& throttled,
                                      const std::vector<uint64_t>& holds) {
  if (!options_.before.empty()) {
    const int status = system(options_.before.c_str());
    if (status != 0)
      return Error(
          FEIGN_ERR_ARGUMENT,
          "--before " + options_.before + ": ended with status " +
              std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)));
  }
  plan_.throttled = throttled;
  plan_.holds = holds;
  uint64_t total = 0;
  for (const Node& n : nodes_) total += n.first.calls.size();
  const std::string stage = throttled.empty() ? "run"
                                              : "run " + std::to_string(report_.runs + 1) + ", " +
                                                    throttled + " throttled";
  for (size_t h = 0; h < hosts_.size(); ++h)
    if (auto ok = hosts_.read_clock(h, false); !ok) return std::move(ok.error());
  auto outcome =
      run_watched(plan_, limits_, [&](uint64_t done) { progress_(stage.c_str(), done, total); });
  if (!outcome)
    return throttled.empty()
               ? std::move(outcome.error()).within("unthrottled run")
               : std::move(outcome.error()).within("run with " + throttled + " throttled");
  if (outcome->status != 0) return failure(*outcome, throttled);
  Numbers numbers;
  for (size_t h = 0; h < outcome->keys.size(); ++h)
    numbers.add(h == 0 ? "" : hosts_.name(h - 1), outcome->keys[h]);
  for (size_t h = 0; h < hosts_.size(); ++h) {
    if (auto ok = hosts_.read_clock(h, true); !ok) return std::move(ok.error());
    if (auto ok = hosts_.fetch(h, plan_.raw); !ok) return std::move(ok.error());
  }
  const std::string trace = work(throttled.empty() ? "first.feign" : "run.feign");
  if (auto ok = read_run(plan_.raw, trace, plugins_, numbers, outcome->nodes); !ok)
    return std::move(ok.error()).within("read what was recorded");
  if (throttled.empty()) numbers_ = std::move(numbers);
  remove_raw(plan_.raw, true);
  ++report_.runs;
  report_.holds += outcome->holds.size();
  report_.cut_short += outcome->cut_short;
  report_.woke += outcome->woke;
  report_.held_ns += outcome->held_ns;
  std::set<std::string_view> ranks;
  for (const auto& keys : outcome->keys)
    for (const std::string& key : keys)
      if (key.starts_with("rank:"))
        ranks.insert(std::string_view(key).substr(0, key.find_first_of("/#")));
  if (outcome->ranks > ranks.size())
    return Error(
        FEIGN_ERR_UNSUPPORTED,
        format("of %u ranks %zu were seen: the others run on other hosts (--hosts), or are "
               "statically linked",
               outcome->ranks, ranks.size()));
  // MPI programs: the launcher is no part of the application.
  const auto is_rank = [](const auto& n) { return n.second.rank >= 0; };
  ranked_ = std::any_of(outcome->nodes.begin(), outcome->nodes.end(), is_rank);
  if (ranked_) std::erase_if(outcome->nodes, [&](const auto& n) { return !is_rank(n); });
  return outcome;
}

// A run that did not end well, and where those of its nodes were that were killed.
Error Discovery::failure(const RunOutcome& outcome, const std::string& throttled) const {
  const int status = outcome.status;
  std::string text = throttled.empty() ? "" : "run with " + throttled + " throttled: ";
  text += "the command ended with status " + std::to_string(status);
  if (status == 127) text += " (not found?)";
  if (status > 128 && status < 128 + 65)
    text += std::string(" (signal: ") + strsignal(status - 128) + ")";
  text += throttled.empty() ? "; its output: --show-output" : ", and with 0 when nobody was";
  for (size_t i = 0; i < outcome.died.size() && i < 16; ++i)
    text += (i == 0 ? "; nodes that were killed: " : ", ") + outcome.died[i];
  return Error(FEIGN_ERR_ARGUMENT, text);
}

Result<void> Discovery::first_run() {
  plan_.show_output = options_.show_output;
  auto outcome = one_run("", {});
  if (!outcome) return std::move(outcome.error());
  plan_.show_output = false;
  report_.first_ns = outcome->wall_ns;
  report_.status = outcome->status;
  if (outcome->nodes.empty())
    return Error(FEIGN_ERR_ARGUMENT,
                 "the command made no calls on files that could be seen: is it linked statically, "
                 "or do --only and --exclude leave nothing?");
  limits_ = outcome->makers;
  for (auto& [key, log] : outcome->nodes) {
    Node node;
    node.key = key;
    node.first = std::move(log);
    std::vector<uint64_t> gaps;
    for (const IoCall& c : node.first.calls) gaps.push_back(c.gap_ns);
    std::nth_element(gaps.begin(), gaps.begin() + static_cast<ptrdiff_t>(gaps.size() / 2),
                     gaps.end());
    if (!gaps.empty()) node.usual_gap = gaps[gaps.size() / 2];
    limits_[key] = {node.first.longest_gap_ns, node.first.longest_cpu_ns,
                    node.first.longest_call_ns, 0};
    nodes_.push_back(std::move(node));
  }
  std::sort(nodes_.begin(), nodes_.end(), [](const Node& a, const Node& b) {
    if (a.first.rank != b.first.rank) return a.first.rank < b.first.rank;
    return natural_less(a.key, b.key);
  });
  std::set<int> ranks;
  for (const Node& n : nodes_) ranks.insert(n.first.rank);
  const bool ranked = *ranks.begin() >= 0 && ranks.size() == nodes_.size();
  std::vector<uint64_t> calls;
  for (const Node& n : nodes_) calls.push_back(n.first.calls.size());
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    NodeReport r;
    r.key = nodes_[i].key;
    r.number = ranked ? static_cast<uint32_t>(nodes_[i].first.rank) : i;
    r.calls = calls[i];
    report_.nodes.push_back(r);
    nodes_[i].frontier = std::make_unique<Frontier>(calls, i);
  }
  for (const std::string& key : numbers_.keys) {
    const auto at =
        std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& n) { return n.key == key; });
    index_.push_back(at != nodes_.end() ? static_cast<uint32_t>(at - nodes_.begin()) : UINT32_MAX);
  }
  note_step(0);
  auto shown = seen_orders(work("first.feign"), work(""), numbers_, index_, plugins_);
  if (!shown) return std::move(shown.error()).within("read what was recorded");
  shown_ = std::move(*shown);
  report_.steps.back().found = shown_.size();
  for (const SeenOrder& s : shown_) nodes_[s.on].frontier->know(s.node, s.call, s.on_call, s.by);
  return {};
}

// "3" is three of them, spread evenly; "0,2-5" names them.
Result<void> Discovery::choose_nodes() {
  const std::string& text = options_.nodes;
  const auto wrong = [&](const std::string& what) {
    std::string known;
    for (const NodeReport& n : report_.nodes)
      if (known.size() < 200)
        known += (known.empty() ? "" : ", ") + std::to_string(n.number) + " (" + n.key + ")";
    return Error(FEIGN_ERR_ARGUMENT, "--nodes " + text + ": " + what + "; there are: " + known);
  };
  if (text.empty()) {
    for (NodeReport& n : report_.nodes) n.throttled = true;
    return {};
  }
  if (text == "none") return {};
  if (text.find_first_not_of("0123456789,-") != std::string::npos)
    return wrong("want a number of nodes, a list such as 0,2-5, or none");
  if (text.find_first_of(",-") == std::string::npos) {
    const unsigned long long n = strtoull(text.c_str(), nullptr, 10);
    const size_t all = report_.nodes.size();
    if (n == 0 || n > all) return wrong("want 1 to " + std::to_string(all));
    for (size_t i = 0; i < n; ++i) report_.nodes[i * all / n].throttled = true;
    return {};
  }
  if (text.find_first_of("0123456789") == std::string::npos)
    return wrong("want a number of nodes, a list such as 0,2-5, or none");
  for (size_t at = 0; at < text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, comma - at);
    at = comma + 1;
    if (part.empty()) continue;
    char* end = nullptr;
    const unsigned long long first = strtoull(part.c_str(), &end, 10);
    unsigned long long last = first;
    if (end == part.c_str() || (*end == '-' && end[1] == 0))
      return wrong("\"" + part + "\" is no number or range");
    if (*end == '-') last = strtoull(end + 1, &end, 10);
    if (*end != 0 || last < first) return wrong("\"" + part + "\" is no number or range");
    bool any = false;
    for (NodeReport& n : report_.nodes)
      if (n.number >= first && n.number <= last) any = n.throttled = true;
    if (!any) return wrong("no node has number " + part);
  }
  return {};
}

Result<void> Discovery::compare(const RunOutcome& outcome, const std::string& throttled) {
  const std::string with = " in the run with " + throttled + " throttled";
  const std::string attempt = "attempt to trace a non-deterministic application: ";
  const std::string hint =
      options_.tolerate ? "" : "; if only names or sizes differ, --tolerate goes on";
  for (const auto& there : outcome.nodes)
    if (std::none_of(nodes_.begin(), nodes_.end(),
                     [&](const Node& n) { return n.key == there.first; }))
      return Error(FEIGN_ERR_ARGUMENT, attempt + "node " + there.first + " is there only" + with);
  for (const Node& node : nodes_) {
    const auto at = outcome.nodes.find(node.key);
    if (at == outcome.nodes.end())
      return Error(FEIGN_ERR_ARGUMENT, attempt + "node " + node.key + " is not there" + with);
    const auto& a = node.first.calls;
    const auto& b = at->second.calls;
    for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
      const bool same =
          i < a.size() && i < b.size() &&
          essence(a[i].text, options_.tolerate) == essence(b[i].text, options_.tolerate);
      if (same) continue;
      const auto shown = [&](const std::vector<IoCall>& c) {
        return i < c.size() ? "\"" + c[i].text + "\"" : std::string("the end");
      };
      return Error(FEIGN_ERR_ARGUMENT, attempt + "call " + std::to_string(i) + " of node " +
                                           node.key + " is " + shown(a) + " at first, and " +
                                           shown(b) + with + hint);
    }
  }
  return {};
}

// What one hold has told.
void Discovery::held(uint32_t index, const Hold& hold) {
  std::vector<uint64_t> reach(nodes_.size(), 0);
  std::vector<std::string> stuck_in(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (const auto at = hold.reach.find(nodes_[i].key); at != hold.reach.end())
      reach[i] = at->second;
    if (const auto at = hold.stuck_in.find(nodes_[i].key); at != hold.stuck_in.end())
      stuck_in[i] = at->second;
  }
  nodes_[index].frontier->add(hold.k, reach, stuck_in);
  if (log_level() < FEIGN_LOG_DEBUG) return;
  std::string text = format(
      "discover: held: node=%u call=%" PRIu64 " ms=%.1f reached=", report_.nodes[index].number,
      hold.k, static_cast<double>(hold.delay_ns) / 1e6);
  for (const uint64_t r : reach) text += std::to_string(r) + " ";
  log(FEIGN_LOG_DEBUG, text);
}

// One more run with a node held before these calls.
Result<void> Discovery::once(uint32_t index, const std::vector<uint64_t>& holds) {
  Node& node = nodes_[index];
  const uint64_t calls = node.first.calls.size();
  auto outcome = one_run(node.key, holds);
  if (!outcome) return std::move(outcome.error());
  if (auto ok = compare(*outcome, node.key); !ok) return ok;
  ++report_.nodes[index].runs;
  if (!plan_.next)
    for (const Hold& hold : outcome->holds) held(index, hold);
  for (auto& [key, log] : outcome->nodes) {
    // No run shows less than a node needs, and most show more: it waited for others.
    Limits& limit = limits_[key];
    limit.gap_ns = std::min(limit.gap_ns, log.longest_gap_ns);
    limit.cpu_ns = std::min(limit.cpu_ns, log.longest_cpu_ns);
    limit.call_ns = std::max(limit.call_ns, log.longest_call_ns);
  }
  uint64_t found = 0;
  for (const Node& n : nodes_) found += n.frontier->found(options_.adaptive).size();
  note_step(std::max<uint64_t>(found, shown_.size()));
  for (Node& n : nodes_) {
    n.last.clear();
    for (const IoCall& c : outcome->nodes[n.key].calls)
      n.last.push_back({c.start_ns, c.start_ns + c.call_ns});
  }
  const auto& log = outcome->nodes[node.key];
  node.least_gap.resize(calls, UINT64_MAX);
  for (size_t i = 0; i < calls; ++i)
    node.least_gap[i] = std::min(node.least_gap[i], log.calls[i].gap_ns - log.calls[i].waited_ns);
  return {};
}

// Places where it may be worth to hold a node, and the next: where somebody waits, as the runs of
// other nodes found, for the throttled one waits there, too, or does what they do; or where nodes
// paused for long in the unthrottled run.
std::set<uint64_t> Discovery::likely(uint32_t index, bool found) const {
  std::set<uint64_t> out;
  const uint64_t calls = nodes_[index].frontier->calls();
  const auto between = [&](uint64_t call) {  // this call and the one before it
    if (call != 0 && call < calls) out.insert({call - 1, call});
  };
  for (uint32_t i = 0; i < nodes_.size() && found; ++i)
    for (const Found& f : nodes_[i].frontier->found(true)) {
      if (i == index || f.latest != f.on_call) continue;
      if (f.node == index) between(f.call);
      between(f.on_call + 1);
    }
  for (uint32_t i = 0; i < nodes_.size() && !found; ++i) {
    const auto& log = nodes_[i].first.calls;
    std::vector<size_t> longest;
    for (size_t c = 1; c < log.size(); ++c) longest.push_back(c);
    const size_t n = std::min(kLongest, longest.size());
    std::partial_sort(longest.begin(), longest.begin() + static_cast<ptrdiff_t>(n), longest.end(),
                      [&](size_t a, size_t b) { return log[a].gap_ns > log[b].gap_ns; });
    const auto& own = nodes_[index].first.calls;
    for (size_t l = 0; l < n; ++l)
      between(static_cast<uint64_t>(std::partition_point(own.begin(), own.end(),
                                                         [&](const IoCall& c) {
                                                           return c.start_ns + c.call_ns <=
                                                                  log[longest[l]].start_ns;
                                                         }) -
                                    own.begin()));
  }
  if (out.size() > calls / kEverywhere) out.clear();
  return out;
}

// What a node's call waits for had ended when it was made, in any run: the last call of the
// throttled node for which that holds is the latest that it can be. It waited before it computed:
// the last that had ended by then is the earliest that is likely.
std::pair<uint64_t, uint64_t> Discovery::likely_wait(uint32_t index, uint32_t other,
                                                     uint64_t call) const {
  const Node &own = nodes_[index], &theirs = nodes_[other];
  if (call >= theirs.first.calls.size()) return {UINT64_MAX, UINT64_MAX};
  const IoCall& c = theirs.first.calls[call];
  const auto ended_by = [&](uint64_t when) {
    return std::partition_point(
               own.first.calls.begin(), own.first.calls.end(),
               [&](const IoCall& mine) { return mine.start_ns + mine.call_ns <= when; }) -
           own.first.calls.begin();
  };
  auto from = ended_by(c.start_ns - std::min({c.gap_ns, theirs.usual_gap, c.start_ns}));
  auto to = ended_by(c.start_ns);
  if (report_.nodes[index].runs != 0) {  // in which it was late, and most waited for it
    const auto ended = [&](uint64_t when) {
      return std::partition_point(own.last.begin(), own.last.end(),
                                  [&](const Order::Times& t) { return t.end <= when; }) -
             own.last.begin();
    };
    const uint64_t start = theirs.last[call].start;
    from = ended(start - std::min(theirs.usual_gap, start));
    to = std::min(to, ended(start));
  }
  from = std::min(from, to);
  if (to - from > kNear) from = to;
  return {static_cast<uint64_t>(from) - 1, static_cast<uint64_t>(to) - 1};
}

// A run that looks call by call until it can be foretold how the others go on, then from ever
// further away, and closely again where that was wrong, and towards the end. Where others' runs
// say where to look, it looks there first.
Result<void> Discovery::explore(uint32_t index) {
  Frontier& frontier = *nodes_[index].frontier;
  const uint64_t calls = frontier.calls();
  const std::set<uint64_t> found = likely(index, true), paused = likely(index, false);
  uint64_t before = 0, stride = 1, stays = 0;  // stays: looks in a row at which all were as before
  bool leaps = true;                           // unless it was wrong to
  std::map<std::string, uint64_t> reached;
  plan_.next = [&](const Hold& hold, bool sure) -> uint64_t {
    const uint64_t k = hold.k;
    if (sure) {
      held(index, hold);
      if (frontier.all_ended()) return UINT64_MAX;
      const auto unclear = frontier.unclear(true);
      const bool wrong = std::any_of(unclear.begin(), unclear.end(),
                                     [&](uint64_t u) { return u > before && u < k; });
      leaps = leaps && !wrong;
      stays = hold.reach == reached ? stays + 1 : 0;
      reached = hold.reach;
      stride = wrong || (stride == 1 && !frontier.foretells())
                   ? 1
                   : std::min(stride * 2, std::max(uint64_t{1}, calls / kStretches));
    } else {
      stride = std::max(uint64_t{1}, calls / kStretches);
    }
    before = k;
    if (k + 1 >= calls || !time_left()) return UINT64_MAX;
    if (const auto next = found.upper_bound(k); next != found.end()) return *next;
    const auto unclear = frontier.unclear(true);
    uint64_t next = k + stride;
    if (!unclear.empty() && unclear.back() >= k)  // what the trace shows goes to the end
      next = k + std::min(stride, std::max(uint64_t{1}, (calls - 1 - k) / 2));
    // Where the first goes on of those of whom it is not foretold.
    const std::vector<bool> foretold = frontier.foretold();
    uint64_t first = UINT64_MAX;
    for (uint32_t i = 0; i < nodes_.size() && sure; ++i)
      if (const auto at = hold.reach.find(nodes_[i].key); at != hold.reach.end() && !foretold[i])
        if (const auto [from, to] = likely_wait(index, i, at->second); to + 1 > k && to + 1 != 0)
          first = std::min(first, from + 1 > k + 1 ? from : k + 1);
    const bool all_open = std::find(foretold.begin(), foretold.end(), true) == foretold.end();
    if (first != UINT64_MAX && stays >= kStays && leaps && all_open) return first;
    next = std::min(next, first);
    // Long pauses say nothing where it is known how all go on.
    const bool known = std::all_of(hold.reach.begin(), hold.reach.end(), [&](const auto& r) {
      for (uint32_t i = 0; i < nodes_.size(); ++i)
        if (nodes_[i].key == r.first)
          return foretold[i] || r.second == nodes_[i].first.calls.size();
      return true;
    });
    const auto pause = paused.upper_bound(k);
    return pause != paused.end() && !(sure && known) ? std::min(next, *pause) : next;
  };
  auto ok = once(index, {0});
  plan_.next = nullptr;
  return ok;
}

// A run with holds at those of these calls that can tell something still when they come.
Result<void> Discovery::refine(uint32_t index, const std::vector<uint64_t>& holds) {
  const Frontier& frontier = *nodes_[index].frontier;
  plan_.next = [&](const Hold& hold, bool sure) -> uint64_t {
    if (sure) held(index, hold);
    const auto found = frontier.found(true);
    for (const uint64_t k : holds)
      if (k > hold.k && std::any_of(found.begin(), found.end(),
                                    [&](const Found& f) { return k > f.on_call && k <= f.latest; }))
        return k;
    return UINT64_MAX;
  };
  auto ok = once(index, {holds.front()});
  plan_.next = nullptr;
  return ok;
}

// Of the dependencies on a node that are not known to the call, those (by node and call) that do
// not come after all of the stretch in some replay under random delays. For each there is a replay,
// in which the node is late by more than a whole run just there.
std::set<std::pair<uint32_t, uint64_t>> Discovery::moved_by_delays(uint32_t index) {
  std::set<std::pair<uint32_t, uint64_t>> moved;
  std::vector<Found> vague;
  for (const Found& f : nodes_[index].frontier->found(true))
    if (f.latest != f.on_call && f.call < nodes_[f.node].first.calls.size()) vague.push_back(f);
  if (vague.empty()) return moved;
  conclude();
  const Order known = order();
  const bool circular = known.circular();  // nothing is sure then
  std::mt19937_64 random(1);
  for (size_t replay = 0; replay < vague.size(); ++replay) {
    if (circular || replay >= kReplays) {
      moved.emplace(vague[replay].node, vague[replay].call);
      continue;
    }
    const auto times = known.play(
        [&](uint32_t node, uint64_t call) {
          const uint64_t most = limits_[nodes_[node].key].gap_ns;
          const bool late = node == index && call == vague[replay].latest;
          return compute_of(nodes_[node], call) + random() % (most + 1) +
                 (late ? kLate * report_.first_ns : 0);
        },
        [&](uint32_t node, uint64_t call) { return nodes_[node].first.calls[call].call_ns; });
    for (const Found& f : vague)
      if (times[f.node][f.call].start < times[index][f.latest].end) moved.emplace(f.node, f.call);
  }
  return moved;
}

Result<void> Discovery::throttle(uint32_t index) {
  Node& node = nodes_[index];
  Frontier& frontier = *node.frontier;
  const uint64_t calls = node.first.calls.size();
  if (!options_.adaptive) {
    std::vector<uint64_t> holds;
    for (uint64_t k = 0; k < calls; k += options_.sample_period) holds.push_back(k);
    for (uint32_t r = 0; r < options_.repeat; ++r)
      if (auto ok = once(index, holds); !ok) return ok;
    return {};
  }
  if (auto ok = explore(index); !ok) return ok;
  while (true) {
    const auto moved = moved_by_delays(index);
    const auto matters = [&](const Found& f) { return moved.contains({f.node, f.call}); };
    // As many delays in a run as take as long as one more run would.
    const uint64_t delay =
        report_.holds != 0 ? std::max<uint64_t>(1, report_.held_ns / report_.holds) : 1;
    const uint64_t pieces = 1 + std::clamp<uint64_t>(report_.first_ns / delay, 1, 64);
    auto next = frontier.unclear(true, pieces, matters);
    for (const Found& f : frontier.found(true))
      if (f.latest != f.on_call && !next.empty() && matters(f))
        for (auto [k, to] = likely_wait(index, f.node, f.call); k + 1 <= to + 2; ++k)
          if (k > f.on_call && k <= f.latest) next.push_back(k);
    std::sort(next.begin(), next.end());
    if (next.empty() || accurate(frontier, matters)) break;
    if (!time_left()) {
      report_.out_of_budget = true;
      break;
    }
    const size_t before = frontier.held().size();
    if (auto ok = refine(index, next); !ok) return ok;
    if (frontier.held().size() == before) break;  // delays met their bound: no more to be learnt
  }
  return {};
}

// Whether enough of what was found is known to the call, or as closely as matters.
bool Discovery::accurate(const Frontier& frontier, const Frontier::Matters& matters) const {
  const auto found = frontier.found(true);
  const auto vague = std::count_if(found.begin(), found.end(), [&](const Found& f) {
    return f.latest != f.on_call && matters(f);
  });
  return static_cast<double>(vague) <= (1 - options_.accuracy) * static_cast<double>(found.size());
}

void Discovery::conclude() {
  report_.edges.clear();
  report_.corrected = 0;
  for (uint32_t j = 0; j < nodes_.size(); ++j) {
    NodeReport& report = report_.nodes[j];
    if (!report.throttled) continue;
    const Frontier& frontier = *nodes_[j].frontier;
    report.held_at = frontier.held().size();
    report.unclear = frontier.unclear(options_.adaptive).size();
    report_.corrected += frontier.corrected();
    for (const Found& f : frontier.found(options_.adaptive))
      if (f.call < nodes_[f.node].first.calls.size()) report_.edges.push_back({j, f});
  }
  // What the trace shows, and throttling did not get to see.
  std::vector<Edge> more;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<const Found*>> found;  // by who, on whom
  for (const Edge& e : report_.edges) found[{e.found.node, e.on}].push_back(&e.found);
  for (const SeenOrder& s : shown_) {
    // In the order of their calls, both.
    const auto& list = found[{s.node, s.on}];
    auto last = std::upper_bound(list.begin(), list.end(), s.call,
                                 [](uint64_t call, const Found* f) { return call < f->call; });
    const bool there = last != list.begin() && (*std::prev(last))->on_call >= s.on_call;
    if (!there) more.push_back({s.on, {s.node, s.call, s.on_call, s.on_call, 0, {}, false, s.by}});
  }
  report_.edges.insert(report_.edges.end(), more.begin(), more.end());
}

Order Discovery::order() const {
  std::vector<uint64_t> calls;
  for (const Node& n : nodes_) calls.push_back(n.first.calls.size());
  std::vector<CallOrder> waits;
  for (const Edge& e : report_.edges)
    waits.push_back({e.found.node, e.on, e.found.call, e.found.on_call});
  return Order(calls, waits);
}

void Discovery::find_patterns() {
  if (report_.edges.size() * nodes_.size() > kMostPatterns) return;
  const std::vector<bool> needed = order().needed();
  std::vector<CallOrder> waits;
  std::vector<bool> assumed;
  for (size_t i = 0; i < needed.size(); ++i) {
    const Edge& e = report_.edges[i];
    if (!needed[i] || e.found.latest != e.found.on_call) continue;
    waits.push_back({e.found.node, e.on, e.found.call, e.found.on_call});
    assumed.push_back(e.found.assumed && e.found.seen == 0);
  }
  report_.patterns = patterns(static_cast<uint32_t>(nodes_.size()), waits, assumed);
}

uint64_t Discovery::compute_of(const Node& node, size_t call) const {
  const IoCall& c = node.first.calls[call];
  const uint64_t blocking = c.gap_ns - c.waited_ns;
  if (options_.compute == ComputeFrom::kBlocking || node.least_gap.empty()) return blocking;
  return std::min(blocking, node.least_gap[call]);
}

// Raw traces "I.J": node I while J was throttled. I.I has its SIGNALs and COMPUTE, the others
// WAITs.
Result<void> Discovery::write_raw() {
  std::error_code e;
  fs::create_directory(folder_.path("raw"), e);
  for (uint32_t j = 0; j < nodes_.size(); ++j) {
    std::vector<const Found*> on_j;
    for (const Edge& edge : report_.edges)
      if (edge.on == j) on_j.push_back(&edge.found);
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (i != j && !report_.nodes[j].throttled &&
          std::none_of(on_j.begin(), on_j.end(), [&](const Found* f) { return f->node == i; }))
        continue;
      const std::string path = folder_.path("raw/trace." + std::to_string(report_.nodes[i].number) +
                                            "." + std::to_string(report_.nodes[j].number));
      FILE* file = fopen(path.c_str(), "we");
      if (file == nullptr) return errno_error("open " + path, errno);
      raw_files_.push_back(path);
      const auto& calls = nodes_[i].first.calls;
      fprintf(file, "/* node %u (%s)", report_.nodes[i].number, nodes_[i].key.c_str());
      if (i != j || report_.nodes[j].throttled)
        fprintf(file, " while node %u was throttled", report_.nodes[j].number);
      fprintf(file, " */\n");
      std::multimap<uint64_t, uint32_t> signals, waits;
      for (const Found* f : on_j) {
        if (i == j) signals.emplace(f->on_call, report_.nodes[f->node].number);
        if (f->node == i) waits.emplace(f->call, report_.nodes[j].number);
      }
      for (size_t c = 0; c < calls.size(); ++c) {
        if (i == j) {
          const uint64_t ns = compute_of(nodes_[i], c);
          if (ns != 0)
            fprintf(file, "COMPUTE(%" PRIu64 ".%09" PRIu64 ")\n", ns / 1000000000, ns % 1000000000);
        }
        for (auto [at, end] = waits.equal_range(c); at != end; ++at)
          fprintf(file, "WAIT(%u)\n", at->second);
        fprintf(file, "%s%s\n", calls[c].before.c_str(), calls[c].text.c_str());
        for (auto [at, end] = signals.equal_range(c); at != end; ++at)
          fprintf(file, "SIGNAL(%u)\n", at->second);
      }
      const bool good = ferror(file) == 0;
      if (fclose(file) != 0 || !good) return errno_error("write " + path, errno);
    }
  }
  return {};
}

Result<void> Discovery::merge() {
  PipelineOptions pipeline;
  PluginSpec provider, text;
  provider.name = "tracetext";
  provider.options = {{"merge", "yes"}, {"reduce", "yes"}};
  for (const std::string& file : raw_files_) provider.options.emplace_back("file", file);
  text.name = "tracetext";
  text.options = {{"file", folder_.path("trace.tracetext")}};
  pipeline.plugins = {provider, text};
  Tables tables;
  // What the text leaves out is nothing that it ever had.
  const int level = log_level();
  set_log_level(FEIGN_LOG_ERROR);
  auto result = run_pipeline(pipeline, plugins_, tables, progress_);
  set_log_level(level);
  if (!result) return std::move(result.error()).within("merge the raw traces");
  for (const auto& entry : fs::directory_iterator(folder_.path(""))) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("trace.tracetext")) continue;
    FILE* file = fopen(entry.path().c_str(), "re");
    char line[256];
    while (file != nullptr && fgets(line, sizeof line, file) != nullptr)
      report_.kept += strncmp(line, "WAIT(", 5) == 0;
    if (file != nullptr) fclose(file);
  }
  report_.trace = folder_.final_path("trace.feign");
  report_.text = folder_.final_path("trace.tracetext");
  TraceParts parts;
  parts.from = work("first.feign");
  parts.to = folder_.path("trace.feign");
  parts.work = folder_.path("work");
  parts.ranks = ranked_;
  parts.numbers = &numbers_;
  parts.index = index_;
  for (const Edge& e : report_.edges)
    parts.orders.push_back({e.found.node, e.on, e.found.call, e.found.on_call});
  parts.compute_ns = [this](uint32_t node, uint64_t call) {
    return call < nodes_[node].first.calls.size() ? compute_of(nodes_[node], call) : 0;
  };
  if (auto ok = write_trace(parts, plugins_, report_.contradicted); !ok)
    return std::move(ok.error()).within("make the trace");
  return {};
}

// All that were found, before reduction, and how sure each is.
Result<void> Discovery::write_dependencies() {
  const std::string path = folder_.path("dependencies");
  FILE* file = fopen(path.c_str(), "we");
  if (file == nullptr) return errno_error("open " + path, errno);
  fprintf(file, "# node call after node call  seen  means  what\n");
  for (const Edge& e : report_.edges) {
    const Found& f = e.found;
    const std::string& text = nodes_[f.node].first.calls[f.call].text;
    fprintf(file, "%u %" PRIu64 " after %u %" PRIu64 "  %u  %s", report_.nodes[f.node].number,
            f.call, report_.nodes[e.on].number, f.on_call, f.seen, means(f).c_str());
    if (f.latest != f.on_call) fprintf(file, " (up to %" PRIu64 ")", f.latest);
    if (!f.stuck_in.empty()) fprintf(file, " in %s", f.stuck_in.c_str());
    if (!f.shown_by.empty()) fprintf(file, " by %s", f.shown_by.c_str());
    fprintf(file, "  %s\n", text.c_str());
  }
  const bool good = ferror(file) == 0;
  if (fclose(file) != 0 || !good) return errno_error("write " + path, errno);
  return {};
}

Result<DiscoverReport> Discovery::run() {
  if (const std::string why = why_not_recorded(options_.command[0]); !why.empty())
    return Error(FEIGN_ERR_UNSUPPORTED, why.substr(0, why.find("; --tracer")));
  if (auto ok = folder_.make(options_.output); !ok) return std::move(ok.error());
  begin_ = now_ns();
  report_.noise_ns = measure_noise();
  plan_.command = options_.command;
  plan_.raw = work("raw");
  plan_.posts.push_back([this](const nlohmann::json& q) { return post_.answer(q); });
  if (!options_.hosts.empty()) {
    if (auto ok = hosts_.open(options_.hosts, options_.reach); !ok) return std::move(ok.error());
    for (size_t h = 0; h < hosts_.size(); ++h)
      plan_.posts.push_back([this, h](const nlohmann::json& q) { return hosts_.ask(h, q); });
  }
  if (hosts_.size() != 0) {
    plan_.spared = hosts_.processes();
    // One name on all hosts, and on each a folder of its own.
    const char* tmp = getenv("TMPDIR");
    plan_.raw =
        format("%s/feign-discover.%d.%" PRIx64, tmp != nullptr ? tmp : "/tmp", getpid(), begin_);
  }
  plan_.mpi = options_.mpi || launches_mpi(options_.command[0]);
  plan_.per_process = options_.per_process;
  plan_.only = options_.only;
  plan_.exclude = options_.exclude;
  plan_.timeout_ns = options_.timeout_ns;
  plan_.max_delay_ns = options_.max_delay_ns;
  plan_.factor = options_.factor;
  plan_.floor_ns = kFloor;
  if (mkdir(work("").c_str(), 0700) != 0) return errno_error("make directory " + work(""), errno);

  if (auto ok = first_run(); !ok) return std::move(ok.error());
  if (auto ok = choose_nodes(); !ok) return std::move(ok.error());
  for (uint32_t i = 0; i < nodes_.size(); ++i)
    if (report_.nodes[i].throttled)
      if (auto ok = throttle(i); !ok) return std::move(ok.error());
  conclude();
  for (int again = 0; order().circular(); ++again) {
    for (const Edge& e : report_.edges)
      if (log_level() >= FEIGN_LOG_DEBUG)
        log(FEIGN_LOG_DEBUG,
            format("circular: node %u call %" PRIu64 " after node %u call %" PRIu64 "%s",
                   report_.nodes[e.found.node].number, e.found.call, report_.nodes[e.on].number,
                   e.found.on_call, e.found.assumed ? " (pattern)" : ""));
    if (again == kAgain)
      return Error(
          FEIGN_ERR_IO,
          "calls were found to wait for each other: nodes were taken for blocked too early, "
          "again and again; a larger --factor helps on a machine that is busy otherwise");
    for (auto& [key, limit] : limits_) limit.factor = plan_.factor * (2 << again);
    for (uint32_t i = 0; i < nodes_.size(); ++i)
      if (report_.nodes[i].throttled)
        if (auto ok = once(i, nodes_[i].frontier->held()); !ok) return std::move(ok.error());
    conclude();
  }

  find_patterns();
  for (uint32_t i = 0; i < nodes_.size() && options_.adaptive; ++i) {
    const auto moved = moved_by_delays(i);
    for (const Found& f : nodes_[i].frontier->found(true))
      report_.settled += f.latest != f.on_call && !moved.contains({f.node, f.call});
  }
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    NodeReport& r = report_.nodes[i];
    for (size_t c = 0; c < nodes_[i].first.calls.size(); ++c) {
      const IoCall& call = nodes_[i].first.calls[c];
      r.by_blocking_ns += call.gap_ns - call.waited_ns;
      r.call_ns += call.call_ns;
      if (!nodes_[i].least_gap.empty()) r.by_throttling_ns += nodes_[i].least_gap[c];
    }
  }
  if (auto ok = write_raw(); !ok) return std::move(ok.error());
  if (auto ok = merge(); !ok) return std::move(ok.error());
  if (auto ok = write_dependencies(); !ok) return std::move(ok.error());
  report_.all_ns = now_ns() - begin_;
  std::error_code e;
  fs::remove_all(work(""), e);
  OutputFile json;
  const std::string text = discover_json(report_);
  if (!json.open(folder_.path("report.json")) ||
      write(json.fd(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      !json.finish())
    return errno_error("write " + folder_.path("report.json"), errno);
  if (auto ok = folder_.finish(); !ok) return std::move(ok.error());
  return std::move(report_);
}

}  // namespace

Result<DiscoverReport> discover(const DiscoverOptions& options, Plugins& plugins,
                                const Progress& progress) {
  try {
    Discovery discovery(options, plugins, progress);
    return discovery.run();
  } catch (const fs::filesystem_error& e) {
    return Error(FEIGN_ERR_IO, e.what());
  }
}

}  // namespace feign::discover
