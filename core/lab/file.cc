// SPDX-License-Identifier: MIT
// The lab's file, read and checked: every mistake is found before the first run.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "cli/kinds.h"
#include "cli/line.h"
#include "cli/run.h"
#include "cli/yaml.h"
#include "lab/lab.h"
#include "lab/settings.h"
#include "lab/values.h"
#include "plugin/options.h"

namespace feign {
namespace {

constexpr size_t kMostConfigs = 100'000;  // more than anybody can wait for

class Reader {
 public:
  Reader(const std::string& path, Plugins& plugins, const std::string& trace,
         const std::string& root)
      : d_(path, "a map with `traces`, `variants` and `roots`"),
        plugins_(plugins),
        values_(d_, plugins),
        own_trace_(trace),
        own_root_(root) {
    lab_.file = path;
  }

  Result<Lab> read() {
    if (auto loaded = d_.load(); !loaded) return std::move(loaded.error());
    auto top = d_.pairs(*d_.root(), "a map with `traces`, `variants` and `roots`");
    if (!top) return std::move(top.error());
    yaml_node_t* variants = nullptr;
    yaml_node_t* baseline = nullptr;
    yaml_node_t* curves = nullptr;
    for (auto& [key, value] : *top) {
      Result<void> done;
      if (key == "traces" || key == "trace") {
        done = d_.each(*value, [&](yaml_node_t& n) { return trace(n); });
      } else if (key == "roots" || key == "root") {
        done = d_.each(*value, [&](yaml_node_t& n) { return root(n); });
      } else if (key == "variants") {
        variants = value;
      } else if (key == "baseline") {
        baseline = value;
      } else if (key == "curves") {
        curves = value;
      } else if (key == "repeats") {
        done = number(*value, "repeats", 1, 1'000'000, lab_.repeats);
      } else if (key == "warm-up") {
        done = number(*value, "warm-up", 0, 1000, lab_.warm_up);
      } else if (key == "seed") {
        done = number(*value, "seed", 0, UINT32_MAX, lab_.seed);
      } else if (key == "require") {
        done = share(*value);
      } else if (key == "timeout") {
        done = duration(*value, "timeout", lab_.timeout_ns);
      } else if (key == "timeline") {
        auto text = d_.scalar(*value, "none, best or all");
        if (!text) return std::move(text.error());
        if (*text != "none" && *text != "best" && *text != "all")
          return d_.error(*value, "timeline: \"" + *text + "\": want none, best or all");
        lab_.timeline = *text == "none"  ? Lab::Timeline::kNone
                        : *text == "all" ? Lab::Timeline::kAll
                                         : Lab::Timeline::kBest;
      } else if (setting(key) != nullptr) {
        auto values = values_.of_setting(key, *value);
        if (!values) return std::move(values.error());
        common_.emplace_back(key, value);
      } else {
        return d_.error(d_.key(*d_.root(), key),
                        "unknown key \"" + key +
                            "\": want traces, roots, variants, baseline, repeats, seed, "
                            "warm-up, require, timeout, timeline, curves, " +
                            setting_names());
      }
      if (!done) return std::move(done.error());
    }
    if (lab_.traces.empty()) return d_.error(*d_.root(), "there is no `traces`");
    if (!own_trace_.empty() && lab_.traces.size() > 1)
      return Error(
          FEIGN_ERR_ARGUMENT,
          "--trace: the lab has " + std::to_string(lab_.traces.size()) + " traces, want one");
    if (lab_.roots.empty()) return d_.error(*d_.root(), "there is no `roots`");
    if (variants == nullptr) return d_.error(*d_.root(), "there is no `variants`");
    if (auto done = all_variants(*variants); !done) return std::move(done.error());
    lab_.baseline = lab_.configs.front().label;
    if (baseline != nullptr) {
      auto text = d_.scalar(*baseline, "a variant's name");
      if (!text) return std::move(text.error());
      if (lab_.config(*text) == nullptr) {
        std::string known;
        for (size_t i = 0; i < lab_.configs.size() && i < 20; ++i)
          known += (known.empty() ? "" : ", ") + lab_.configs[i].label;
        return d_.error(*baseline, "baseline: \"" + *text + "\": want one of " + known);
      }
      lab_.baseline = *text;
    }
    if (curves != nullptr)
      if (auto done = d_.each(*curves, [&](yaml_node_t& n) { return curve(n); }); !done)
        return std::move(done.error());
    return std::move(lab_);
  }

