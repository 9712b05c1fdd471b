// SPDX-License-Identifier: MIT
#include "siox/names.h"

#include <algorithm>

#include "base/number.h"
#include "base/xml.h"

namespace siox {
namespace {

using feign::Result;
using feign::to_number;

constexpr size_t kMostNames = size_t{1} << 20;

// Calls `leaf` for each element without children, with the names of those it is in joined by "/",
// and `closed` when an element with children ends. Attributes do not matter.
template <typename Leaf, typename Closed>
Result<void> walk(const std::string& path, Leaf&& leaf, Closed&& closed) {
  auto input = feign::Input::open(path);
  if (!input) return std::move(input.error());
  feign::Xml xml(std::move(*input));
  std::string at;  // "map/item/second"
  std::string value;
  bool childless = false;
  while (true) {
    auto token = xml.next();
    if (!token) return std::move(token.error());
    switch (*token) {
      case feign::Xml::Token::kOpen:
        if (!at.empty()) at += '/';
        at += xml.name();
        value.clear();
        childless = true;
        break;
      case feign::Xml::Token::kText:
        value += xml.text();
        break;
      case feign::Xml::Token::kClose:
        if (childless)
          leaf(std::string_view(at), std::string_view(value));
        else
          closed(std::string_view(at));
        at.resize(at.size() - std::min(at.size(), xml.name().size() + 1));
        childless = false;
        break;
      case feign::Xml::Token::kEnd:
        return {};
    }
  }
}

uint32_t id_of(std::string_view text) {
  uint64_t value = 0;
  return to_number(text, value) && value < kMostNames ? static_cast<uint32_t>(value) : 0;
}

template <typename T>
T& entry(std::vector<std::unique_ptr<T>>& list, uint32_t at) {
  if (at >= list.size()) list.resize(at + size_t{1});
  if (!list[at]) list[at] = std::make_unique<T>();
  return *list[at];
}

}  // namespace

Result<std::unique_ptr<Names>> Names::read(const std::string& ontology, const std::string& system,
                                           const std::string& association) {
  auto names = std::make_unique<Names>();
  if (!ontology.empty())
    if (auto done = names->read_ontology(ontology); !done) return std::move(done.error());
  if (!system.empty())
    if (auto done = names->read_system(system); !done) return std::move(done.error());
  if (!association.empty())
    if (auto done = names->read_association(association); !done) return std::move(done.error());
  return names;
}

Result<void> Names::read_ontology(const std::string& path) {
  uint32_t id = 0;
  std::string name, domain;
  auto walked = walk(
      path,
      [&](std::string_view at, std::string_view value) {
        if (at == "map/item/second/attribute/id") id = id_of(value);
        if (at == "map/item/second/attribute/name") name = value;
        if (at == "map/item/second/attribute/domain") domain = value;
      },
      [&](std::string_view at) {
        if (at != "map/item/second/attribute" || id == 0) return;
        entry(attributes_, id) = domain + "/" + name;
        id = 0;
      });
  if (!walked) return walked;
  if (attributes_.empty()) return bad(path + ": has no attributes, want SIOX's ontology");
  return {};
}

Result<void> Names::read_system(const std::string& path) {
  std::map<uint32_t, std::string> strings;
  std::map<uint32_t, std::pair<std::string, std::string>> interfaces;
  std::map<uint32_t, uint32_t> interface_of;
  uint32_t first = 0, second = 0;
  std::string text, more;
  auto walked = walk(
      path,
      [&](std::string_view at, std::string_view value) {
        if (at.ends_with("/item/first")) {
          first = id_of(value);
          if (at == "nodeMap/item/first") text = value;
        } else if (at.ends_with("/item/second")) {
          second = id_of(value);
          if (at == "valueStringMap/item/second") text = value;
        } else if (at == "interfaceImplStrMap/item/second/first") {
          text = value;
        } else if (at == "interfaceImplStrMap/item/second/second") {
          more = value;
        } else if (at == "activityMap/item/first/first") {
          first = id_of(value);
        } else if (at == "activityMap/item/first/second") {
          text = value;
        }
      },
      [&](std::string_view at) {
        if (at == "valueStringMap/item") strings[first] = text;
        if (at == "interfaceImplStrMap/item") interfaces[first] = {text, more};
        if (at == "nodeMap/item" && second != 0) hosts_[second] = text;
        if (at == "activityInterfaceIDMap/item") interface_of[first] = second;
        if (at == "activityMap/item" && second != 0) {
          entry(activities_, second).name = text;
          interface_of[second] = first;
        }
      });
  if (!walked) return walked;
  for (const auto& [number, interface] : interface_of) {
    if (number == 0) continue;
    Activity& a = entry(activities_, number);
    if (a.name.empty()) a.name = strings[number];
    a.interface = interfaces[interface].first;
    a.implementation = interfaces[interface].second;
  }
  if (activities_.empty()) return bad(path + ": names no activity, want SIOX's system information");
  return {};
}

// Who has which rank: what the MPI component said of itself, else what mpirun put into the
// environment.
Result<void> Names::read_association(const std::string& path) {
  Process process;
  std::vector<uint32_t> ids;
  std::vector<std::string> values;
  auto walked = walk(
      path,
      [&](std::string_view at, std::string_view value) {
        if (at.ends_with("/first/nid") || at.ends_with("/first/pid/nid")) {
          process.node = static_cast<uint32_t>(id_of(value));
        } else if (at.ends_with("/first/pid") || at.ends_with("/first/pid/pid")) {
          uint64_t pid = 0;
          if (to_number(value, pid)) process.pid = static_cast<uint32_t>(pid);
        } else if (at.ends_with("/first/time") || at.ends_with("/first/pid/time")) {
          uint64_t time = 0;
          if (to_number(value, time)) process.time = static_cast<uint32_t>(time);
        } else if (at.ends_with("/attids/item")) {
          ids.push_back(id_of(value));
        } else if (at.ends_with("/values/item/v")) {
          values.emplace_back(value);
        }
      },
      [&](std::string_view at) {
        if (at != "ProcessMap/item" && at != "ComponentMap/item") return;
        const bool component = at.front() == 'C';
        listed_.insert(process);
        for (size_t i = 0; i < std::min(ids.size(), values.size()); ++i) {
          uint64_t rank = 0;
          if (component) {
            const std::string* name = attribute(ids[i]);
            if (name != nullptr && *name == "MPI/description/commRank" &&
                to_number(values[i], rank) && rank <= INT32_MAX)
              ranks_[process] = static_cast<int32_t>(rank);
            continue;
          }
          for (const std::string_view variable :
               {"OMPI_COMM_WORLD_RANK=", "PMI_RANK=", "PMIX_RANK=", "MV2_COMM_WORLD_RANK="}) {
            const size_t found = (" " + values[i]).find(" " + std::string(variable));
            if (found == std::string::npos) continue;
            std::string_view text = std::string_view(values[i]).substr(found + variable.size());
            text = text.substr(0, text.find(' '));
            if (to_number(text, rank) && rank <= INT32_MAX)
              ranks_.try_emplace(process, static_cast<int32_t>(rank));
          }
        }
        ids.clear();
        values.clear();
      });
  return walked;
}

const Names::Activity* Names::activity(uint32_t number) const {
  return number < activities_.size() ? activities_[number].get() : nullptr;
}
const std::string* Names::attribute(uint32_t id) const {
  return id < attributes_.size() ? attributes_[id].get() : nullptr;
}
const std::string* Names::host(uint32_t node) const {
  const auto at = hosts_.find(node);
  return at != hosts_.end() ? &at->second : nullptr;
}
int32_t Names::rank(const Process& process) const {
  const auto at = ranks_.find(process);
  return at != ranks_.end() ? at->second : -1;
}

uint32_t Names::activity_number(std::string_view interface, std::string_view implementation,
                                std::string_view name) {
  std::string key(interface);
  key += '\n';
  key += implementation;
  key += '\n';
  key += name;
  const auto at = by_text_.find(key);
  if (at != by_text_.end()) return at->second;
  const auto number = static_cast<uint32_t>(std::max<size_t>(activities_.size(), 1));
  entry(activities_, number) = {std::string(interface), std::string(implementation),
                                std::string(name)};
  return by_text_[key] = number;
}

uint32_t Names::attribute_number(std::string_view name) {
  if (const auto at = by_text_.find(name); at != by_text_.end()) return at->second;
  const auto number = static_cast<uint32_t>(std::max<size_t>(attributes_.size(), 1));
  entry(attributes_, number) = name;
  return by_text_[std::string(name)] = number;
}

// "1,10240,3386365"; a text that is none of these stands for a process all the same.
Process Names::process_of(std::string_view text) {
  if (const auto at = processes_.find(text); at != processes_.end()) return at->second;
  Process p;
  uint32_t* const parts[] = {&p.node, &p.pid, &p.time};
  std::string_view rest = text;
  bool good = true;
  for (int i = 0; i < 3 && good; ++i) {
    const size_t comma = i < 2 ? rest.find(',') : rest.size();
    uint64_t value = 0;
    good = comma != std::string_view::npos && to_number(rest.substr(0, comma), value) &&
           value <= UINT32_MAX;
    *parts[i] = static_cast<uint32_t>(value);
    rest = rest.substr(std::min(rest.size(), comma + 1));
  }
  if (!good) p = {0, static_cast<uint32_t>(processes_.size()), 0};
  return processes_[std::string(text)] = p;
}

}  // namespace siox
