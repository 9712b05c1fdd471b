// SPDX-License-Identifier: MIT
#include "lab/search.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>

#include "base/clock.h"
#include "cli/run.h"
#include "lab/statistics.h"
#include "lab/summary.h"
#include "plugin/options.h"
#include "report/format.h"

namespace feign {
namespace {

constexpr size_t kKeep = 3;  // one of so many goes on

// A configuration over all traces and roots, with what was measured of it.
struct Candidate {
  const LabConfig* config = nullptr;
  std::vector<Cell> cells;
  uint64_t repeats = 0;
  std::vector<double> seconds, logs;  // of good runs; of these against the baseline's
  uint64_t failed = 0;
  double score() const {
    if (logs.empty()) return HUGE_VAL;
    double sum = 0;
    for (const double v : logs) sum += v;
    return sum / static_cast<double>(logs.size());
  }
};

using Times = std::map<std::pair<std::string, uint64_t>, double>;

Times times_of(const Results& results) {
  Times out;
  for (const Json& run : results.runs())
    if (run["status"] == "ok" && run["repeat"] != 0)
      out[{run["cell"].get<std::string>(), run["repeat"].get<uint64_t>()}] = run["seconds"];
  return out;
}

// Its runs up to `repeats`, paired with the baseline's of the same trace, root and repeat.
void judge(Candidate& c, const std::vector<Cell>& baseline, uint64_t repeats, const Times& times) {
  c.seconds.clear();
  c.logs.clear();
  c.failed = 0;
  for (size_t i = 0; i < c.cells.size(); ++i)
    for (uint64_t r = 1; r <= repeats; ++r) {
      const auto mine = times.find({c.cells[i].id, r});
      if (mine == times.end()) {
        ++c.failed;
        continue;
      }
      c.seconds.push_back(mine->second);
      const auto other = times.find({baseline[i].id, r});
      if (other != times.end() && other->second > 0 && mine->second > 0)
        c.logs.push_back(std::log(mine->second / other->second));
    }
}

}  // namespace

Result<Budget> parse_budget(const std::string& text) {
  Budget b;
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos &&
      text.size() < 10)
    b.runs = strtoull(text.c_str(), nullptr, 10);
  else if (!parse_duration(text, b.time_ns))
    b.time_ns = 0;
  if (b.runs == 0 && b.time_ns == 0)
    return Error(FEIGN_ERR_ARGUMENT,
                 "--budget " + text + ": want a number of runs, or a time such as 10m");
  return b;
}

