// SPDX-License-Identifier: MIT
// A layer that this program does not describe, put together from what a file says of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "feign.h"

namespace feign {

class OwnLayer {
 public:
  struct Arg {
    std::string name;
    uint32_t type = 0, slot = 0, index = 0;
    std::vector<std::pair<std::string, uint64_t>> names;
  };
  explicit OwnLayer(std::string name) : name_(std::move(name)) {}
  // The op with this number, from 1.
  void add(uint32_t number, std::string name, uint32_t kind, uint32_t result_kind,
           std::vector<Arg> args);
  // Good for this one's life, and until the next add().
  const feign_layer& layer();

 private:
  struct Op {
    std::string name;
    std::vector<Arg> args;
    std::vector<std::vector<feign_name>> names;
    std::vector<feign_arg_info> infos;
    feign_op_info info{};
  };
  std::string name_;
  std::vector<std::unique_ptr<Op>> ops_;
  std::vector<const feign_op_info*> pointers_;
  feign_layer layer_{};
};

// Layers as lines of text, for the raw folder of a recording: "layer NAME", "op NUMBER NAME KIND
// RESULT", "arg NAME TYPE SLOT INDEX", "name NAME VALUE", separated by tabs.
std::string text_of(const feign_layer& layer);
// Errors name `file` and the line.
Result<std::vector<std::unique_ptr<OwnLayer>>> read_layers(std::string_view text,
                                                           const std::string& file);

}  // namespace feign
