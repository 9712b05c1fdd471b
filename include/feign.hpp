// SPDX-License-Identifier: MIT
/**
 * @file feign.hpp
 * feign.h for plug-ins in C++17 and later: a class becomes a component, and what it throws becomes
 * an error instead of the end of the program. Nothing here is linked; it is the same ABI.
 *
 *     class Slower {
 *      public:
 *       Slower(const feign_host* host, const Options& options);
 *       feign_status process(const feign_window& in, feign_sink* out);
 *     };
 *     constexpr feign_modifier kApi = feign::modifier<Slower, Options>();
 *     constexpr feign_component kComponent =
 *         feign::component<Options>(kApi, "slower", "Adds a pause.", kOptions);
 *
 * A class of any role is made from the host and its options, as the component's table filled them.
 * If it has `feign_status start()`, that follows at once: there it may fail with a message of its
 * own. The functions that it must have are named with each role; on which thread they run says
 * feign.h.
 */
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "feign.h"

namespace feign {

/** Does @p work, which returns a feign_status and may throw. */
template <class Work>
feign_status guarded(const feign_host* host, Work&& work) noexcept {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return host->fail(host, FEIGN_ERR_NOMEM, "out of memory");
  } catch (const std::exception& e) {
    return host->fail(host, FEIGN_ERR_PLUGIN, e.what());
  } catch (...) {
    return host->fail(host, FEIGN_ERR_PLUGIN, "it threw what is no std::exception");
  }
}

/** What `self` of a component points to. */
template <class T>
struct Instance {
  template <class Options>
  Instance(const feign_host* h, const Options& o) : host(h), it(h, o) {}
  const feign_host* host;
  T it;
  uint32_t lookahead = 0;  // what `it` said, if it looks ahead

  static Instance& of(void* self) { return *static_cast<Instance*>(self); }
};

namespace detail {

template <class T, class = void>
struct Starts : std::false_type {};
template <class T>
struct Starts<T, std::void_t<decltype(std::declval<T&>().start())>> : std::true_type {};
template <class T, class = void>
struct LooksAhead : std::false_type {};
template <class T>
struct LooksAhead<T, std::void_t<decltype(std::declval<T&>().lookahead())>> : std::true_type {};

template <class T, class Options>
feign_status create(const feign_host* host, const void* options, void** self) noexcept {
  return guarded(host, [&]() -> feign_status {
    std::unique_ptr<Instance<T>> made;
    if constexpr (std::is_empty<Options>::value)
      made = std::make_unique<Instance<T>>(host, Options{});
    else
      made = std::make_unique<Instance<T>>(host, *static_cast<const Options*>(options));
    if constexpr (Starts<T>::value)
      if (const feign_status s = made->it.start(); s < 0) return s;
    if constexpr (LooksAhead<T>::value) made->lookahead = made->it.lookahead();
    *self = made.release();
    return FEIGN_OK;
  });
}
template <class T>
void destroy(void* self) noexcept {
  delete &Instance<T>::of(self);
}
template <class T>
feign_status next(void* self, size_t want, feign_sink* out) noexcept {
  auto& i = Instance<T>::of(self);
  return guarded(i.host, [&] { return i.it.next(want, out); });
}
template <class T>
feign_status process(void* self, const feign_window* in, feign_sink* out) noexcept {
  auto& i = Instance<T>::of(self);
  return guarded(i.host, [&] { return i.it.process(*in, out); });
}
template <class T>
uint32_t lookahead(void* self) noexcept {
  return Instance<T>::of(self).lookahead;
}
template <class T>
feign_status write(void* self, const feign_activity* const* items, size_t count) noexcept {
  auto& i = Instance<T>::of(self);
  return guarded(i.host, [&]() -> feign_status {
    for (size_t k = 0; k < count; ++k)
      if (const feign_status s = i.it.write(*items[k]); s < 0) return s;
    return FEIGN_OK;
  });
}
template <class T>
feign_status open_stream(void* self, const feign_stream_info* info, void** stream) noexcept {
  auto& i = Instance<T>::of(self);
  return guarded(i.host, [&]() -> feign_status {
    *stream = new typename T::Stream(i.it, *info);
    return FEIGN_OK;
  });
}
template <class T>
feign_status execute(void* self, void* stream, const feign_activity* a,
                     feign_outcome* outcome) noexcept {
  auto& i = Instance<T>::of(self);
  return guarded(i.host, [&] {
    return i.it.execute(*static_cast<typename T::Stream*>(stream), *a, *outcome);
  });
}
template <class T>
void close_stream(void*, void* stream) noexcept {
  delete static_cast<typename T::Stream*>(stream);
}
template <class T>
feign_status finish(void* self) noexcept {
  auto& i = Instance<T>::of(self);
  return guarded(i.host, [&] { return i.it.finish(); });
}

constexpr uint32_t role_of(const feign_provider&) { return FEIGN_PROVIDER; }
constexpr uint32_t role_of(const feign_modifier&) { return FEIGN_MODIFIER; }
constexpr uint32_t role_of(const feign_replayer&) { return FEIGN_REPLAYER; }
constexpr uint32_t role_of(const feign_writer&) { return FEIGN_WRITER; }
constexpr uint32_t role_of(const feign_ranks&) { return FEIGN_RANKS; }

}  // namespace detail

