// SPDX-License-Identifier: MIT
#include "siox/records.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <limits>

namespace siox {
namespace {

using feign::Error;
using feign::Result;

constexpr uint64_t kSecond = 1'000'000'000;
// No record is longer: a path has 4 KiB, an environment 128 KiB.
constexpr uint64_t kLongestRecord = uint64_t{64} << 20;
constexpr size_t kLeastRecord = 4 + 16 + 22 + 4 + 4 + 4 + 1 + 4;
constexpr size_t kMostNames = size_t{1} << 20;

Error bad(const std::string& text) { return Error(FEIGN_ERR_ARGUMENT, text); }

// ---- side files: XML without a root -------------------------------------------------------------

// Goes over elements; texts are unescaped. There are no comments, and attributes do not matter.
class Xml {
 public:
  static Result<Xml> open(const std::string& path) {
    auto input = feign::Input::open(path);
    if (!input) return std::move(input.error());
    Xml xml;
    xml.path_ = path;
    constexpr size_t kMost = size_t{1} << 30;
    for (size_t have = 0;;) {
      xml.text_.resize(have + (size_t{256} << 10));
      auto got = (*input)->read(xml.text_.data() + have, xml.text_.size() - have);
      if (!got) return std::move(got.error());
      have += *got;
      if (have > kMost) return bad(path + ": more than 1 GiB, want a SIOX side file");
      xml.text_.resize(have);
      if (*got == 0) break;
    }
    return xml;
  }

  // Calls `leaf` for each element without children, with the names of those it is in joined by "/",
  // and `closed` when an element with children ends.
  template <typename Leaf, typename Closed>
  Result<void> walk(Leaf&& leaf, Closed&& closed) {
    std::string at;  // "map/item/second"
    std::string value;
    bool just_opened = false;
    size_t text_from = 0;
    for (size_t i = 0; (i = text_.find('<', i)) != std::string::npos;) {
      const size_t end = text_.find('>', i);
      if (end == std::string::npos) return wrong(i, "an element's tag does not end");
      std::string_view tag(text_.data() + i + 1, end - i - 1);
      if (tag.starts_with('/')) {
        tag.remove_prefix(1);
        const size_t slash = at.rfind('/');
        const std::string_view inner =
            std::string_view(at).substr(slash == std::string::npos ? 0 : slash + 1);
        if (at.empty() || inner != tag)
          return wrong(i, "</" + std::string(tag.substr(0, 40)) + ">, want " +
                              (at.empty() ? "an element" : "</" + std::string(inner) + ">"));
        if (just_opened) {
          unescape(std::string_view(text_).substr(text_from, i - text_from), value);
          leaf(std::string_view(at), std::string_view(value));
        } else {
          closed(std::string_view(at));
        }
        at.resize(slash == std::string::npos ? 0 : slash);
        just_opened = false;
      } else if (!tag.starts_with('?') && !tag.starts_with('!')) {
        const bool empty = tag.ends_with('/');
        tag = tag.substr(0, tag.find_first_of(" \t\r\n/"));
        if (tag.empty() || at.size() > 1000) return wrong(i, "a tag that is none");
        const size_t before = at.size();
        if (!at.empty()) at += '/';
        at += tag;
        just_opened = true;
        text_from = end + 1;
        if (empty) {
          leaf(std::string_view(at), std::string_view());
          at.resize(before);
          just_opened = false;
        }
      }
      i = end + 1;
    }
    if (!at.empty()) return wrong(text_.size(), "ends in the middle of <" + at + ">");
    return {};
  }
  Error wrong(size_t at, const std::string& what) const {
    const auto line = std::count(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(at), '\n');
    return bad(path_ + ":" + std::to_string(line + 1) + ": " + what);
  }

