// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/lbfgs/direction.h"

#include "common/base/check.h"

namespace covey::lbfgs {

std::vector<double> DirectionCoefficients(const InnerProducts& products) {
  COVEY_CHECK(products.size() % 2 == 1);
  const size_t pairs = products.size() / 2;
  std::vector<double> direction(products.size());
  direction.back() = -1;
  const auto with_direction = [&](size_t vector) {
    double sum = 0;
    for (size_t i = 0; i < direction.size(); ++i) sum += direction[i] * products[i][vector];
    return sum;
  };
  if (pairs == 0) return direction;
  std::vector<double> alphas(pairs);
  for (size_t i = pairs; i-- > 0;) {
    alphas[i] = with_direction(i) / products[i][pairs + i];
    direction[pairs + i] -= alphas[i];
  }
  const size_t newest = pairs - 1;
  const double scale = products[newest][pairs + newest] / products[pairs + newest][pairs + newest];
  for (double& coefficient : direction) coefficient *= scale;
  for (size_t i = 0; i < pairs; ++i) {
    const double beta = with_direction(pairs + i) / products[i][pairs + i];
    direction[i] += alphas[i] - beta;
  }
  return direction;
}

}  // namespace covey::lbfgs
