// SPDX-License-Identifier: MIT
// Plug-ins: found, loaded, refused when they break the contract, and their components created with
// options.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "feign.h"
#include "plugin/options.h"
#include "trace/tables.h"

namespace feign {

// What a user asked for: --plugin NAME-OR-PATH[,key=value…], or an item of a YAML list.
struct PluginSpec {
  std::string name;  // a component's name, or the path of a shared object (it contains a '/')
  GivenOptions options;
  std::string where;   // put before errors about it: "--plugin" or "lab.yaml:3:5"
  uint32_t roles = 0;  // what may stand here: FEIGN_MODIFIER …; 0: what its place in the line says

  // What is given for an option, in order; of `file`, a provider's traces or where a writer writes.
  std::vector<std::string> values(std::string_view option) const {
    std::vector<std::string> list;
    for (const auto& [key, value] : options)
      if (key == option) list.push_back(value.value_or("yes"));
    return list;
  }
};

// Takes "name,key=value,key=value" apart; "\," is a comma, "\\" a backslash. "key" alone has no
// value.
Result<PluginSpec> parse_plugin_spec(const std::string& text, const std::string& where);

// A component and the plug-in it came from. Lives as long as the Plugins it came from.
struct Component {
  const feign_component* table;
  const feign_plugin* plugin;
  std::string path;  // of the shared object
  bool short_form = false;
};

// All plug-ins of a run. Never unloads during a run. [main]
class Plugins {
 public:
  // Where NAME is looked for, as NAME.so: $FEIGN_PLUGIN_PATH (colons), then `plugins/` as built
  // beside the command when it runs from a build tree, then the installed plug-in directory.
  Plugins();
  ~Plugins();
  static std::vector<std::string> directories();

  // The component `name` (of a shared object in the directories, by file name first, then by
  // looking into all of them) or the only component of the shared object `name` (a path) that has
  // one of the `roles` (a mask). `args`: what a short-form plug-in's init() gets. Unknown names
  // list the known.
  Result<Component> find(const std::string& name, uint32_t roles,
                         const std::vector<std::string>& args = {});
  // Whether a directory has a NAME.so.
  static bool has_file(const std::string& name);
  // Every component of a shared object.
  Result<std::vector<Component>> open(const std::string& path,
                                      const std::vector<std::string>& args = {});
  // Every component of every plug-in in the directories, by role and name. What could not be loaded
  // is said in `failures`. With `roles` (a mask), those are left out unloaded of which
  // FEIGN_ROLES() says that they have none of them.
  static constexpr uint32_t kEveryRole = UINT32_MAX;
  std::vector<Component> all(std::vector<Error>* failures, uint32_t roles = kEveryRole);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Checks a table against the contract (sizes, names, required callbacks): what is wrong, by name.
Result<void> check_plugin(const feign_plugin& plugin, const std::string& path);

// A modifier's look-ahead that is more than any machine could hold is a mistake.
Result<void> check_lookahead(uint32_t lookahead);

// One created component: its host table, its options, its self.
class Instance {
 public:
  // Parses the options by the component's table and calls its create(). `extension` answers
  // host->extension (may be null).
  static Result<std::unique_ptr<Instance>> create(
      const Component& component, const PluginSpec& spec, Tables& tables,
      const void* (*extension)(void* ctx, const char* id) = nullptr, void* extension_ctx = nullptr);
  ~Instance();  // calls destroy()

  const feign_component& component() const;
  const std::string& name() const;  // the component's name
  void* self() const;
  const feign_host& host() const;
  uint32_t lookahead() const;  // a modifier's, with its options
  template <typename Api>
  const Api& api() const {
    return *static_cast<const Api*>(component().api);
  }
  // What the component said through host->fail() since the last call of this, as an Error of that
  // code, within its name; a text of its own if it said nothing.
  Error failure(feign_status status);
  // The same of a call that gave what is not FEIGN_OK: what is no failure, its callers do not take.
  Error not_ok(const char* call, feign_status status);
  // Gets the time that the component reports as waited or slept through host->left_out().
  void set_wait_sink(void (*sink)(void* ctx, uint32_t stream, uint64_t ns, feign_passed how),
                     void* ctx);
  // Gets what it says through host->merged(); must not throw.
  void set_merge_sink(void (*sink)(void* ctx, const feign_activity& a, uint64_t into), void* ctx);

  struct Impl;

 private:
  explicit Instance(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Plug-ins of ours that are not there, and why: "" or "mpi: Open MPI was not there …".
const char* left_out_plugins();

// `feign inspect` of a component: summary and option table, as in STYLE.md.
std::string describe(const Component& component);
// The same for scripts: a JSON object.
std::string describe_json(const Component& component);

}  // namespace feign