 private:
  static void unescape(std::string_view from, std::string& to) {
    static constexpr std::pair<std::string_view, char> kNames[] = {
        {"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
    to.clear();
    for (size_t i = 0; i < from.size(); ++i) {
      bool named = false;
      for (const auto& [name, c] : kNames)
        if (!named && from[i] == '&' && from.substr(i).starts_with(name)) {
          to += c;
          i += name.size() - 1;
          named = true;
        }
      if (!named) to += from[i];
    }
  }

  std::string path_, text_;
};

bool number_of(std::string_view text, uint64_t& value) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && error == std::errc{} && stop == text.data() + text.size();
}

uint32_t id_of(std::string_view text) {
  uint64_t value = 0;
  return number_of(text, value) && value < kMostNames ? static_cast<uint32_t>(value) : 0;
}

template <typename T>
T& entry(std::vector<std::unique_ptr<T>>& list, uint32_t at) {
  if (at >= list.size()) list.resize(at + size_t{1});
  if (!list[at]) list[at] = std::make_unique<T>();
  return *list[at];
}

}  // namespace

Result<std::unique_ptr<Names>> Names::read(const std::string& ontology, const std::string& system,
                                           const std::string& association) {
  auto names = std::make_unique<Names>();
  if (!ontology.empty())
    if (auto done = names->read_ontology(ontology); !done) return std::move(done.error());
  if (!system.empty())
    if (auto done = names->read_system(system); !done) return std::move(done.error());
  if (!association.empty())
    if (auto done = names->read_association(association); !done) return std::move(done.error());
  return names;
}

Result<void> Names::read_ontology(const std::string& path) {
  auto xml = Xml::open(path);
  if (!xml) return std::move(xml.error());
  uint32_t id = 0;
  std::string name, domain;
  auto walked = xml->walk(
      [&](std::string_view at, std::string_view value) {
        if (at == "map/item/second/attribute/id") id = id_of(value);
        if (at == "map/item/second/attribute/name") name = value;
        if (at == "map/item/second/attribute/domain") domain = value;
      },
      [&](std::string_view at) {
        if (at != "map/item/second/attribute" || id == 0) return;
        entry(attributes_, id) = domain + "/" + name;
        id = 0;
      });
  if (!walked) return walked;
  if (attributes_.empty()) return bad(path + ": has no attributes, want SIOX's ontology");
  return {};
}

Result<void> Names::read_system(const std::string& path) {
  auto xml = Xml::open(path);
  if (!xml) return std::move(xml.error());
  std::map<uint32_t, std::string> strings;
  std::map<uint32_t, std::pair<std::string, std::string>> interfaces;
  std::map<uint32_t, uint32_t> interface_of;
  uint32_t first = 0, second = 0;
  std::string text, more;
  auto walked = xml->walk(
      [&](std::string_view at, std::string_view value) {
        if (at.ends_with("/item/first")) {
          first = id_of(value);
          if (at == "nodeMap/item/first") text = value;
        } else if (at.ends_with("/item/second")) {
          second = id_of(value);
          if (at == "valueStringMap/item/second") text = value;
        } else if (at == "interfaceImplStrMap/item/second/first") {
          text = value;
        } else if (at == "interfaceImplStrMap/item/second/second") {
          more = value;
        } else if (at == "activityMap/item/first/first") {
          first = id_of(value);
        } else if (at == "activityMap/item/first/second") {
          text = value;
        }
      },
      [&](std::string_view at) {
        if (at == "valueStringMap/item") strings[first] = text;
        if (at == "interfaceImplStrMap/item") interfaces[first] = {text, more};
        if (at == "nodeMap/item" && second != 0) hosts_[second] = text;
        if (at == "activityInterfaceIDMap/item") interface_of[first] = second;
        if (at == "activityMap/item" && second != 0) {
          entry(activities_, second).name = text;
          interface_of[second] = first;
        }
      });
  if (!walked) return walked;
  for (const auto& [number, interface] : interface_of) {
    if (number == 0) continue;
    Activity& a = entry(activities_, number);
    if (a.name.empty()) a.name = strings[number];
    a.interface = interfaces[interface].first;
    a.implementation = interfaces[interface].second;
  }
  if (activities_.empty()) return bad(path + ": names no activity, want SIOX's system information");
  return {};
}

// Who has which rank: what the MPI component said of itself, else what mpirun put into the
// environment.
Result<void> Names::read_association(const std::string& path) {
  auto xml = Xml::open(path);
  if (!xml) return std::move(xml.error());
  Process process;
  std::vector<uint32_t> ids;
  std::vector<std::string> values;
  auto walked = xml->walk(
      [&](std::string_view at, std::string_view value) {
        if (at.ends_with("/first/nid") || at.ends_with("/first/pid/nid")) {
          process.node = static_cast<uint32_t>(id_of(value));
        } else if (at.ends_with("/first/pid") || at.ends_with("/first/pid/pid")) {
          uint64_t pid = 0;
          if (number_of(value, pid)) process.pid = static_cast<uint32_t>(pid);
        } else if (at.ends_with("/first/time") || at.ends_with("/first/pid/time")) {
          uint64_t time = 0;
          if (number_of(value, time)) process.time = static_cast<uint32_t>(time);
        } else if (at.ends_with("/attids/item")) {
          ids.push_back(id_of(value));
        } else if (at.ends_with("/values/item/v")) {
          values.emplace_back(value);
        }
      },
      [&](std::string_view at) {
        if (at != "ProcessMap/item" && at != "ComponentMap/item") return;
        const bool component = at.front() == 'C';
        listed_.insert(process);
        for (size_t i = 0; i < std::min(ids.size(), values.size()); ++i) {
          uint64_t rank = 0;
          if (component) {
            const std::string* name = attribute(ids[i]);
            if (name != nullptr && *name == "MPI/description/commRank" &&
                number_of(values[i], rank) && rank <= INT32_MAX)
              ranks_[process] = static_cast<int32_t>(rank);
            continue;
          }
          for (const std::string_view variable :
               {"OMPI_COMM_WORLD_RANK=", "PMI_RANK=", "PMIX_RANK=", "MV2_COMM_WORLD_RANK="}) {
            const size_t found = (" " + values[i]).find(" " + std::string(variable));
            if (found == std::string::npos) continue;
            std::string_view text = std::string_view(values[i]).substr(found + variable.size());
            text = text.substr(0, text.find(' '));
            if (number_of(text, rank) && rank <= INT32_MAX)
              ranks_.try_emplace(process, static_cast<int32_t>(rank));
          }
        }
        ids.clear();
        values.clear();
      });
  return walked;
}

const Names::Activity* Names::activity(uint32_t number) const {
  return number < activities_.size() ? activities_[number].get() : nullptr;
}
const std::string* Names::attribute(uint32_t id) const {
  return id < attributes_.size() ? attributes_[id].get() : nullptr;
}
const std::string* Names::host(uint32_t node) const {
  const auto at = hosts_.find(node);
  return at != hosts_.end() ? &at->second : nullptr;
}
int32_t Names::rank(const Process& process) const {
  const auto at = ranks_.find(process);
  return at != ranks_.end() ? at->second : -1;
}

uint32_t Names::activity_number(std::string_view interface, std::string_view implementation,
                                std::string_view name) {
  std::string key(interface);
  key += '\n';
  key += implementation;
  key += '\n';
  key += name;
  const auto at = by_text_.find(key);
  if (at != by_text_.end()) return at->second;
  const auto number = static_cast<uint32_t>(std::max<size_t>(activities_.size(), 1));
  entry(activities_, number) = {std::string(interface), std::string(implementation),
                                std::string(name)};
  return by_text_[key] = number;
}

uint32_t Names::attribute_number(std::string_view name) {
  if (const auto at = by_text_.find(name); at != by_text_.end()) return at->second;
  const auto number = static_cast<uint32_t>(std::max<size_t>(attributes_.size(), 1));
  entry(attributes_, number) = name;
  return by_text_[std::string(name)] = number;
}

// "1,10240,3386365"; a text that is none of these stands for a process all the same.
Process Names::process_of(std::string_view text) {
  if (const auto at = processes_.find(text); at != processes_.end()) return at->second;
  Process p;
  uint32_t* const parts[] = {&p.node, &p.pid, &p.time};
  std::string_view rest = text;
  bool good = true;
  for (int i = 0; i < 3 && good; ++i) {
    const size_t comma = i < 2 ? rest.find(',') : rest.size();
    uint64_t value = 0;
    good = comma != std::string_view::npos && number_of(rest.substr(0, comma), value) &&
           value <= UINT32_MAX;
    *parts[i] = static_cast<uint32_t>(value);
    rest = rest.substr(std::min(rest.size(), comma + 1));
  }
  if (!good) p = {0, static_cast<uint32_t>(processes_.size()), 0};
  return processes_[std::string(text)] = p;
}

// ---- activity files -----------------------------------------------------------------------------

namespace {

// A line of siox-trace-reader: "14:51:40.826088407 0.0000020331 (((".
bool is_text_line(std::string_view line) {
  static constexpr std::string_view kShape = "dd:dd:dd.ddddddddd d";
  if (line.size() < kShape.size()) return false;
  for (size_t i = 0; i < kShape.size(); ++i)
    if (kShape[i] == 'd' ? line[i] < '0' || line[i] > '9' : line[i] != kShape[i]) return false;
  return line.find(" (((") != std::string_view::npos;
}

// Bytes of one record.
struct Cursor {
  const char* p;
  const char* end;
  bool good = true;

