// SPDX-License-Identifier: MIT
// The report as one HTML file that needs no network. Charts are drawn by dygraphs, whose files are
// put into it from where the distribution's package has them; without them the tables are there,
// and the page says what to install.
#pragma once

#include <string>

#include "base/error.h"
#include "lab/summary.h"

namespace feign {

struct HtmlTexts {
  std::string title, about;
  std::string again;        // the command that makes the report again
  std::string no_timeline;  // what to say where there is none
};
std::string lab_html(const LabSummary& summary, const Results& results, const HtmlTexts& texts);

}  // namespace feign