Result<bool> search(const Lab& lab, Session& session, const Results& results, const Budget& budget,
                    bool json, std::string& text) {
  std::vector<Candidate> left;
  Candidate baseline;
  for (const LabConfig& config : lab.configs) {
    Candidate c;
    c.config = &config;
    c.cells = session.cells({config});
    if (config.label == lab.baseline)
      baseline = std::move(c);
    else
      left.push_back(std::move(c));
  }
  if (left.empty())
    return Error(FEIGN_ERR_ARGUMENT,
                 lab.file + ": --search: there is nothing to choose from but the baseline");
  const size_t of_all = left.size(), places = baseline.cells.size();
  const uint64_t begin = now_ns(), before = session.done();
  Json rounds = Json::array();
  std::string said;

  size_t count_rounds = 1;
  for (size_t n = left.size(); n > 1; n = (n + kKeep - 1) / kKeep) ++count_rounds;
  // More than can be tried even once, with what all rounds need: a random choice of them.
  uint64_t state = lab.seed;
  for (size_t i = left.size(); i > 1; --i) std::swap(left[i - 1], left[random_below(state, i)]);
  if (budget.runs != 0) {
    const auto fits = [&](size_t n) {
      size_t runs = 0, rounds_of = 0;
      for (size_t k = n;; k = (k + kKeep - 1) / kKeep) {
        runs += (k + 1) * places;
        ++rounds_of;
        if (k == 1) break;
      }
      count_rounds = rounds_of;
      return runs <= budget.runs;
    };
    size_t n = left.size();
    while (n > 1 && !fits(n)) --n;
    if (!fits(n))
      return Error(FEIGN_ERR_ARGUMENT, "--budget " + std::to_string(budget.runs) +
                                           ": is too small to try anything, want at least " +
                                           std::to_string(2 * places) + " runs");
    left.resize(n);
  }
  if (left.size() < of_all)
    said += "the budget is enough for " + std::to_string(left.size()) + " of " +
            std::to_string(of_all) + " configurations, chosen at random\n";

  uint64_t repeats = 0;
  const bool by_clock = budget.time_ns != 0;
  const auto spent = [&] { return session.done() - before; };
  for (size_t round = 0;; ++round) {
    const size_t rounds_left = count_rounds - std::min(round, count_rounds - 1);
    uint64_t more = round == 0 ? 1 : repeats * (kKeep - 1);
    if (budget.runs != 0) {
      // What is left of the budget, in equal parts for each round that is left.
      const uint64_t part = (budget.runs - std::min(budget.runs, spent())) / rounds_left;
      more = std::max<uint64_t>(part / ((left.size() + 1) * places), round == 0 ? 1 : 0);
    } else if (left.size() == 1) {
      more = repeats >= lab.repeats ? 0 : lab.repeats - repeats;
    }
    const uint64_t ends_ns = begin + budget.time_ns / count_rounds * (round + 1);
    std::vector<Cell> cells = baseline.cells;
    for (const Candidate& c : left) cells.insert(cells.end(), c.cells.begin(), c.cells.end());
    for (uint64_t i = 0; by_clock || i < more; ++i) {
      // By the clock, a round lasts for its part of it; everything gets one run all the same.
      if (by_clock && repeats != 0 && now_ns() >= ends_ns) break;
      auto ran = session.run_all(cells, repeats + 1, repeats + 1, "search");
      if (!ran || !*ran) return ran;
      ++repeats;
    }
    const Times times = times_of(results);
    for (Candidate& c : left) judge(c, baseline.cells, repeats, times);
    std::stable_sort(left.begin(), left.end(),
                     [](const Candidate& a, const Candidate& b) { return a.score() < b.score(); });
    Json list = Json::array();
    for (const Candidate& c : left)
      list.push_back({{"label", c.config->label},
                      {"ratio", c.logs.empty() ? Json(nullptr) : Json(std::exp(c.score()))},
                      {"failed", c.failed}});
    said += "round " + std::to_string(round + 1) + ": " + std::to_string(left.size()) +
            (left.size() == 1 ? " configuration, " : " configurations, ") +
            std::to_string(repeats) + (repeats == 1 ? " repeat" : " repeats") + "; best " +
            left.front().config->label +
            (left.front().logs.empty() ? std::string(" (no run went well)")
                                       : format(", ratio %.3f", std::exp(left.front().score()))) +
            "\n";
    rounds.push_back({{"repeats", repeats}, {"configurations", std::move(list)}});
    if (left.size() == 1) break;
    left.resize((left.size() + kKeep - 1) / kKeep);
  }

  const Candidate& best = left.front();
  if (best.logs.empty())
    return Error(FEIGN_ERR_ARGUMENT, lab.file + ": --search: no run of \"" + best.config->label +
                                         "\" and the baseline went well: " + results.path() +
                                         " has why");
  const Comparison c = compare(best.logs, lab.seed);
  if (json) {
    Json parameters = Json::object();
    for (const auto& [name, value] : best.config->parameters) parameters[name] = value;
    Json out = {{"schema", "feign-lab-search/1"},
                {"results", results.path()},
                {"runs", spent()},
                {"of", of_all},
                {"rounds", std::move(rounds)},
                {"best",
                 {{"label", best.config->label},
                  {"variant", best.config->variant},
                  {"parameters", std::move(parameters)},
                  {"comparison", comparison_json(c)}}}};
    text = out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
    return true;
  }
  text = said + "found: " + best.config->label + format(", ratio %.3f", c.ratio) +
         format(" (95 %% interval %.3f … %.3f, %zu pairs): ", c.low, c.high, c.pairs) +
         verdict_name(c.verdict) + "; " + std::to_string(spent()) + " runs\n" +
         "  the winner of a search looks better than it is: measure it with fresh runs before you "
         "rely on it\n";
  return true;
}

namespace {

// Requests, also those of a program that waits for each answer; a signal ends it.
class Requests {
 public:
  bool next(std::string& line) {
    while (true) {
      if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
        line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return true;
      }
      if (ended_ || buffer_.size() > (size_t{1} << 20)) {
        line = std::move(buffer_);
        buffer_.clear();
        ended_ = true;
        return !line.empty();
      }
      if (g_stop_signal.load() != 0) return false;
      pollfd p{STDIN_FILENO, POLLIN, 0};
      if (poll(&p, 1, 200) <= 0) continue;
      char part[4096];
      const ssize_t n = read(STDIN_FILENO, part, sizeof part);
      if (n > 0)
        buffer_.append(part, static_cast<size_t>(n));
      else if (n == 0 || errno != EINTR)
        ended_ = true;
    }
  }

 private:
  std::string buffer_;
  bool ended_ = false;
};

