// SPDX-License-Identifier: MIT
// Modifier mpi-hints: changes what an application tells MPI-IO: hints, and whether reads and writes
// are collective. What if collective buffering were off, or data sieving on?
#include <fnmatch.h>

#include <map>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "feign.hpp"
#include "layers/mpiio_ops.h"
#include "trace/mpi_args.h"

namespace {

enum Collective : uint32_t { kAsRecorded, kYes, kNo };

struct Options {
  const char* const* set;
  const char* const* add;
  const char* const* drop;
  uint32_t collective;
};

using Hints = std::vector<std::pair<std::string, std::string>>;

std::string coded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '%')
      out += "%25";
    else if (c == '=')
      out += "%3D";
    else if (c == ';')
      out += "%3B";
    else
      out += c;
  }
  return out;
}

// Keys and values stay as they are coded in the text.
Hints parse(std::string_view text) {
  Hints hints;
  while (!text.empty()) {
    const size_t end = std::min(text.find(';'), text.size());
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t equals = pair.find('=');
    if (equals != std::string_view::npos && equals != 0)
      hints.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
  }
  return hints;
}

// "key=value" of each; the text of the first that is none in `wrong`.
Hints hints_of(const char* const* list, std::string& wrong) {
  Hints hints;
  for (; *list != nullptr; ++list) {
    const std::string_view text = *list;
    const size_t equals = text.find('=');
    if ((equals == std::string_view::npos || equals == 0) && wrong.empty()) wrong = text;
    if (equals == std::string_view::npos) continue;
    hints.emplace_back(coded(text.substr(0, equals)), coded(text.substr(equals + 1)));
  }
  return hints;
}

class Modifier {
 public:
  Modifier(const feign_host* h, const Options& o) : host(h), options(o) {}

  feign_status start() {
    std::string wrong;
    set = hints_of(options.set, wrong);
    add = hints_of(options.add, wrong);
    for (const char* const* d = options.drop; *d != nullptr; ++d) drop.emplace_back(*d);
    if (!wrong.empty())
      return host->fail(host, FEIGN_ERR_ARGUMENT,
                        ("\"" + wrong + "\": want KEY=VALUE, such as set=cb_nodes=4").c_str());
    if (set.empty() && add.empty() && drop.empty() && options.collective == kAsRecorded)
      host->log(host, FEIGN_LOG_WARN,
                "neither set, add, drop nor collective was given: all stays as it is");
    if (!set.empty() || !add.empty() || !drop.empty())
      for (const char* name : {"MPI_File_open", "MPI_File_set_view", "MPI_File_set_info"}) {
        const uint32_t op = host->op(host, "mpiio", name);
        const feign_op_info* call = host->op_info(host, op);
        for (uint32_t i = 0; call != nullptr && i < call->arg_count; ++i)
          if (std::string_view(call->args[i].name) == "info")
            info.emplace_back(op, call->args[i].index);
      }
    if (const feign_op_info* open = host->op_info(host, FEIGN_MPIIO_FILE_OPEN); open != nullptr)
      comm_at = feign::mpi::args_of_op(*open).comm;
    // What has a namesake that all ranks call.
    for (uint32_t one = FEIGN_MPIIO_FIRST; options.collective != kAsRecorded; ++one) {
      const feign_op_info* call = host->op_info(host, one);
      if (call == nullptr || std::string_view(call->layer) != "mpiio") break;
      if (call->kind != FEIGN_KIND_READ && call->kind != FEIGN_KIND_WRITE) continue;
      const uint32_t many = host->op(host, "mpiio", (std::string(call->name) + "_all").c_str());
      if (many != 0)
        ops.emplace_back(options.collective == kYes ? one : many,
                         options.collective == kYes ? many : one);
    }
    return FEIGN_OK;
  }

  feign_status process(const feign_window& in, feign_sink* out) {
    for (size_t i = 0; i < in.due; ++i) {
      if (const feign_status s = change(in.items[i]); s < 0) return s;
      if (options.collective == kYes) count(*in.items[i]);
      if (const feign_status s = out->emit(out, in.items[i]); s < 0) return s;
    }
    if (in.at_end && in.due == in.count && !std::exchange(compared, true)) say_who_makes_fewer();
    return FEIGN_OK;
  }

 private:
  int32_t rank_of(uint32_t stream) {
    const auto [at, first] = ranks.try_emplace(stream, -1);
    feign_stream_info info{};
    info.struct_size = sizeof info;
    if (first && host->stream_info(host, stream, &info) >= 0) at->second = info.rank;
    return at->second;
  }

  // What was opened together: the n-th open of a file by each rank of a communicator.
  void count(const feign_activity& a) {
    const int32_t rank = rank_of(a.stream);
    if (rank < 0) return;
    if (a.op == FEIGN_MPIIO_FILE_OPEN && a.result >= 0 && comm_at < a.value_count) {
      const auto comm = static_cast<uint32_t>(a.values[comm_at]);
      const Opening opening(comm, a.path, opens[{rank, comm, a.path}]++);
      opened[a.handle] = opening;
      made[opening].try_emplace(rank, 0);
      return;
    }
    for (const auto& [from, to] : ops)
      if (a.op == to)
        if (const auto at = opened.find(a.handle); at != opened.end()) ++made[at->second][rank];
  }