  template <typename T>
  T take() {
    T value{};
    if (static_cast<size_t>(end - p) < sizeof value) {
      good = false;
      return value;
    }
    memcpy(&value, p, sizeof value);
    p += sizeof value;
    return value;
  }
  ActivityId id() {
    ActivityId a;
    a.process.node = take<uint32_t>();
    a.process.pid = take<uint32_t>();
    a.process.time = take<uint32_t>();
    a.component = take<uint16_t>();
    a.id = take<uint32_t>();
    a.thread = take<uint32_t>();
    return a;
  }
  // How many of at least `least` bytes each follow; more than there is room for is none.
  uint32_t count(size_t least) {
    const auto n = take<uint32_t>();
    if (n > static_cast<size_t>(end - p) / least) good = false;
    return good ? n : 0;
  }
  Attribute attribute() {
    Attribute a;
    a.id = take<uint32_t>();
    a.type = take<uint8_t>();
    switch (a.type) {
      case kInt64:
      case kUint64:
        a.number = take<uint64_t>();
        break;
      case kInt32:
        a.number = static_cast<uint64_t>(int64_t{take<int32_t>()});
        break;
      case kUint32:
        a.number = take<uint32_t>();
        break;
      case kFloat:
        a.real = static_cast<double>(take<float>());
        break;
      case kDouble:
        a.real = take<double>();
        break;
      case kString: {
        const uint32_t n = count(1);
        a.text = {p, n};
        p += n;
        break;
      }
      case kNothing:
        break;
      default:
        good = false;
    }
    return a;
  }
};

// What is wrong with the bytes of a record; nullptr if it is good. Fills `r` unless `skim`.
const char* parse_binary(Cursor c, Record& r, bool skim) {
  r.activity = c.take<uint32_t>();
  r.start = c.take<uint64_t>();
  r.stop = c.take<uint64_t>();
  r.id = c.id();
  r.parents.clear();
  r.attributes.clear();
  if (r.stop < r.start) return "it ends before it starts";
  if (skim) return nullptr;
  for (uint32_t n = c.count(22); n > 0; --n) r.parents.push_back(c.id());
  if (!c.good) return "its parents are more than it has room for";
  for (uint32_t n = c.count(16); n > 0 && c.good; --n) {  // remote calls
    for (int i = 0; i < 3; ++i) (void)c.take<uint32_t>();
    for (uint32_t m = c.count(5); m > 0 && c.good; --m) (void)c.attribute();
  }
  if (!c.good) return "its remote calls are more than it has room for";
  for (uint32_t n = c.count(5); n > 0; --n) {
    r.attributes.push_back(c.attribute());
    if (r.attributes.back().type > kNothing) return "an attribute of an unknown type, want 0 to 7";
    if (!c.good) return "an attribute is longer than it has room for";
  }
  if (!c.good) return "its attributes are more than it has room for";
  if (c.take<uint8_t>() != 0)
    for (int i = 0; i < 3; ++i) (void)c.take<uint32_t>();
  r.error = c.take<uint32_t>();
  if (!c.good) return "it is shorter than its parts";
  if (c.p != c.end) return "it is longer than its parts";
  return nullptr;
}

}  // namespace

Form form_of(std::string_view head) {
  uint64_t size = 0;
  if (head.size() >= 8 + kLeastRecord) {
    memcpy(&size, head.data(), sizeof size);
    if (size >= kLeastRecord && size <= head.size() - 8) {
      Record r;
      const char* const p = head.data() + 8;
      if (parse_binary({p, p + size}, r, false) == nullptr) return Form::kBinary;
    }
  }
  if (head.find('\0') != std::string_view::npos) return Form::kNone;
  if (head.starts_with("Initializing file ontology") || head.starts_with("Time (HH:MM:SS") ||
      is_text_line(head.substr(0, head.find('\n'))))
    return Form::kText;
  // Numbers only, the third and fourth of which are times; up to the fifteenth no text can come.
  size_t i = 0;
  uint64_t numbers[13]{};
  for (uint64_t& number : numbers) {
    const size_t blank = head.find(' ', i);
    if (blank == std::string_view::npos || !number_of(head.substr(i, blank - i), number))
      return Form::kNone;
    i = blank + 1;
  }
  return numbers[2] > 1'000'000 * kSecond && numbers[3] >= numbers[2] ? Form::kArchive
                                                                      : Form::kNone;
}

Result<std::unique_ptr<Records>> Records::open(const std::string& path, Names& names) {
  auto head = feign::head_of(path, size_t{64} << 10);
  if (!head) return std::move(head.error());
  std::unique_ptr<Records> r(new Records(path, names));
  r->form_ = form_of(*head);
  if (r->form_ == Form::kNone)
    return bad(path + ": record 1 at byte 0: want a SIOX activity file, binary or text");
  auto input = feign::Input::open(path);
  if (!input) return std::move(input.error());
  if (r->form_ == Form::kText) {
    r->lines_ = std::make_unique<feign::Lines>(std::move(*input));
  } else {
    r->input_ = std::move(*input);
    r->buffer_.resize(size_t{256} << 10);
  }
  return r;
}

Error Records::wrong(const std::string& what) const {
  return bad(path_ + ": record " + std::to_string(number_ + 1) + " at byte " +
             std::to_string(offset_) + ": " + what);
}

Result<bool> Records::have(size_t size) {
  while (end_ - begin_ < size && !over_) {
    if (begin_ != 0) {
      memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    if (size > buffer_.size()) buffer_.resize(std::max(size, buffer_.size() * 2));
    auto got = input_->read(buffer_.data() + end_, buffer_.size() - end_);
    if (!got) return std::move(got.error());
    end_ += *got;
    over_ = *got == 0;
  }
  return end_ - begin_ >= size;
}

Result<bool> Records::next(Record& record, bool skim) {
  auto more = form_ == Form::kBinary    ? binary(record, skim)
              : form_ == Form::kArchive ? archive(record)
                                        : text(record);
  if (more && *more) ++number_;
  return more;
}

Result<bool> Records::binary(Record& record, bool skim) {
  auto there = have(8);
  if (!there) return there;
  if (!*there) {
    if (begin_ == end_) return false;
    return wrong("the file ends in the middle of its size");
  }
  uint64_t size = 0;
  memcpy(&size, buffer_.data() + begin_, sizeof size);
  if (size < kLeastRecord || size > kLongestRecord)
    return wrong("a size of " + std::to_string(size) + " bytes, want " +
                 std::to_string(kLeastRecord) + " to 64 MiB");
  there = have(8 + static_cast<size_t>(size));
  if (!there) return there;
  if (!*there)
    return wrong("the file ends " + std::to_string(8 + size - (end_ - begin_)) +
                 " bytes before it does");
  const char* const p = buffer_.data() + begin_ + 8;
  if (const char* why = parse_binary({p, p + size}, record, skim); why != nullptr)
    return wrong(why);
  begin_ += 8 + static_cast<size_t>(size);
  offset_ += 8 + size;
  return true;
}

// ---- the older text archive: numbers with blanks between them -----------------------------------

Result<std::string_view> Records::token() {
  while (true) {
    auto there = have(1);
    if (!there) return std::move(there.error());
    if (!*there) return std::string_view();
    const char c = buffer_[begin_];
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') break;
    ++begin_;
    ++offset_;
  }
  constexpr size_t kLongest = 24;  // digits of a number
  auto there = have(kLongest);
  if (!there) return std::move(there.error());
  size_t n = 0;
  while (n < std::min(kLongest, end_ - begin_) &&
         static_cast<unsigned char>(buffer_[begin_ + n]) > ' ')
    ++n;
  const std::string_view text(buffer_.data() + begin_, n);
  begin_ += n;
  offset_ += n;
  return text;
}

Result<uint64_t> Records::number_token(const char* what) {
  auto text = token();
  if (!text) return std::move(text.error());
  int64_t value = 0;
  uint64_t large = 0;
  if (number_of(*text, large)) return large;
  const auto [stop, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (text->empty()) return wrong(std::string("the file ends where ") + what + " is to come");
  if (error != std::errc{} || stop != text->data() + text->size())
    return wrong("\"" + std::string(*text) + "\": want " + what);
  return static_cast<uint64_t>(value);
}

Result<ActivityId> Records::id_tokens() {
  uint64_t n[6]{};
  for (uint64_t& number : n) {
    auto got = number_token("part of an activity's id");
    if (!got) return std::move(got.error());
    number = *got;
  }
  return ActivityId{
      {static_cast<uint32_t>(n[0]), static_cast<uint32_t>(n[1]), static_cast<uint32_t>(n[2])},
      static_cast<uint16_t>(n[3]),
      static_cast<uint32_t>(n[4]),
      static_cast<uint32_t>(n[5])};
}

Result<bool> Records::archive(Record& r) {
  auto there = have(1);
  if (!there) return there;
  auto first = token();
  if (!first) return std::move(first.error());
  if (first->empty()) return false;
  texts_.clear();
  r.parents.clear();
  r.attributes.clear();
  Error error(FEIGN_OK, "");
  bool good = true;
  const auto number = [&](const char* what) -> uint64_t {
    if (!good) return 0;
    auto got = number_token(what);
    if (got) return *got;
    good = false;
    error = std::move(got.error());
    return 0;
  };
  const auto id = [&] {
    if (!good) return ActivityId{};
    auto got = id_tokens();
    if (got) return *got;
    good = false;
    error = std::move(got.error());
    return ActivityId{};
  };
  // The first vector of each kind begins with two numbers more.
  const auto count = [&](unsigned kind) -> uint64_t {
    if (good && !(first_vectors_ & kind)) {
      first_vectors_ |= kind;
      (void)number("a vector's class");
      (void)number("a vector's version");
    }
    const uint64_t n = number("how many there are");
    (void)number("a vector's item version");
    return good ? n : 0;
  };
  const auto attribute = [&] {
    Attribute a;
    a.id = static_cast<uint32_t>(number("an attribute's id"));
    const uint64_t type = number("an attribute's type");
    if (good && type > kNothing) {
      good = false;
      error = wrong("an attribute of the unknown type " + std::to_string(type) + ", want 0 to 7");
    }
    a.type = static_cast<uint8_t>(type);
    if (!good || type == kNothing) return a;
    if (type == kFloat || type == kDouble) {
      auto text = token();
      if (text) (void)std::from_chars(text->data(), text->data() + text->size(), a.real);
      return a;
    }
    a.number = number("an attribute's value");
    if (type != kString || !good) return a;
    if (a.number > kLongestRecord) {
      good = false;
      error = wrong("a text of " + std::to_string(a.number) + " bytes, want at most 64 MiB");
      return a;
    }
    const auto size = static_cast<size_t>(a.number);
    auto enough = have(size + 1);
    if (!enough || !*enough) {
      good = false;
      error = enough ? wrong("the file ends in a text") : std::move(enough.error());
      return a;
    }
    texts_.emplace_back(buffer_.data() + begin_ + 1, size);
    a.text = texts_.back();
    begin_ += size + 1;
    offset_ += size + 1;
    return a;
  };

  r.activity = static_cast<uint32_t>(number("an activity's number"));
  r.start = number("its start");
  r.stop = number("its end");
  r.id = id();
  if (good && r.stop < r.start) return wrong("it ends before it starts");
  constexpr uint64_t kMost = 1 << 20;
  uint64_t n = count(1);
  if (n > kMost) return wrong(std::to_string(n) + " parents, want at most a million");
  for (; n > 0 && good; --n) r.parents.push_back(id());
  n = count(2);
  if (n > kMost) return wrong(std::to_string(n) + " remote calls, want at most a million");
  for (; n > 0 && good; --n) {
    for (int i = 0; i < 3; ++i) (void)number("part of a remote call");
    uint64_t m = count(4);
    if (m > kMost) return wrong(std::to_string(m) + " attributes, want at most a million");
    for (; m > 0 && good; --m) (void)attribute();
  }
  n = count(4);
  if (n > kMost) return wrong(std::to_string(n) + " attributes, want at most a million");
  for (; n > 0 && good; --n) r.attributes.push_back(attribute());
  if (const uint64_t invoker = number("its invoker"); good && invoker != UINT64_MAX)
    for (int i = 0; i < 3; ++i) (void)number("part of its invoker");
  r.error = static_cast<uint32_t>(number("its error"));
  if (!good) return error;
  return true;
}

// ---- what siox-trace-reader prints --------------------------------------------------------------

Result<bool> Records::text(Record& r) {
  std::string_view line;
  while (true) {
    auto more = lines_->next(line);
    if (!more) return more;
    if (!*more) return false;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    if (!line.empty() && line[0] != '#' && !line.starts_with("Initializing") &&
        !line.starts_with("Time ("))
      break;
  }
  const auto fail = [&](const char* what) {
    return bad(path_ + ":" + std::to_string(lines_->number()) + ": \"" +
               std::string(line.substr(0, 60)) + "\": " + what +
               (lines_->complete() ? "" : " (the last line, cut short?)"));
  };
  r.parents.clear();
  r.attributes.clear();
  texts_.clear();
  if (!is_text_line(line))
    return fail("want HH:MM:SS.NANO DURATION (((NODE,PID,TIME),COMPONENT),ID,THREAD) …");
  const auto two = [&](size_t at) {
    return static_cast<uint64_t>((line[at] - '0') * 10 + (line[at + 1] - '0'));
  };
  uint64_t ns = 0;
  (void)number_of(line.substr(9, 9), ns);
  r.start = ((two(0) * 60 + two(3)) * 60 + two(6)) * kSecond + ns + day_;
  constexpr uint64_t kDay = 86400 * kSecond;
  if (r.start + kDay / 2 < last_) {  // midnight has passed
    r.start += kDay;
    day_ += kDay;
  }
  last_ = std::max(last_, r.start);
  // The fraction is a whole number of nanoseconds, with ten digits.
  std::string_view rest = line.substr(19);
  const size_t dot = rest.find('.'), blank = rest.find(' ');
  uint64_t whole = 0, part = 0;
  if (dot == std::string_view::npos || blank == std::string_view::npos || dot > blank ||
      !number_of(rest.substr(0, dot), whole) ||
      !number_of(rest.substr(dot + 1, blank - dot - 1), part) || whole > 1'000'000'000 ||
      part > 10 * kSecond)
    return fail("want a duration, SECONDS.NANOSECONDS");
  r.stop = r.start + whole * kSecond + part;
  rest = rest.substr(blank + 1);

  // (((NODE,PID,TIME),COMPONENT),ID,THREAD)
  const auto id = [&](ActivityId& to) {
    if (!rest.starts_with("(((")) return false;
    const size_t process = rest.find(')', 3);
    const size_t component =
        rest.find(')', process == std::string_view::npos ? process : process + 1);
    const size_t all =
        rest.find(')', component == std::string_view::npos ? component : component + 1);
    if (all == std::string_view::npos) return false;
    const std::string_view c = rest.substr(process + 1, component - process - 1);
    const std::string_view i = rest.substr(component + 1, all - component - 1);
    const size_t comma = i.find(',', 1);
    uint64_t n[3]{};
    if (c.empty() || i.empty() || comma == std::string_view::npos ||
        !number_of(c.substr(1), n[0]) || !number_of(i.substr(1, comma - 1), n[1]) ||
        !number_of(i.substr(comma + 1), n[2]))
      return false;
    to.process = names_.process_of(rest.substr(3, process - 3));
    to.component = static_cast<uint16_t>(n[0]);
    to.id = static_cast<uint32_t>(n[1]);
    to.thread = static_cast<uint32_t>(n[2]);
    rest = rest.substr(all + 1);
    return true;
  };
  if (!id(r.id) || !rest.starts_with(' ')) return fail("want an activity's id after the duration");
  rest.remove_prefix(1);
  const size_t interface = rest.find(' ');
  const size_t implementation =
      rest.find(' ', interface == std::string_view::npos ? interface : interface + 1);
  const size_t open = rest.find(
      '(', implementation == std::string_view::npos ? implementation : implementation + 1);
  if (open == std::string_view::npos) return fail("want INTERFACE IMPLEMENTATION NAME(…");
  r.activity = names_.activity_number(rest.substr(0, interface),
                                      rest.substr(interface + 1, implementation - interface - 1),
                                      rest.substr(implementation + 1, open - implementation - 1));
  rest = rest.substr(open + 1);
  while (!rest.starts_with(')')) {
    const size_t equals = rest.find('=');
    if (equals == std::string_view::npos)
      return fail("want ATTRIBUTE=VALUE, or the closing parenthesis");
    Attribute a;
    a.id = names_.attribute_number(rest.substr(0, equals));
    rest = rest.substr(equals + 1);
    if (rest.starts_with('"')) {
      // Quotes in a text are not escaped: it ends before what can follow it.
      size_t end = 1;
      for (; (end = rest.find('"', end)) != std::string_view::npos; ++end) {
        const std::string_view after = rest.substr(end + 1);
        if (after.starts_with(") = ") || (after.starts_with(", ") && after.find('=') != after.npos))
          break;
      }
      if (end == std::string_view::npos) return fail("a text that does not end");
      a.type = kString;
      a.text = texts_.emplace_back(rest.substr(1, end - 1));
      rest = rest.substr(end + 1);
    } else {
      const size_t end = rest.find_first_of(",)");
      if (end == std::string_view::npos) return fail("a value that does not end");
      const std::string_view value = rest.substr(0, end);
      int64_t negative = 0;
      a.type = kUint64;
      if (!number_of(value, a.number)) {
        const auto [stop, error] =
            std::from_chars(value.data(), value.data() + value.size(), negative);
        if (error == std::errc{} && stop == value.data() + value.size()) {
          a.type = kInt64;
          a.number = static_cast<uint64_t>(negative);
        } else {
          a.type = kDouble;
          (void)std::from_chars(value.data(), value.data() + value.size(), a.real);
        }
      }
      rest = rest.substr(end);
    }
    r.attributes.push_back(a);
    if (rest.starts_with(", ")) rest.remove_prefix(2);
  }
  if (!rest.starts_with(") = ")) return fail("want \") = ERROR\" after the attributes");
  rest.remove_prefix(4);
  const size_t end = rest.find(' ');
  uint64_t code = 0;
  if (!number_of(rest.substr(0, end), code) || code > INT32_MAX)
    return fail("want the error's number after \" = \"");
  r.error = static_cast<uint32_t>(code);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  while (!rest.empty()) {
    ActivityId parent;
    if (!id(parent)) return fail("want parents' ids at the end");
    r.parents.push_back(parent);
    if (rest.starts_with(", ")) rest.remove_prefix(2);
  }
  return true;
}

std::string printed(const Record& r, const Names& names) {
  char text[128];
  const auto seconds = static_cast<time_t>(r.start / kSecond);
  struct tm when {};
  localtime_r(&seconds, &when);
  const uint64_t duration = r.stop - r.start;
  std::string line;
  snprintf(text, sizeof text, "%02d:%02d:%02d.%09" PRIu64 " %" PRIu64 ".%010" PRIu64 " ",
           when.tm_hour, when.tm_min, when.tm_sec, r.start % kSecond, duration / kSecond,
           duration % kSecond);
  line += text;
  const auto id = [&](const ActivityId& a) {
    snprintf(text, sizeof text, "(((%u,%u,%u),%u),%u,%u)", a.process.node, a.process.pid,
             a.process.time, a.component, a.id, a.thread);
    line += text;
  };
  id(r.id);
  if (const Names::Activity* a = names.activity(r.activity); a != nullptr)
    line += " " + a->interface + " " + a->implementation + " " + a->name + "(";
  else
    line += " ? ? " + std::to_string(r.activity) + "(";
  bool first = true;
  for (const Attribute& a : r.attributes) {
    if (!first) line += ", ";
    first = false;
    const std::string* name = names.attribute(a.id);
    line += name != nullptr ? *name : std::to_string(a.id);
    line += '=';
    switch (a.type) {
      case kString:
        line += '"';
        line += a.text;
        line += '"';
        break;
      case kInt64:
      case kInt32:
        line += std::to_string(static_cast<int64_t>(a.number));
        break;
      case kFloat:
      case kDouble:
        snprintf(text, sizeof text, "%g", a.real);
        line += text;
        break;
      case kNothing:
        break;
      default:
        line += std::to_string(a.number);
    }
  }
  line += ") = " + std::to_string(r.error);
  for (size_t i = 0; i < r.parents.size(); ++i) {
    line += i == 0 ? " " : ", ";
    id(r.parents[i]);
  }
  line += '\n';
  return line;
}

}  // namespace siox
