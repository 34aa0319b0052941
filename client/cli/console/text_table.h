// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace covey::cli {

// Rows of cells in aligned columns. Pure.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> heads) : rows_({std::move(heads)}) {}

  // Precondition: as many cells as there are heads.
  void Add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.size() == 1; }

  // Heads first; each row is a line. Columns that hold only numbers are aligned to the right.
  std::string Render() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace covey::cli
