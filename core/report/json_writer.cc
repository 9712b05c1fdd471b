// SPDX-License-Identifier: MIT
#include "report/json_writer.h"

#include <nlohmann/json.hpp>

namespace feign {

std::string JsonWriter::escaped(std::string_view text) {
  using Json = nlohmann::json;
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace feign
