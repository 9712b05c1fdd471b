// SPDX-License-Identifier: MIT
// Provider strace: reads what strace(1) prints.
//
// A line is taken apart by a small tokenizer (text.h), never by searching for ") = "; which
// argument means what comes from the call's description in layers/posix.h (arguments.h). Calls
// interrupted in the text (<unfinished ...>) are put together again (source.h). Activities leave in
// the order in which they took effect: a call that makes a process or gives up a descriptor holds
// its place from its start, every other from its end; of calls on one name that overlap, as their
// results tell (overlap.h).
#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/input.h"
#include "base/path.h"
#include "feign.hpp"
#include "plugin/options.h"
#include "providers/strace/family.h"
#include "providers/strace/source.h"

namespace feign::strace {
namespace {

struct Options {
  const char* const* file;
  const char* cwd;
  const char* overhead;
  uint32_t keep_going;
};
constexpr feign_option kOptions[] = {
    {"file", FEIGN_OPT_TEXTS, offsetof(Options, file), nullptr, nullptr, 0, 0,
     "Trace file, plain, .gz or .zst; several (one a process or rank) are one trace. The prefix of "
     "strace -ff stands for all of its files."},
    {"cwd", FEIGN_OPT_TEXT, offsetof(Options, cwd), "", nullptr, 0, 0,
     "Working directory of the program, where the trace does not tell it (by -y, chdir or getcwd). "
     "Else /, or /cwd if the trace opens it."},
    {"overhead", FEIGN_OPT_TEXT, offsetof(Options, overhead), "auto", nullptr, 0, 0,
     "Time of the tracer itself in the pause before each call, taken off: auto (estimated), none, "
     "or a time such as 20us."},
    {"keep-going", FEIGN_OPT_BOOL, offsetof(Options, keep_going), "no", nullptr, 0, 0,
     "Count and skip lines that cannot be understood, instead of failing at the first."},
};

class Provider {
 public:
  Provider(const feign_host* host, const Options& options)
      : options_(options), trace_{host, options.keep_going != 0} {}
  feign_status start();
  feign_status next(size_t want, feign_sink* out);

 private:
  struct File {
    std::string path;
    uint32_t number;
    int64_t pid;          // of lines that name none
    int32_t rank = -1;    // whose the file is
    uint64_t begins = 0;  // 0: at once, as that is not known of all
    bool next_day = false;
  };

  feign_status find_overhead(const std::vector<std::string>& files);
  void find_cwd(const std::string& file, bool alone);
  void find_midnight();
  feign_status find_family();
  uint64_t when(const Source& source) const;
  Family::Wait waits(Source& source) {
    if (!family_) return Family::Wait::kNone;
    return family_->waits(source, trace_.shared, trace_.there,
                          unborn_.empty() ? INT64_MAX : unborn_.begin()->first);
  }
  feign_status begin(const File& file);
  feign_status read(Source& source);
  feign_status find_next(size_t& at);
  size_t first_by(size_t at, uint64_t from, uint64_t until, Overtakes least);
  bool opened_before(const Held& open, const Held& other) const;
  bool has_to_be_late(const Held& call) const;
  bool clashes(size_t at, uint64_t until) const;
  feign_status find_first(size_t& at);
  void says_what_lacks() const;