 private:
  Result<void> number(yaml_node_t& n, const std::string& name, uint64_t least, uint64_t most,
                      uint64_t& to) {
    const std::string want =
        "a number from " + std::to_string(least) + " to " + std::to_string(most);
    auto text = d_.scalar(n, name + ": want " + want);
    if (!text) return std::move(text.error());
    char* end = nullptr;
    errno = 0;
    const unsigned long long v = strtoull(text->c_str(), &end, 10);
    if (text->empty() || text->find_first_not_of("0123456789") != std::string::npos || errno != 0 ||
        v < least || v > most)
      return d_.error(n, name + ": \"" + *text + "\": want " + want);
    to = v;
    return {};
  }

  Result<void> duration(yaml_node_t& n, const std::string& name, uint64_t& to) {
    auto text = d_.scalar(n, name + ": want a time, such as 500ms or 2m");
    if (!text) return std::move(text.error());
    if (!parse_duration(*text, to))
      return d_.error(n, name + ": \"" + *text + "\": want a time, such as 500ms or 2m");
    return {};
  }

  Result<void> share(yaml_node_t& n) {
    auto text = d_.scalar(n, "require: want a share such as 0.995 or 99.5%");
    if (!text) return std::move(text.error());
    char* end = nullptr;
    double v = strtod(text->c_str(), &end);
    if (end != text->c_str() && *end == '%') {
      v /= 100;
      ++end;
    }
    if (end == text->c_str() || *end != '\0' || !(v >= 0 && v <= 1))
      return d_.error(n, "require: \"" + *text + "\": want a share such as 0.995 or 99.5%");
    lab_.require = *text;
    return {};
  }

  Result<std::string> name_of(yaml_node_t& n, const char* what, std::set<std::string>& seen,
                              const std::string& text) {
    if (text.empty() || text.size() > 200) return d_.error(n, std::string(what) + ": want a name");
    if (!seen.insert(text).second)
      return d_.error(n, std::string(what) + " \"" + text +
                             "\" is there twice: `name:` gives each one of its own");
    return text;
  }

  // Where a relative path begins, for who runs an example from elsewhere.
  static std::string from_here(const std::string& path) {
    std::error_code none;
    return path.starts_with('/') ? ""
                                 : " (paths are relative to where feign runs, here " +
                                       std::filesystem::current_path(none).string() + ")";
  }

