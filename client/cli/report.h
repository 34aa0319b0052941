#pragma once

#include <string>
#include <utility>
#include <vector>

#include "client/cli/run_history.h"

namespace covey::cli {

// What a run's report says. Names and values are plain text.
struct Report {
  using Rows = std::vector<std::pair<std::string, std::string>>;

  std::string title;
  // One line; `failed` decides how it looks.
  std::string outcome;
  bool failed = false;
  Rows result;
  Rows configuration;
  RunHistory history;
};

// One HTML page that needs nothing else: no script, no font, no network. Light or dark as the
// reader's screen is; prints well. Pure.
std::string RenderReport(const Report& report);

}  // namespace covey::cli
