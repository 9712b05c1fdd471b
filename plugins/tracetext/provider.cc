// SPDX-License-Identifier: MIT
// Provider tracetext: the annotated text of //TRACE, one file a node (docs/tracetext-format.md).
//
// The text has calls in the order of each node, and WAIT and SIGNAL between nodes, but no times:
// the clock of a node is what its COMPUTE lines add up to, moved on to the end of what it waits
// for. The nodes are merged by these clocks; a WAIT holds its node back until the SIGNAL was
// passed, so that what is waited for comes first in the trace.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/input.h"
#include "feign.hpp"
#include "tracetext/calls.h"
#include "tracetext/plugin.h"
#include "tracetext/text.h"

namespace tracetext {
namespace {

enum Merge : uint32_t { kAuto, kYes, kNo };
constexpr const char* kMergeNames[] = {"auto", "yes", "no", nullptr};

struct Options {
  const char* const* file;
  const char* cwd;
  uint32_t merge;
  uint32_t reduce;
  uint32_t keep_going;
};
constexpr feign_option kOptions[] = {
    {"file", FEIGN_OPT_TEXTS, offsetof(Options, file), nullptr, nullptr, 0, 0,
     "Trace file of a node, plain, .gz or .zst; several are the nodes of one trace. A name whose "
     "files are NAME.0, NAME.1 … stands for all of them."},
    {"cwd", FEIGN_OPT_TEXT, offsetof(Options, cwd), "/", nullptr, 0, 0,
     "Working directory of the program, which this format does not tell."},
    {"merge", FEIGN_OPT_ENUM, offsetof(Options, merge), "auto", kMergeNames, 0, 0,
     "Merge raw traces, NAME.I.J being node I while node J was slowed down, into one a node; auto: "
     "if the names are of that form, and there is a NAME.I.I for each node."},
    {"reduce", FEIGN_OPT_BOOL, offsetof(Options, reduce), "no", nullptr, 0, 0,
     "Leave out dependencies that follow from others."},
    {"keep-going", FEIGN_OPT_BOOL, offsetof(Options, keep_going), "no", nullptr, 0, 0,
     "Count and skip lines that cannot be understood, instead of failing at the first."},
};

constexpr uint64_t kLatest = uint64_t{1} << 62;  // ns: no clock goes further
constexpr uint32_t kNobody = UINT32_MAX;

// "Every activity of `node` up to that with this id has ended."
struct Dependency {
  uint32_t node;
  uint64_t id;
  uint64_t end_ns;
  // With reduce: what had ended when this one had, by node.
  std::shared_ptr<const std::unordered_map<uint32_t, uint64_t>> implies;
};
using Dependencies = std::vector<Dependency>;

struct Node {
  uint32_t number = 0;  // as the text counts
  uint32_t stream = 0;
  std::vector<std::unique_ptr<File>>
      runs;  // one, or the raw traces; [own] was made while it was slow
  size_t own = 0;
  std::vector<std::string> calls;  // of each run: the call read last
  std::vector<Event> gap;          // of raw traces: merged; from [gap_at] on not yet passed
  size_t gap_at = 0;
  uint64_t call_count = 0;  // of all runs

  uint64_t not_before = 0;     // ns: the end of all that it waits for
  uint64_t clock = 0;          // ns
  uint64_t waited = 0;         // of it, since the last activity, the clock was moved on
  std::string call;            // that comes next
  uint64_t place = 0;          // its
  uint32_t blocked = kNobody;  // index of the node that it waits for
  std::string blocked_at;      // file:line of that WAIT
  bool ended = false;

  Dependencies pending;                             // of the activity that comes next
  std::unordered_map<uint32_t, uint64_t> depended;  // by node: the last id that it waited for
  std::unordered_map<uint32_t, uint64_t> known;     // with reduce: that and all that follows
  uint64_t last_id = 0, last_end = 0, activities = 0;
  std::shared_ptr<const Dependencies> signal;  // what a SIGNAL now tells
};

class Provider {
 public:
  Provider(const feign_host* host, const Options& options)
      : host_(host), options_(options), calls_(host, options.cwd) {}
  feign_status start();
  feign_status next(size_t want, feign_sink* out);

