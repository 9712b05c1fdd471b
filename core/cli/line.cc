// SPDX-License-Identifier: MIT
#include "cli/line.h"

#include <set>
#include <string>
#include <utility>

#include "plugin/options.h"
#include "replay/options.h"

namespace feign {
namespace {

constexpr uint32_t kProvider = FEIGN_PROVIDER;
constexpr uint32_t kAfterProvider = FEIGN_MODIFIER | FEIGN_REPLAYER | FEIGN_WRITER;
constexpr uint32_t kAnyRole = kProvider | kAfterProvider;

Error in_place(const PluginSpec& spec, Error error) {
  return spec.where.empty() ? std::move(error) : std::move(error).within(spec.where);
}

}  // namespace

Result<std::vector<Component>> meant(const PluginSpec& spec, uint32_t roles, Plugins& plugins) {
  const std::vector<std::string> args = as_arguments(spec.options);
  if (spec.name.find('/') != std::string::npos) {
    auto all = plugins.open(spec.name, args);
    if (!all) return all;
    for (const Component& c : *all)
      if (c.short_form && (c.table->role & roles)) return all;  // in all of its roles
  }
  auto found = plugins.find(spec.name, roles, args);  // or says why not
  if (!found) return std::move(found.error());
  return std::vector{*found};
}

bool has_option(const PluginSpec& spec, uint32_t roles, const std::string& option,
                Plugins& plugins) {
  auto found = meant(spec, roles, plugins);
  if (!found) return true;
  for (const Component& c : *found) {
    if (c.short_form) return true;
    for (uint32_t i = 0; i < c.table->option_count; ++i)
      if (option == option_at(*c.table, i).name) return true;
  }
  return false;
}

Result<Line> choose(const std::vector<PluginSpec>& specs, Plugins& plugins) {
  Line line;
  for (const PluginSpec& spec : specs) {
    const uint32_t place = line.providers.empty() ? kProvider : kAfterProvider;
    auto found = meant(spec, spec.roles != 0 ? spec.roles : place, plugins);
    if (!found && spec.roles == 0)  // what is wrong with the line is said of the whole
      if (auto other = meant(spec, kAnyRole, plugins)) found = std::move(other);
    if (!found) return in_place(spec, std::move(found.error()));
    for (const Component& c : *found) line.of(c.table->role).push_back({c, spec});
  }
  const auto names = [](const std::vector<Chosen>& list) {
    std::string text;
    for (const Chosen& c : list)
      text += (text.empty() ? "" : ", ") + std::string(c.component.table->name);
    return text;
  };
  if (line.providers.empty())
    return Error(
        FEIGN_ERR_ARGUMENT,
        "no provider: the first plug-in must be one that reads a trace, such as strace,file=FILE");
  if (line.providers.size() > 1)
    return Error(FEIGN_ERR_ARGUMENT, "two providers (" + names(line.providers) + "): want one");
  std::set<std::string> layers;
  for (const Chosen& c : line.replayers) {
    const auto& api = *static_cast<const feign_replayer*>(c.component.table->api);
    const bool all = api.layers == nullptr && line.replayers.size() > 1;
    bool twice = all;
    for (const char* const* l = api.layers; l != nullptr && *l != nullptr; ++l)
      twice |= !layers.insert(*l).second;
    if (twice)
      return Error(FEIGN_ERR_ARGUMENT, (line.replayers.size() == 2 ? "two" : "several") +
                                           (" replayers (" + names(line.replayers)) +
                                           ") serve the same layer: want one for each");
  }
  if (line.replayers.size() > kMostReplayers)
    return Error(FEIGN_ERR_ARGUMENT, std::to_string(line.replayers.size()) + " replayers (" +
                                         names(line.replayers) + "): want at most " +
                                         std::to_string(kMostReplayers));
  return line;
}

Result<void> add_depend(Line& line, PluginSpec spec, Plugins& plugins) {
  for (const Chosen& c : line.modifiers)
    if (std::string_view(c.component.table->name) == "depend") return {};
  spec.name = "depend";
  auto found = plugins.find(spec.name, FEIGN_MODIFIER);
  if (!found) return std::move(found.error());
  line.modifiers.push_back({*found, std::move(spec)});
  return {};
}

PluginSpec depend_for(const Line& line, bool several) {
  PluginSpec spec;
  for (const Chosen& c : line.replayers) {
    if (!several || std::string_view(c.component.table->name) != "mpi") continue;
    bool makes = true;
    std::string io = "real";
    for (const auto& option : c.spec.options) {
      makes &= option.first != "comm" || option.second != "none";
      if (option.first == "io") io = option.second.value_or("");
    }
    if (io == "order" || (io == "real" && !makes)) spec.options.emplace_back("io", io);
    if (makes)
      spec.options.emplace_back("rules", "handle+path+file+process+channel+threads+recorded");
  }
  return spec;
}

Result<std::unique_ptr<Instance>> make(const Chosen& chosen, Tables& tables,
                                       Extensions& extensions) {
  auto instance =
      Instance::create(chosen.component, chosen.spec, tables, Extensions::get, &extensions);
  if (!instance) return in_place(chosen.spec, std::move(instance.error()));
  return instance;
}

Result<Left> make_left(const Line& line, Tables& tables, Extensions& extensions) {
  extensions.tables = &tables;
  Left left;
  auto provider = make(line.providers.front(), tables, extensions);
  if (!provider) return std::move(provider.error());
  left.provider = std::move(*provider);
  for (const Chosen& c : line.modifiers) {
    auto made = make(c, tables, extensions);
    if (!made) return std::move(made.error());
    left.modifiers.push_back(std::move(*made));
  }
  return left;
}

}  // namespace feign
