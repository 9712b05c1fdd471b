// SPDX-License-Identifier: MIT
// Writer siox: a folder with a binary activity file of SIOX and its side files
// (docs/siox-format.md).
//
// Numbers of calls, attributes and hosts are given as they turn up; the side files, which name
// them, are written in the end.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "feign.hpp"
#include "layers/posix_ops.h"
#include "layers/stdio_ops.h"
#include "siox/plugin.h"
#include "siox/records.h"
#include "trace/descriptors.h"
#include "trace/last.h"
#include "trace/lost.h"
#include "trace/record.h"

namespace siox {
namespace {

using feign::Descriptors;
using feign::Effect;
using feign::Lost;

struct Options {
  const char* file;
};
constexpr feign_option kOptions[] = {
    {"file", FEIGN_OPT_TEXT, offsetof(Options, file), nullptr, nullptr, 0, 0,
     "Folder to make, with activities.dat, ontology.dat, system-info.dat and association.dat."},
};

// Attributes, by the number that they have here.
enum Says : uint32_t {
  kToRead = 1,
  kToWrite,
  kRead,
  kWritten,
  kPosition,
  kExtent,
  kFlags,
  kAdvice,
  kFilename,
  kFilehandle,
  kCommRank
};
struct Attribute {
  const char* domain;
  const char* name;
  Type type;
};
constexpr Attribute kAttributes[] = {
    {"POSIX", "quantity/BytesToRead", kUint64}, {"POSIX", "quantity/BytesToWrite", kUint64},
    {"POSIX", "quantity/BytesRead", kUint64},   {"POSIX", "quantity/BytesWritten", kUint64},
    {"POSIX", "file/position", kUint64},        {"POSIX", "file/extent", kUint64},
    {"POSIX", "hints/openFlags", kUint32},      {"POSIX", "hints/advise", kInt32},
    {"POSIX", "descriptor/filename", kString},  {"POSIX", "descriptor/filehandle", kUint32},
    {"MPI", "description/commRank", kUint32}};

// When the first activity started: the trace does not say, and SIOX counts from 1970.
constexpr uint64_t kEpoch = 1'000'000'000'000'000'000;
constexpr uint16_t kComponent = 1;
constexpr uint32_t kPosix = 1, kSiox = 2;  // numbers of interfaces
constexpr uint32_t kInit = 1;              // number of SIOX's own call

// What can be said of an op.
struct Known {
  bool read = false;
  uint32_t number = 0;  // the call's; 0: it cannot be expressed
  std::string why;      // then
  const feign_op_info* info = nullptr;
  Effect effect = Effect::kUse;
  bool has_handle = false, has_handle2 = false, has_path = false, has_path2 = false,
       has_offset = false, has_length = false, has_flags = false, has_mode = false;
};

struct Thread {
  bool known = false;
  Process process;
  uint32_t thread = 1;
};

struct Program {  // a process
  int32_t rank = -1;
  uint32_t last_id = 0, threads = 0;
  Descriptors fds;
};

class Writer {
 public:
  Writer(const feign_host* host, const Options& options) : host_(host), name_(options.file) {}
  ~Writer();
  feign_status start();
  feign_status write(const feign_activity& a);
  feign_status finish();

 private:
  feign_status io_error(const std::string& what) {
    const int e = errno;
    return host_->fail(host_, FEIGN_ERR_IO, (what + ": " + strerror(e)).c_str());
  }
  const Known& known(uint32_t op);
  const Thread& thread_of(uint32_t stream);
  feign_status begin(const Thread& thread);
  feign_status record();
  feign_status put(const std::string& name, const std::string& text);

