// SPDX-License-Identifier: MIT
// Errors as values: the lowest place that knows says what is wrong with the value in it, callers
// add within("what I was doing"), and it is printed once, at the top.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "feign.h"

namespace feign {

class [[nodiscard]] Error {
 public:
  Error(feign_status code, std::string text) : code_(code), text_(std::move(text)) {
    // A zero byte would end it where it is handed on as a C string.
    for (size_t at = 0; (at = text_.find('\0', at)) != text_.npos; ++at)
      text_.replace(at, 1, "\\0");
  }

  // "open x: no such file" within "provider strace" reads "provider strace: open x: no such file".
  Error within(const std::string& doing) && { return {code_, doing + ": " + text_}; }
  feign_status code() const { return code_; }
  const std::string& text() const { return text_; }

 private:
  feign_status code_;
  std::string text_;
};

// A value or an Error. Test it, then `*result`, or `std::move(result.error())`.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() { return std::get<0>(state_); }
  const T& operator*() const { return std::get<0>(state_); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  Error& error() { return std::get<1>(state_); }
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

// Success or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  explicit operator bool() const { return !error_; }
  Error& error() { return *error_; }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

// "open /x: No such file or directory", as FEIGN_ERR_IO, from errno.
Error errno_error(const std::string& doing, int errno_value);

}  // namespace feign
