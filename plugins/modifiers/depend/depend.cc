// SPDX-License-Identifier: MIT
// Modifier depend: gives each activity the dependencies that keep it right when streams run side by
// side: what it must come after, for which reason. docs/dependencies.md has the rules with a
// picture each.
//
// One pass, in the order of the trace. Each thing that calls can disagree about (a handle, a name,
// a range of bytes, a pipe) remembers its last accesses; a call gets an edge to each of them that
// it must not overtake, unless that follows from other edges (clocks.h). Edges lead to earlier ids
// only, so there is no cycle.
#include "modifiers/depend/depend.h"

#include <cstddef>
#include <cstring>
#include <iterator>
#include <new>
#include <string_view>

#include "base/input.h"
#include "base/number.h"
#include "feign.hpp"
#include "trace/record.h"

namespace depend {

void Depend::after(Point p, const char* rule) {
  if (p.id == 0 || p.stream == me_.stream) return;
  want(still_in_mpi(p) ? met(p) : waits_for_some(p) ? come_before(p) : p, rule);
}

// Whether or not both were in MPI at a time.
void Depend::want(Point p, const char* rule) {
  if (p.id == 0 || p.stream == me_.stream || p.id >= me_.id) return;
  if (options_.reduce && clocks_.known(me_.stream, p)) return;
  // One that begins later in a replay cannot be waited for.
  if (p.stream < streams_.size() && streams_[p.stream].may_begin >= me_.id) return;
  for (Wanted& w : wanted_)
    if (w.p.stream == p.stream && (options_.reduce || w.rule == rule)) {
      if (w.p.id < p.id) w = {p, rule};
      return;
    }
  wanted_.push_back({p, rule});
}

feign_status Depend::emit_edges(feign_activity& a) {
  // Latest first: an edge can follow from one to a later activity only.
  if (wanted_.size() > 1)
    std::sort(wanted_.begin(), wanted_.end(),
              [](const Wanted& x, const Wanted& y) { return x.p.id > y.p.id; });
  for (const Wanted& w : wanted_) {
    if (options_.reduce) {
      if (clocks_.known(me_.stream, w.p)) continue;
      clocks_.learn(me_, w.p);
    }
    if (const feign_status s = host_->depend(host_, &a, w.p.stream, w.p.id, w.rule); s < 0)
      return s;
  }
  wanted_.clear();
  return FEIGN_OK;
}

// Behind the last that begins with `id` or before.
static auto upto(const auto& inside, uint64_t id) {
  return std::upper_bound(inside.begin(), inside.end(), id,
                          [](uint64_t i, const auto& in) { return i < in.id; });
}

// Which calls lie in one of MPI. What MPI reads from connections of its own may be for a message
// that nobody asked for yet, and which of the threads that are in MPI lets the others go on is not
// the same twice.
void Depend::in_mpi(const feign_activity& a) {
  Stream& s = streams_[a.stream];
  if (FEIGN_DEPTH(a.marks) > s.mpi) {
    // When a call is over that MPI called back for, what is deeper lies in the one that did.
    auto in = std::find_if(s.inside.rbegin(), s.inside.rend(),
                           [&](const Inside& one) { return a.start_ns < one.until; });
    if (in == s.inside.rend()) in = s.inside.rbegin();
    if (in != s.inside.rend()) in->last = a.id;
    return;
  }
  const bool mpi = effects_[a.op].mpi;
  // What is as deep and comes before its end is done by a function that it called back.
  if (mpi || FEIGN_DEPTH(a.marks) < s.mpi || a.start_ns >= s.mpi_end) {
    s.mpi = mpi ? FEIGN_DEPTH(a.marks) : UINT32_MAX;
    s.mpi_end = a.start_ns + a.duration_ns;
  }
  const bool made = mpi && (!on(kMpi) || meets_without_messages(a));
  if (!made && (s.inside.empty() || s.inside.back().end == 0)) return;
  if (s.inside.size() == kMostInside) s.inside.erase(s.inside.begin(), s.inside.end() - 8);
  Inside& in = s.inside.emplace_back(Inside{a.id, made ? a.start_ns + a.duration_ns : 0, a.id});
  if (!made) return;
  in.until = in.end;
  const feign::Does does = message_of(a.op).does;
  const bool waits = effects_[a.op].effect == Effect::kNone && does != feign::Does::kInit &&
                     does != feign::Does::kFinalize;
  if (!waits) in.end = 0;
  if (options_.io == kIoOrder) file_meets(a, in);
}

// Collective calls on files can be made where messages are not, and others wait in them.
bool Depend::meets_without_messages(const feign_activity& a) {
  if (options_.io != kIoReal) return false;
  const Message& m = message_of(a.op);
  if (!m.file || m.meets != feign::Does::kMeet) return false;
  const uint32_t comm = comm_of_file(a, m);
  return comm != 0 && comm_of(comm).members > 1;
}

// A call of MPI-IO is not made: all ranks come to it, if it is a collective one, then what lies in
// it is.
void Depend::file_meets(const feign_activity& a, Inside& in) {
  const Message& m = message_of(a.op);
  if (!m.file) return;
  in.end = 0;
  in.file = true;
  in.start = a.start_ns;
  if (m.meets != feign::Does::kMeet) return;
  const uint32_t comm = comm_of_file(a, m);
  if (comm == 0 || comm_of(comm).members < 2) return;
  comes(comm_of(comm), a.id);
  if (m.begins) return;
  in.comm = comm;
  in.number = comm_of(comm).next[streams_[a.stream].rank]++;
  in.end = a.start_ns + a.duration_ns;
}

// In the recording some rank may have gone on from a collective call before others came to it. In a
// replay it does not, nor if it only began the call and waits for its request.
void Depend::comes(Comm& comm, uint64_t id) {
  const int32_t rank = streams_[me_.stream].rank;
  if (on(kMpi) || apart_ || rank < 0) return;
  const uint64_t number = comm.comes[rank]++;
  auto& came = comm.some_came[number];
  came.emplace_back(rank, id);
  some_came_[rank].emplace(id, Point{me_.stream, me_after_});
  if (came.size() < comm.members) return;
  for (const auto& [one, its] : came) some_came_[one].erase(its);
  comm.some_came.erase(number);
}

// Whether what a rank does there may come after a call that it goes on from when all have come, and
// some have not: they may come when this one has ended.
bool Depend::waits_for_some(Point p) const {
  if (some_came_.empty()) return false;
  const int32_t rank = unit_of(p.stream);
  const auto at = some_came_.find(rank);
  return at != some_came_.end() && !at->second.empty() && at->second.begin()->first <= p.id &&
         rank != unit_of(me_.stream);
}

// The last call of that stream that is known to come before these, or lies in one to which this
// rank has come as well. An earlier change of what this call is about may have been waited for by
// way of `p` alone, so it is not enough to leave that out.
Point Depend::come_before(Point p) const {
  const auto& [first, its] = *some_came_.at(unit_of(p.stream)).begin();
  Point before = its;
  if (its.stream != p.stream) {  // of another thread only what lies in MPI is at hand
    const auto& inside = streams_[p.stream].inside;
    const auto at = upto(inside, first - 1);
    before = {p.stream, at != inside.begin() ? std::prev(at)->last : 0};
  }
  if (still_in_mpi(before)) before = {};
  const Point both_came = met(p);
  return both_came.id > before.id ? both_came : before;
}

// Of ranks that are apart: which of them are in MPI, and since when others may keep them waiting.
void Depend::ranks(const feign_activity& a) {
  const Message& m = message_of(a.op);
  const int32_t number = streams_[a.stream].rank;
  switch (m.does) {
    case feign::Does::kNothing:
    case feign::Does::kMakeType:
      if (!m.file) return;
      break;
    case feign::Does::kInit:
      if (const auto at = ranks_.find(number); at != ranks_.end()) next_job(at->second);
      if (in_mpi_ == 0) {  // what they did before is over
        for (auto& [one, rank] : ranks_) rank.meets = UINT64_MAX;
        first_meets_ = UINT64_MAX;
      }
      break;
    case feign::Does::kFinalize:
      if (std::exchange(ranks_[number].in_mpi, false)) --in_mpi_;
      return;
    default:
      break;
  }
  Rank& rank = ranks_[number];
  rank.group = streams_[a.stream].group;
  if (!std::exchange(rank.in_mpi, true)) ++in_mpi_;
  if (m.does == feign::Does::kInit) return;
  rank.meets = std::min(rank.meets, a.id);
  first_meets_ = std::min(first_meets_, a.id);
}

// A process that has ended is a rank no more, with MPI_Finalize or without (MPI_Abort, a signal).
void Depend::left_mpi(uint64_t group) {
  if (in_mpi_ == 0) return;
  for (auto& [number, rank] : ranks_)
    if (rank.group == group && std::exchange(rank.in_mpi, false)) --in_mpi_;
}

// Another process is this rank now: of a launcher that was interrupted nobody tells when its ranks
// ended.
void Depend::next_job(Rank& rank) {
  const uint64_t before = std::exchange(rank.group, streams_[me_.stream].group);
  if (before == rank.group) return;
  left_mpi(before);
  if (std::exchange(rank.in_mpi, false)) --in_mpi_;
  rank.meets = UINT64_MAX;
  if (const auto at = processes_.find(before); at != processes_.end())
    for (const uint32_t s : at->second.streams) after({s, clocks_.last(s)}, kProcess);
}

// Whether whatever comes after that can wait for it, though it is another rank's: nobody has to
// call MPI before it is made, or nobody will after it.
bool Depend::waits_for_no_message(Point p) const {
  if (in_mpi_ == 0) return true;
  const int32_t unit = unit_of(p.stream);
  if (unit < 0) return p.id < first_meets_;  // a launcher's, which some rank's process does
  const auto rank = ranks_.find(unit);
  return rank == ranks_.end() || p.id < rank->second.meets;
}

void Depend::begins_to_help(uint32_t stream, Point fork) {
  if (on(kMpi) || options_.io != kIoOrder || fork.stream >= streams_.size()) return;
  Stream& s = streams_[stream];
  const auto& inside = streams_[fork.stream].inside;
  const auto at = upto(inside, fork.id);
  s.helps = streams_[fork.stream].helps;
  if (at != inside.begin() && std::prev(at)->file && fork.id <= std::prev(at)->last)
    s.helps = fork.stream;
  if (s.helps != 0) streams_[s.helps].helpers.push_back(stream);
}

// What a thread does that a call of MPI-IO made, it does for such calls: none before the one at
// which it did so. Whoever waits for one of them to be over has waited for it.
void Depend::helpers(const feign_activity& a) {
  Stream& s = streams_[a.stream];
  if (s.helps != 0) {
    const auto& inside = streams_[s.helps].inside;
    const auto at = std::find_if(inside.rbegin(), inside.rend(), [&](const Inside& in) {
      return in.file && in.start <= a.start_ns;
    });
    if (at != inside.rend()) after({s.helps, at->id}, kThreads);
  }
  if (FEIGN_DEPTH(a.marks) > s.mpi) return;
  if (s.helped)
    for (const uint32_t other : s.helpers) after({other, clocks_.last(other)}, kThreads);
  const Message* m = effects_[a.op].mpi ? &message_of(a.op) : nullptr;
  s.helped = m != nullptr && (m->ends || (m->file && !m->begins));
}

// The last call up to `p` of its stream that lies in a call that the rank at this call has come to,
// as its own has: it waits for nothing of this rank that is still to come.
Point Depend::met(Point p) const {
  if (options_.io != kIoOrder || p.stream >= streams_.size()) return {};
  const auto& inside = streams_[p.stream].inside;
  for (auto at = upto(inside, p.id); at != inside.begin();) {
    --at;
    if (at->comm == 0) continue;
    const auto& next = comms_.at(at->comm).next;
    const auto mine = next.find(streams_[me_.stream].rank);
    if (mine != next.end() && mine->second > at->number)
      return {p.stream, std::min(p.id, at->last)};
  }
  return {};
}

// Where MPI's calls are made, what lies in one has ended when that has: it may wait for the rank
// that is at this call, which began before.
bool Depend::still_in_mpi(Point p) const {
  if (p.stream >= streams_.size()) return false;
  const auto& inside = streams_[p.stream].inside;
  const auto at = upto(inside, p.id);
  return at != inside.begin() && std::prev(at)->end > me_start_;
}

void Depend::window(const feign_activity& a) {
  for (const uint32_t other : clocks_.live()) {
    if (other == a.stream) continue;
    const auto& calls = streams_[other].calls;
    // Of a stream, calls end in the order of their ids.
    const auto late = std::upper_bound(
        calls.begin(), calls.end(), a.start_ns,
        [&](uint64_t start, const auto& call) { return start < call.first + options_.window; });
    if (late != calls.begin()) after({other, std::prev(late)->second}, kWindow);
  }
  auto& own = streams_[a.stream].calls;
  const uint64_t end = a.start_ns + a.duration_ns;
  own.emplace_back(own.empty() ? end : std::max(end, own.back().first), a.id);
  if (own.size() > kMostCalls) own.erase(own.begin(), own.begin() + kMostCalls / 2);
}

Effect Depend::effect_of(uint32_t op) {
  if (op >= effects_.size()) effects_.resize(op + size_t{1});
  Kind& kind = effects_[op];
  if (!kind.known) {
    kind.known = true;
    const feign_op_info* info = host_->op_info(host_, op);
    kind.library = tables_ != nullptr && !tables_->ops.own(op);
    kind.mpi = info != nullptr && strncmp(info->layer, "mpi", 3) == 0;
    if (info != nullptr && tables_ != nullptr)
      if (const feign::Call* call = tables_->ops.call(op); call != nullptr) {
        kind.effect = call->effect;
        kind.buffered = strcmp(info->layer, "stdio") == 0;
      }
    // resolve keeps account of the unlink in it; who orders names wants it where it is made.
    if (kind.mpi && strcmp(info->name, "MPI_File_delete") == 0) kind.effect = Effect::kUnlink;
  }
  return kind.effect;
}

void Depend::activity(feign_activity& a) {
  const Effect effect = effect_of(a.op);
  me_ = {a.stream, a.id};
  me_start_ = a.start_ns;
  me_after_ = clocks_.last(a.stream);
  const Point here = {a.stream, me_after_};
  clocks_.begin(me_);
  Stream& s = stream_of(a.stream);
  if (apart_ && effects_[a.op].mpi) ranks(a);
  for (const auto& [p, rule] : s.owed) after(p, rule);
  s.owed.clear();
  if (a.marks & FEIGN_DEPENDS) {
    auto& depends = feign::Record::of(&a)->depends;
    for (const feign::Dependency& d : depends) {
      const char* rule = d.rule != 0 ? host_->text(host_, d.rule, nullptr) : kRuleNames[kRecorded];
      if (on(kRecorded)) after({d.stream, d.id}, rule);
    }
    depends.clear();
    a.marks &= ~uint32_t{FEIGN_DEPENDS};
  }
  if (on(kProcess)) processes(a, effect);
  if (on(kMpi) && effect == Effect::kNone) mpi(a, here);
  if (on(kThreads) && effects_[a.op].mpi) threads(a);
  if (effects_[a.op].library)
    library_call(a);
  else if (on(kHandle) || on(kFile) || on(kChannel))
    handles(a, effect);
  const bool on_file = !(a.marks & FEIGN_NOT_A_FILE) || a.path != 0;
  // Of MPI's calls those that open are made, not what lies in them, which would wait too late.
  const bool mpi_opens =
      effects_[a.op].mpi && !on(kMpi) && options_.io != kIoOrder && message_of(a.op).opens;
  if (on(kPath) && on_file) names(a, mpi_opens ? Effect::kOpen : effect);
  if (on(kFile)) {
    if (mpi_opens) finds(a);
    bytes(a, effect);
    if (effect == Effect::kAioWait) {
      auto done = std::move(streams_[a.stream].aio);
      streams_[a.stream].aio.clear();
      for (const auto& [file, range] : done) write(files_[file], range[0], range[1], false);
    }
  }
  if (options_.io == kIoOrder && on(kThreads) && !on(kMpi)) helpers(a);
  in_mpi(a);
  const bool mpis_own = FEIGN_DEPTH(a.marks) > streams_[a.stream].mpi &&
                        ((a.marks & FEIGN_BOTH_WAYS) || effect == Effect::kFutex);
  if (on(kChannel) && !mpis_own) channels(a, effect);
  if (on(kTrace)) {
    after(before_, kTrace);
    before_ = me_;
  }
  if (on(kWindow)) window(a);
  if (on(kExplicit)) {
    for (; next_edge_ < edges_.size() && edges_[next_edge_].number == number_; ++next_edge_)
      after(edge_ends_[edges_[next_edge_].after], kExplicit);
    if (const auto at = edge_ends_.find(number_); at != edge_ends_.end()) at->second = me_;
  }
  ++number_;
}

feign_status Depend::process(const feign_window& in, feign_sink* out) {
  for (size_t i = 0; i < in.due; ++i) {
    feign_activity* a = in.items[i];
    after_end_ = 0;
    activity(*a);
    if (const feign_status s = emit_edges(*a); s < 0) return s;
    Stream& stream = streams_[a->stream];
    if (FEIGN_DEPTH(a->marks) == 0) a->compute_ns += std::exchange(stream.extra, 0);
    stream.last_end = std::max(stream.last_end, a->start_ns + a->duration_ns);
    // Without an edge the wait takes its recorded time, this included.
    if (a->marks & FEIGN_DEPENDS) stream.extra += after_end_;
    if (const feign_status s = out->emit(out, a); s < 0) return s;
  }
  if (in.at_end && in.due == 0 && next_edge_ < edges_.size())
    return fail(std::string(options_.edges) + ": activity " +
                std::to_string(edges_[next_edge_].number) + " is not in the trace, which has " +
                std::to_string(number_));
  return FEIGN_OK;
}

// ---- options

feign_status Depend::read_edges() {
  auto input = feign::Input::open(options_.edges);
  if (!input) return fail(input.error().text());
  feign::Lines lines(std::move(*input));
  std::string_view line;
  while (true) {
    auto more = lines.next(line);
    if (!more) return fail(more.error().text());
    if (!*more) break;
    if (const size_t comment = line.find('#'); comment != line.npos) line = line.substr(0, comment);
    std::vector<std::string_view> words;
    for (size_t i = 0; i < line.size();) {
      const size_t start = line.find_first_not_of(" \t\r", i);
      if (start == line.npos) break;
      i = std::min(line.find_first_of(" \t\r", start), line.size());
      words.push_back(line.substr(start, i - start));
    }
    if (words.empty()) continue;
    const std::string where =
        std::string(options_.edges) + ":" + std::to_string(lines.number()) + ": ";
    Edge e{};
    if (words.size() != 3 || words[1] != "after" || !feign::to_number(words[0], e.number) ||
        !feign::to_number(words[2], e.after))
      return fail(where + "\"" + std::string(line.substr(0, 60)) +
                  "\": want NUMBER after NUMBER, such as 17 after 5");
    if (e.after >= e.number)
      return fail(where + "activity " + std::to_string(e.number) + " after activity " +
                  std::to_string(e.after) +
                  ", which does not come before it: they would wait for each other for ever");
    edges_.push_back(e);
    edge_ends_[e.after] = {};
  }
  std::stable_sort(edges_.begin(), edges_.end(),
                   [](const Edge& x, const Edge& y) { return x.number < y.number; });
  return FEIGN_OK;
}

feign_status Depend::start() {
  tables_ = static_cast<const feign::Tables*>(host_->extension(host_, "feign.tables/1"));
  if (tables_ == nullptr)
    return fail("this host does not say what calls do (extension feign.tables/1)",
                FEIGN_ERR_UNSUPPORTED);
  const std::string_view all = options_.rules;
  for (size_t i = 0; all != "none" && i <= all.size();) {
    const size_t end = std::min(all.find('+', i), all.size());
    const std::string_view one = all.substr(i, end - i);
    if (one == "none")
      return fail("rules=" + std::string(all) + ": none is all that there is then");
    const auto* at = std::find(std::begin(kRuleNames), std::end(kRuleNames), one);
    if (at == std::end(kRuleNames))
      return fail("rules=" + std::string(all) + ": no rule \"" + std::string(one) +
                  "\": want handle, path, file, process, channel, mpi, threads, recorded, window, "
                  "explicit, trace, with + between, or none");
    rules_ |= 1u << (at - kRuleNames);
    i = end + 1;
  }
  apart_ = options_.ranks == kApart;
  if (apart_) rules_ &= ~(1u << kMpi);
  if (on(kMpi)) rules_ &= ~(1u << kThreads);  // nobody is in a call that is not made
  if (options_.window != 0) rules_ |= 1u << kWindow;
  if (options_.edges[0] != '\0') rules_ |= 1u << kExplicit;
  if (on(kWindow) && options_.window == 0)
    return fail("rules=" + std::string(all) + ": rule window wants window=DURATION");
  if (on(kExplicit) && options_.edges[0] == '\0')
    return fail("rules=" + std::string(all) + ": rule explicit wants edges=FILE");
  return on(kExplicit) ? read_edges() : FEIGN_OK;
}

}  // namespace depend