/** A provider: `feign_status next(size_t want, feign_sink* out)`. */
template <class T, class Options>
constexpr feign_provider provider(decltype(feign_provider::probe) probe) {
  return {sizeof(feign_provider), 0,    detail::create<T, Options>, detail::next<T>,
          detail::destroy<T>,     probe};
}

/** A modifier: `feign_status process(const feign_window& in, feign_sink* out)` and, if it looks
 * ahead, `uint32_t lookahead()`, which is asked once, after start(). */
template <class T, class Options>
constexpr feign_modifier modifier() {
  feign_modifier m{sizeof(feign_modifier), 0,      detail::create<T, Options>, detail::process<T>,
                   detail::destroy<T>,     nullptr};
  if constexpr (detail::LooksAhead<T>::value) m.lookahead_of = detail::lookahead<T>;
  return m;
}

/** A replayer: `feign_status execute(Stream& stream, const feign_activity& a, feign_outcome&
 * outcome)`. Its class `Stream` is made of it and a `const feign_stream_info&` when a stream
 * begins, and ends with that. @p layers: NULL-ended, static; NULL: all. */
template <class T, class Options>
constexpr feign_replayer replayer(const char* const* layers, bool needs_root) {
  return {sizeof(feign_replayer),
          needs_root,
          layers,
          detail::create<T, Options>,
          detail::open_stream<T>,
          detail::execute<T>,
          detail::close_stream<T>,
          detail::destroy<T>};
}

/** A writer: `feign_status write(const feign_activity& a)` and `feign_status finish()`. */
template <class T, class Options>
constexpr feign_writer writer(const char* suffix) {
  return {
      sizeof(feign_writer), 0,     detail::create<T, Options>, detail::write<T>, detail::finish<T>,
      detail::destroy<T>,   suffix};
}

/** What a component without options is made from. */
struct NoOptions {};

/** The component that an api without options makes. @p api must be static. */
template <class Api>
constexpr feign_component component(const Api& api, const char* name, const char* summary) {
  return {sizeof(feign_component),
          detail::role_of(api),
          name,
          summary,
          &api,
          nullptr,
          0,
          sizeof(feign_option),
          0,
          0};
}

/** The component that an api and its options make. @p api must be static. */
template <class Options, class Api, size_t N>
constexpr feign_component component(const Api& api, const char* name, const char* summary,
                                    const feign_option (&options)[N]) {
  return {sizeof(feign_component), detail::role_of(api), name, summary, &api, options, N,
          sizeof(feign_option),    sizeof(Options),      0};
}

}  // namespace feign