  Result<void> trace(yaml_node_t& n) {
    LabTrace t;
    const auto add_file = [&](yaml_node_t& f) -> Result<void> {
      auto text = d_.scalar(f, "a trace file");
      if (!text) return std::move(text.error());
      if (!own_trace_.empty()) {
        if (!t.files.empty()) return {};
        *text = own_trace_;
      }
      for (const std::string& file : files_of(*text)) {
        auto sum = checksum(file);
        if (!sum)
          return wrong(f, "--trace", own_trace_,
                       "trace " + sum.error().text() + ": want a trace file" + from_here(file));
        t.checksum += *sum;
      }
      t.files.push_back(*text);
      return {};
    };
    yaml_node_t* place = &n;
    bool provider = false;
    if (n.type == YAML_SCALAR_NODE) {
      if (auto done = add_file(n); !done) return done;
    } else {
      auto parts = d_.pairs(n, "a trace file, or a map with `file`");
      if (!parts) return std::move(parts.error());
      for (auto& [key, value] : *parts) {
        if (key == "file" || key == "files") {
          place = value;
          if (auto done = d_.each(*value, add_file); !done) return done;
        } else if (key == "keep-going") {
          auto yes = truth(d_, key, *value);
          if (!yes) return std::move(yes.error());
          if (*yes) t.options.push_back("--keep-going");
        } else if (key == "name" || key == "provider" || key == "ranks" || key == "cwd") {
          auto text = d_.scalar(*value, key + ": want a text");
          if (!text) return std::move(text.error());
          if (key == "name") {
            t.name = *text;
          } else {
            provider = provider || key == "provider";
            if (auto done = of_trace(*value, key, *text); !done) return done;
            t.options.push_back("--" + key);
            t.options.push_back(*text);
          }
        } else {
          return d_.error(d_.key(n, key),
                          "trace: unknown key \"" + key +
                              "\": want file, name, provider, ranks, cwd or keep-going");
        }
      }
    }
    if (t.files.empty()) return d_.error(n, "trace: want a file");
    if (!provider) {
      if (auto known = provider_for(t.files, plugins_); !known)
        return wrong(*place, "--trace", own_trace_, "trace " + known.error().text());
    }
    if (t.name.empty()) {
      t.name = t.files.front();
      if (const size_t slash = t.name.rfind('/'); slash != std::string::npos)
        t.name = t.name.substr(slash + 1);
    }
    auto name = name_of(n, "trace", trace_names_, t.name);
    if (!name) return std::move(name.error());
    if (t.name == "." || t.name == ".." || t.name.find('/') != std::string::npos)
      return d_.error(n, "trace: name \"" + t.name + "\": want one that can name a directory");
    lab_.traces.push_back(std::move(t));
    return {};
  }

  // What a trace is read with, as far as that can be checked without reading it.
  Result<void> of_trace(yaml_node_t& n, const std::string& key, const std::string& text) {
    Error why(FEIGN_OK, "");
    if (key == "ranks") {
      auto filter = filter_of_ranks(text);
      if (!filter) return d_.error(n, "ranks: \"" + text + "\": " + filter.error().text());
      if (!fits(*filter, kWith, plugins_, why)) return d_.error(n, "ranks: " + why.text());
    } else if (key == "provider") {
      auto spec = parse_plugin_spec(text, d_.at(n));
      if (!spec) return std::move(spec.error());
      if (spec->name.find('/') == std::string::npos)
        if (auto found = plugins_.find(spec->name, FEIGN_PROVIDER); !found)
          return d_.error(n, "provider: " + found.error().text());
    }
    return {};
  }

  // Of the size and the ends of a file: enough to notice that it is another one.
  static Result<std::string> checksum(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return errno_error(path, errno);
    struct stat st {};
    fstat(fd, &st);
    uint64_t h = 0xcbf29ce484222325;
    std::vector<char> part(64 << 10);
    for (const off_t at : {off_t{0}, std::max<off_t>(0, st.st_size - off_t{64 << 10})}) {
      const ssize_t got = pread(fd, part.data(), part.size(), at);
      for (ssize_t i = 0; i < got; ++i)
        h = (h ^ static_cast<unsigned char>(part[static_cast<size_t>(i)])) * 0x100000001b3;
    }
    close(fd);
    if (S_ISDIR(st.st_mode)) return Error(FEIGN_ERR_ARGUMENT, path + ": is a directory");
    return std::to_string(st.st_size) + "." + std::to_string(h) + " ";
  }

