// SPDX-License-Identifier: Apache-2.0

// The parts of L-BFGS that need no cluster.

#include <cmath>
#include <vector>

#include "common/base/random.h"
#include "gtest/gtest.h"
#include "worker/examples/lbfgs/direction.h"
#include "worker/examples/lbfgs/problem.h"
#include "worker/examples/lbfgs/single_process.h"

namespace covey::lbfgs {
namespace {

using Vector = std::vector<double>;

double Dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Vector Drawn(Random& random, size_t size) {
  Vector x(size);
  for (double& element : x) element = random.Uniform() * 2 - 1;
  return x;
}

// The direction from inner products alone is -H g, of the matrix H that the pairs define: the
// recursion of BFGS over full matrices is another way to it.
TEST(Direction, IsThatOfTheFullMatrix) {
  constexpr size_t kSize = 7;
  constexpr size_t kPairs = 3;
  Random random(4);
  std::vector<Vector> vectors(2 * kPairs + 1);
  for (size_t i = 0; i < kPairs; ++i) {
    vectors[i] = Drawn(random, kSize);
    vectors[kPairs + i] = Drawn(random, kSize);
    for (size_t j = 0; j < kSize; ++j) vectors[kPairs + i][j] += 3 * vectors[i][j];
  }
  vectors.back() = Drawn(random, kSize);
  InnerProducts products;
  for (const Vector& a : vectors) {
    Vector& row = products.emplace_back();
    for (const Vector& b : vectors) row.push_back(Dot(a, b));
  }
  const Vector coefficients = DirectionCoefficients(products);

  const Vector& s = vectors[kPairs - 1];
  const Vector& y = vectors[2 * kPairs - 1];
  std::vector<Vector> inverse(kSize, Vector(kSize));
  for (size_t i = 0; i < kSize; ++i) inverse[i][i] = Dot(s, y) / Dot(y, y);
  for (size_t pair = 0; pair < kPairs; ++pair) {
    // H = (I - s y' / y's) H (I - y s' / y's) + s s' / y's
    const Vector& ps = vectors[pair];
    const Vector& py = vectors[kPairs + pair];
    const double rho = 1 / Dot(ps, py);
    Vector hy(kSize);
    for (size_t i = 0; i < kSize; ++i) hy[i] = Dot(inverse[i], py);
    const double yhy = Dot(py, hy);
    for (size_t i = 0; i < kSize; ++i) {
      for (size_t j = 0; j < kSize; ++j) {
        inverse[i][j] += rho * ((1 + rho * yhy) * ps[i] * ps[j] - hy[i] * ps[j] - ps[i] * hy[j]);
      }
    }
  }
  for (size_t i = 0; i < kSize; ++i) {
    double direction = 0;
    for (size_t v = 0; v < vectors.size(); ++v) direction += coefficients[v] * vectors[v][i];
    EXPECT_NEAR(direction, -Dot(inverse[i], vectors.back()), 1e-12) << i;
  }
}

TEST(Problem, TheGradientIsTheSlopeOfTheLossAndPartsMakeUpTheWhole) {
  const ProblemSize size{.features = 50, .samples = 300, .features_per_sample = 8};
  const LogisticProblem all(size, 3, {.first = 0, .count = size.samples});
  Random random(1);
  Vector weights = Drawn(random, size.features);
  Vector gradient(size.features), in_parts(size.features), ignored(size.features);
  const double loss = all.AddGradient(weights, gradient);
  double loss_in_parts = 0;
  for (uint64_t rank = 0; rank < 7; ++rank) {
    const LogisticProblem part(size, 3, PartOf(size.samples, rank, 7));
    loss_in_parts += part.AddGradient(weights, in_parts);
  }
  EXPECT_NEAR(loss_in_parts, loss, 1e-9);
  constexpr double kStep = 1e-6;
  for (size_t i = 0; i < size.features; ++i) {
    EXPECT_NEAR(in_parts[i], gradient[i], 1e-9);
    Vector moved = weights;
    moved[i] += kStep;
    EXPECT_NEAR((all.AddGradient(moved, ignored) - loss) / kStep, gradient[i], 1e-4) << i;
  }
}

TEST(SingleProcess, FindsTheMinimum) {
  const ProblemSize size{.features = 200, .samples = 1000};
  const LogisticProblem all(size, 3, {.first = 0, .count = size.samples});
  const Minimum found = MinimizeHere(all, size, {.iterations = 100, .tolerance = 1e-9});
  EXPECT_LT(found.iterations, 60u);
  // A minimum of a convex function: no gradient.
  EXPECT_LT(found.gradient_norm, 1e-9);
  EXPECT_LT(found.objective, std::log(2));
}

}  // namespace
}  // namespace covey::lbfgs
