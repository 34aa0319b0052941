// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "client/cli/report/page.h"
#include "client/cli/report/run_history.h"

namespace covey::cli {

// The content of a run's report. Names and values are plain text.
struct Report {
  using Rows = PageRows;

  std::string title;
  // One line; `failed` decides how it looks.
  std::string outcome;
  bool failed = false;
  Rows result;
  Rows configuration;
  // Incidents of processes; empty = none.
  Rows incidents;
  RunHistory history;
};

// One HTML page (page.h). Pure.
std::string RenderReport(const Report& report);

}  // namespace covey::cli
