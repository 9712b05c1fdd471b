// SPDX-License-Identifier: MIT
// Writer tracetext: the annotated text of //TRACE, one file a process (docs/tracetext-format.md).
//
// A dependency becomes a SIGNAL in the file of the process that is waited for, behind a call that
// was written long ago. So the calls go to a file beside the final one first, and the SIGNALs are
// put in when all are known; in memory are 16 bytes a SIGNAL.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/input.h"
#include "base/output.h"
#include "feign.hpp"
#include "layers/posix_ops.h"
#include "trace/call_text.h"
#include "trace/descriptors.h"
#include "trace/lost.h"
#include "trace/record.h"
#include "tracetext/plugin.h"

namespace tracetext {
namespace {

using feign::Descriptors;
using feign::Effect;
using feign::Lost;

struct WriterOptions {
  const char* file;
};
constexpr feign_option kWriterOptions[] = {
    {"file", FEIGN_OPT_TEXT, offsetof(WriterOptions, file), nullptr, nullptr, 0, 0,
     "File to write; of several processes, FILE.0, FILE.1 …, one each."},
};

constexpr uint32_t kUnknown = UINT32_MAX;

// Before the text of each call in the first file.
struct Head {
  uint64_t id;
  uint64_t compute_ns;
  uint32_t waits;  // as many uint32_t follow: indices of nodes
  uint32_t size;   // of the text that follows them
};

struct Signal {
  uint64_t id;  // after the last activity up to this one
  uint32_t to;  // index of a node
  bool operator<(const Signal& b) const { return id != b.id ? id < b.id : to < b.to; }
};

struct Written {
  feign_stream_info first{};  // its first stream
  std::string part;           // the first file's name; the second's is part + ".2"
  FILE* file = nullptr;
  uint32_t number = 0;
  uint64_t first_id = 0;
  std::vector<Signal> signals;
  std::unordered_map<uint32_t, uint64_t> waited;  // by node: the last id that it waited for
  std::vector<uint32_t> waits;                    // of its next call: indices of nodes
  Descriptors fds;
};

class Writer {
 public:
  Writer(const feign_host* host, const WriterOptions& options) : host_(host), name_(options.file) {}
  ~Writer();
  feign_status write(const feign_activity& a);
  feign_status finish();

 private:
  feign_status io_error(const char* what, const std::string& name) {
    const int e = errno;
    return host_->fail(host_, FEIGN_ERR_IO,
                       (std::string(what) + " " + name + ": " + strerror(e)).c_str());
  }
  uint32_t node_of(uint32_t stream);
  void depend(Written& node, uint32_t index, uint32_t stream, uint64_t id);
  feign_status put(Written& node, const feign_activity& a);
  feign_status complete(Written& node);
  void print(Written& node, const feign_activity& a, const feign_op_info& info, int64_t result);
  std::string final_name(const Written& node) const {
    return nodes_.size() == 1 ? name_ : name_ + "." + std::to_string(node.number);
  }