  Result<void> root(yaml_node_t& n) {
    LabRoot r;
    yaml_node_t* place = &n;
    if (n.type == YAML_SCALAR_NODE) {
      auto text = d_.scalar(n, "");
      r.path = *text;
    } else {
      auto parts = d_.pairs(n, "a directory, or a map with `path`");
      if (!parts) return std::move(parts.error());
      for (auto& [key, value] : *parts) {
        auto text = d_.scalar(*value, key + ": want a text");
        if (!text) return std::move(text.error());
        if (key == "path") {
          r.path = *text;
          place = value;
        } else if (key == "name") {
          r.name = *text;
        } else if (key == "setup" || key == "teardown") {
          (key == "setup" ? r.setup : r.teardown) = *text;
        } else if (key == "drop-caches") {
          r.drop_caches = *text == "yes" || *text == "true"   ? "all"
                          : *text == "false" || text->empty() ? "no"
                                                              : *text;
        } else if (key == "settle") {
          uint64_t ns = 0;
          const bool time = !text->empty() && (isdigit(static_cast<unsigned char>((*text)[0])));
          if (time && !parse_duration(*text, ns))
            return d_.error(*value,
                            "settle: \"" + *text + "\": want a time, such as 500ms, or a command");
          r.settle = time ? "sleep " + number_text(static_cast<double>(ns) / 1e9) : *text;
        } else {
          return d_.error(d_.key(n, key),
                          "root: unknown key \"" + key +
                              "\": want path, name, setup, teardown, drop-caches or settle");
        }
      }
    }
    if (!own_root_.empty()) {
      // What the file does for its root, it does not do for another one.
      r.path = own_root_;
      r.setup.clear();
      r.teardown.clear();
    }
    if (r.path.empty()) return d_.error(n, "root: want a directory");
    if (r.name.empty()) r.name = r.path;
    if (r.setup.empty()) {
      struct stat st {};
      if (stat(r.path.c_str(), &st) != 0)
        return wrong(*place, "--root", own_root_,
                     errno_error("root " + r.path, errno).text() +
                         ": want a directory that is there (or that `setup` makes)");
      if (!S_ISDIR(st.st_mode))
        return wrong(*place, "--root", own_root_, "root " + r.path + ": is no directory, want one");
    }
    auto name = name_of(n, "root", root_names_, r.name);
    if (!name) return std::move(name.error());
    for (const LabRoot& other : lab_.roots)
      if (other.path == r.path) return d_.error(*place, "root " + r.path + " is there twice");
    lab_.roots.push_back(std::move(r));
    return {};
  }

  Result<void> plugin(LabVariant& v, yaml_node_t& n) {
    if (n.type == YAML_SCALAR_NODE) {
      auto text = d_.scalar(n, "");
      auto spec = parse_plugin_spec(*text, d_.at(n));
      if (!spec) return std::move(spec.error());
      v.with.push_back(std::move(*spec));
      return {};
    }
    auto item = d_.pairs(n, "NAME, or NAME: {option: value}");
    if (!item) return std::move(item.error());
    if (item->size() != 1) return d_.error(n, "want one NAME: {option: value} an item");
    auto& [name, options] = item->front();
    PluginSpec spec;
    spec.name = name;
    spec.where = d_.at(n);
    if (name.empty()) return d_.error(n, "want a plug-in's name");
    const size_t number = v.with.size();
    v.with.push_back(std::move(spec));
    if (options->type == YAML_SCALAR_NODE && options->data.scalar.length == 0) return {};
    auto list = d_.pairs(*options, "a map of options for " + name);
    if (!list) return std::move(list.error());
    for (auto& [key, value] : *list) {
      auto found = values_.of(key, *value);
      if (!found) return std::move(found.error());
      if (found->size() == 1) {
        for (std::string& text : found->front()) v.with[number].options.emplace_back(key, text);
      } else {
        v.parameters.push_back({"", number, key, std::move(*found), d_.at(*value)});
      }
    }
    return {};
  }

  Result<void> add_setting(LabVariant& v, const std::string& key, yaml_node_t& n) {
    auto list = values_.of_setting(key, n);
    if (!list) return std::move(list.error());
    if (list->size() == 1)
      v.settings.emplace_back(key, list->front()[0]);
    else
      v.parameters.push_back(
          {"", LabVariant::Parameter::kSetting, key, std::move(*list), d_.at(n)});
    return {};
  }

