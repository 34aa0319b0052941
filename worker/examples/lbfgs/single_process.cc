// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/lbfgs/single_process.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <utility>

namespace covey::lbfgs {
namespace {

using Vector = std::vector<double>;

double Dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void AddTo(Vector& sum, double factor, const Vector& x) {
  for (size_t i = 0; i < x.size(); ++i) sum[i] += factor * x[i];
}

Vector Difference(Vector a, const Vector& b) {
  AddTo(a, -1, b);
  return a;
}

struct Pair {
  Vector s;
  Vector y;
};

Vector DirectionOf(const std::deque<Pair>& history, Vector gradient) {
  Vector direction = std::move(gradient);
  Vector alphas(history.size());
  for (size_t i = history.size(); i-- > 0;) {
    alphas[i] = Dot(history[i].s, direction) / Dot(history[i].s, history[i].y);
    AddTo(direction, -alphas[i], history[i].y);
  }
  if (!history.empty()) {
    const Pair& newest = history.back();
    const double scale = Dot(newest.s, newest.y) / Dot(newest.y, newest.y);
    for (double& element : direction) element *= scale;
  }
  for (size_t i = 0; i < history.size(); ++i) {
    const double beta = Dot(history[i].y, direction) / Dot(history[i].s, history[i].y);
    AddTo(direction, alphas[i] - beta, history[i].s);
  }
  for (double& element : direction) element = -element;
  return direction;
}

}  // namespace

Minimum MinimizeHere(const LogisticProblem& problem, const ProblemSize& size,
                     const Settings& settings) {
  Minimum at{.weights = Vector(size.features)};
  const auto evaluate = [&](const Vector& weights, Vector& gradient) {
    ++at.evaluations;
    gradient.assign(weights.size(), 0);
    const auto samples = static_cast<double>(size.samples);
    const double loss = problem.AddGradient(weights, gradient) / samples;
    for (double& element : gradient) element /= samples;
    AddTo(gradient, settings.l2, weights);
    return loss + settings.l2 / 2 * Dot(weights, weights);
  };
  Vector gradient;
  at.objective = evaluate(at.weights, gradient);
  at.gradient_norm = std::sqrt(Dot(gradient, gradient));
  const double norm_min = settings.tolerance * at.gradient_norm;
  std::deque<Pair> history;
  while (at.gradient_norm > norm_min && at.iterations < settings.iterations) {
    const Vector direction = DirectionOf(history, gradient);
    const double slope = Dot(direction, gradient);
    double step = history.empty() ? std::min(1.0, 1 / at.gradient_norm) : 1;
    Vector trial, trial_gradient;
    double objective = 0;
    int halvings = 0;
    for (;; step /= 2) {
      trial = at.weights;
      AddTo(trial, step, direction);
      objective = evaluate(trial, trial_gradient);
      if (objective <= at.objective + kSufficientDecrease * step * slope) break;
      if (++halvings > kHalvingsMax) return at;
    }
    history.push_back(
        {.s = Difference(trial, at.weights), .y = Difference(trial_gradient, gradient)});
    if (history.size() > settings.history) history.pop_front();
    at.weights = std::move(trial);
    gradient = std::move(trial_gradient);
    at.objective = objective;
    at.gradient_norm = std::sqrt(Dot(gradient, gradient));
    ++at.iterations;
  }
  return at;
}

}  // namespace covey::lbfgs