  Options options_;
  Trace trace_;
  std::vector<std::unique_ptr<Source>> sources_;
  // Those that are not over, and files that have not begun, the next one last: a process has its
  // directory and its descriptors of the one that makes it, and there may be more files than a
  // process may have open.
  std::vector<Source*> running_;
  std::vector<File> later_;
  // … those of processes that calls of others make, in the order in which these come: they begin
  // then, if times do not tell when that is.
  std::map<int64_t, File> unborn_;
  Source* popped_ = nullptr;  // the one whose call came last: its next one is not read yet
  bool begun_ = false, lacks_said_ = false;
  bool exact_ = true;               // each file's times tell when its calls were
  std::unique_ptr<Family> family_;  // … if not, what calls say of that
  bool origin_known_ = false;       // of several files
  uint64_t origin_ = 0;
};

// Whether each line of a text that begins so does.
bool names_process(std::string_view text) {
  Scan s(text);
  s.blanks();
  uint64_t first = 0;
  return text.starts_with("[pid") || (s.digits(first) && s.at_blank() && !is_no_process(first));
}

// Of times of day, whoever begins more than half a day before the others is of the day after, if it
// is a rank, which begins with them, or was made later.
void Provider::find_midnight() {
  std::vector<const File*> begun;
  for (const File& file : later_) begun.push_back(&file);
  std::sort(begun.begin(), begun.end(),
            [](const File* a, const File* b) { return a->begins < b->begins; });
  const auto last = std::adjacent_find(
      begun.begin(), begun.end(),
      [](const File* a, const File* b) { return b->begins - a->begins > kDay / 2; });
  if (last == begun.end()) return;
  const File &after = *begun.front(), &first = **std::next(last);
  if (first.begins >= kDay || (after.rank < 0 && after.pid < first.pid)) return;
  const uint64_t until = (*last)->begins;
  for (File& file : later_)
    if (file.begins <= until) {
      file.begins += kDay;
      file.next_day = true;
    }
}

feign_status Provider::start() {
  std::vector<std::string> files;
  for (const char* const* file = options_.file; *file != nullptr; ++file)
    for (std::string& one : files_of(*file)) files.push_back(std::move(one));
  const size_t count = files.size();
  if (count == 0)
    return trace_.host->fail(trace_.host, FEIGN_ERR_ARGUMENT, "file: want a trace file");
  if (count > 60000)
    return trace_.host->fail(trace_.host, FEIGN_ERR_ARGUMENT, "file: more than 60,000 files");
  if (*options_.cwd != '\0' && *options_.cwd != '/')
    return trace_.host->fail(
        trace_.host, FEIGN_ERR_ARGUMENT,
        ("cwd=" + std::string(options_.cwd) + ": want an absolute path").c_str());
  bool dated = count > 1;  // when each begins
  bool any_rank = false;
  std::string empty;
  for (size_t i = 0; i < count; ++i) {
    // PREFIX.PID, as -ff names them: the process of lines that name none.
    const auto number = number_of(files[i]);
    File file = {files[i], static_cast<uint32_t>(i), static_cast<int64_t>(number.value_or(i + 1))};
    if (count == 1 || !can_be_read_again(file.path)) {
      dated = false;
      later_.push_back(std::move(file));
      continue;
    }
    const auto head = head_of(file.path, 4096);
    if (!head)
      return trace_.host->fail(trace_.host, head.error().code(), head.error().text().c_str());
    if (head->empty()) {  // of a process of which no call was to be traced
      if (empty.empty()) empty = file.path;
      continue;
    }
    // Lines that name a process: each file is a rank's. Lines that name none: each is a process's.
    if (names_process(*head)) {
      any_rank = true;
      file.rank = static_cast<int32_t>(number.value_or(i));
    }
    Prefix prefix(file.pid);
    dated = dated && prefix.begins_at(*head, file.begins);
    exact_ = exact_ && (prefix.is_exact() || file.rank >= 0);
    later_.push_back(std::move(file));
  }
  if (any_rank && !empty.empty())
    return trace_.host->fail(trace_.host, FEIGN_ERR_ARGUMENT,
                             (empty + ": is empty, want a rank's trace, as the others").c_str());
  if (dated) find_midnight();
  if (!dated || !exact_)
    for (File& file : later_) file.begins = 0;
  std::stable_sort(later_.begin(), later_.end(),
                   [](const File& a, const File& b) { return a.begins < b.begins; });
  std::reverse(later_.begin(), later_.end());
  find_cwd(later_.empty() ? files.front() : later_.back().path, count == 1);
  if (const feign_status status = find_overhead(files); status < 0) return status;
  trace_.several = count > 1;
  trace_.first = count == 1;  // several files have one clock: next() finds where it begins
  return FEIGN_OK;
}

// Which process a line of the text is of; empty: it does not say.
std::string_view process_at(std::string_view text, size_t at) {
  Scan s(text.substr(text.rfind('\n', at) + 1));
  s.blanks();
  s.take("[pid");
  s.blanks();
  const char* start = s.p;
  while (is_digit(s.peek())) ++s.p;
  const bool named = s.at_blank() || s.peek() == ']';
  return {start, named ? static_cast<size_t>(s.p - start) : 0};
}

// The directory that the relative name of an open is in, if what follows is its name (behind the
// quote), and then what it returned (-y); empty: it does not say.
std::string directory_of_open(Scan s) {
  std::string name, found;
  const char* start = s.p--;
  if (!s.skip_string()) return {};
  unescape({start, static_cast<size_t>(s.p - start) - 1}, name);
  while (s.peek() != '\0' && s.peek() != '\n' && s.peek() != ')') ++s.p;
  if (!s.take(')')) return {};
  s.blanks();
  if (!s.take("= ")) return {};
  while (is_digit(s.peek())) ++s.p;
  start = s.p + 1;
  if (s.peek() != '<' || !s.skip_angle()) return {};
  unescape({start, static_cast<size_t>(s.p - start) - 1}, found);
  const bool whole = name.starts_with('/') || name.find("..") != name.npos;
  name.insert(0, "/");
  if (whole || clean_path(name) != name || !found.starts_with('/') || !found.ends_with(name))
    return {};
  found.resize(found.size() - name.size());
  return found.empty() ? "/" : found;
}

// The directory that a program knows that it is in ($PWD, of shells): before it asks of ".", which
// `here` in the text at `at`, it asks the same of a name, which nothing has told it before, and is
// told the same. Else it would call getcwd. Empty: it does not say.
std::string directory_of_stats(std::string_view text, size_t at, std::string_view here) {
  const size_t begin = text.rfind('\n', at) + 1;
  size_t before = begin;
  do {
    if (before < 2) return {};
    before = text.rfind('\n', before - 2) + 1;
  } while (text.substr(before).starts_with(kFrame));  // a stack's line (-k)
  const std::string_view line = text.substr(begin, text.find('\n', begin) - begin);
  std::string_view other = text.substr(before, text.find('\n', before) - before);
  size_t call = line.rfind('(', at - begin);
  if (call == line.npos || process_at(text, begin) != process_at(text, before)) return {};
  while (call > 0 && is_name(line[call - 1])) --call;
  const std::string_view head = line.substr(call, at - begin - call);
  if (head.find("stat") == head.npos || head.find("statfs") != head.npos) return {};
  const size_t same = other.find(head);
  if (same == other.npos) return {};
  Scan s(other.substr(same + head.size()));
  const std::string_view quoted = s.rest();
  if (!quoted.starts_with('"') || !s.skip_string()) return {};
  const size_t name = before + same + head.size();
  const size_t length = quoted.size() - s.rest().size();
  std::string found;
  unescape(quoted.substr(1, length - 2), found);
  if (!found.starts_with('/') || text.find(quoted.substr(0, length)) != name || !s.take(','))
    return {};
  other = s.rest();
  const std::string_view mine = line.substr(at - begin + here.size());
  const size_t end = end_of_call(mine);
  if (end == mine.npos || result_of(mine.substr(end)) != "0" || end_of_call(other) != end ||
      mine.substr(0, end) != other.substr(0, end) || result_of(other.substr(end)) != "0")
    return {};
  return found;
}

// Whether the program opens the directory that it is in, which is to list it.
bool opens_here(std::string_view text) {
  for (const std::string_view here : {"\".\",", "\"\\x2e\","})
    for (size_t at = text.find(here); at != text.npos; at = text.find(here, at + 1)) {
      const size_t line = text.rfind('\n', at) + 1;
      const std::string_view before = text.substr(line, at - line);
      if (before.find("open") != before.npos && before.find('"') == before.npos) return true;
    }
  return false;
}

// Where the program was when it began, as far as this text tells: as the first getcwd or annotation
// of AT_FDCWD does, less where one process had moved by then; if there is none (`weakly`), as the
// first open of a relative name does, or a program that knows it. Empty: it does not tell.
std::string told_cwd(std::string_view text, std::string& weakly) {
  constexpr std::string_view kMarks[] = {"chdir(", "chroot(",      "getcwd",  "AT_FDCWD<",
                                         "-100<",  "AT_FDCWD */<", "open(\"", "openat(AT_FDCWD, \"",
                                         "\".\",", "\"\\x2e\","};
  size_t places[std::size(kMarks)];
  for (size_t i = 0; i < std::size(kMarks); ++i) places[i] = text.find(kMarks[i]);
  weakly.clear();
  std::string moved, said;
  std::string_view mover;
  for (;;) {
    size_t* const next = std::min_element(std::begin(places), std::end(places));
    const size_t at = *next;
    if (at == text.npos) return {};
    const std::string_view mark = kMarks[next - places];
    *next = text.find(mark, at + 1);
    const char before = at != 0 ? text[at - 1] : '\n';
    Scan s(text.substr(at + mark.size()));
    if (mark.starts_with("open") || mark.starts_with('"')) {
      if (!weakly.empty() || !moved.empty()) continue;
      weakly = mark.starts_with('"') ? directory_of_stats(text, at, mark) : directory_of_open(s);
      continue;
    }
    if (mark == "chroot(" || (mark == "chdir(" && before == 'f')) return {};
    const bool annotation = mark.ends_with('<');
    if (annotation) {
      // As an argument; in what is written it could say anything.
      if (mark != "AT_FDCWD */<" && before != '(' && before != '=' &&
          !text.substr(0, at).ends_with(", "))
        continue;
      --s.p;
      const char* start = s.p + 1;
      if (!s.skip_angle()) continue;
      unescape({start, static_cast<size_t>(s.p - start) - 1}, said);
    } else {
      if (mark == "getcwd" && !s.take('(') && !s.take(" resumed>")) continue;
      s.skip_name();
      if (s.peek() != '"') continue;
      const char* start = s.p + 1;
      if (!s.skip_string()) continue;
      unescape({start, static_cast<size_t>(s.p - start) - 1}, said);
    }
    const std::string_view process = process_at(text, at);
    if (mark == "chdir(") {
      s.blanks();
      if (!s.take(')')) return {};
      s.blanks();
      if (s.take("= -1")) continue;
      if (said.starts_with('/') || said.find("..") != said.npos ||
          (!moved.empty() && process != mover))
        return {};
      moved += "/" + said;
      mover = process;
    } else if (said.starts_with('/') && !is_gone(said)) {
      if (!said.ends_with(moved) || (!moved.empty() && process != mover)) return {};
      said.resize(said.size() - moved.size());
      return said.empty() ? "/" : said;
    }
  }
}

// As the option says, or the trace tells; few lines of it do, most often. Else it is taken for /;
// if it is listed, for a directory of its own, since below / are the libraries of all programs.
// One file's lines may be numbered: the first ones tell.
void Provider::find_cwd(const std::string& file, bool alone) {
  std::string cwd = options_.cwd, weakly, text;
  for (const size_t looked : {size_t{8} << 10, size_t{256} << 10}) {
    const auto lines = static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'));
    if (!cwd.empty() && lines >= kNumbered) break;
    if (auto head = head_of(file, looked)) text = std::move(*head);
    trace_.numbered = alone && is_numbered(text);
    if (trace_.numbered) text = without_numbers(text);
    if (cwd.empty()) cwd = told_cwd(text, weakly);
  }
  if (cwd.empty()) cwd = weakly;
  trace_.cwd_told = !cwd.empty();
  if (!trace_.cwd_told) cwd = opens_here(text) ? "/cwd" : "/";
  trace_.cwd = trace_.host->intern(trace_.host, cwd.data(), cwd.size());
}

feign_status Provider::find_overhead(const std::vector<std::string>& files) {
  const std::string_view how = options_.overhead;
  if (how == "none") return FEIGN_OK;
  if (how != "auto") {
    uint64_t given = 0;
    const bool good = parse_duration(how, given) && given <= kSecond;
    trace_.tracer.set(given);
    if (good) return FEIGN_OK;
    return trace_.host->fail(
        trace_.host, FEIGN_ERR_ARGUMENT,
        ("overhead=" + std::string(how) + ": want auto, none or a time up to 1s, such as 20us")
            .c_str());
  }
  const auto* run =
      static_cast<const feign_run*>(trace_.host->extension(trace_.host, "feign.run/1"));
  if (run != nullptr && FEIGN_HAS(run, no_pauses) && run->no_pauses != 0) return FEIGN_OK;
  constexpr uint64_t kMostLines = 10'000;
  uint64_t lines = 0;
  for (const std::string& path : files) {
    if (!can_be_read_again(path)) return FEIGN_OK;
    auto input = Input::open(path);
    if (!input || lines >= kMostLines) break;
    Source source(trace_, std::make_unique<Lines>(std::move(*input)), 0, -1, 1);
    lines += source.pauses(kMostLines / std::min<size_t>(files.size(), 16), trace_.tracer);
  }
  if (!trace_.tracer.estimate()) return FEIGN_OK;
  trace_.estimated = true;
  char text[140];
  snprintf(text, sizeof text,
           "think times are without the tracer's own time, %.1f us a call on average (estimated; "
           "overhead= sets it)",
           static_cast<double>(trace_.tracer.mean_ns()) / 1000);
  trace_.host->log(trace_.host, FEIGN_LOG_INFO, text);
  return FEIGN_OK;
}

// What several files of -ff say of the order of their calls, if their times do not.
feign_status Provider::find_family() {
  if (exact_ || later_.size() < 2) return FEIGN_OK;
  auto family = std::make_unique<Family>();
  for (const File& file : later_) {
    if (!can_be_read_again(file.path)) return FEIGN_OK;
    auto input = Input::open(file.path);
    if (!input)
      return trace_.host->fail(trace_.host, input.error().code(), input.error().text().c_str());
    Source(trace_, std::make_unique<Lines>(std::move(*input)), 0, -1, 1).look_ahead(*family);
  }
  family->messages().has_looked_ahead();
  if (family->tells_nothing()) return FEIGN_OK;
  family_ = std::move(family);
  for (const File& file : later_) family_->expects(file.pid);
  for (File& file : later_)
    if (family_->is_made(file.pid))
      unborn_.try_emplace(family_->turn_of(file.pid), std::move(file));
  std::erase_if(later_, [](const File& file) { return file.path.empty(); });
  return FEIGN_OK;
}

// When its next call comes, as far as its times say.
uint64_t Provider::when(const Source& source) const {
  return family_ && !source.is_dated() ? 0 : source.when();
}

feign_status Provider::begin(const File& file) {
  auto input = Input::open(file.path);
  if (!input)
    return trace_.host->fail(trace_.host, input.error().code(), input.error().text().c_str());
  sources_.push_back(std::make_unique<Source>(trace_, std::make_unique<Lines>(std::move(*input)),
                                              file.number, file.rank, file.pid));
  Source& source = *sources_.back();
  // In the order of files, if these have one of their own.
  running_.insert(
      std::find_if(running_.begin(), running_.end(),
                   [&](const Source* s) { return family_ && s->number() > source.number(); }),
      &source);
  if (file.next_day) source.is_of_next_day();
  if (family_) family_->begins(source);
  return read(source);
}

// Its next call; none is left if it is over.
feign_status Provider::read(Source& source) {
  if (const feign_status status = source.fill(); status < 0 || !source.empty()) {
    if (family_ && status >= 0) family_->comes_to(source);
    return status;
  }
  source.close();
  std::erase(running_, &source);
  return FEIGN_OK;
}

// `at`: the one of those that run whose call ends first; none is there if all are over.
feign_status Provider::find_next(size_t& at) {
  if (Source* const source = std::exchange(popped_, nullptr); source != nullptr)
    if (const feign_status status = read(*source); status < 0) return status;
  if (!std::exchange(begun_, true))
    if (const feign_status status = find_family(); status < 0) return status;
  const auto begin_last = [&] {
    const File file = std::move(later_.back());
    later_.pop_back();
    return begin(file);
  };
  while (!later_.empty() && later_.back().begins == 0)
    if (const feign_status status = begin_last(); status < 0) return status;
  for (;;) {
    // What is waited for by a guess decides within a second alone.
    using Turn = std::tuple<bool, uint64_t, Family::Wait, uint64_t>;
    Turn soonest = {true, UINT64_MAX, Family::Wait::kLast, UINT64_MAX};
    at = 0;
    for (size_t i = 0; i < running_.size(); ++i) {
      const Family::Wait wait = waits(*running_[i]);
      const uint64_t time = when(*running_[i]);
      const Turn turn = {wait >= Family::Wait::kProcess, time / kSecond, wait, time};
      if (turn >= soonest) continue;
      soonest = turn;
      at = i;
      if (wait == Family::Wait::kNone && time == 0) break;  // none comes before
    }
    feign_status status = FEIGN_OK;
    if (!later_.empty()) {
      if (!running_.empty() && later_.back().begins > running_[at]->front().ended())
        return FEIGN_OK;
      status = begin_last();
    } else if (!unborn_.empty() && std::get<0>(soonest)) {
      status = begin(unborn_.extract(unborn_.begin()).mapped());  // who made it did not tell
    } else {
      return FEIGN_OK;
    }
    if (status < 0) return status;
  }
}

// Whether two may be about one thing.
bool about_one(const Held& a, const Held& b) {
  return (a.names & b.names) != 0 || about_one(a.shown.number, b.shown.number);
}

// Which call came first: that at `at`, or one of those that began from then until then and have at
// least such a reason.
size_t Provider::first_by(size_t at, uint64_t from, uint64_t until, Overtakes least) {
  const Source& best = *running_[at];
  return first_of(
      at, running_.size(), trace_.there,
      [&](size_t i, size_t first) {
        Source& s = *running_[i];
        const uint64_t began = s.front().a.start_ns;
        const bool overlaps = began >= from && (began <= until || when(s) == when(best)) &&
                              about_one(s.front(), running_[first]->front()) &&
                              waits(s) == Family::Wait::kNone;
        return i == first || overlaps ? &s.front().claims : nullptr;
      },
      [&](size_t late, size_t early, Overtakes by_claims) {
        if (opened_before(running_[late]->front(), running_[early]->front()))
          by_claims = Overtakes::kYes;
        const Overtakes now = trace_.shared.overtakes(running_[late]->front().shown,
                                                      running_[early]->front().shown, by_claims);
        return now >= least ? now : Overtakes::kNo;
      },
      [&](size_t i) { return running_[i]->front().ended(); });
}

// Whether a call that opens was over before another one about its name by what its times say,
// though it counts later: what it opened was that then.
bool Provider::opened_before(const Held& open, const Held& other) const {
  return open.shown.number.opens_one() && (open.order || other.order) &&
         open.a.start_ns + open.a.duration_ns <= other.ended() &&
         may_be_before(open.claims, other.claims) && !trace_.shared.is_taken(open.shown.number);
}

// Whether a call has to come later than its times say, as far as it may, whatever others say. A
// lock is had, or given up, as late as can be: who is refused it meanwhile may be seen later.
bool Provider::has_to_be_late(const Held& call) const {
  return trace_.is_about_lock(call.shown.lock) || !fits(call.claims) ||
         trace_.shared.is_taken(call.shown.number);
}

// … or for what others say who began by then.
bool Provider::clashes(size_t at, uint64_t until) const {
  const Held& mine = running_[at]->front();
  if (has_to_be_late(mine)) return true;
  return std::any_of(running_.begin(), running_.end(), [&](const Source* s) {
    const Held& other = s->front();
    return &other != &mine && other.a.start_ns <= until &&
           ((mine.order && other.order && (other.names & mine.names) != 0 &&
             clash(mine.claims, other.claims)) ||
            trace_.shared.clash(mine.shown.number, other.shown.number));
  });
}

// `at`: the one of those that run whose call came first.
feign_status Provider::find_first(size_t& at) {
  for (;;) {
    if (const feign_status status = find_next(at); status < 0 || running_.size() < 2) return status;
    Held& best = running_[at]->front();
    const uint64_t ended = best.ended();
    // It matters, others are about what it is about, or about its number.
    bool order = false, others = false, numbers = false;
    for (const Source* s : running_) {
      const Held& other = s->front();
      if (other.a.start_ns > ended + kLate) continue;
      order |= other.order;
      if (&other == &best) continue;
      others |= (other.names & best.names) != 0;
      numbers |= about_one(other.shown.number, best.shown.number);
    }
    trace_.there.look_up(best.claims);
    numbers |= trace_.shared.is_taken(best.shown.number);
    if (!numbers && (!order || (!others && !has_to_be_late(best)))) return FEIGN_OK;
    if (const size_t first = first_by(at, 0, ended, Overtakes::kMay);
        first != at || best.until != 0) {
      at = first;
      return FEIGN_OK;
    }
    // In a file of its own it may have been over later than its times say.
    const size_t first = first_by(at, ended + 1, ended + kLate, Overtakes::kYes);
    if (first == at && !clashes(at, ended + kLate)) return FEIGN_OK;
    uint64_t until = 0;
    if (const feign_status status = running_[at]->ended_by(until); status < 0) return status;
    if (first != at && running_[first]->front().a.start_ns <= until) {
      at = first;
      return FEIGN_OK;
    }
    if (until == ended || !clashes(at, until)) return FEIGN_OK;
    best.until = until;
  }
}

// What nothing but all of the trace tells.
void Provider::says_what_lacks() const {
  constexpr uint64_t kMany = 8;  // that all failed
  if (!trace_.known && !trace_.unknown.empty())
    trace_.host->log(trace_.host, FEIGN_LOG_WARN,
                     ("of no call in the trace is the name known, and nothing is replayed: is " +
                      trace_.unknown + "() what strace shows, or another tracer?")
                         .c_str());
  const auto say = [&](const char* what) { trace_.host->log(trace_.host, FEIGN_LOG_INFO, what); };
  if (trace_.asks != nullptr)
    say((std::string(trace_.asks->name) + " was called (" + trace_.asks->why +
         "): what it asked for is missing; feign record has it")
            .c_str());
  if (trace_.threads && trace_.streams == 1 && !trace_.several)
    say("threads were made that the trace has no call of (strace: -f has them): what they did is "
        "missing");
  if (const uint64_t lost = trace_.arguments.paths_lost(); lost != 0)
    say(("calls whose path is an address (strace -e raw=…) or no string, and whose files are not "
         "known for that: " +
         std::to_string(lost))
            .c_str());
  if (!trace_.succeeded && trace_.failed >= kMany)
    say("no call in the trace succeeded: if strace was told to show those that failed (-Z), what "
        "the others did is missing");
}

feign_status Provider::next(size_t want, feign_sink* out) {
  size_t done = 0;
  while (done < want) {
    size_t at = 0;
    if (const feign_status status = find_first(at); status < 0) return status;
    if (running_.empty()) {
      if (!std::exchange(lacks_said_, true)) says_what_lacks();
      return FEIGN_END;
    }
    Source* const best = running_[at];
    if (family_)
      if (auto child = unborn_.extract(family_->turn_of(family_->goes_on(*best))); !child.empty())
        if (const feign_status status = begin(child.mapped()); status < 0) return status;
    Held& next = best->front();
    trace_.there.note(posix_calls()[next.a.op].effect, next.claims, next.a, trace_.host);
    trace_.shared.note(next.shown);
    if (trace_.several && !origin_known_) {  // the earliest of what all files begin with
      origin_known_ = true;
      origin_ = best->front().a.start_ns;
      for (const Source* source : running_) origin_ = std::min(origin_, source->front().a.start_ns);
    }
    feign_activity* a = out->make(out);
    if (a == nullptr) return trace_.host->fail(trace_.host, FEIGN_ERR_NOMEM, "out of memory");
    const uint32_t mine = a->host;
    Held& h = best->front();
    *a = h.a;
    a->host = mine;
    a->start_ns -= std::min(a->start_ns, origin_);
    if (!h.values.empty())
      if (const feign_status status = trace_.host->set_values(
              trace_.host, a, h.values.data(), static_cast<uint32_t>(h.values.size()));
          status < 0)
        return status;
    best->pop();
    popped_ = best;
    if (const feign_status status = out->emit(out, a); status < 0) return status;
    ++done;
  }
  return FEIGN_OK;
}

// A line of strace: an optional process, an optional time, then CALL(…, +++ or ---.
bool looks_like_strace(std::string_view line) {
  Scan s(line);
  s.blanks();
  if (is_of_strace(line) || s.take("% time ")) return true;
  int64_t pid;
  uint64_t time;
  if (!Prefix(1).read(s, pid, time)) return false;
  if (s.take("+++ ") || s.take("--- ") || s.take("<... ")) return true;
  const char* start = s.p;
  while (is_name(s.peek())) ++s.p;
  return s.p - start >= 3 && s.peek() == '(';
}

int probe(const char*, const void* head, size_t size) noexcept try {
  std::string_view text(static_cast<const char*>(head), size);
  const bool numbered = is_numbered(text);
  int good = 0, lines = 0;
  while (!text.empty() && lines < 10) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (numbered) line = without_number(line);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (line.empty()) continue;
    ++lines;
    good += looks_like_strace(line.find('\x1b') != line.npos ? without_colours(line)
                                                             : std::string(line));
  }
  if (size == 0) return 1;  // strace -ff -qqq leaves such a file of who made no call to be traced
  return lines == 0 ? 0 : good * 90 / lines;
} catch (const std::exception&) {
  return 0;
}

constexpr feign_provider kApi = feign::provider<Provider, Options>(probe);
constexpr feign_component kComponent = feign::component<Options>(
    kApi, "strace", "Reads what strace prints (-f, -ff, -t…, -T, -y…).", kOptions);
constexpr const feign_component* kComponents[] = {&kComponent, nullptr};

}  // namespace
}  // namespace feign::strace

FEIGN_ROLES(FEIGN_PROVIDER);
extern "C" const feign_plugin feign_plugin_v1 = {
    sizeof(feign_plugin), FEIGN_ABI_MINOR, "strace",
    FEIGN_VERSION,        "MIT",           feign::strace::kComponents};
