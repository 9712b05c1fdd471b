// SPDX-License-Identifier: MIT
#include "hdtrace/relation.h"

#include <algorithm>
#include <map>
#include <memory>

#include "base/xml.h"

namespace feign::hdtrace {
namespace {

struct File {
  std::unique_ptr<Xml> xml;
  size_t node = 0;
  int64_t adjustment = 0;
  std::string host, process;
};

}  // namespace

Result<std::vector<Dependence>> read_relations(const std::vector<Node>& nodes) {
  std::vector<File> files;
  std::map<std::string, size_t> by_process;  // "host:pid:topology number" -> node
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].relation.empty()) continue;
    auto input = Input::open(nodes[i].relation);
    if (!input) return std::move(input.error());
    File f;
    f.xml = std::make_unique<Xml>(std::move(*input));
    f.node = i;
    auto token = f.xml->next();
    if (!token) return std::move(token.error());
    if (*token != Xml::Token::kOpen || f.xml->name() != "relation")
      return f.xml->error("want <relation …>");
    const auto value = [&](std::string_view name) {
      const std::string_view* v = f.xml->find(name);
      return std::string(v != nullptr ? *v : std::string_view());
    };
    f.host = value("hostID");
    f.process = value("localToken");
    const std::string number = value("topologyNumber");
    const std::string adjustment = value("timeAdjustment");
    const auto ns = adjustment.empty() ? 0 : parse_time(adjustment);
    if (!ns) return f.xml->error("<relation>: timeAdjustment=\"" + adjustment + "\": want seconds");
    f.adjustment = *ns;
    by_process[f.host + ":" + f.process + ":" + number] = i;
    files.push_back(std::move(f));
  }
  std::vector<Dependence> out;
  for (File& f : files) {
    while (true) {
      auto token = f.xml->next();
      if (!token) return std::move(token.error());
      if (*token == Xml::Token::kEnd) break;
      if (*token != Xml::Token::kOpen) continue;
      const std::string name(f.xml->name());
      if (name != "rel" && name != "s" && name != "e" && name != "un") {
        if (f.xml->depth() > 2) continue;  // data of a state
        return f.xml->error("<" + name + ">: want rel, s, e or un");
      }
      if (name != "rel") continue;
      const std::string_view* time = f.xml->find("time");
      const auto ns = time != nullptr ? parse_time(*time) : std::nullopt;
      if (!ns) return f.xml->error("<rel>: want time='…' in seconds");
      // The parent's process, without the token: r host:pid:number:token, l pid:number:token.
      std::string process;
      if (const std::string_view* remote = f.xml->find("r")) process = *remote;
      if (const std::string_view* local = f.xml->find("l"))
        process = f.host + ":" + std::string(*local);
      if (process.empty()) continue;  // its own process, or none
      process.erase(std::min(process.rfind(':'), process.size()));
      const auto parent = by_process.find(process);
      if (parent == by_process.end())
        return f.xml->error("<rel>: its parent is of " + process + ", of which there is no .rel");
      if (parent->second != f.node)
        out.push_back({parent->second, f.node, *ns + f.adjustment, false, 0});
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Dependence& a, const Dependence& b) { return a.time < b.time; });
  return out;
}

}  // namespace feign::hdtrace