  // A rank that makes fewer collective calls than another one may keep that waiting for ever.
  void say_who_makes_fewer() const {
    for (const auto& [opening, by_rank] : made) {
      const auto& [first, most] = *by_rank.begin();
      for (const auto& [rank, calls] : by_rank) {
        if (calls == most) continue;
        const std::string text =
            std::string("collective=yes: ") + host->text(host, std::get<1>(opening), nullptr) +
            ": of reads and writes that would be collective rank " + std::to_string(first) +
            " makes " + std::to_string(most) + ", rank " + std::to_string(rank) + " " +
            std::to_string(calls) + ": who makes more may wait for the others for ever";
        return host->log(host, FEIGN_LOG_WARN, text.c_str());
      }
    }
  }

  std::string changed(std::string_view text) const {
    Hints hints = parse(text);
    std::erase_if(hints, [&](const auto& h) {
      for (const std::string& pattern : drop)
        if (fnmatch(pattern.c_str(), h.first.c_str(), 0) == 0) return true;
      return false;
    });
    const auto put = [&](const auto& hint, bool replace) {
      for (auto& h : hints)
        if (h.first == hint.first) {
          if (replace) h.second = hint.second;
          return;
        }
      hints.push_back(hint);
    };
    for (const auto& h : set) put(h, true);
    for (const auto& h : add) put(h, false);
    std::string out;
    for (const auto& [key, value] : hints) out += (out.empty() ? "" : ";") + key + "=" + value;
    return out;
  }

  feign_status change(feign_activity* a) {
    for (const auto& [from, to] : ops)
      if (a->op == from) {
        a->op = to;
        return FEIGN_OK;
      }
    for (const auto& [op, index] : info) {
      if (a->op != op) continue;
      std::vector<uint64_t> values(a->values, a->values + a->value_count);
      if (index >= values.size()) values.resize(index + size_t{1}, 0);
      const uint64_t was = values[index] == FEIGN_UNKNOWN ? 0 : values[index];
      const std::string text = changed(host->text(host, static_cast<uint32_t>(was), nullptr));
      values[index] = host->intern(host, text.data(), text.size());
      if (values[index] == was) return FEIGN_OK;
      return host->set_values(host, a, values.data(), static_cast<uint32_t>(values.size()));
    }
    return FEIGN_OK;
  }

  const feign_host* host;
  Options options;
  Hints set, add;
  std::vector<std::string> drop;
  std::vector<std::pair<uint32_t, uint32_t>> ops;            // from, to
  std::vector<std::pair<uint32_t, uint32_t>> info;           // op, where its info is
  using Opening = std::tuple<uint32_t, uint32_t, uint64_t>;  // communicator, path, which of them
  uint8_t comm_at = feign::mpi::kAbsent;                     // among the values of an open
  std::map<uint32_t, int32_t> ranks;                         // by stream
  std::map<std::tuple<int32_t, uint32_t, uint32_t>, uint64_t> opens;  // by rank
  std::map<uint32_t, Opening> opened;                                 // by handle
  std::map<Opening, std::map<int32_t, uint64_t>> made;  // collective reads and writes, by rank
  bool compared = false;                                // … with each other
};

constexpr const char* kCollectives[] = {"as-recorded", "yes", "no", nullptr};
constexpr feign_option kOptions[] = {
    {"set", FEIGN_OPT_TEXTS, offsetof(Options, set), nullptr, nullptr, 0, 0,
     "KEY=VALUE: the hint has this value wherever a file is opened or its view or hints are set."},
    {"add", FEIGN_OPT_TEXTS, offsetof(Options, add), nullptr, nullptr, 0, 0,
     "KEY=VALUE: the same, where the application did not give that hint itself."},
    {"drop", FEIGN_OPT_TEXTS, offsetof(Options, drop), nullptr, nullptr, 0, 0,
     "Hints of this name are not given; cb_* is all that begin so."},
    {"collective", FEIGN_OPT_ENUM, offsetof(Options, collective), "as-recorded", kCollectives, 0, 0,
     "Reads and writes at explicit offsets or the individual file pointer: all collective (then "
     "all "
     "ranks that opened the file must make the same number of them), or none."},
};
constexpr feign_modifier kApi = feign::modifier<Modifier, Options>();
constexpr feign_component kComponent = feign::component<Options>(
    kApi, "mpi-hints", "Changes the hints given to MPI-IO, and what is collective.", kOptions);
constexpr const feign_component* kComponents[] = {&kComponent, nullptr};

}  // namespace

FEIGN_ROLES(FEIGN_MODIFIER);
extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "mpi-hints", FEIGN_VERSION, "MIT", kComponents};