 private:
  feign_status fail(const std::string& text) {
    return fail(feign::Error(FEIGN_ERR_ARGUMENT, text));
  }
  feign_status fail(const feign::Error& e) {
    return host_->fail(host_, e.code(), e.text().c_str());
  }
  feign_status number_nodes(const std::vector<std::string>& files);
  feign_status event(Node& node, Event& event);
  feign_status merge(Node& node);
  feign_status advance(uint32_t index);
  feign_status wait(uint32_t index, uint32_t on);
  void pass_wait(Node& node, const Dependencies& told);
  feign_status signal(uint32_t index, uint32_t to);
  feign_status stuck();
  feign_status ended();
  feign_status emit(Node& node, feign_sink* out, size_t& done);
  static bool follows_from_others(const Node& node, const Dependency& d);
  void was_emitted(Node& node, uint64_t id);
  feign_status skip_line(const feign::Error& e);
  std::string title(const Node& node) const {
    return "node " + std::to_string(node.number) + " (" + node.runs[node.own]->path() + ")";
  }

  const feign_host* host_;
  const Options& options_;
  std::vector<Node> nodes_;
  std::unordered_map<uint64_t, uint32_t> by_number_;
  // SIGNALs that no WAIT has answered yet, by from and to.
  std::map<std::pair<uint32_t, uint32_t>, std::deque<std::shared_ptr<const Dependencies>>> signals_;
  // Nodes whose next call is read, by the time it starts, then by how many they have had.
  using Ready = std::tuple<uint64_t, uint64_t, uint32_t>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready_;
  std::vector<uint32_t> to_advance_;
  Calls calls_;
  bool begun_ = false;
};

// ---- files and nodes ----------------------------------------------------------------------------

// The numbers that a file's name ends in: "trace3.gz" has 3, "trace.3.1" has 3 and 1, "trace3.1" 1.
std::vector<uint32_t> numbers_of(std::string_view path) {
  path = path.substr(path.rfind('/') + 1);
  for (const std::string_view end : {".gz", ".zst"})
    if (path.ends_with(end)) path.remove_suffix(end.size());
  std::vector<uint32_t> numbers;
  while (!path.empty() && is_digit(path.back()) && numbers.size() < 2) {
    size_t from = path.size();
    while (from > 0 && is_digit(path[from - 1])) --from;
    int64_t value = 0;
    const auto [stop, error] =
        std::from_chars(path.data() + from, path.data() + path.size(), value);
    if (error != std::errc{} || value > std::numeric_limits<int32_t>::max()) break;
    if (numbers.size() == 1 && from > 0 && is_name(path[from - 1])) break;
    numbers.insert(numbers.begin(), static_cast<uint32_t>(value));
    path = path.substr(0, from);
    if (!path.ends_with('.')) break;
    path.remove_suffix(1);
  }
  return numbers;
}

feign_status Provider::number_nodes(const std::vector<std::string>& files) {
  std::vector<std::vector<uint32_t>> numbers;
  std::set<uint32_t> last, first, own;
  bool pairs = true, some = true;
  for (const std::string& file : files) {
    numbers.push_back(numbers_of(file));
    pairs &= numbers.back().size() == 2;
    some &= !numbers.back().empty();
    if (numbers.back().empty()) continue;
    last.insert(numbers.back().back());
    first.insert(numbers.back().front());
    if (numbers.back().front() == numbers.back().back()) own.insert(numbers.back().back());
  }
  bool merge = options_.merge == kYes;
  if (merge && !pairs)
    return fail("merge=yes: want files named NAME.I.J, node I while node J was slowed down");
  if (options_.merge == kAuto) merge = pairs && first.size() < files.size() && own == first;
  const bool named = some && last.size() == files.size();
  for (uint32_t i = 0; i < files.size(); ++i) {
    auto input = feign::Input::open(files[i]);
    if (!input) return fail(input.error());
    const uint32_t number = merge ? numbers[i][0] : named ? numbers[i].back() : i;
    const auto [at, fresh] = by_number_.try_emplace(number, static_cast<uint32_t>(nodes_.size()));
    if (fresh) nodes_.emplace_back().number = number;
    Node& node = nodes_[at->second];
    if (merge && numbers[i][1] == number) node.own = node.runs.size();
    node.runs.push_back(
        std::make_unique<File>(std::make_unique<feign::Lines>(std::move(*input)), i));
    node.calls.emplace_back();
  }
  std::sort(nodes_.begin(), nodes_.end(),
            [](const Node& a, const Node& b) { return a.number < b.number; });
  for (uint32_t i = 0; i < nodes_.size(); ++i) by_number_[nodes_[i].number] = i;
  return FEIGN_OK;
}

feign_status Provider::start() {
  std::vector<std::string> files;
  for (const char* const* file = options_.file; *file != nullptr; ++file)
    for (std::string& one : feign::files_of(*file)) files.push_back(std::move(one));
  if (files.empty()) return fail("file: want a trace file");
  if (files.size() > 60000) return fail("file: more than 60,000 files");
  if (*options_.cwd != '\0' && *options_.cwd != '/')
    return fail("cwd=" + std::string(options_.cwd) + ": want an absolute path");
  if (const feign_status status = number_nodes(files); status < 0) return status;
  for (Node& node : nodes_) {
    feign_stream_info info{};
    info.struct_size = sizeof info;
    info.rank = static_cast<int32_t>(node.number);
    info.process = -1;  // the system's numbers are not in it
    info.thread = node.number;
    node.stream = host_->stream(host_, &info);
    if (node.stream == 0) return host_->fail(host_, FEIGN_ERR_NOMEM, "out of memory");
  }
  return FEIGN_OK;
}

// A line that is not understood: the end, or one more that is counted.
feign_status Provider::skip_line(const feign::Error& e) {
  if (!options_.keep_going) return fail(e);
  host_->left_out(host_, 0, "(line)", "not understood", 0, 0);
  return FEIGN_OK;
}

// The next event of a node, over all of its runs.
feign_status Provider::event(Node& node, Event& event) {
  if (node.runs.size() == 1) {
    File& file = *node.runs[0];
    while (true) {
      auto got = file.next();
      if (got) {
        event = *got;
        break;
      }
      if (file.unreadable()) return fail(got.error());
      if (const feign_status status = skip_line(got.error()); status < 0) return status;
    }
    if (event.kind == Event::kCall) {
      node.call.assign(event.text);
      node.place = file.place();
    }
    return FEIGN_OK;
  }
  if (node.gap_at == node.gap.size())
    if (const feign_status status = merge(node); status < 0) return status;
  event = node.gap[node.gap_at++];
  return FEIGN_OK;
}

// Reads every run up to its next call, which must be the same in all. In between: the SIGNALs that
// followed the last call, the compute time of the run in which this node itself was slow, and the
// WAITs of all others.
feign_status Provider::merge(Node& node) {
  node.gap.clear();
  node.gap_at = 0;
  std::vector<uint64_t> signals, waits;
  std::vector<uint64_t> compute(node.runs.size());
  size_t with_call = 0;
  for (size_t r = 0; r < node.runs.size(); ++r) {
    node.calls[r].clear();
    for (bool done = false; !done;) {
      auto got = node.runs[r]->next();
      if (!got) return fail(got.error());
      constexpr size_t kMost = size_t{1} << 20;
      if (signals.size() + waits.size() > kMost)
        return fail(node.runs[r]->where() +
                    ": a million of WAIT and SIGNAL without a call between");
      switch (got->kind) {
        case Event::kSignal:
          signals.push_back(got->value);
          break;
        case Event::kWait:
          waits.push_back(got->value);
          break;
        case Event::kCompute:
          compute[r] = std::min(compute[r] + got->value, kLatest);
          break;
        case Event::kCall:
          node.calls[r].assign(got->text);
          ++with_call;
          done = true;
          break;
        case Event::kEnd:
          done = true;
          break;
      }
    }
  }
  const std::string& first = node.calls[node.own];
  ++node.call_count;
  for (size_t r = 0; r < node.runs.size(); ++r) {
    if (node.calls[r] == first) continue;
    const auto shown = [&](size_t run) {
      return node.calls[run].empty()
                 ? node.runs[run]->path() + " has none"
                 : node.runs[run]->where() + " has \"" + node.calls[run].substr(0, 80) + "\"";
    };
    return fail("attempt to trace a non-deterministic application: call " +
                std::to_string(node.call_count) + " of node " + std::to_string(node.number) +
                " is not the same in all runs: " + shown(node.own) + ", " + shown(r));
  }
  for (const uint64_t to : signals) node.gap.push_back({Event::kSignal, to, {}});
  if (compute[node.own] != 0) node.gap.push_back({Event::kCompute, compute[node.own], {}});
  for (const uint64_t on : waits) node.gap.push_back({Event::kWait, on, {}});
  node.gap.push_back({with_call != 0 ? Event::kCall : Event::kEnd, 0, {}});
  node.call = first;
  node.place = node.runs[node.own]->place();
  return FEIGN_OK;
}

// ---- between the nodes --------------------------------------------------------------------------

// Goes on to the node's next call, which then is ready; to a WAIT whose SIGNAL has not come; or to
// the end.
feign_status Provider::advance(uint32_t index) {
  Node& node = nodes_[index];
  while (true) {
    Event e;
    if (const feign_status status = event(node, e); status < 0) return status;
    const auto other = [&](uint32_t& found) {
      const auto at = by_number_.find(e.value);
      if (at != by_number_.end() && at->second != index) {
        found = at->second;
        return FEIGN_OK;
      }
      const char* what = e.kind == Event::kWait ? "WAIT(" : "SIGNAL(";
      return fail(node.runs[node.own]->where() + ": " + what + std::to_string(e.value) + "): " +
                  (at != by_number_.end() ? "is the node's own number"
                                          : "there is no such node, the trace has " +
                                                std::to_string(nodes_.front().number) + " to " +
                                                std::to_string(nodes_.back().number)) +
                  ": want the number of another node");
    };
    uint32_t to = 0;
    switch (e.kind) {
      case Event::kCompute:
        node.clock = std::min(node.clock + e.value, kLatest);
        break;
      case Event::kSignal:
        if (const feign_status status = other(to); status < 0) return status;
        if (const feign_status status = signal(index, to); status < 0) return status;
        break;
      case Event::kWait:
        if (const feign_status status = other(to); status < 0) return status;
        if (const feign_status status = wait(index, to); status < 0) return status;
        if (node.blocked != kNobody) return FEIGN_OK;
        break;
      case Event::kCall:
        if (node.not_before > node.clock) {
          node.waited += node.not_before - node.clock;
          node.clock = node.not_before;
        }
        ready_.emplace(node.clock, node.activities, index);
        return FEIGN_OK;
      case Event::kEnd:
        node.ended = true;
        return FEIGN_OK;
    }
  }
}

// What a SIGNAL tells: that this node's last activity has ended, and what it itself has waited for
// since.
feign_status Provider::signal(uint32_t index, uint32_t to) {
  Node& node = nodes_[index];
  if (!node.signal) {
    Dependencies told = node.pending;
    if (node.last_id != 0) {
      Dependency& own = told.emplace_back(Dependency{index, node.last_id, node.last_end, nullptr});
      if (options_.reduce)
        own.implies = std::make_shared<std::unordered_map<uint32_t, uint64_t>>(node.known);
    }
    node.signal = std::make_shared<const Dependencies>(std::move(told));
  }
  if (nodes_[to].blocked == index) {
    nodes_[to].blocked = kNobody;
    pass_wait(nodes_[to], *node.signal);
    to_advance_.push_back(to);
  } else {
    signals_[{index, to}].push_back(node.signal);
  }
  return FEIGN_OK;
}

feign_status Provider::wait(uint32_t index, uint32_t on) {
  Node& node = nodes_[index];
  const auto at = signals_.find({on, index});
  if (at == signals_.end()) {
    node.blocked = on;
    node.blocked_at = node.runs[node.own]->where();
    return FEIGN_OK;
  }
  const std::shared_ptr<const Dependencies> told = std::move(at->second.front());
  at->second.pop_front();
  if (at->second.empty()) signals_.erase(at);
  pass_wait(node, *told);
  return FEIGN_OK;
}

void Provider::pass_wait(Node& node, const Dependencies& told) {
  const auto own = static_cast<uint32_t>(&node - nodes_.data());
  for (const Dependency& d : told) {
    if (d.node == own) continue;
    node.not_before = std::max(node.not_before, d.end_ns);
    if (const auto before = node.depended.find(d.node);
        before != node.depended.end() && before->second >= d.id)
      continue;
    const auto same = std::find_if(node.pending.begin(), node.pending.end(),
                                   [&](const Dependency& p) { return p.node == d.node; });
    if (same == node.pending.end())
      node.pending.push_back(d);
    else if (same->id < d.id)
      *same = d;
    else
      continue;
    node.signal = nullptr;
  }
}

// Nobody can go on: says why.
feign_status Provider::stuck() {
  const Node* waiting = nullptr;
  for (const Node& node : nodes_) {
    if (node.blocked == kNobody) continue;
    if (waiting == nullptr) waiting = &node;
    const Node& on = nodes_[node.blocked];
    if (on.ended)
      return fail(node.blocked_at + ": WAIT(" + std::to_string(on.number) + ") of node " +
                  std::to_string(node.number) + " has no SIGNAL: " + title(on) +
                  " ends before it has as many SIGNAL(" + std::to_string(node.number) + ")");
  }
  if (waiting == nullptr) return FEIGN_OK;
  std::vector<const Node*> seen;
  while (std::find(seen.begin(), seen.end(), waiting) == seen.end()) {
    seen.push_back(waiting);
    waiting = &nodes_[waiting->blocked];
  }
  std::string text;
  for (auto at = std::find(seen.begin(), seen.end(), waiting); at != seen.end(); ++at)
    text += (text.empty() ? "" : ", ") + (*at)->blocked_at + ": node " +
            std::to_string((*at)->number) + " waits for node " +
            std::to_string(nodes_[(*at)->blocked].number);
  return fail("a cycle of WAITs, none of which can end: " + text);
}

feign_status Provider::next(size_t want, feign_sink* out) {
  if (!begun_) {
    begun_ = true;
    for (auto i = static_cast<uint32_t>(nodes_.size()); i-- > 0;) to_advance_.push_back(i);
  }
  for (size_t done = 0; done < want;) {
    while (!to_advance_.empty()) {
      const uint32_t index = to_advance_.back();
      to_advance_.pop_back();
      if (const feign_status status = advance(index); status < 0) return status;
    }
    if (ready_.empty()) return ended();
    const uint32_t index = std::get<2>(ready_.top());
    ready_.pop();
    to_advance_.push_back(index);
    if (const feign_status status = emit(nodes_[index], out, done); status < 0) return status;
  }
  return FEIGN_OK;
}

feign_status Provider::ended() {
  if (const feign_status status = stuck(); status < 0) return status;
  uint64_t unanswered = 0;
  for (const auto& [pair, queue] : signals_) unanswered += queue.size();
  if (unanswered == 0) return FEIGN_END;
  const auto& [from, to] = signals_.begin()->first;
  host_->log(
      host_, FEIGN_LOG_WARN,
      (std::to_string(unanswered) + " SIGNALs have no WAIT; the first is node " +
       std::to_string(nodes_[from].number) + "'s for node " + std::to_string(nodes_[to].number))
          .c_str());
  signals_.clear();
  return FEIGN_END;
}

// The node's next call as an activity, unless it is left out.
feign_status Provider::emit(Node& node, feign_sink* out, size_t& done) {
  const std::string_view name = first_name(node.call);
  const Known& call = calls_.known(name);
  if (call.left_out != nullptr) {
    host_->left_out(host_, node.stream, call.name, call.left_out, 0, 0);
    return FEIGN_OK;
  }
  feign_activity parsed{};
  parsed.op = call.op;
  parsed.stream = node.stream;
  parsed.start_ns = node.clock;
  parsed.compute_ns = node.waited;  // is none of its own
  parsed.place = node.place;
  if (!calls_.parse(node.call, call, parsed)) {
    const File& file = *node.runs[node.own];
    std::string text = file.path() + ":" + std::to_string(FEIGN_PLACE_LINE(node.place)) + ": " +
                       std::string(name) + "(): " + calls_.error();
    if (!file.complete()) text += " (the last line, cut short? keep-going=yes leaves it out)";
    return skip_line(feign::Error(FEIGN_ERR_ARGUMENT, text));
  }
  feign_activity* a = out->make(out);
  if (a == nullptr) return host_->fail(host_, FEIGN_ERR_NOMEM, "out of memory");
  parsed.host = a->host;
  *a = parsed;
  if (const auto values = calls_.values(); !values.empty())
    if (const feign_status status =
            host_->set_values(host_, a, values.data(), static_cast<uint32_t>(values.size()));
        status < 0)
      return status;
  for (const Dependency& d : node.pending) {
    if (options_.reduce && follows_from_others(node, d)) continue;
    if (const feign_status status =
            host_->depend(host_, a, nodes_[d.node].stream, d.id, "recorded");
        status < 0)
      return status;
  }
  if (const feign_status status = out->emit(out, a); status < 0) return status;
  ++done;
  if (a->id == 0) return FEIGN_OK;  // it was none: what it waits for, the next one does
  was_emitted(node, a->id);
  return FEIGN_OK;
}

bool Provider::follows_from_others(const Node& node, const Dependency& d) {
  const auto follows = [&](const std::unordered_map<uint32_t, uint64_t>& from) {
    const auto at = from.find(d.node);
    return at != from.end() && at->second >= d.id;
  };
  if (follows(node.known)) return true;
  for (const Dependency& other : node.pending)
    if (other.implies && &other != &d && follows(*other.implies)) return true;
  return false;
}

void Provider::was_emitted(Node& node, uint64_t id) {
  const auto at_least = [](std::unordered_map<uint32_t, uint64_t>& map, uint32_t key, uint64_t to) {
    uint64_t& value = map[key];
    value = std::max(value, to);
  };
  for (const Dependency& d : node.pending) {
    at_least(node.depended, d.node, d.id);
    if (!options_.reduce) continue;
    at_least(node.known, d.node, d.id);
    if (d.implies)
      for (const auto& [other, implied] : *d.implies) at_least(node.known, other, implied);
  }
  node.pending.clear();
  node.signal = nullptr;
  node.waited = 0;
  node.last_id = id;
  node.last_end = node.clock;
  ++node.activities;
}

// ---- the table ----------------------------------------------------------------------------------

// Calls and comments without a time, and something that only this format has, or the name that its
// writer gives: read(3, 100) alone may be what strace printed of more arguments.
int probe(const char* path, const void* head, size_t size) noexcept try {
  std::string_view text(static_cast<const char*>(head), size);
  if (text.find('\0') != std::string_view::npos) return 0;
  bool typical = trimmed(text).starts_with("/*") ||
                 std::string_view(path).find(".tracetext") != std::string_view::npos;
  int lines = 0, good = 0;
  Comments comments;
  while (!text.empty() && lines < 200) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos && size >= 4096) break;  // cut
    const std::string_view line = trimmed(comments.without(text.substr(0, end)));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (line.empty()) continue;
    ++lines;
    const std::string_view name = first_name(line);
    if (name.empty() || is_digit(name[0]) || name.size() == line.size() || line[name.size()] != '(')
      continue;
    ++good;
    typical |= name == "COMPUTE" || name == "WAIT" || name == "SIGNAL";
  }
  if (lines == 0) return typical ? 50 : 0;
  return (typical ? 95 : 30) * good / lines;
} catch (const std::exception&) {
  return 0;
}

constexpr feign_provider kApi = feign::provider<Provider, Options>(probe);

}  // namespace

constexpr feign_component kProvider = feign::component<Options>(
    kApi, "tracetext", "Reads the annotated text of //TRACE, one file a node.", kOptions);

}  // namespace tracetext
