// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/lbfgs/train.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/parameter_client.h"
#include "common/base/status_macros.h"
#include "worker/examples/client_beside_worker.h"
#include "worker/examples/lbfgs/problem.h"
#include "worker/examples/lbfgs/server_minimizer.h"
#include "worker/examples/lbfgs/single_process.h"

namespace covey::lbfgs {
namespace {

using client::ParameterClient;
using client::Table;

// For the slowest worker's part of an evaluation.
constexpr absl::Duration kPatience = absl::Minutes(5);

// What worker 0 and the others agree on between two barriers. Vector 0 of the table: 1 while there
// are points to evaluate. Vector 1: the losses, two elements of each worker, a float32 and what
// that lacks, so that their sums are exact.
proto::TableSpec LossesSpec(uint32_t workers) {
  proto::TableSpec spec = ServerMinimizer::SpecOf(2 * workers, {.history = 1});
  spec.set_name("lbfgs/losses");
  return spec;
}

// One worker's part of each evaluation.
class Part {
 public:
  Part(const worker::Worker& worker, const Options& options, ParameterClient& client,
       const Table& weights, const Table& losses)
      : client_(client),
        weights_table_(weights),
        losses_table_(losses),
        rank_(worker.rank()),
        problem_(options.size, options.seed,
                 PartOf(options.size.samples, worker.rank(), worker.size())),
        values_(options.size.features),
        weights_(options.size.features),
        sums_(options.size.features) {}

  // Whether there is a point to evaluate.
  absl::StatusOr<bool> IsWanted() {
    std::vector<float> losses(losses_table_.elements);
    COVEY_RETURN_IF_ERROR(client_.Pull(losses_table_, std::span(losses)).Wait());
    return losses[0] != 0;
  }

  absl::Status Evaluate() {
    COVEY_RETURN_IF_ERROR(client_.Pull(weights_table_, std::span(values_)).Wait());
    std::copy(values_.begin(), values_.end(), weights_.begin());
    std::fill(sums_.begin(), sums_.end(), 0);
    const double loss = problem_.AddGradient(weights_, sums_);
    for (size_t i = 0; i < sums_.size(); ++i) values_[i] = static_cast<float>(sums_[i]);
    std::vector<float> losses(losses_table_.elements);
    losses[2 * rank_] = static_cast<float>(loss);
    losses[2 * rank_ + 1] = static_cast<float>(loss - losses[2 * rank_]);
    const client::Handle pushed = client_.Push(weights_table_, values_);
    COVEY_RETURN_IF_ERROR(client_.Push(losses_table_, losses).Wait());
    COVEY_RETURN_IF_ERROR(pushed.Wait());
    // A push may wait for a snapshot in the making.
    return client_.Flush(kPatience);
  }

 private:
  ParameterClient& client_;
  const Table weights_table_;
  const Table losses_table_;
  const size_t rank_;
  const LogisticProblem problem_;
  std::vector<float> values_;
  std::vector<double> weights_;
  std::vector<double> sums_;
};

// Worker 0.
class Minimization {
 public:
  Minimization(worker::Worker& worker, const Options& options, ParameterClient& client, Part& part,
               const Table& weights, const Table& losses)
      : worker_(worker),
        options_(options),
        client_(client),
        part_(part),
        weights_(weights),
        losses_(losses) {}

  absl::StatusOr<Outcome> Run(const std::function<void(absl::string_view)>& print) {
    const auto evaluate = [this] { return Evaluate(); };
    ServerMinimizer minimizer(client_, weights_, options_.settings, options_.size.samples);
    Outcome outcome;
    COVEY_RETURN_IF_ERROR(minimizer.Begin(evaluate));
    outcome.evaluations = 1;
    print(absl::StrFormat("start: objective %.9f, gradient norm %.3e",
                          minimizer.iteration().objective, minimizer.iteration().gradient_norm));
    for (;;) {
      COVEY_ASSIGN_OR_RETURN(const bool goes_on, minimizer.Step(evaluate));
      if (!goes_on) break;
      const Iteration& done = minimizer.iteration();
      outcome.evaluations += done.evaluations;
      outcome.bytes_max = std::max(outcome.bytes_max, done.bytes);
      if (done.evaluations == 1) outcome.bytes_per_iteration = done.bytes;
      print(absl::StrFormat(
          "iteration %d: objective %.9f, gradient norm %.3e, step %g, evaluations %d, bytes %d",
          minimizer.iterations(), done.objective, done.gradient_norm, done.step, done.evaluations,
          done.bytes));
    }
    outcome.iterations = minimizer.iterations();
    outcome.objective = minimizer.iteration().objective;
    outcome.gradient_norm = minimizer.iteration().gradient_norm;
    COVEY_RETURN_IF_ERROR(Want(false));
    COVEY_RETURN_IF_ERROR(worker_.Barrier("lbfgs/go", kPatience));
    COVEY_RETURN_IF_ERROR(Compare(outcome));
    return outcome;
  }

