// SPDX-License-Identifier: Apache-2.0
#include "client/cli/console/text_table.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace covey::cli {
namespace {

bool IsNumber(const std::string& cell) {
  return cell.empty() || cell == "-" || absl::ascii_isdigit(static_cast<unsigned char>(cell[0]));
}

}  // namespace

std::string TextTable::Render() const {
  const size_t columns = rows_[0].size();
  std::vector<size_t> widths(columns, 0);
  std::vector<bool> right(columns, true);
  for (size_t row = 0; row < rows_.size(); ++row) {
    for (size_t column = 0; column < columns; ++column) {
      widths[column] = std::max(widths[column], rows_[row][column].size());
      if (row > 0 && !IsNumber(rows_[row][column])) right[column] = false;
    }
  }
  std::string text;
  for (const std::vector<std::string>& row : rows_) {
    std::string line;
    for (size_t column = 0; column < columns; ++column) {
      const std::string padding(widths[column] - row[column].size(), ' ');
      absl::StrAppend(&line, column == 0 ? "" : "  ", right[column] ? padding : "", row[column],
                      right[column] ? "" : padding);
    }
    absl::StripTrailingAsciiWhitespace(&line);
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

}  // namespace covey::cli