  // The record at hand.
  template <typename T>
  void add(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void add(const ActivityId& id) {
    add(id.process.node);
    add(id.process.pid);
    add(id.process.time);
    add(id.component);
    add(id.id);
    add(id.thread);
  }
  void attribute(Says what, uint64_t value) {
    add(static_cast<uint32_t>(what));
    const Type type = kAttributes[what - 1].type;
    add(static_cast<uint8_t>(type));
    if (type == kUint64)
      add(value);
    else
      add(static_cast<uint32_t>(value));
    ++attributes_;
  }
  void filename(uint32_t id) {
    size_t length = 0;
    const char* text = host_->text(host_, id, &length);
    add(static_cast<uint32_t>(kFilename));
    add(static_cast<uint8_t>(kString));
    add(static_cast<uint32_t>(length));
    bytes_.append(text, length);
    ++attributes_;
  }

  const feign_host* host_;
  std::string name_, part_;
  FILE* file_ = nullptr;
  std::vector<Known> ops_;
  std::vector<std::string> calls_ = {"init"};  // names; the number is the place, plus 1
  bool begun_ = false;
  std::vector<Thread> threads_;
  std::map<Process, Program> programs_;
  std::map<uint32_t, uint32_t> nodes_;               // by string id of the host's name
  std::unordered_map<uint32_t, ActivityId> opened_;  // which call made a handle
  std::string bytes_;
  uint32_t attributes_ = 0;
  Lost lost_;
};

Writer::~Writer() {
  if (file_ != nullptr) fclose(file_);
  if (part_.empty()) return;
  for (const char* name : {"activities.dat", "ontology.dat", "system-info.dat", "association.dat"})
    unlink((part_ + "/" + name).c_str());
  rmdir(part_.c_str());
}

feign_status Writer::start() {
  struct stat st {};
  if (lstat(name_.c_str(), &st) == 0)
    return host_->fail(host_, FEIGN_ERR_ARGUMENT,
                       (name_ + ": exists; want the name of a new folder").c_str());
  std::string part;
  for (int n = getpid();
       mkdir((part = name_ + "." + std::to_string(n) + ".part").c_str(), 0777) != 0; ++n)
    if (errno != EEXIST) return io_error("make folder " + part);
  part_ = part;
  file_ = fopen((part_ + "/activities.dat").c_str(), "we");
  return file_ != nullptr ? FEIGN_OK : io_error("open " + part_ + "/activities.dat");
}

// ---- what can be said ---------------------------------------------------------------------------

const Known& Writer::known(uint32_t op) {
  if (op >= ops_.size()) ops_.resize(op + size_t{1});
  Known& k = ops_[op];
  if (k.read) return k;
  k.read = true;
  k.info = host_->op_info(host_, op);
  if (k.info == nullptr) {
    k.why = "calls of unknown ops";
    return k;
  }
  const std::string_view layer = k.info->layer;
  const bool stdio = layer == "stdio";
  if (layer != "posix" && !stdio) {
    k.why = std::string(layer) + ":" + k.info->name + " (of another layer)";
    return k;
  }
  for (const feign::Call& call : stdio ? feign::stdio_calls() : feign::posix_calls())
    if (call.op != 0 && strcmp(call.name, k.info->name) == 0) k.effect = call.effect;
  bool has_values = false;
  for (uint32_t i = 0; i < k.info->arg_count; ++i) {
    const feign_arg_info& arg = k.info->args[i];
    k.has_handle |= arg.slot == FEIGN_SLOT_HANDLE && k.info->kind != FEIGN_KIND_OPEN;
    k.has_handle2 |= arg.slot == FEIGN_SLOT_HANDLE2;
    k.has_path |= arg.slot == FEIGN_SLOT_PATH;
    k.has_path2 |= arg.slot == FEIGN_SLOT_PATH2;
    k.has_offset |= arg.slot == FEIGN_SLOT_OFFSET;
    k.has_length |= arg.slot == FEIGN_SLOT_LENGTH;
    k.has_flags |= arg.slot == FEIGN_SLOT_FLAGS;
    k.has_mode |= arg.slot == FEIGN_SLOT_MODE && k.info->kind != FEIGN_KIND_OPEN;
    has_values |= arg.slot == FEIGN_SLOT_VALUE && arg.type != FEIGN_ARG_LIST;
  }
  const bool data = k.info->kind == FEIGN_KIND_READ || k.info->kind == FEIGN_KIND_WRITE;
  const bool dups = k.info->kind == FEIGN_KIND_DUP;
  const bool tells_result = data || dups || k.info->kind == FEIGN_KIND_OPEN ||
                            k.info->kind == FEIGN_KIND_SEEK || k.effect == Effect::kMap;
  const char* what = nullptr;
  if (k.info->kind == FEIGN_KIND_PROCESS || k.effect == Effect::kChroot)
    what = "processes";
  else if (k.has_mode)
    what = "its mode";
  else if ((has_values || (k.has_path && k.has_handle2 && data)) && k.effect != Effect::kMap)
    what = "its arguments";
  else if (k.info->kind == FEIGN_KIND_LIST || k.effect == Effect::kReadlink ||
           (!tells_result && strstr(k.info->name, "xattr") != nullptr))
    what = "its result";
  else if (!k.has_handle && !k.has_path && k.info->kind != FEIGN_KIND_OPEN &&
           k.effect != Effect::kNone)
    what = "mapped files, or asynchronous";
  if (what != nullptr) {
    k.why = std::string(k.info->name) + " (" + what + ")";
    return k;
  }
  calls_.emplace_back(k.info->name);
  k.number = static_cast<uint32_t>(calls_.size());
  return k;
}

const Thread& Writer::thread_of(uint32_t stream) {
  if (stream >= threads_.size()) threads_.resize(stream + size_t{1});
  Thread& t = threads_[stream];
  if (t.known) return t;
  t.known = true;
  feign_stream_info info{};
  (void)host_->stream_info(host_, stream, &info);
  t.process.node =
      nodes_.try_emplace(info.host, static_cast<uint32_t>(nodes_.size()) + 1).first->second;
  t.process.pid = static_cast<uint32_t>(info.process >= 0 ? info.process : stream);
  t.process.time = info.again + 1;
  Program& program = programs_[t.process];
  program.rank = info.rank;
  ++program.threads;
  // The first thread of a process has its number, if there is one; so has one that the provider
  // siox numbered.
  if (info.thread == info.process || (info.process < 0 && program.threads == 1))
    t.thread = 1;
  else if (info.thread >> 20 == info.process && (info.thread & 0xFFFFF) > 1)
    t.thread = static_cast<uint32_t>(info.thread & 0xFFFFF);
  else {
    t.thread = program.threads + 1;
    lost_.count("thread numbers");
  }
  if (info.process < 0) lost_.count("processes without a number");
  return t;
}

feign_status Writer::write(const feign_activity& a) {
  const Known& k = known(a.op);
  const Thread& thread = thread_of(a.stream);
  Program& program = programs_[thread.process];
  program.fds.ended(a, k.effect);
  if (k.number == 0) {
    lost_.count(k.why);
    return FEIGN_OK;
  }
  const uint32_t kind = k.info->kind;
  const bool reads = kind == FEIGN_KIND_READ, writes = kind == FEIGN_KIND_WRITE;
  const bool ok = a.result >= 0 && !(a.marks & FEIGN_NO_RESULT);
  if ((a.marks & FEIGN_NO_RESULT) && !reads && !writes) lost_.count("results that are not known");
  if (a.sync_ns != 0) lost_.count("times spent waiting (now pauses)");
  if (a.marks & FEIGN_DEPENDS) lost_.count("calls with dependencies (but on who opened a file)");
  if (kind == FEIGN_KIND_OPEN && (a.flags & O_CREAT) && a.mode != 0644 &&
      k.effect != Effect::kFopen)
    lost_.count("modes");
  if ((reads || writes) && a.value_count > 1) lost_.count("parts of vectors");
  if (kind == FEIGN_KIND_SEEK && a.flags != SEEK_SET) lost_.count("what lseek counts from");
  if (kind == FEIGN_KIND_STAT && (a.length != 0 || a.mode != 0))
    lost_.count("sizes and modes that a call found");

  if (a.start_ns != 0 && !begun_)  // the trace begins before its first call: as SIOX, with its own
    if (const feign_status status = begin(thread); status < 0) return status;
  begun_ = true;
  const bool reopens = k.effect == Effect::kFreopen && a.handle2 != 0;
  const int reopened = reopens ? program.fds.reopened(a, lost_) : -1;
  const int64_t result = program.fds.result(a, kind, k.effect, lost_);
  const ActivityId id{thread.process, kComponent, ++program.last_id, thread.thread};
  bytes_.clear();
  attributes_ = 0;
  add(k.number);
  add(kEpoch + a.start_ns);
  add(kEpoch + a.start_ns + a.duration_ns);
  add(id);
  const auto maker =
      a.handle != 0 && kind != FEIGN_KIND_OPEN ? opened_.find(a.handle) : opened_.end();
  add(uint32_t{maker != opened_.end()});
  if (maker != opened_.end()) add(maker->second);
  add(uint32_t{0});  // remote calls
  const size_t count_at = bytes_.size();
  add(uint32_t{0});

  const bool seeks = kind == FEIGN_KIND_SEEK && k.effect != Effect::kFseek;
  if (k.has_flags && kind == FEIGN_KIND_OPEN)
    attribute(kFlags, a.flags);
  else if (k.has_flags && kind != FEIGN_KIND_SEEK && a.flags != 0)
    attribute(kAdvice, a.flags);
  if (k.has_path && !(k.has_handle && a.handle != 0)) filename(a.path);
  if (k.has_path2) filename(a.path2);
  // The file of a descriptor that was open before, or that another process opened.
  if (!k.has_path && k.has_handle && a.handle != 0 && a.path != 0 && maker == opened_.end())
    filename(a.path);
  if (reads || writes)
    attribute(reads ? kToRead : kToWrite, a.length);
  else if (k.has_length)
    attribute(kExtent, a.length);
  if (k.has_handle && a.handle != 0)
    attribute(kFilehandle, static_cast<uint32_t>(program.fds.of(a.handle, lost_)));
  else if (k.has_handle && !k.has_path && k.effect != Effect::kMap)
    attribute(kFilehandle, UINT32_MAX);  // a number that nothing had: as -1
  if (kind == FEIGN_KIND_DUP && ok) attribute(kFilehandle, static_cast<uint32_t>(result));
  if (k.has_handle2 && kind != FEIGN_KIND_DUP && a.handle2 != 0 && k.effect != Effect::kMap &&
      !reopens)
    attribute(kFilehandle, static_cast<uint32_t>(program.fds.of(a.handle2, lost_)));
  if (seeks)
    attribute(kPosition, ok ? static_cast<uint64_t>(a.result) : a.offset);
  else if (k.has_offset)
    attribute(kPosition, a.offset);
  if ((reads || writes) && ok) attribute(reads ? kRead : kWritten, static_cast<uint64_t>(a.result));
  if (kind == FEIGN_KIND_OPEN && ok) attribute(kFilehandle, static_cast<uint64_t>(result));
  if (reopens) attribute(kFilehandle, static_cast<uint32_t>(reopened));  // behind what it made
  memcpy(bytes_.data() + count_at, &attributes_, sizeof attributes_);
  add(uint8_t{0});  // no invoker
  add(static_cast<uint32_t>(a.result < 0 && a.result > -4096 ? -a.result : 0));

  if (ok && kind == FEIGN_KIND_OPEN && a.handle != 0) opened_[a.handle] = id;
  program.fds.closed(a, k.effect, lost_);
  if (const uint32_t last = feign::last_of(a); last != 0) opened_.erase(last);
  return record();
}

// The record that SIOX writes of its own start, at time 0.
feign_status Writer::begin(const Thread& thread) {
  bytes_.clear();
  add(kInit);
  add(kEpoch);
  add(kEpoch);
  add(ActivityId{thread.process, kComponent + 1, 1, thread.thread});
  for (int i = 0; i < 3; ++i) add(uint32_t{0});  // parents, remote calls, attributes
  add(uint8_t{0});
  add(uint32_t{0});
  return record();
}

feign_status Writer::record() {
  const uint64_t size = bytes_.size();
  if (fwrite(&size, sizeof size, 1, file_) != 1 ||
      fwrite(bytes_.data(), 1, bytes_.size(), file_) != bytes_.size())
    return io_error("write " + part_ + "/activities.dat");
  return FEIGN_OK;
}

// ---- side files ---------------------------------------------------------------------------------

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

// Boost's form of a list of things.
std::string list(const char* name, const std::vector<std::string>& items) {
  std::string text = "<" + std::string(name) + ">\n\t<count>" + std::to_string(items.size()) +
                     "</count>\n\t<item_version>0</item_version>\n";
  for (const std::string& item : items) text += "\t<item>" + item + "</item>\n";
  return text + "</" + name + ">\n";
}
std::string pair(const std::string& first, const std::string& second) {
  return "<first>" + first + "</first><second>" + second + "</second>";
}

feign_status Writer::put(const std::string& name, const std::string& text) {
  const std::string path = part_ + "/" + name;
  FILE* file = fopen(path.c_str(), "we");
  if (file == nullptr) return io_error("open " + path);
  const bool good = fwrite(text.data(), 1, text.size(), file) == text.size();
  if (fclose(file) != 0 || !good) return io_error("write " + path);
  return FEIGN_OK;
}

feign_status Writer::finish() {
  if (!begun_)
    return host_->fail(host_, FEIGN_ERR_UNSUPPORTED,
                       (name_ + ": SIOX has calls of posix and stdio alone, of which there are " +
                        "none that it can say: nothing is written")
                           .c_str());
  if (fclose(std::exchange(file_, nullptr)) != 0)
    return io_error("write " + part_ + "/activities.dat");

  std::vector<std::string> items;
  uint32_t id = 0;
  for (const Attribute& a : kAttributes) {
    const std::string number = std::to_string(++id);
    items.push_back(pair(number, "<attribute><id>" + number + "</id><name>" + a.name +
                                     "</name><domain>" + a.domain + "</domain><storageType>" +
                                     std::to_string(a.type) + "</storageType></attribute>"));
  }
  const std::string ontology =
      "<MAX_VALUE>" + std::to_string(id + 1) + "</MAX_VALUE>\n" + list("map", items);

  std::vector<std::string> strings, interfaces, calls, hosts;
  for (size_t i = 0; i < calls_.size(); ++i) {
    const std::string number = std::to_string(i + 1);
    strings.push_back(pair(number, calls_[i]));
    const std::string interface = std::to_string(i + 1 == kInit ? kSiox : kPosix);
    interfaces.push_back(pair(number, interface));
    calls.push_back(pair(pair(interface, calls_[i]), number));
  }
  for (const auto& [host, node] : nodes_)
    if (host != 0)
      hosts.push_back(pair(escaped(host_->text(host_, host, nullptr)), std::to_string(node)));
  const std::string system =
      "<nextID>" + std::to_string(calls_.size() + 1) + "</nextID>\n" +
      list("valueStringMap", strings) +
      list("interfaceImplStrMap", {pair(std::to_string(kPosix), pair("POSIX", ""))}) +
      list("nodeMap", hosts) + list("activityInterfaceIDMap", interfaces) +
      list("activityMap", calls);

  std::vector<std::string> processes, components;
  for (const auto& [process, program] : programs_) {
    const std::string key = "<nid>" + std::to_string(process.node) + "</nid><pid>" +
                            std::to_string(process.pid) + "</pid><time>" +
                            std::to_string(process.time) + "</time>";
    processes.push_back(pair(key, list("attids", {}) + list("values", {})));
    if (program.rank < 0) continue;
    components.push_back(
        pair("<pid>" + key + "</pid><id>2</id>",
             list("attids", {std::to_string(kCommRank)}) +
                 list("values", {"<type>3</type><v>" + std::to_string(program.rank) + "</v>"})));
  }
  const std::string association = "<LastAssociateID>1</LastAssociateID>\n" +
                                  list("ProcessMap", processes) + list("ComponentMap", components);

  for (const auto& [name, text] : {std::pair("ontology.dat", &ontology),
                                   {"system-info.dat", &system},
                                   {"association.dat", &association}})
    if (const feign_status status = put(name, *text); status < 0) return status;
  if (rename(part_.c_str(), name_.c_str()) != 0) return io_error("rename " + part_);
  part_.clear();
  lost_.say(host_, "siox");
  return FEIGN_OK;
}

// ---- the table ----------------------------------------------------------------------------------

constexpr feign_writer kApi = feign::writer<Writer, Options>(".siox");

}  // namespace

constexpr feign_component kWriter = feign::component<Options>(
    kApi, "siox", "Writes a folder with a binary trace of SIOX.", kOptions);

}  // namespace siox