  const feign_host* host_;
  std::string name_;
  std::vector<std::unique_ptr<Written>> nodes_;
  std::vector<uint32_t> by_stream_;
  std::map<std::tuple<uint32_t, int32_t, int64_t>, uint32_t> by_process_;
  std::string line_;
  bool ordered_ = false;  // the trace has dependencies
  bool timed_ = false;    // … and shows how calls overlapped
  Lost lost_;
};

Writer::~Writer() {
  for (const auto& node : nodes_) {
    if (node->file != nullptr) fclose(node->file);
    if (node->part.empty()) continue;
    unlink(node->part.c_str());
    unlink((node->part + ".2").c_str());
  }
}

// ---- nodes and what they wait for ---------------------------------------------------------------

// The process of a stream; kUnknown when a file cannot be made.
uint32_t Writer::node_of(uint32_t stream) {
  if (stream >= by_stream_.size()) by_stream_.resize(stream + size_t{1}, kUnknown);
  if (by_stream_[stream] != kUnknown) return by_stream_[stream];
  feign_stream_info info{};
  (void)host_->stream_info(host_, stream, &info);
  // A process that is not known has one thread.
  const int64_t process = info.process >= 0 ? info.process : -static_cast<int64_t>(stream) - 1;
  const auto [at, fresh] = by_process_.try_emplace(std::tuple(info.host, info.rank, process),
                                                   static_cast<uint32_t>(nodes_.size()));
  if (fresh) {
    auto node = std::make_unique<Written>();
    node->first = info;
    node->file = feign::open_part_stream(name_ + "." + std::to_string(nodes_.size()), node->part);
    if (node->file == nullptr) {
      by_process_.erase(at);
      return kUnknown;
    }
    nodes_.push_back(std::move(node));
  } else {
    lost_.count("threads (put in line with their process's first)");
  }
  return by_stream_[stream] = at->second;
}

// Waiting for what another process had done by the activity `id`, unless it is known to have.
void Writer::depend(Written& node, uint32_t index, uint32_t stream, uint64_t id) {
  const uint32_t on = stream < by_stream_.size() ? by_stream_[stream] : kUnknown;
  if (on == index) return;
  if (on == kUnknown || nodes_[on]->first_id == 0 || id < nodes_[on]->first_id) return;
  uint64_t& before = node.waited[on];
  if (before >= id) return;
  before = id;
  nodes_[on]->signals.push_back({id, index});
  node.waits.push_back(on);
}

// ---- text ---------------------------------------------------------------------------------------

void Writer::print(Written& node, const feign_activity& a, const feign_op_info& info,
                   int64_t result) {
  line_.clear();
  feign::add_call(
      line_, a, info, result,
      [&](uint32_t id) {
        size_t length = 0;
        const char* text = host_->text(host_, id, &length);
        return std::string_view(text, length);
      },
      [&](uint32_t handle) { return node.fds.of(handle, lost_); });
  line_ += '\n';
}

feign_status Writer::write(const feign_activity& a) {
  const uint32_t index = node_of(a.stream);
  if (index == kUnknown) return io_error("open", name_ + "." + std::to_string(nodes_.size()));
  Written& node = *nodes_[index];
  ordered_ |= (a.marks & FEIGN_DEPENDS) != 0;
  if (a.marks & FEIGN_DEPENDS)
    for (const feign::Dependency& d : feign::Record::of(&a)->depends)
      depend(node, index, d.stream, d.id);
  // A child begins after the call that made it.
  feign_stream_info info{};
  if (node.first_id == 0 && host_->stream_info(host_, a.stream, &info) >= 0 && info.parent != 0)
    depend(node, index, info.parent, info.parent_id);
  return put(node, a);
}

// Writes the call, unless this format has none such: then the next one waits for what it waits for.
feign_status Writer::put(Written& node, const feign_activity& a) {
  const feign_op_info* info = host_->op_info(host_, a.op);
  const std::string name = info != nullptr ? info->name : "op " + std::to_string(a.op);
  const bool posix = info != nullptr && strcmp(info->layer, "posix") == 0;
  const Effect effect = posix && a.op < feign::posix_calls().size()
                            ? feign::posix_calls()[a.op].effect
                            : Effect::kUse;
  bool has_fd = false, has_path = false;
  for (uint32_t i = 0; info != nullptr && i < info->arg_count; ++i) {
    has_fd |= info->args[i].slot == FEIGN_SLOT_HANDLE;
    has_path |= info->args[i].slot == FEIGN_SLOT_PATH;
  }
  const char* why = nullptr;
  if (!posix)
    why = " (of another layer)";
  else if (effect == Effect::kFork || effect == Effect::kClone)
    why = " (the child waits for its parent's call before it)";
  else if (effect == Effect::kExit)
    why = " (of a thread: its process goes on)";
  else if (effect == Effect::kChroot)
    why = " (paths are absolute)";
  else if (a.handle != 0 && !has_fd && !has_path && effect != Effect::kCreat)
    why = (a.marks & FEIGN_NOT_A_FILE) != 0 ? " (of no file)"
                                            : " (of a mapped file, or asynchronous)";
  node.fds.ended(a, effect);
  if (why != nullptr) {
    lost_.count(std::string(posix || info == nullptr ? "" : info->layer) + (posix ? "" : ":") +
                name + why);
    return FEIGN_OK;
  }
  if (a.duration_ns != 0) lost_.count("durations of calls");
  timed_ |= a.duration_ns != 0;
  if (a.sync_ns != 0) lost_.count("times spent waiting");
  if (info->kind == FEIGN_KIND_STAT && (a.length != 0 || a.mode != 0) &&
      effect != Effect::kAccess && effect != Effect::kReadlink)
    lost_.count("sizes and modes that a call found");

  const int64_t result = node.fds.result(a, info->kind, effect, lost_);
  print(node, a, *info, result);
  node.fds.closed(a, effect, lost_);

  const Head head{a.id, a.compute_ns, static_cast<uint32_t>(node.waits.size()),
                  static_cast<uint32_t>(line_.size())};
  if (fwrite(&head, sizeof head, 1, node.file) != 1 ||
      (!node.waits.empty() && fwrite(node.waits.data(), sizeof(uint32_t), node.waits.size(),
                                     node.file) != node.waits.size()) ||
      fwrite(line_.data(), 1, line_.size(), node.file) != line_.size())
    return io_error("write", node.part);
  node.waits.clear();
  if (node.first_id == 0) node.first_id = a.id;
  return FEIGN_OK;
}

// ---- the final files ----------------------------------------------------------------------------

// From the first file to the second, with numbers for nodes and with SIGNALs.
feign_status Writer::complete(Written& node) {
  const std::string second = node.part + ".2";
  if (fclose(std::exchange(node.file, nullptr)) != 0) return io_error("write", node.part);
  FILE* from = fopen(node.part.c_str(), "re");
  if (from == nullptr) return io_error("open", node.part);
  FILE* to = fopen(second.c_str(), "wxe");
  if (to == nullptr) {
    fclose(from);
    return io_error("open", second);
  }
  std::sort(node.signals.begin(), node.signals.end());
  fprintf(to, "/* node %u of %zu */\n", node.number, nodes_.size());
  auto signal = node.signals.begin();
  Head head{};
  std::vector<uint32_t> waits;
  std::string text;
  bool good = true;
  while (good && fread(&head, sizeof head, 1, from) == 1) {
    waits.resize(head.waits);
    text.resize(head.size);
    good = fread(waits.data(), sizeof(uint32_t), waits.size(), from) == waits.size() &&
           fread(text.data(), 1, text.size(), from) == text.size();
    for (; signal != node.signals.end() && signal->id < head.id; ++signal)
      fprintf(to, "SIGNAL(%u)\n", nodes_[signal->to]->number);
    if (head.compute_ns != 0)
      fprintf(to, "COMPUTE(%" PRIu64 ".%09" PRIu64 ")\n", head.compute_ns / 1000000000,
              head.compute_ns % 1000000000);
    for (const uint32_t on : waits) fprintf(to, "WAIT(%u)\n", nodes_[on]->number);
    fwrite(text.data(), 1, text.size(), to);
  }
  for (; signal != node.signals.end(); ++signal)
    fprintf(to, "SIGNAL(%u)\n", nodes_[signal->to]->number);
  good &= ferror(from) == 0;
  fclose(from);
  good &= ferror(to) == 0;
  if (fclose(to) != 0 || !good) return io_error("write", second);
  return FEIGN_OK;
}

feign_status Writer::finish() {
  // A node's number is its rank, if all have one of their own.
  std::map<int32_t, int> ranks;
  bool ranked = true;
  for (const auto& node : nodes_) ranked &= node->first.rank >= 0 && ++ranks[node->first.rank] == 1;
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    Written& node = *nodes_[i];
    // In a file of its own name, the only one is read as number 0.
    node.number = ranked && nodes_.size() > 1 ? static_cast<uint32_t>(node.first.rank) : i;
    if (node.first.process >= 0 && node.first.process != node.number)
      lost_.count("process numbers");
    if (node.first.host != 0) lost_.count("host names");
    if (nodes_.size() > 1 && timed_ && !ordered_)
      lost_.count(
          "processes' waits for each other, but for who made whom (--with depend finds them)");
  }
  if (std::all_of(nodes_.begin(), nodes_.end(), [](const auto& n) { return n->first_id == 0; }))
    return host_->fail(host_, FEIGN_ERR_UNSUPPORTED,
                       (name_ + ": //TRACE's text has calls of posix alone, of which there are " +
                        "none that it can say: nothing is written")
                           .c_str());
  // Files of an older trace would be read in place of these, or as further nodes.
  if (nodes_.size() > 1)
    for (const std::string& there : feign::files_of(name_)) {
      struct stat st {};
      const bool ours = std::any_of(nodes_.begin(), nodes_.end(),
                                    [&](const auto& node) { return there == final_name(*node); });
      if (!ours && stat(there.c_str(), &st) == 0)
        return host_->fail(
            host_, FEIGN_ERR_ARGUMENT,
            (there + ": is left of an older trace, and would be read with or instead of "
                     "this one: remove it first")
                .c_str());
    }
  for (const auto& node : nodes_) {
    struct stat st {};
    if (stat(final_name(*node).c_str(), &st) == 0 && S_ISDIR(st.st_mode))
      return host_->fail(host_, FEIGN_ERR_ARGUMENT,
                         (final_name(*node) + ": is a directory, want a file to write").c_str());
  }
  for (const auto& node : nodes_)
    if (const feign_status status = complete(*node); status < 0) return status;
  for (const auto& node : nodes_)
    if (rename((node->part + ".2").c_str(), final_name(*node).c_str()) != 0)
      return io_error("rename", node->part + ".2");
  lost_.say(host_, "tracetext");
  return FEIGN_OK;
}

// ---- the table ----------------------------------------------------------------------------------

constexpr feign_writer kWriterApi = feign::writer<Writer, WriterOptions>(".tracetext");

}  // namespace

constexpr feign_component kWriter = feign::component<WriterOptions>(
    kWriterApi, "tracetext", "Writes the annotated text of //TRACE, one file a process.",
    kWriterOptions);

}  // namespace tracetext