 private:
  absl::Status Want(bool more) {
    return client_
        .Call(losses_, {{.kind = VectorFunction::Kind::kSet, .target = 1},
                        {.kind = VectorFunction::Kind::kSet, .scalar = more ? 1.0 : 0.0}})
        .Wait();
  }

  absl::StatusOr<double> Evaluate() {
    COVEY_RETURN_IF_ERROR(Want(true));
    COVEY_RETURN_IF_ERROR(worker_.Barrier("lbfgs/go", kPatience));
    COVEY_RETURN_IF_ERROR(part_.Evaluate());
    COVEY_RETURN_IF_ERROR(worker_.Barrier("lbfgs/done", kPatience));
    const client::Handle sum =
        client_.Ask(losses_, {{.kind = VectorQuery::Kind::kSum, .vector = 1}});
    COVEY_RETURN_IF_ERROR(sum.Wait());
    return sum.result().answers[0].value;
  }

  absl::Status Compare(Outcome& outcome) {
    std::vector<float> weights(options_.size.features);
    COVEY_RETURN_IF_ERROR(client_.Pull(weights_, std::span(weights)).Wait());
    const LogisticProblem all(options_.size, options_.seed,
                              {.first = 0, .count = options_.size.samples});
    const Minimum here = MinimizeHere(all, options_.size, options_.settings);
    outcome.iterations_here = here.iterations;
    outcome.objective_here = here.objective;
    outcome.objective_difference = std::fabs(outcome.objective - here.objective) / here.objective;
    for (size_t i = 0; i < weights.size(); ++i) {
      outcome.weight_difference =
          std::max(outcome.weight_difference, std::fabs(weights[i] - here.weights[i]));
    }
    return absl::OkStatus();
  }

  worker::Worker& worker_;
  const Options& options_;
  ParameterClient& client_;
  Part& part_;
  const Table weights_;
  const Table losses_;
};

}  // namespace

absl::StatusOr<std::optional<Outcome>> Train(worker::Worker& worker,
                                             const worker::WorkerConfig& config,
                                             const Options& options,
                                             const std::function<void(absl::string_view)>& print) {
  COVEY_ASSIGN_OR_RETURN(const auto client, examples::ConnectBesideWorker(config));
  proto::TableSpec spec = ServerMinimizer::SpecOf(options.size.features, options.settings);
  spec.set_name("lbfgs/weights");
  spec.set_shard_bytes(options.shard_mib << 20);
  COVEY_ASSIGN_OR_RETURN(const Table weights, client->CreateTable(spec));
  COVEY_ASSIGN_OR_RETURN(const Table losses, client->CreateTable(LossesSpec(worker.size())));
  Part part(worker, options, *client, weights, losses);
  if (worker.rank() == 0) {
    // A client of its own, whose counters have the minimizer's bytes alone.
    COVEY_ASSIGN_OR_RETURN(const auto commands, examples::ConnectBesideWorker(config));
    return Minimization(worker, options, *commands, part, weights, losses).Run(print);
  }
  for (;;) {
    COVEY_RETURN_IF_ERROR(worker.Barrier("lbfgs/go", kPatience));
    COVEY_ASSIGN_OR_RETURN(const bool is_wanted, part.IsWanted());
    if (!is_wanted) return std::nullopt;
    COVEY_RETURN_IF_ERROR(part.Evaluate());
    COVEY_RETURN_IF_ERROR(worker.Barrier("lbfgs/done", kPatience));
  }
}

}  // namespace covey::lbfgs