  Result<void> points(LabVariant& v, yaml_node_t& n) {
    if (n.type != YAML_SEQUENCE_NODE)
      return d_.error(n, "points: want a list of maps of option and value");
    for (auto* i = n.data.sequence.items.start; i < n.data.sequence.items.top; ++i) {
      yaml_node_t& point = *d_.node(*i);
      auto pairs = d_.pairs(point, "points: want a map of option and value");
      if (!pairs) return std::move(pairs.error());
      std::vector<size_t> at(v.parameters.size(), 0);
      std::set<size_t> given;
      for (auto& [key, value] : *pairs) {
        auto text = d_.scalar(*value, key + ": want one value");
        if (!text) return std::move(text.error());
        auto p = parameter(v, key, *value);
        if (!p) return std::move(p.error());
        if (*p >= at.size()) at.resize(*p + 1, 0);
        given.insert(*p);
        std::vector<LabValue>& known = v.parameters[*p].values;
        const LabValue wanted{*text};
        auto found = std::find(known.begin(), known.end(), wanted);
        at[*p] = static_cast<size_t>(found - known.begin());
        if (found == known.end()) known.push_back(wanted);
      }
      if (!v.points.empty() && given != point_names_)
        return d_.error(point, "points: want the same options in each");
      point_names_ = given;
      if (std::find(v.points.begin(), v.points.end(), at) != v.points.end())
        return d_.error(point, "points: this one is there twice");
      v.points.push_back(std::move(at));
    }
    if (v.points.empty()) return d_.error(n, "points: want at least one");
    return {};
  }

  // The parameter that a name in `points` means; a new one where the option had one value or none.
  Result<size_t> parameter(LabVariant& v, const std::string& name, yaml_node_t& n) {
    std::string plugin_name, option = name;
    if (const size_t dot = name.rfind('.'); dot != std::string::npos) {
      plugin_name = name.substr(0, dot);
      option = name.substr(dot + 1);
    }
    size_t plugin = LabVariant::Parameter::kSetting;
    if (plugin_name.empty() && setting(option) != nullptr) {
      if (!good_setting(option, reinterpret_cast<const char*>(n.data.scalar.value)))
        return d_.error(n, option + ": \"" + reinterpret_cast<const char*>(n.data.scalar.value) +
                               "\": want " + setting(option)->want);
    } else {
      for (size_t i = 0; i < v.with.size(); ++i) {
        if (plugin_name.empty()
                ? v.with.size() > 1 && !has_option(v.with[i], kWith, option, plugins_)
                : v.with[i].name != plugin_name)
          continue;
        if (plugin != LabVariant::Parameter::kSetting)
          return d_.error(n, "points: \"" + name + "\" could be of " + v.with[plugin].name +
                                 " or of " + v.with[i].name + ": want PLUGIN.OPTION");
        plugin = i;
      }
      if (plugin == LabVariant::Parameter::kSetting) {
        std::string known;
        for (const PluginSpec& spec : v.with) known += (known.empty() ? "" : ", ") + spec.name;
        return d_.error(n, "points: \"" + name + "\": is of no plug-in in `with` (there are: " +
                               (known.empty() ? "none" : known) + ")");
      }
    }
    for (size_t i = 0; i < v.parameters.size(); ++i)
      if (v.parameters[i].plugin == plugin && v.parameters[i].option == option) {
        if (!from_points_.contains(i))
          return d_.error(n, "points: \"" + name + "\" has several values in `with` already");
        return i;
      }
    if (plugin != LabVariant::Parameter::kSetting)
      std::erase_if(v.with[plugin].options, [&](const auto& o) { return o.first == option; });
    else
      std::erase_if(v.settings, [&](const auto& o) { return o.first == option; });
    from_points_.insert(v.parameters.size());
    v.parameters.push_back({"", plugin, option, {}, d_.at(n)});
    return v.parameters.size() - 1;
  }

