// SPDX-License-Identifier: MIT
// Which activities have surely ended before another one starts, by the order within streams and the
// edges so far: what is known already needs no edge (transitive reduction).
//
// Each stream has a vector clock, after Fidge and Mattern: of other streams the last id that had
// ended before. It is sparse, and it forgets: what an ended stream did is known to whoever knows
// that its end was waited for (make and its 10,000 compilers). Forgetting costs an edge too many,
// never one too few.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "modifiers/depend/points.h"

namespace depend {

class Clocks {
 public:
  // An activity of a stream is next. Ids grow.
  void begin(Point now) {
    if (now.stream >= streams_.size()) streams_.resize(now.stream + size_t{1});
    Stream& s = streams_[now.stream];
    if (s.last == 0 || s.joined_by.stream != 0) {  // … and goes on after all
      s.joined_by = {};
      s.ended = false;
      s.live_at = live_.size();
      live_.push_back(now.stream);
    }
    s.last = now.id;
  }
  uint64_t last(uint32_t stream) const {
    return stream < streams_.size() ? streams_[stream].last : 0;
  }
  // Whoever has seen this activity of a live stream end has seen all of the stream's end up to
  // `id`, and all up to it of the streams whose ends it waited for, be it later.
  uint64_t covers(uint32_t stream, uint64_t id) const {
    const Stream& s = streams_[stream];
    return std::max(std::min(id, s.last), s.joins);
  }
  // Streams of which an activity was seen and whose end nobody has waited for.
  const std::vector<uint32_t>& live() const { return live_; }
  void ended(uint32_t stream) {
    if (stream < streams_.size()) streams_[stream].ended = true;
  }

  bool has_ended(uint32_t stream) const {
    return stream < streams_.size() && streams_[stream].ended;
  }

  // Whether `p` has ended before anything that `stream` does now.
  bool known(uint32_t stream, Point p) const {
    for (int hops = 0; hops < 8; ++hops) {
      if (p.stream == stream) return true;
      if (find(streams_[stream], p.stream) >= p.id) return true;
      if (p.stream >= streams_.size()) return false;
      const Stream& s = streams_[p.stream];
      if (s.joined_by.stream == 0 || p.id > s.joined_to) return false;
      p = s.joined_by;
    }
    return false;
  }

  // The activity `now` has an edge to `p`: that, and all that was known to it, is known from here.
  void learn(Point now, Point p) {
    Stream& s = streams_[now.stream];
    set(s, now.id, p);
    if (p.stream >= streams_.size()) return;
    Stream& other = streams_[p.stream];
    bool newer = false;
    for (const Entry& e : other.known) {
      if (e.at > p.id)
        newer = true;
      else if (e.p.stream != now.stream)
        set(s, now.id, e.p);
    }
    if (newer)
      for (const Entry& e : other.before)
        if (e.at <= p.id && e.p.stream != now.stream) set(s, now.id, e.p);
    if (other.ended && p.id >= other.last && other.joined_by.stream == 0) {
      other.joined_by = now;
      other.joined_to = p.id;
      s.joins = now.id;
      live_[other.live_at] = live_.back();
      streams_[live_.back()].live_at = other.live_at;
      live_.pop_back();
    }
    if (s.known.size() > s.limit) forget(now.stream);
  }

 private:
  struct Entry {
    Point p;
    uint64_t at;  // the own activity from which on it was known
  };
  struct Stream {
    std::vector<Entry> known;   // by stream
    std::vector<Entry> before;  // what `known` held earlier, the latest last
    size_t limit = 32;
    uint64_t last = 0;
    bool ended = false;
    Point joined_by;  // who waited for its end
    uint64_t joined_to = 0;
    uint64_t joins = 0;  // its last activity that waited for an end
    size_t live_at = 0;
  };
  static constexpr size_t kMostBefore = 256, kMostKnown = 1024;

  static uint64_t find(const Stream& s, uint32_t stream) {
    const auto at = position(s, stream);
    return at != s.known.end() && at->p.stream == stream ? at->p.id : 0;
  }
  static std::vector<Entry>::const_iterator position(const Stream& s, uint32_t stream) {
    return std::lower_bound(s.known.begin(), s.known.end(), stream,
                            [](const Entry& e, uint32_t wanted) { return e.p.stream < wanted; });
  }
  static void set(Stream& s, uint64_t now, Point p) {
    const auto at = s.known.begin() + (position(s, p.stream) - s.known.cbegin());
    if (at == s.known.end() || at->p.stream != p.stream) {
      s.known.insert(at, {p, now});
    } else if (at->p.id < p.id) {
      if (at->at != now) {
        if (s.before.size() == kMostBefore)
          s.before.erase(s.before.begin(), s.before.begin() + kMostBefore / 2);
        s.before.push_back(*at);
      }
      *at = {p, now};
    }
  }
  void forget(uint32_t stream) {
    Stream& s = streams_[stream];
    std::vector<uint64_t> told(s.known.size());  // by somebody else's entry
    for (size_t i = 0; i < told.size(); ++i) {
      const Entry& e = s.known[i];
      const Stream& other = streams_[e.p.stream];
      told[i] = other.joined_by.stream != 0 && e.p.id <= other.joined_to &&
                known(stream, other.joined_by);
    }
    size_t i = 0;
    std::erase_if(s.known, [&](const Entry&) { return told[i++] != 0; });
    if (s.known.size() > kMostKnown) {  // those that are longest ago
      std::vector<uint64_t> ids;
      for (const Entry& e : s.known) ids.push_back(e.p.id);
      std::nth_element(ids.begin(), ids.begin() + kMostKnown / 2, ids.end());
      std::erase_if(s.known, [&](const Entry& e) { return e.p.id < ids[kMostKnown / 2]; });
    }
    s.limit = std::max<size_t>(32, std::min(s.known.size() * 2, kMostKnown));
  }

  std::vector<Stream> streams_;
  std::vector<uint32_t> live_;
};

}  // namespace depend
