// SPDX-License-Identifier: MIT
#include "discover/patterns.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace feign::discover {
namespace {

using Place = std::pair<uint32_t, uint64_t>;  // a node, and the call that it does not make yet

// Who belongs together.
template <typename Key>
class Groups {
 public:
  void join(const Key& a, const Key& b) { above_[root(a)] = root(b); }
  Key root(const Key& key) {
    auto at = above_.try_emplace(key, key).first;
    while (at->second != at->first) at = above_.find(at->second);
    return at->first;
  }

 private:
  std::map<Key, Key> above_;
};

class Search {
 public:
  Search(uint32_t nodes, const std::vector<CallOrder>& waits, const std::vector<bool>& assumed)
      : nodes_(nodes), waits_(waits), assumed_(assumed) {}
  std::vector<Pattern> run() {
    meetings();
    flows();
    std::vector<Pattern> out;
    for (auto& [what, pattern] : found_) out.push_back(std::move(pattern));
    return out;
  }

 private:
  void count(const char* name, const std::vector<uint32_t>& nodes, bool assumed) {
    Pattern& p = found_[{name, nodes}];
    p.name = name;
    p.nodes = nodes;
    ++(assumed ? p.assumed : p.checked);
  }

  // Nodes that come to a place each, and wait there for what the others did before theirs.
  void meetings() {
    std::map<std::pair<Place, Place>, size_t> at;
    for (size_t i = 0; i < waits_.size(); ++i) {
      const CallOrder& w = waits_[i];
      at[{{w.node, w.call}, {w.on, w.on_call + 1}}] = i;
    }
    Groups<Place> groups;
    std::vector<size_t> mutual;
    for (const auto& [places, i] : at)
      if (at.contains({places.second, places.first})) {
        groups.join(places.first, places.second);
        mutual.push_back(i);
      }
    std::map<Place, std::vector<size_t>> met;  // by group: waits
    for (const size_t i : mutual) {
      met[groups.root({waits_[i].node, waits_[i].call})].push_back(i);
      in_meeting_.insert(i);
    }
    for (const auto& [group, list] : met) {
      std::set<uint32_t> nodes;
      bool assumed = false;
      for (const size_t i : list) {
        nodes.insert(waits_[i].node);
        assumed |= assumed_[i];
      }
      const size_t n = nodes.size();
      const bool all = list.size() == n * (n - 1) && (n > 2 || n == nodes_);
      count(all ? "barrier" : "lock-step", {nodes.begin(), nodes.end()}, assumed);
    }
  }

  // What is left goes one way: along a ring, or out from a master and back.
  void flows() {
    Groups<uint32_t> groups;
    std::map<uint32_t, std::set<uint32_t>> before, after;  // by node: its neighbours
    for (size_t i = 0; i < waits_.size(); ++i) {
      if (in_meeting_.contains(i)) continue;
      groups.join(waits_[i].node, waits_[i].on);
      before[waits_[i].node].insert(waits_[i].on);
      after[waits_[i].on].insert(waits_[i].node);
    }
    std::map<uint32_t, std::vector<uint32_t>> members;
    for (uint32_t n = 0; n < nodes_; ++n)
      if (before.contains(n) || after.contains(n)) members[groups.root(n)].push_back(n);
    std::map<uint32_t, std::pair<const char*, std::vector<uint32_t>>> named;  // by group
    for (auto& entry : members) {
      const uint32_t group = entry.first;
      std::vector<uint32_t>& nodes = entry.second;
      const bool ring = std::all_of(nodes.begin(), nodes.end(), [&](uint32_t n) {
        return before[n].size() <= 1 && after[n].size() <= 1;
      });
      const auto master = std::find_if(nodes.begin(), nodes.end(), [&](uint32_t m) {
        return std::all_of(nodes.begin(), nodes.end(), [&](uint32_t n) {
          if (n == m) return true;
          const std::set<uint32_t> only{m};
          return before[n] == only && (after[n].empty() || after[n] == only);
        });
      });
      if (ring) {
        named[group] = {"ring", nodes};
      } else if (master != nodes.end()) {
        std::rotate(nodes.begin(), master, std::next(master));
        named[group] = {"master/worker", nodes};
      }
    }
    for (size_t i = 0; i < waits_.size(); ++i) {
      if (in_meeting_.contains(i)) continue;
      const auto at = named.find(groups.root(waits_[i].node));
      if (at != named.end()) count(at->second.first, at->second.second, assumed_[i]);
    }
  }

  const uint32_t nodes_;
  const std::vector<CallOrder>& waits_;
  const std::vector<bool>& assumed_;
  std::set<size_t> in_meeting_;
  std::map<std::pair<std::string, std::vector<uint32_t>>, Pattern> found_;
};

}  // namespace

std::vector<Pattern> patterns(uint32_t nodes, const std::vector<CallOrder>& waits,
                              const std::vector<bool>& assumed) {
  return Search(nodes, waits, assumed).run();
}

}  // namespace feign::discover