  Result<void> variant(yaml_node_t& n, const std::string& given_name, yaml_node_t* content) {
    LabVariant v;
    v.name = given_name;
    const bool nothing = content->type == YAML_SCALAR_NODE &&
                         (content->data.scalar.length == 0 ||
                          std::string(reinterpret_cast<char*>(content->data.scalar.value)) == "~");
    yaml_node_t* points_node = nullptr;
    from_points_.clear();
    point_names_.clear();
    std::set<std::string> own;
    if (!nothing) {
      auto parts =
          d_.pairs(*content, "a map of what the variant is: with, points, or " + setting_names());
      if (!parts) return std::move(parts.error());
      for (auto& [key, value] : *parts) {
        Result<void> done;
        if (key == "name") {
          auto text = d_.scalar(*value, "a name");
          if (!text) return std::move(text.error());
          v.name = *text;
        } else if (key == "with") {
          done = d_.each(*value, [&](yaml_node_t& p) { return plugin(v, p); });
        } else if (key == "points") {
          points_node = value;
        } else if (setting(key) != nullptr) {
          own.insert(key);
          done = add_setting(v, key, *value);
        } else {
          done = d_.error(
              d_.key(*content, key),
              "variant: unknown key \"" + key + "\": want name, with, points, " + setting_names());
        }
        if (!done) return done;
      }
    }
    auto name = name_of(n, "variant", variant_names_, v.name);
    if (!name) return std::move(name.error());
    for (auto& [key, node] : common_)
      if (!own.contains(key))
        if (auto done = add_setting(v, key, *node); !done) return done;
    if (points_node != nullptr)
      if (auto done = points(v, *points_node); !done) return done;
    name_parameters(v);
    if (auto done = multiply(v, n); !done) return done;
    for (const std::vector<size_t>& point : v.points) {
      std::map<std::string, LabValue> chosen;
      for (size_t i = 0; i < v.parameters.size(); ++i)
        chosen[v.parameters[i].name] = v.parameters[i].values[point[i]];
      auto config = make_config(v, chosen, plugins_);
      if (!config) return std::move(config.error());
      if (lab_.config(config->label) != nullptr)
        return d_.error(n, "variant \"" + config->label + "\" is there twice");
      lab_.configs.push_back(std::move(*config));
    }
    lab_.variants.push_back(std::move(v));
    return {};
  }

  // The option's name alone, unless that is ambiguous.
  static void name_parameters(LabVariant& v) {
    for (LabVariant::Parameter& p : v.parameters) {
      const auto same = std::count_if(v.parameters.begin(), v.parameters.end(),
                                      [&](const auto& o) { return o.option == p.option; });
      const bool own = p.plugin != LabVariant::Parameter::kSetting;
      p.name = same > 1 && own ? v.with[p.plugin].name + "." + p.option : p.option;
    }
    std::set<std::string> seen;  // one plug-in twice
    for (LabVariant::Parameter& p : v.parameters) {
      const std::string name = p.name;
      for (int i = 2; !seen.insert(p.name).second; ++i) p.name = name + "." + std::to_string(i);
    }
  }

  // Points that are listed times all values of what has several.
  Result<void> multiply(LabVariant& v, yaml_node_t& n) {
    std::vector<std::vector<size_t>> all = std::move(v.points);
    if (all.empty()) all.emplace_back();
    for (auto& point : all) point.resize(v.parameters.size(), 0);
    for (size_t i = 0; i < v.parameters.size(); ++i) {
      if (from_points_.contains(i)) continue;
      std::vector<std::vector<size_t>> more;
      if (all.size() * v.parameters[i].values.size() + lab_.configs.size() > kMostConfigs)
        return d_.error(n, "variant \"" + v.name + "\": more than " + std::to_string(kMostConfigs) +
                               " points, want fewer");
      for (const auto& point : all)
        for (size_t k = 0; k < v.parameters[i].values.size(); ++k) {
          more.push_back(point);
          more.back()[i] = k;
        }
      all = std::move(more);
    }
    v.points = std::move(all);
    return {};
  }

  Result<void> all_variants(yaml_node_t& n) {
    if (n.type == YAML_MAPPING_NODE) {
      auto pairs = d_.pairs(n, "a map of variants");
      if (!pairs) return std::move(pairs.error());
      for (auto& [name, content] : *pairs)
        if (auto done = variant(*content, name, content); !done) return done;
    } else if (n.type == YAML_SEQUENCE_NODE) {
      for (auto* i = n.data.sequence.items.start; i < n.data.sequence.items.top; ++i) {
        yaml_node_t& item = *d_.node(*i);
        if (item.type == YAML_SCALAR_NODE) {
          auto name = d_.scalar(item, "");
          yaml_node_t empty{};
          empty.type = YAML_SCALAR_NODE;
          empty.start_mark = item.start_mark;
          if (auto done = variant(item, *name, &empty); !done) return done;
        } else if (auto done = variant(item, "", &item); !done) {
          return done;
        }
      }
    } else {
      return d_.error(n, "variants: want a map of name and variant, or a list");
    }
    if (lab_.configs.empty()) return d_.error(n, "variants: want at least one");
    return {};
  }

