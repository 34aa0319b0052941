// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/lbfgs/server_minimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/status_macros.h"

namespace covey::lbfgs {
namespace {

using Function = VectorFunction::Kind;

constexpr uint32_t kTrial = 0;
constexpr uint32_t kSum = 1;
constexpr uint32_t kWeights = 2;
constexpr uint32_t kGradient = 3;
constexpr uint32_t kDirection = 4;
constexpr uint32_t kFirstPair = 5;

VectorFunction CopyOf(uint32_t source, uint32_t target) {
  return {.kind = Function::kCopy, .target = target, .source = source};
}

VectorFunction Zero(uint32_t target) { return {.kind = Function::kSet, .target = target}; }

VectorFunction Added(double factor, uint32_t source, uint32_t target) {
  return {.kind = Function::kAxpy, .target = target, .source = source, .scalar = factor};
}

VectorQuery DotOf(uint32_t a, uint32_t b) {
  return {.kind = VectorQuery::Kind::kDot, .vector = a, .other = b};
}

}  // namespace

proto::TableSpec ServerMinimizer::SpecOf(uint64_t elements, const Settings& settings) {
  proto::TableSpec spec;
  spec.set_data_type(proto::FLOAT32);
  spec.add_shape(elements);
  spec.mutable_optimizer()->set_kind(proto::Optimizer::VECTORS);
  spec.mutable_optimizer()->set_vectors(
      static_cast<uint32_t>(kFirstPair - 1 + 2 * settings.history));
  spec.mutable_learning_rate()->set_base(1);
  spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
  return spec;
}

absl::Status ServerMinimizer::Call(Functions functions) {
  return client_.Call(table_, std::move(functions)).Wait();
}

absl::StatusOr<std::vector<double>> ServerMinimizer::Ask(std::vector<VectorQuery> queries) {
  const client::Handle handle = client_.Ask(table_, std::move(queries));
  COVEY_RETURN_IF_ERROR(handle.Wait());
  std::vector<double> values;
  for (const VectorAnswer& answer : handle.result().answers) values.push_back(answer.value);
  return values;
}

absl::StatusOr<uint64_t> ServerMinimizer::BytesSoFar() {
  COVEY_ASSIGN_OR_RETURN(const client::Counters counters, client_.GetCounters());
  return counters.bytes_sent + counters.bytes_received;
}

absl::StatusOr<double> ServerMinimizer::EvaluateTrial(const Evaluate& evaluate) {
  COVEY_ASSIGN_OR_RETURN(const double loss, evaluate());
  ++iteration_.evaluations;
  COVEY_RETURN_IF_ERROR(
      Call({{.kind = Function::kScale, .target = kSum, .scalar = 1 / static_cast<double>(samples_)},
            Added(settings_.l2, kTrial, kSum)}));
  COVEY_ASSIGN_OR_RETURN(const std::vector<double> square, Ask({DotOf(kTrial, kTrial)}));
  return loss / static_cast<double>(samples_) + settings_.l2 / 2 * square[0];
}

absl::Status ServerMinimizer::Begin(const Evaluate& evaluate) {
  products_.assign(table_.vectors, std::vector<double>(table_.vectors));
  COVEY_RETURN_IF_ERROR(Call({Zero(kSum)}));
  COVEY_ASSIGN_OR_RETURN(iteration_.objective, EvaluateTrial(evaluate));
  COVEY_RETURN_IF_ERROR(Call({CopyOf(kTrial, kWeights), CopyOf(kSum, kGradient)}));
  COVEY_RETURN_IF_ERROR(Multiply({kGradient}));
  first_norm_ = iteration_.gradient_norm;
  return absl::OkStatus();
}

absl::StatusOr<bool> ServerMinimizer::Step(const Evaluate& evaluate) {
  if (iterations_ >= settings_.iterations ||
      iteration_.gradient_norm <= settings_.tolerance * first_norm_) {
    COVEY_RETURN_IF_ERROR(Call({CopyOf(kWeights, kTrial)}));
    return false;
  }
  COVEY_ASSIGN_OR_RETURN(const uint64_t before, BytesSoFar());
  const Iteration last = std::exchange(iteration_, {});
  const std::vector<uint32_t> basis = Basis();
  InnerProducts products;
  for (const uint32_t a : basis) {
    std::vector<double>& row = products.emplace_back();
    for (const uint32_t b : basis) row.push_back(products_[a][b]);
  }
  const std::vector<double> coefficients = DirectionCoefficients(products);
  Functions functions = {Zero(kDirection)};
  double slope = 0;
  for (size_t i = 0; i < basis.size(); ++i) {
    functions.push_back(Added(coefficients[i], basis[i], kDirection));
    slope += coefficients[i] * products.back()[i];
  }
  double step = iterations_ == 0 ? std::min(1.0, 1 / last.gradient_norm) : 1;
  for (int halvings = 0; halvings <= kHalvingsMax; ++halvings, step /= 2) {
    functions.insert(functions.end(),
                     {CopyOf(kWeights, kTrial), Added(step, kDirection, kTrial), Zero(kSum)});
    COVEY_RETURN_IF_ERROR(Call(std::exchange(functions, {})));
    COVEY_ASSIGN_OR_RETURN(iteration_.objective, EvaluateTrial(evaluate));
    if (iteration_.objective > last.objective + kSufficientDecrease * step * slope) continue;
    COVEY_RETURN_IF_ERROR(KeepPair());
    iteration_.step = step;
    COVEY_ASSIGN_OR_RETURN(const uint64_t after, BytesSoFar());
    iteration_.bytes = after - before;
    return true;
  }
  iteration_ = last;
  COVEY_RETURN_IF_ERROR(Call({CopyOf(kWeights, kTrial)}));
  return false;
}

absl::Status ServerMinimizer::KeepPair() {
  const uint32_t s = SlotOf(iterations_);
  const auto y = static_cast<uint32_t>(s + settings_.history);
  COVEY_RETURN_IF_ERROR(
      Call({CopyOf(kTrial, s), Added(-1, kWeights, s), CopyOf(kSum, y), Added(-1, kGradient, y),
            CopyOf(kTrial, kWeights), CopyOf(kSum, kGradient)}));
  ++iterations_;
  return Multiply({s, y, kGradient});
}

absl::Status ServerMinimizer::Multiply(const std::vector<uint32_t>& vectors) {
  std::vector<VectorQuery> queries;
  for (const uint32_t a : vectors) {
    for (const uint32_t b : Basis()) queries.push_back(DotOf(a, b));
  }
  COVEY_ASSIGN_OR_RETURN(const std::vector<double> answers, Ask(queries));
  for (size_t i = 0; i < queries.size(); ++i) {
    products_[queries[i].vector][queries[i].other] = answers[i];
    products_[queries[i].other][queries[i].vector] = answers[i];
  }
  iteration_.gradient_norm = std::sqrt(products_[kGradient][kGradient]);
  return absl::OkStatus();
}

std::vector<uint32_t> ServerMinimizer::Basis() const {
  std::vector<uint32_t> basis;
  const uint64_t pairs = std::min<uint64_t>(iterations_, settings_.history);
  for (uint64_t i = iterations_ - pairs; i < iterations_; ++i) basis.push_back(SlotOf(i));
  for (uint64_t i = 0; i < pairs; ++i) {
    basis.push_back(static_cast<uint32_t>(basis[i] + settings_.history));
  }
  basis.push_back(kGradient);
  return basis;
}

uint32_t ServerMinimizer::SlotOf(uint64_t iteration) const {
  return static_cast<uint32_t>(kFirstPair + iteration % settings_.history);
}

}  // namespace covey::lbfgs