namespace {

using depend::Depend;
using depend::Options;

constexpr const char* kRanks[] = {"together", "apart", nullptr};
constexpr const char* kIos[] = {"as-messages", "real", "order", nullptr};
constexpr feign_option kOptions[] = {
    {"rules", FEIGN_OPT_TEXT, offsetof(Options, rules),
     "handle+path+file+process+channel+mpi+threads+recorded", nullptr, 0, 0,
     "Which rules make dependencies: some of handle, path, file, process, channel, mpi, threads, "
     "recorded, window, explicit, trace, with + between; or none."},
    {"window", FEIGN_OPT_DURATION, offsetof(Options, window), "0ns", nullptr, 0, 0,
     "Rule window: a call comes after all that had ended this much before it started. Turns it "
     "on."},
    {"edges", FEIGN_OPT_TEXT, offsetof(Options, edges), "", nullptr, 0, 0,
     "Rule explicit: a file with lines \"17 after 5\", numbers as feign convert OUT.txt prints "
     "them. Turns it on."},
    {"reduce", FEIGN_OPT_BOOL, offsetof(Options, reduce), "yes", nullptr, 0, 0,
     "Leave out what follows from other dependencies and the order within streams."},
    {"ranks", FEIGN_OPT_ENUM, offsetof(Options, ranks), "together", kRanks, 0, 0,
     "Apart: MPI's calls are made, and order the ranks; no dependencies between them, but on what "
     "they do before their first message and after all have come to MPI_Finalize, for recorded and "
     "explicit ones, and those that io=order has."},
    {"io", FEIGN_OPT_ENUM, offsetof(Options, io), "as-messages", kIos, 0, 0,
     "What replayer mpi has. As-messages: MPI-IO is made where rule mpi is left out. Real: also "
     "where it is not (comm=none). Order: what lies in a collective call of MPI-IO is made after "
     "all ranks have come to that, and comes before what it came before on any of them."},
};

constexpr feign_modifier kApi = feign::modifier<Depend, Options>();
constexpr feign_component kComponent =
    feign::component<Options>(kApi, "depend",
                              "Inserts dependencies, so that streams can run side by side and "
                              "nothing overtakes what it needs.",
                              kOptions);
constexpr const feign_component* kComponents[] = {&kComponent, nullptr};

}  // namespace

FEIGN_ROLES(FEIGN_MODIFIER);
extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "depend", FEIGN_VERSION, "MIT", kComponents};