  // {name: …, variant: …, parameter: …, baseline: 2s, points: {64KiB: 1.5s, …}}
  Result<void> curve(yaml_node_t& n) {
    const std::string form = "a map of name, variant, parameter, baseline and points";
    auto parts = d_.pairs(n, form);
    if (!parts) return std::move(parts.error());
    LabCurve c;
    uint64_t baseline = 0;
    yaml_node_t *points = nullptr, *variant = nullptr, *parameter = nullptr;
    for (auto& [key, value] : *parts) {
      if (key == "points") {
        points = value;
        continue;
      }
      if (key != "name" && key != "variant" && key != "parameter" && key != "baseline")
        return d_.error(d_.key(n, key), "curve: unknown key \"" + key + "\": want " + form);
      auto text = d_.scalar(*value, key + ": want a text");
      if (!text) return std::move(text.error());
      if (key == "baseline") {
        if (auto done = duration(*value, "baseline", baseline); !done) return done;
      } else if (key == "name") {
        c.name = *text;
      } else {
        (key == "variant" ? variant : parameter) = value;
        (key == "variant" ? c.variant : c.parameter) = *text;
      }
    }
    if (c.name.empty() || variant == nullptr || parameter == nullptr || points == nullptr ||
        baseline == 0)
      return d_.error(n, "curve: want " + form + ", and a baseline that takes time");
    const auto of = std::find_if(lab_.variants.begin(), lab_.variants.end(),
                                 [&](const LabVariant& v) { return v.name == c.variant; });
    if (of == lab_.variants.end())
      return d_.error(*variant, "curve: there is no variant \"" + c.variant + "\"");
    std::string known;
    for (const auto& p : of->parameters) known += (known.empty() ? "" : ", ") + p.name;
    if (std::none_of(of->parameters.begin(), of->parameters.end(),
                     [&](const auto& p) { return p.name == c.parameter; }))
      return d_.error(*parameter, "curve: variant " + c.variant + " has no parameter \"" +
                                      c.parameter + "\"; it has " +
                                      (known.empty() ? "none" : known));
    auto list = d_.pairs(*points, "points: a map of value and time");
    if (!list) return std::move(list.error());
    for (auto& [value, time] : *list) {
      uint64_t ns = 0;
      char* end = nullptr;
      const double plain = strtod(value.c_str(), &end);
      const bool number = end != value.c_str() && *end == '\0' && std::isfinite(plain);
      if (!number && !parse_size(value, ns) && !parse_duration(value, ns))
        return d_.error(*time, "points: \"" + value +
                                   "\": want a number, a size or a time, and the time it took");
      if (auto done = duration(*time, "points: " + value, ns); !done) return done;
      c.points.emplace_back(value, static_cast<double>(ns) / static_cast<double>(baseline));
    }
    lab_.curves.push_back(std::move(c));
    return {};
  }

  // An error about a value of the file, or about what was given in its place.
  Error wrong(const yaml_node_t& n, const char* option, const std::string& given,
              const std::string& what) const {
    return given.empty() ? d_.error(n, what)
                         : Error(FEIGN_ERR_ARGUMENT, std::string(option) + ": " + what);
  }

  Document d_;
  Plugins& plugins_;
  Values values_;
  const std::string own_trace_, own_root_;  // "" unless given
  Lab lab_;
  std::vector<std::pair<std::string, yaml_node_t*>> common_;  // settings of all variants
  std::set<std::string> trace_names_, root_names_, variant_names_;
  std::set<size_t> from_points_, point_names_;  // of the variant that is being read
};

}  // namespace

Result<Lab> load_lab(const std::string& path, Plugins& plugins, const std::string& trace,
                     const std::string& root) {
  return Reader(path, plugins, trace, root).read();
}

}  // namespace feign
