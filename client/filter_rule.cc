// SPDX-License-Identifier: Apache-2.0
#include "client/filter_rule.h"

#include <algorithm>
#include <cmath>

namespace covey::client {
namespace {

double Norm(std::span<const float> row) {
  double squares = 0;
  for (const float element : row) squares += double{element} * element;
  return std::sqrt(squares);
}

}  // namespace

bool FilterRule::CanWait(std::span<const float> row, std::span<const float> gradient,
                         uint64_t push) const {
  switch (kind) {
    case Kind::kKkt:
      return std::ranges::all_of(row, [](float weight) { return weight == 0; }) &&
             std::ranges::all_of(gradient,
                                 [this](float element) { return std::abs(element) < threshold; });
    case Kind::kSignificance:
      return Norm(gradient) < threshold / std::sqrt(static_cast<double>(push)) * Norm(row);
  }
  return false;
}

}  // namespace covey::client
