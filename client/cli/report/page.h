// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace covey::cli {

// The layout that all pages of the command share. Pure.

// Names and values, as plain text.
using PageRows = std::vector<std::pair<std::string, std::string>>;

// Large figures side by side.
std::string RenderTiles(const PageRows& rows);
// One line for each row.
std::string RenderRows(const PageRows& rows);

struct Page {
  std::string title;
  // One line; `failed` selects its style.
  std::string outcome;
  bool failed = false;
  // Markup: the results of the other functions here, plots, headings.
  std::string content;
};

// One HTML page that needs nothing else: no script, no font, no network. Follows the light or dark
// mode of the reader's screen; prints well.
std::string RenderPage(const Page& page);

}  // namespace covey::cli
