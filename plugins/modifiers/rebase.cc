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
#include <utility>
#include <vector>

#include "base/path.h"
#include "feign.hpp"
#include "modifiers/link_target.h"
#include "modifiers/table.h"

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
  bool used = false;
};

class Rebase {
 public:
  Rebase(const feign_host* h, const Options& o) : host_(h), options_(o) {}

  feign_status start() {
    for (const char* const* m = options_.map; *m != nullptr; ++m) {
      const char* colon = strchr(*m, ':');
      if (colon == nullptr)
        return host_->fail(host_, FEIGN_ERR_ARGUMENT,
                           (std::string("map=") + *m + ": want FROM:TO").c_str());
      if (const feign_status s = add_rule(std::string(*m, colon), colon + 1); s < 0) return s;
    }
    if ((*options_.from == '\0') != (*options_.to == '\0'))
      return host_->fail(
          host_, FEIGN_ERR_ARGUMENT,
          (*options_.to == '\0' ? std::string("from=") + options_.from + ": want to, too"
                                : std::string("to=") + options_.to + ": want from, too")
              .c_str());
    if (*options_.from != '\0')
      if (const feign_status s = add_rule(options_.from, options_.to); s < 0) return s;
    if (rules_.empty())
      return host_->fail(host_, FEIGN_ERR_ARGUMENT, "there is no rule: want map=FROM:TO");
    return FEIGN_OK;
  }

  feign_status process(const feign_window& in, feign_sink* out) {
    for (size_t i = 0; i < in.due; ++i) {
      feign_activity* a = in.items[i];
      a->path = rewritten(a->path);
      // A link's target counts, too, if it is absolute.
      if (a->path2 != 0) feign::set_path2(host_, *a, rewritten(a->path2));
      if (a->value_count != 0 && has_paths_in_values(a->op)) {
        const feign_op_info* info = host_->op_info(host_, a->op);
        values_.assign(a->values, a->values + a->value_count);
        for (uint32_t k = 0; k < info->arg_count; ++k) {
          const feign_arg_info& arg = info->args[k];
          if (arg.slot == FEIGN_SLOT_VALUE && arg.type == FEIGN_ARG_PATH &&
              arg.index < values_.size())
            values_[arg.index] = rewritten(static_cast<uint32_t>(values_[arg.index]));
        }
        if (const feign_status s = host_->set_values(host_, a, values_.data(), a->value_count);
            s < 0)
          return s;
      }
      if (const feign_status s = out->emit(out, a); s < 0) return s;
    }
    if (in.at_end && in.due == in.count)
      for (Rule& rule : rules_)
        if (!std::exchange(rule.used, true))
          host_->log(host_, FEIGN_LOG_WARN,
                     ("no path is at or below " + (rule.from.empty() ? "/" : rule.from)).c_str());
    return FEIGN_OK;
  }

 private:
  feign_status add_rule(std::string from, std::string to) {
    for (std::string* side : {&from, &to}) {
      if (side->empty() || (*side)[0] != '/')
        return host_->fail(
            host_, FEIGN_ERR_ARGUMENT,
            ("\"" + from + ":" + to + "\": want FROM:TO, both absolute paths").c_str());
      *side = feign::clean_path(*side);  // as those of activities are
      if (*side == "/") side->clear();
    }
    for (const Rule& rule : rules_)
      if (rule.from == from)
        return host_->fail(host_, FEIGN_ERR_ARGUMENT,
                           ("there are two rules for " + (from.empty() ? "/" : from)).c_str());
    rules_.push_back({std::move(from), std::move(to)});
    return FEIGN_OK;
  }

  uint32_t rewritten(uint32_t id) {
    if (id == 0) return 0;
    if (id < known_.size() && known_[id] != 0) return known_[id];
    size_t length = 0;
    const char* text = host_->text(host_, id, &length);
    const std::string_view path(text, length);
    const Rule* best = nullptr;
    for (Rule& r : rules_) {
      const bool fits = path.starts_with(r.from) && !path.empty() && path[0] == '/' &&
                        (path.size() == r.from.size() || path[r.from.size()] == '/');
      r.used |= fits;
      if (fits && (best == nullptr || r.from.size() > best->from.size())) best = &r;
    }
    uint32_t result = id;
    if (best != nullptr) {
      std::string moved = best->to;
      if (path != "/") moved += path.substr(best->from.size());  // a slash at its end counts
      if (moved.empty()) moved = "/";
      result = host_->intern(host_, moved.data(), moved.size());
    }
    if (id >= known_.size()) known_.resize(std::max<size_t>(id + size_t{1}, known_.size() * 3 / 2));
    return known_[id] = result;
  }

  bool has_paths_in_values(uint32_t op) {
    return paths_in_values_.of(op, [&] {
      const feign_op_info* info = host_->op_info(host_, op);
      for (uint32_t i = 0; info != nullptr && i < info->arg_count; ++i)
        if (info->args[i].slot == FEIGN_SLOT_VALUE && info->args[i].type == FEIGN_ARG_PATH)
          return true;
      return false;
    });
  }

  const feign_host* host_;
  Options options_;
  std::vector<Rule> rules_;
  std::vector<uint32_t> known_;     // by string id: the new id, 0 if not yet asked
  feign::Answers paths_in_values_;  // by op
  std::vector<uint64_t> values_;
};

constexpr feign_modifier kApi = feign::modifier<Rebase, Options>();
constexpr feign_component kComponent = feign::component<Options>(
    kApi, "rebase", "Rewrites paths by prefix: what was below /a/b goes below /x/y.", kOptions);
constexpr const feign_component* kComponents[] = {&kComponent, nullptr};

}  // namespace

FEIGN_ROLES(FEIGN_MODIFIER);
extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "rebase", FEIGN_VERSION, "MIT", kComponents};