bool say(const Json& what) {
  const std::string line = json_line(what) + "\n";
  return fwrite(line.data(), 1, line.size(), stdout) == line.size() && fflush(stdout) == 0;
}

Json greeting(const Lab& lab) {
  Json hello = {{"schema", "feign-lab-protocol/1"},
                {"baseline", lab.baseline},
                {"traces", Json::array()},
                {"roots", Json::array()},
                {"variants", Json::object()}};
  for (const LabTrace& t : lab.traces) hello["traces"].push_back(t.name);
  for (const LabRoot& r : lab.roots) hello["roots"].push_back(r.name);
  for (const LabVariant& v : lab.variants) {
    Json parameters = Json::object();
    for (const LabVariant::Parameter& p : v.parameters) {
      Json values = Json::array();
      for (const LabValue& value : p.values) {
        std::string text;
        for (const std::string& one : value) text += (text.empty() ? "" : "+") + one;
        values.push_back(text);
      }
      parameters[p.name] = std::move(values);
    }
    hello["variants"][v.name] = std::move(parameters);
  }
  return hello;
}

struct Request {
  const LabVariant* variant = nullptr;
  std::map<std::string, LabValue> values;
  uint64_t repeats = 1;
};

Result<Request> parse_request(const Json& j, const Lab& lab) {
  const auto wrong = [](const std::string& what) { return Error(FEIGN_ERR_ARGUMENT, what); };
  if (!j.is_object())
    return wrong("want a JSON object on one line: {\"variant\": …, \"parameters\": {…}}");
  Request r;
  for (const auto& [key, value] : j.items()) {
    if (key == "id") continue;
    if (key == "variant") {
      if (!value.is_string()) return wrong("variant: want a name");
      for (const LabVariant& v : lab.variants)
        if (v.name == value.get<std::string>()) r.variant = &v;
      if (r.variant == nullptr) {
        std::string known;
        for (const LabVariant& v : lab.variants) known += (known.empty() ? "" : ", ") + v.name;
        return wrong("variant: \"" + value.get<std::string>() + "\": want one of " + known);
      }
    } else if (key == "parameters") {
      if (!value.is_object()) return wrong("parameters: want an object of name and value");
      for (const auto& [name, v] : value.items()) {
        if (!v.is_string() && !v.is_number() && !v.is_boolean())
          return wrong("parameters: " + name + ": want a text or a number");
        r.values[name] = {v.is_string()    ? v.get<std::string>()
                          : v.is_boolean() ? (v.get<bool>() ? "yes" : "no")
                                           : v.dump()};
      }
    } else if (key == "repeats") {
      if (!value.is_number_unsigned() || value == 0 || value.get<uint64_t>() > 1'000'000)
        return wrong("repeats: want a number from 1 to 1000000");
      r.repeats = value;
    } else {
      return wrong("unknown key \"" + key + "\": want id, variant, parameters or repeats");
    }
  }
  if (r.variant == nullptr) return wrong("there is no `variant`");
  return r;
}

}  // namespace

Result<bool> serve(const Lab& lab, Session& session, const Results& results, Plugins& plugins) {
  const LabConfig& base = *lab.config(lab.baseline);
  const std::vector<Cell> baseline = session.cells({base});
  if (!say(greeting(lab))) return true;
  Requests requests;
  std::string line;
  while (requests.next(line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Json request = Json::parse(line, nullptr, false);
    Json answer = Json::object();
    if (request.is_object() && request.contains("id")) answer["id"] = request["id"];
    auto parsed = parse_request(request, lab);
    Result<LabConfig> config = Error(FEIGN_OK, "");
    if (parsed) config = make_config(*parsed->variant, parsed->values, plugins);
    if (!parsed || !config) {
      answer["error"] = parsed ? config.error().text() : parsed.error().text();
      if (!say(answer)) break;
      continue;
    }
    Candidate c;
    c.cells = session.cells({*config});
    std::vector<Cell> cells = baseline;
    if (config->label != base.label) cells.insert(cells.end(), c.cells.begin(), c.cells.end());
    auto ran = session.run_all(cells, 1, parsed->repeats, "serve");
    if (!ran || !*ran) return ran;
    judge(c, baseline, parsed->repeats, times_of(results));
    const Comparison compared = compare(c.logs, lab.seed);
    answer["label"] = config->label;
    answer["seconds"] = c.seconds;
    answer["median"] = c.seconds.empty() ? Json(nullptr) : Json(describe_samples(c.seconds).median);
    answer["failed"] = c.failed;
    answer["comparison"] = c.logs.empty() ? Json(nullptr) : comparison_json(compared);
    if (!say(answer)) break;
  }
  return g_stop_signal.load() == 0;
}

}  // namespace feign
