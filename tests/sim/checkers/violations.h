// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace covey::sim {

// Violations that checkers have found, oldest first. Actor-confined.
class Violations {
 public:
  // `invariant` is the checker's name, `what` carries numbers.
  void Add(absl::string_view invariant, const std::string& what) {
    found_.push_back(absl::StrCat(invariant, ": ", what));
  }
  bool empty() const { return found_.empty(); }
  const std::vector<std::string>& found() const { return found_; }

 private:
  std::vector<std::string> found_;
};

}  // namespace covey::sim
