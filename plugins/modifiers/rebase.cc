// SPDX-License-Identifier: MIT
// Modifier rebase: what was recorded below one directory is replayed below another.
//
// Rules are prefixes of whole components; the longest that fits a path decides. Each distinct path
// is rewritten once; after that it costs an array look-up.
#include <cstddef>
#include <cstring>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "feign.h"

namespace {

struct Options {
  const char* const* map;
  const char* from;
  const char* to;
};
constexpr feign_option kOptions[] = {
    {"map", FEIGN_OPT_TEXTS, offsetof(Options, map), nullptr, nullptr, 0, 0,
     "FROM:TO, absolute directories; what is below FROM goes below TO. May be given several "
     "times."},
    {"from", FEIGN_OPT_TEXT, offsetof(Options, from), "", nullptr, 0, 0,
     "One rule's FROM, for paths with a colon."},
    {"to", FEIGN_OPT_TEXT, offsetof(Options, to), "", nullptr, 0, 0, "That rule's TO."},
};

struct Rule {
  std::string from, to;  // without a trailing slash; "" is the root
};

struct Rebase {
  const feign_host* host;
  std::vector<Rule> rules;
  std::vector<uint32_t> known;           // by string id: the new id, 0 if not yet asked
  std::vector<uint8_t> paths_in_values;  // by op: 0 not yet asked, 1 no, 2 yes
  std::vector<uint64_t> values;

  uint32_t rewritten(uint32_t id) {
    if (id == 0) return 0;
    if (id < known.size() && known[id] != 0) return known[id];
    size_t length = 0;
    const char* text = host->text(host, id, &length);
    const std::string_view path(text, length);
    const Rule* best = nullptr;
    for (const Rule& r : rules) {
      const bool fits = path.starts_with(r.from) && !path.empty() && path[0] == '/' &&
                        (path.size() == r.from.size() || path[r.from.size()] == '/');
      if (fits && (best == nullptr || r.from.size() > best->from.size())) best = &r;
    }
    uint32_t result = id;
    if (best != nullptr) {
      std::string moved = best->to + std::string(path.substr(best->from.size()));
      if (moved.empty()) moved = "/";
      if (moved.size() > 1 && moved.back() == '/') moved.pop_back();
      result = host->intern(host, moved.data(), moved.size());
    }
    if (id >= known.size()) known.resize(std::max<size_t>(id + size_t{1}, known.size() * 3 / 2));
    return known[id] = result;
  }

  bool has_paths_in_values(uint32_t op) {
    if (op >= paths_in_values.size()) paths_in_values.resize(op + size_t{1});
    uint8_t& answer = paths_in_values[op];
    if (answer == 0) {
      answer = 1;
      const feign_op_info* info = host->op_info(host, op);
      for (uint32_t i = 0; info != nullptr && i < info->arg_count; ++i)
        if (info->args[i].slot == FEIGN_SLOT_VALUE && info->args[i].type == FEIGN_ARG_PATH)
          answer = 2;
    }
    return answer == 2;
  }
};

feign_status add_rule(const feign_host* host, Rebase& r, std::string from, std::string to) {
  for (std::string* side : {&from, &to}) {
    if (side->empty() || (*side)[0] != '/')
      return host->fail(host, FEIGN_ERR_ARGUMENT,
                        ("\"" + from + ":" + to + "\": want FROM:TO, both absolute paths").c_str());
    while (!side->empty() && side->back() == '/') side->pop_back();
  }
  for (const Rule& rule : r.rules)
    if (rule.from == from)
      return host->fail(host, FEIGN_ERR_ARGUMENT,
                        ("there are two rules for " + (from.empty() ? "/" : from)).c_str());
  r.rules.push_back({std::move(from), std::move(to)});
  return FEIGN_OK;
}

feign_status create(const feign_host* host, const void* raw, void** self) noexcept {
  const auto& o = *static_cast<const Options*>(raw);
  try {
    auto r = std::make_unique<Rebase>();
    r->host = host;
    for (const char* const* m = o.map; *m != nullptr; ++m) {
      const char* colon = strchr(*m, ':');
      if (colon == nullptr)
        return host->fail(host, FEIGN_ERR_ARGUMENT,
                          (std::string("map=") + *m + ": want FROM:TO").c_str());
      if (const feign_status s = add_rule(host, *r, std::string(*m, colon), colon + 1); s < 0)
        return s;
    }
    if (*o.from != '\0' || *o.to != '\0')
      if (const feign_status s = add_rule(host, *r, o.from, o.to); s < 0) return s;
    if (r->rules.empty())
      return host->fail(host, FEIGN_ERR_ARGUMENT, "there is no rule: want map=FROM:TO");
    *self = r.release();
    return FEIGN_OK;
  } catch (const std::exception&) {
    return host->fail(host, FEIGN_ERR_NOMEM, "out of memory");
  }
}

feign_status process(void* self, const feign_window* in, feign_sink* out) noexcept {
  auto& r = *static_cast<Rebase*>(self);
  try {
    for (size_t i = 0; i < in->due; ++i) {
      feign_activity* a = in->items[i];
      a->path = r.rewritten(a->path);
      // A link's target counts, too, if it is absolute.
      if (a->path2 != 0) a->path2 = r.rewritten(a->path2);
      if (a->value_count != 0 && r.has_paths_in_values(a->op)) {
        const feign_op_info* info = r.host->op_info(r.host, a->op);
        r.values.assign(a->values, a->values + a->value_count);
        for (uint32_t k = 0; k < info->arg_count; ++k) {
          const feign_arg_info& arg = info->args[k];
          if (arg.slot == FEIGN_SLOT_VALUE && arg.type == FEIGN_ARG_PATH &&
              arg.index < r.values.size())
            r.values[arg.index] = r.rewritten(static_cast<uint32_t>(r.values[arg.index]));
        }
        if (const feign_status s = r.host->set_values(r.host, a, r.values.data(), a->value_count);
            s < 0)
          return s;
      }
      if (const feign_status s = out->emit(out, a); s < 0) return s;
    }
    return FEIGN_OK;
  } catch (const std::exception&) {
    return r.host->fail(r.host, FEIGN_ERR_NOMEM, "out of memory");
  }
}

void destroy(void* self) noexcept { delete static_cast<Rebase*>(self); }

constexpr feign_modifier kApi = {sizeof kApi, 0, create, process, destroy, nullptr};
constexpr feign_component kComponent = {
    sizeof kComponent,
    FEIGN_MODIFIER,
    "rebase",
    "Rewrites paths by prefix: what was below /a/b goes below /x/y.",
    &kApi,
    kOptions,
    std::size(kOptions),
    sizeof(feign_option),
    sizeof(Options),
    0};
constexpr const feign_component* kComponents[] = {&kComponent, nullptr};

}  // namespace

FEIGN_ROLES(FEIGN_MODIFIER);
extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "rebase", FEIGN_VERSION, "MIT", kComponents};
