// SPDX-License-Identifier: MIT
// Plug-ins: where they are, how they are loaded, and what is refused. A shared object that is
// damaged or no plug-in at all is an error in words; one that keeps the tables' contract is trusted
// code.
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <tuple>

#include "base/program.h"
#include "plugin/crash.h"
#include "plugin/object.h"
#include "plugin/options.h"
#include "plugin/plugin.h"

#ifndef FEIGN_PLUGIN_DIR
#define FEIGN_PLUGIN_DIR "/usr/local/lib/feign/1"
#endif

// The header of the running program, which is the linker's to name.
extern "C" const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

namespace feign {
namespace {

constexpr uint32_t kMaxStruct = 4096;
constexpr size_t kMaxComponents = 1024;

bool is_directory(const std::string& path) {
  struct stat st;
  return stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Reads exactly `size` bytes at `offset`.
bool read_at(int fd, void* to, size_t size, uint64_t offset) {
  return pread(fd, to, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

// What a file tells without being loaded.
struct Outside {
  std::string fault;   // what the dynamic linker would not survive or say badly; "" if none
  uint32_t roles = 0;  // of FEIGN_ROLES(); 0 if it does not say
};

// The roles among the notes of a part of the file, 0 if they are not there.
uint32_t roles_in(int fd, const ElfW(Phdr) & part) {
  std::array<char, 4096> notes;
  const size_t size = std::min<size_t>(part.p_filesz, notes.size());
  if (!read_at(fd, notes.data(), size, part.p_offset)) return 0;
  const auto padded = [](uint64_t bytes) { return (bytes + 3) & ~uint64_t{3}; };
  for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= size;) {
    ElfW(Nhdr) note;
    std::memcpy(&note, &notes[at], sizeof note);
    at += sizeof note;
    const uint64_t told = at + padded(note.n_namesz), next = told + padded(note.n_descsz);
    if (next > size) return 0;
    uint32_t roles;
    if (note.n_namesz == sizeof "feign" && note.n_descsz == sizeof roles && note.n_type == 1 &&
        std::memcmp(&notes[at], "feign", sizeof "feign") == 0) {
      std::memcpy(&roles, &notes[told], sizeof roles);
      return roles;
    }
    at = next;
  }
  return 0;
}

Outside look_at(int fd, uint64_t size) {
  const auto fault = [](std::string why) { return Outside{std::move(why), 0}; };
  ElfW(Ehdr) head;
  if (size == 0) return fault("is empty, want a shared object");
  if (!read_at(fd, &head, sizeof head, 0) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
    return fault("is no shared object");
  // Of another machine's the dynamic linker says that there is no such file.
  if (head.e_ident[EI_CLASS] != __ehdr_start.e_ident[EI_CLASS] ||
      head.e_ident[EI_DATA] != __ehdr_start.e_ident[EI_DATA] ||
      head.e_machine != __ehdr_start.e_machine)
    return fault("is no shared object for this kind of machine");
  if (head.e_type != ET_DYN) return fault("is no shared object");
  if (head.e_phentsize != sizeof(ElfW(Phdr)))
    return fault("is damaged: its program headers are unreadable");
  std::vector<ElfW(Phdr)> parts(head.e_phnum);
  if (!read_at(fd, parts.data(), parts.size() * sizeof parts[0], head.e_phoff))
    return fault("is cut short: its program headers are missing");
  Outside found;
  for (const ElfW(Phdr) & part : parts) {
    // Touching a mapped page past the end of a file is a signal, not an error.
    if (part.p_type == PT_LOAD && (part.p_offset > size || part.p_filesz > size - part.p_offset))
      return fault("is cut short: it has " + std::to_string(size) +
                   " bytes, and says that it has " +
                   std::to_string(uint64_t{part.p_offset} + part.p_filesz));
    if (part.p_type == PT_NOTE && found.roles == 0) found.roles = roles_in(fd, part);
  }
  return found;
}

// The roles that a plug-in's file says it has; 0 if it cannot be told.
uint32_t roles_said(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat st;
  uint32_t roles = 0;
  if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
    roles = look_at(fd, static_cast<uint64_t>(st.st_size)).roles;
  if (fd >= 0) close(fd);
  return roles;
}

// dlerror(), without the path that the message already starts with.
std::string clean_dlerror(const std::string& path) {
  const char* said = dlerror();
  std::string text = said == nullptr ? "cannot be loaded" : said;
  if (text.starts_with(path + ": ")) text.erase(0, path.size() + 2);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

Error no_plugin(const std::string& path, const std::string& why) {
  return Error(FEIGN_ERR_ARGUMENT, path + ": " + why);
}

std::string abi(unsigned major, unsigned minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

bool is_text(const char* text) { return text != nullptr && *text != '\0'; }

// "null", or the text in quotation marks.
std::string quoted(const char* text) {
  return text == nullptr ? "null" : "\"" + std::string(text) + "\"";
}

struct Callback {
  const char* name;
  bool present;
};

template <size_t N>
Result<void> check_callbacks(const char* api, uint32_t struct_size,
                             const Callback (&callbacks)[N]) {
  std::string missing;
  for (const Callback& c : callbacks)
    if (!c.present) missing += (missing.empty() ? "" : ", ") + std::string(c.name) + "()";
  if (missing.empty()) return {};
  return Error(FEIGN_ERR_PLUGIN, std::string(api) + " (struct_size " + std::to_string(struct_size) +
                                     ") lacks " + missing);
}

// The bytes up to and including a field.
#define FEIGN_UPTO(type, field) (offsetof(type, field) + sizeof(type::field))
// A callback that is there: inside the struct as the plug-in knows it, and not null.
#define FEIGN_CALLBACK(api, name) \
  { #name, FEIGN_HAS(&(api), name) && (api).name != nullptr }

Result<void> check_size(const char* what, uint32_t size, size_t least) {
  if (size >= least && size <= kMaxStruct) return {};
  return Error(
      FEIGN_ERR_PLUGIN,
      "struct_size of its " + std::string(what) + " is " + std::to_string(size) + ", want at " +
          (size < least ? "least " + std::to_string(least) : "most " + std::to_string(kMaxStruct)));
}

Result<void> check_api(const feign_component& c) {
  switch (c.role) {
    case FEIGN_PROVIDER: {
      const auto& api = *static_cast<const feign_provider*>(c.api);
      if (auto sized =
              check_size("feign_provider", api.struct_size, FEIGN_UPTO(feign_provider, create));
          !sized)
        return sized;
      return check_callbacks(
          "feign_provider", api.struct_size,
          {FEIGN_CALLBACK(api, create), FEIGN_CALLBACK(api, next), FEIGN_CALLBACK(api, destroy)});
    }
    case FEIGN_MODIFIER: {
      const auto& api = *static_cast<const feign_modifier*>(c.api);
      if (auto sized =
              check_size("feign_modifier", api.struct_size, FEIGN_UPTO(feign_modifier, create));
          !sized)
        return sized;
      if (auto fits = check_lookahead(api.lookahead); !fits) return fits;
      return check_callbacks("feign_modifier", api.struct_size,
                             {FEIGN_CALLBACK(api, create), FEIGN_CALLBACK(api, process),
                              FEIGN_CALLBACK(api, destroy)});
    }
    case FEIGN_REPLAYER: {
      const auto& api = *static_cast<const feign_replayer*>(c.api);
      if (auto sized =
              check_size("feign_replayer", api.struct_size, FEIGN_UPTO(feign_replayer, create));
          !sized)
        return sized;
      return check_callbacks("feign_replayer", api.struct_size,
                             {FEIGN_CALLBACK(api, create), FEIGN_CALLBACK(api, open_stream),
                              FEIGN_CALLBACK(api, execute), FEIGN_CALLBACK(api, close_stream),
                              FEIGN_CALLBACK(api, destroy)});
    }
    case FEIGN_RANKS: {
      const auto& api = *static_cast<const feign_ranks*>(c.api);
      if (auto sized = check_size("feign_ranks", api.struct_size, FEIGN_UPTO(feign_ranks, create));
          !sized)
        return sized;
      return check_callbacks(
          "feign_ranks", api.struct_size,
          {FEIGN_CALLBACK(api, create), FEIGN_CALLBACK(api, who), FEIGN_CALLBACK(api, barrier),
           FEIGN_CALLBACK(api, send), FEIGN_CALLBACK(api, receive), FEIGN_CALLBACK(api, abort),
           FEIGN_CALLBACK(api, destroy)});
    }
    default: {
      const auto& api = *static_cast<const feign_writer*>(c.api);
      if (auto sized =
              check_size("feign_writer", api.struct_size, FEIGN_UPTO(feign_writer, create));
          !sized)
        return sized;
      return check_callbacks("feign_writer", api.struct_size,
                             {FEIGN_CALLBACK(api, create), FEIGN_CALLBACK(api, write),
                              FEIGN_CALLBACK(api, finish), FEIGN_CALLBACK(api, destroy)});
    }
  }
}

#undef FEIGN_CALLBACK

Result<void> check_component(const feign_component& c) {
  if (auto sized =
          check_size("feign_component", c.struct_size, FEIGN_UPTO(feign_component, options_size));
      !sized)
    return sized;
  if (!is_name(c.name))
    return Error(FEIGN_ERR_PLUGIN, "its name is " + quoted(c.name) + ", want [a-z][a-z0-9-]*");
  if (c.role != FEIGN_PROVIDER && c.role != FEIGN_MODIFIER && c.role != FEIGN_REPLAYER &&
      c.role != FEIGN_WRITER && c.role != FEIGN_RANKS)
    return Error(FEIGN_ERR_PLUGIN,
                 "role is " + std::to_string(c.role) +
                     ", want one of FEIGN_PROVIDER, FEIGN_MODIFIER, FEIGN_REPLAYER, FEIGN_WRITER, "
                     "FEIGN_RANKS");
  if (!is_text(c.summary)) return Error(FEIGN_ERR_PLUGIN, "it has no summary");
  if (c.api == nullptr) return Error(FEIGN_ERR_PLUGIN, "api is null");
  if (auto checked = check_api(c); !checked) return checked;
  return check_options(c);
}

// Names of the shared objects in a directory, sorted.
std::vector<std::string> objects_in(const std::string& directory) {
  std::vector<std::string> names;
  DIR* dir = opendir(directory.c_str());
  if (dir == nullptr) return names;
  while (const dirent* entry = readdir(dir)) {
    std::string name = entry->d_name;
    if (name.size() > 3 && name[0] != '.' && name.ends_with(".so"))
      names.push_back(std::move(name));
  }
  closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

// The installed plug-in directory below a prefix: its part from "lib…" on.
std::string below_prefix(const std::string& installed) {
  const size_t lib = installed.rfind("/lib");
  return lib == std::string::npos ? "" : installed.substr(lib);
}

std::string role_names(uint32_t roles) {
  std::string text;
  for (const uint32_t role :
       {FEIGN_PROVIDER, FEIGN_WRITER, FEIGN_REPLAYER, FEIGN_MODIFIER, FEIGN_RANKS})
    if (roles & role) text += (text.empty() ? "" : " or ") + std::string(role_name(role));
  return text;
}

// What a file says of itself from outside is what it holds.
Result<void> check_roles_said(const Object& object) {
  uint32_t roles = 0;
  for (const feign_component* const* c = object.plugin->components; *c != nullptr; ++c)
    roles |= (*c)->role;
  if (object.roles_said == 0 || object.roles_said == roles) return {};
  return Error(FEIGN_ERR_PLUGIN, object.path + ": FEIGN_ROLES() says " +
                                     role_names(object.roles_said) + ", its components say " +
                                     role_names(roles));
}

}  // namespace

const char* role_name(uint32_t role) {
  switch (role) {
    case FEIGN_PROVIDER:
      return "provider";
    case FEIGN_MODIFIER:
      return "modifier";
    case FEIGN_REPLAYER:
      return "replayer";
    case FEIGN_WRITER:
      return "writer";
    case FEIGN_RANKS:
      return "joiner of ranks";
    default:
      return "component";
  }
}

void* own_symbol(void* handle, const char* name) {
  void* at = dlsym(handle, name);
  if (at == nullptr) return nullptr;
  link_map* object = nullptr;
  void* from = nullptr;
  Dl_info info;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &object) != 0 ||
      dladdr1(at, &info, &from, RTLD_DL_LINKMAP) == 0)
    return nullptr;
  return from == object ? at : nullptr;
}

Result<Object> load_object(const std::string& given, const std::vector<std::string>& args,
                           ShortFormNumbers& numbers) {
  // Without a slash dlopen() would look into the system's directories.
  const std::string path = given.find('/') == std::string::npos ? "./" + given : given;
  if (path.find('\0') != std::string::npos)
    return Error(FEIGN_ERR_ARGUMENT, "the path of a plug-in holds a NUL byte");
  struct stat st;
  if (stat(path.c_str(), &st) != 0)
    return Error(FEIGN_ERR_ARGUMENT, errno_error("open plug-in " + path, errno).text());
  if (S_ISDIR(st.st_mode)) return no_plugin(path, "is a directory, want a shared object");
  if (!S_ISREG(st.st_mode)) return no_plugin(path, "is no file, want a shared object");
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Error(FEIGN_ERR_ARGUMENT, errno_error("open plug-in " + path, errno).text());
  const Outside outside = look_at(fd, static_cast<uint64_t>(st.st_size));
  close(fd);
  if (!outside.fault.empty()) return no_plugin(path, outside.fault);

  Object object;
  object.path = path;
  object.roles_said = outside.roles;
  crashes_may_be_of(path);
  object.handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object.handle == nullptr) return no_plugin(path, clean_dlerror(path));
  if (const void* at = own_symbol(object.handle, "feign_plugin_v1")) {
    object.plugin = static_cast<const feign_plugin*>(at);
    return object;
  }
  for (int major = 2; major <= 9; ++major) {
    const std::string entry = "feign_plugin_v" + std::to_string(major);
    const void* at = own_symbol(object.handle, entry.c_str());
    if (at == nullptr) continue;
    // The two sizes that start the struct are the one thing that no version may move.
    const unsigned minor = static_cast<const uint32_t*>(at)[1];
    return no_plugin(path, "needs plug-in ABI " + abi(static_cast<unsigned>(major), minor) +
                               ", this feign has " + abi(FEIGN_ABI_MAJOR, FEIGN_ABI_MINOR));
  }
  if (own_symbol(object.handle, "init") == nullptr)
    return no_plugin(path, "is no Feign plug-in: it exports neither feign_plugin_v1 nor init");
  auto loaded = ShortForm::load(object.handle, path, args, numbers);
  if (!loaded) return std::move(loaded.error()).within(path);
  object.short_form = std::move(*loaded);
  object.plugin = &object.short_form->plugin();
  return object;
}

Result<void> check_lookahead(uint32_t lookahead) {
  constexpr uint32_t kMost = 1u << 24;
  if (lookahead <= kMost) return {};
  return Error(FEIGN_ERR_PLUGIN, "look-ahead of " + std::to_string(lookahead) +
                                     " activities, want at most " + std::to_string(kMost));
}

Result<void> check_plugin(const feign_plugin& plugin, const std::string& path) {
  const auto broken = [&](const std::string& why) {
    return Error(FEIGN_ERR_PLUGIN, path + ": " + why);
  };
  if (auto sized =
          check_size("feign_plugin", plugin.struct_size, FEIGN_UPTO(feign_plugin, components));
      !sized)
    return std::move(sized.error()).within(path);
  if (plugin.abi_minor > FEIGN_ABI_MINOR)
    return broken((is_text(plugin.name) ? plugin.name : "it") + std::string(" needs plug-in ABI ") +
                  abi(FEIGN_ABI_MAJOR, plugin.abi_minor) + ", this feign has " +
                  abi(FEIGN_ABI_MAJOR, FEIGN_ABI_MINOR));
  if (!is_name(plugin.name))
    return broken("the plug-in's name is " + quoted(plugin.name) + ", want [a-z][a-z0-9-]*");
  if (!is_text(plugin.version)) return broken(std::string(plugin.name) + " has no version");
  if (!is_text(plugin.license)) return broken(std::string(plugin.name) + " has no license");
  if (plugin.components == nullptr || plugin.components[0] == nullptr)
    return broken(std::string(plugin.name) + " has no components");
  std::set<std::pair<uint32_t, std::string>> seen;
  for (size_t i = 0; plugin.components[i] != nullptr; ++i) {
    if (i == kMaxComponents)
      return broken(std::string(plugin.name) + " has more than " + std::to_string(kMaxComponents) +
                    " components: does the list end in NULL?");
    const feign_component& c = *plugin.components[i];
    if (auto checked = check_component(c); !checked) {
      const bool named = c.struct_size >= FEIGN_UPTO(feign_component, name) && is_name(c.name);
      return std::move(checked.error())
          .within(named ? role_name(c.role) + (" " + std::string(c.name))
                        : "component " + std::to_string(i + 1))
          .within(path);
    }
    if (!seen.emplace(c.role, c.name).second)
      return broken("has two components that are " + std::string(role_name(c.role)) + " " + c.name);
  }
  return {};
}

#undef FEIGN_UPTO

Result<void> check_object(const Object& object) {
  if (auto checked = check_plugin(*object.plugin, object.path); !checked) return checked;
  return check_roles_said(object);
}

struct Plugins::Impl {
  struct Loaded {
    Object object;
    std::string asked_for;
    std::vector<std::string> args;
    std::vector<Component> components;
  };
  std::vector<std::unique_ptr<Loaded>> loaded;
  ShortFormNumbers numbers;
};

Plugins::Plugins() : impl_(std::make_unique<Impl>()) { tell_crashes(); }
Plugins::~Plugins() = default;

std::vector<std::string> Plugins::directories() {
  std::vector<std::string> found;
  const auto add = [&](const std::string& directory) {
    if (!directory.empty() && std::find(found.begin(), found.end(), directory) == found.end())
      found.push_back(directory);
  };
  if (const char* set = getenv("FEIGN_PLUGIN_PATH"); set != nullptr) {
    const std::string list = set;
    for (size_t at = 0; at <= list.size();) {
      const size_t colon = std::min(list.find(':', at), list.size());
      add(list.substr(at, colon - at));
      at = colon + 1;
    }
  }
  if (const std::string program = own_program(); !program.empty()) {
    const std::string folder = directory_of(program);
    const std::string above = directory_of(folder);
    if (base_name(folder) == "core" && is_directory(above + "/plugins")) add(above + "/plugins");
    // An installed tree that was moved as a whole.
    if (const std::string moved = above + below_prefix(FEIGN_PLUGIN_DIR);
        moved != above && is_directory(moved))
      add(moved);
  }
  add(FEIGN_PLUGIN_DIR);
  return found;
}

Result<std::vector<Component>> Plugins::open(const std::string& path,
                                             const std::vector<std::string>& args) {
  for (const auto& known : impl_->loaded)
    if (known->asked_for == path && (!known->object.short_form || known->args == args))
      return known->components;
  auto object = load_object(path, args, impl_->numbers);
  if (!object) return std::move(object.error());
  if (auto checked = check_object(*object); !checked) return std::move(checked.error());
  auto loaded = std::make_unique<Impl::Loaded>();
  loaded->object = std::move(*object);
  loaded->asked_for = path;
  loaded->args = args;
  const feign_plugin& plugin = *loaded->object.plugin;
  for (const feign_component* const* c = plugin.components; *c != nullptr; ++c)
    loaded->components.push_back(
        {*c, &plugin, loaded->object.path, loaded->object.short_form != nullptr});
  impl_->loaded.push_back(std::move(loaded));
  return impl_->loaded.back()->components;
}

std::vector<Component> Plugins::all(std::vector<Error>* failures, uint32_t roles) {
  std::vector<Component> found;
  std::set<std::string> files;  // the first directory that has a file of a name wins
  for (const std::string& directory : directories()) {
    for (const std::string& file : objects_in(directory)) {
      if (!files.insert(file).second) continue;
      const std::string path = directory + "/" + file;
      if (const uint32_t said = roles != kEveryRole ? roles_said(path) : 0;
          said != 0 && (said & roles) == 0)
        continue;
      auto components = open(path);
      if (components)
        found.insert(found.end(), components->begin(), components->end());
      else if (failures != nullptr)
        failures->push_back(std::move(components.error()));
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const Component& a, const Component& b) {
    return std::tuple(a.table->role, std::string_view(a.table->name)) <
           std::tuple(b.table->role, std::string_view(b.table->name));
  });
  return found;
}

bool Plugins::has_file(const std::string& name) {
  for (const std::string& directory : directories())
    if (access((directory + "/" + name + ".so").c_str(), F_OK) == 0) return true;
  return false;
}

const char* left_out_plugins() { return FEIGN_LEFT_OUT; }

Result<Component> Plugins::find(const std::string& name, uint32_t roles,
                                const std::vector<std::string>& args) {
  const auto wrong_role = [&](const std::string& what, uint32_t has) {
    return Error(FEIGN_ERR_ARGUMENT,
                 what + " is a " + role_names(has) + ", want a " + role_names(roles));
  };
  if (name.find('/') != std::string::npos) {
    auto components = open(name, args);
    if (!components) return std::move(components.error());
    std::vector<Component> fitting;
    uint32_t has = 0;
    for (const Component& c : *components) {
      has |= c.table->role;
      if (c.table->role & roles) fitting.push_back(c);
    }
    if (fitting.empty()) return wrong_role(name, has);
    // Of a name that several have, in their roles, the first is meant; as without a path.
    const auto named_alike = [&](const Component& c) {
      return std::string_view(c.table->name) == fitting.front().table->name;
    };
    if (std::all_of(fitting.begin(), fitting.end(), named_alike)) return fitting.front();
    std::string names;
    for (const Component& c : fitting)
      names +=
          (names.empty() ? "" : ", ") + std::string(role_name(c.table->role)) + " " + c.table->name;
    return Error(FEIGN_ERR_ARGUMENT,
                 name + ": holds several that would fit: " + names +
                     "; put it in a directory of $FEIGN_PLUGIN_PATH and name one");
  }
  uint32_t has = 0;
  for (const std::string& directory : directories()) {
    const std::string path = directory + "/" + name + ".so";
    if (access(path.c_str(), F_OK) != 0) continue;
    auto components = open(path, args);
    if (!components) return std::move(components.error());
    // A component of the file's name; or the file's only one, if none is called so.
    for (const Component& c : *components) {
      if (name == c.table->name && (c.table->role & roles)) return c;
      if (name == c.table->name) has |= c.table->role;
    }
    if (has == 0 && components->size() == 1) {
      if (components->front().table->role & roles) return components->front();
      has |= components->front().table->role;
    }
    break;
  }
  std::vector<std::string> names;
  std::vector<Error> failures;
  for (const Component& c : all(&failures)) {
    if (name == c.table->name) {
      // A short-form plug-in is opened once more: its init() has not seen the options.
      if (c.table->role & roles) {
        if (!c.short_form || args.empty()) return c;
        auto again = open(c.path, args);
        if (!again) return std::move(again.error());
        for (const Component& with_options : *again)
          if (with_options.table->role == c.table->role) return with_options;
      }
      has |= c.table->role;
    }
    if ((c.table->role & roles) != 0 &&
        std::find(names.begin(), names.end(), c.table->name) == names.end())
      names.emplace_back(c.table->name);
  }
  if (has != 0) return wrong_role(name, has);
  std::sort(names.begin(), names.end());
  std::string known;
  for (const std::string& n : names) known += (known.empty() ? "" : ", ") + n;
  std::string text = "unknown plug-in \"" + name + "\": ";
  if (known.empty()) {
    text += "there is none in";
    for (const std::string& directory : directories()) text += " " + directory;
  } else {
    text += "there are: " + known;
  }
  // One of ours, but not of this build.
  const std::string_view left_out = left_out_plugins();
  if (left_out.starts_with(name + ": "))
    return Error(FEIGN_ERR_UNSUPPORTED, "plug-in " + std::string(left_out));
  struct stat st {};
  if (stat(name.c_str(), &st) == 0 && S_ISREG(st.st_mode))
    return Error(FEIGN_ERR_ARGUMENT, text + "; the file of that name is ./" + name);
  return Error(FEIGN_ERR_ARGUMENT, text + did_you_mean(name, names));
}

}  // namespace feign
