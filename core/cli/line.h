// SPDX-License-Identifier: MIT
// The plug-ins of a pipeline, found and put in order, and instances of those that come first.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "feign.h"
#include "plugin/plugin.h"
#include "trace/native.h"
#include "trace/tables.h"

namespace feign {

struct Chosen {
  Component component;
  PluginSpec spec;
};

// A pipeline's components by role, in the order in which they were named.
struct Line {
  std::vector<Chosen> providers, modifiers, replayers, writers;
  std::vector<Chosen>& of(uint32_t role) {
    return role == FEIGN_PROVIDER   ? providers
           : role == FEIGN_MODIFIER ? modifiers
           : role == FEIGN_REPLAYER ? replayers
                                    : writers;
  }
};

// What may be put in by --with.
constexpr uint32_t kWith = FEIGN_MODIFIER | FEIGN_WRITER;

// The components that are meant where one of these roles is wanted: of the short form all that the
// plug-in has.
Result<std::vector<Component>> meant(const PluginSpec& spec, uint32_t roles, Plugins& plugins);
// Whether what is meant has an option: of the short form nobody knows, and of what cannot be found
// somebody else says so.
bool has_option(const PluginSpec& spec, uint32_t roles, const std::string& option,
                Plugins& plugins);
// Whatever --plugin or a pipeline file names, each with its options; errors say where it stands.
Result<Line> choose(const std::vector<PluginSpec>& specs, Plugins& plugins);
// Modifier depend as the last, unless the pipeline has one.
Result<void> add_depend(Line& line, PluginSpec spec, Plugins& plugins);
// The modifier that a replay by one or several ranks wants. Messages that are made need no
// dependencies as well.
PluginSpec depend_for(const Line& line, bool several);

// What host->extension answers.
struct Extensions {
  feign_run run{sizeof(feign_run), -1, nullptr, 0, 0, nullptr, 0, 1, nullptr, 0, 0, 0, 0, nullptr};
  // For our own plug-in of the native format, which is of the same build.
  std::vector<Needed> needed;
  Tables* tables = nullptr;
  feign_plan plan{sizeof(feign_plan), 0, nullptr, nullptr};
  static const void* get(void* ctx, const char* id) {
    auto* self = static_cast<Extensions*>(ctx);
    if (std::string_view(id) == "feign.run/1") return &self->run;
    if (std::string_view(id) == "feign.needed/1") return &self->needed;
    if (std::string_view(id) == "feign.tables/1") return self->tables;
    if (std::string_view(id) == "feign.plan/1" && self->plan.each != nullptr) return &self->plan;
    return nullptr;
  }
};

// An instance of one of them; `extensions` stays for as long as it does. [main]
Result<std::unique_ptr<Instance>> make(const Chosen& chosen, Tables& tables,
                                       Extensions& extensions);

// The provider and the modifiers of a run.
struct Left {
  std::unique_ptr<Instance> provider;
  std::vector<std::unique_ptr<Instance>> modifiers;
  std::vector<Instance*> in_order() const {
    std::vector<Instance*> all;
    for (const auto& m : modifiers) all.push_back(m.get());
    return all;
  }
};

// The same of a pipeline's provider and modifiers. [main]
Result<Left> make_left(const Line& line, Tables& tables, Extensions& extensions);

}  // namespace feign
