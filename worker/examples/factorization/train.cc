// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/factorization/train.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/filter_rule.h"
#include "client/parameter_client.h"
#include "client/row_filter.h"
#include "common/base/status_macros.h"
#include "worker/examples/client_beside_worker.h"
#include "worker/examples/factorization/data_set.h"
#include "worker/examples/factorization/factorization_model.h"
#include "worker/examples/factorization/feature_tables.h"
#include "worker/examples/factorization/score_histogram.h"
#include "worker/examples/rows/row_table.h"
#include "worker/examples/rows/tally.h"

namespace covey::factorization {
namespace {

using client::ParameterClient;
using examples::PassReport;
using examples::RowTable;
using examples::SharedPasses;
using examples::Tally;
using worker::Worker;

// Samples that a worker scores in one step.
constexpr uint64_t kScoredAtOnce = 2048;

absl::StatusOr<std::unique_ptr<Tally>> OpenTally(ParameterClient& client, absl::string_view name) {
  COVEY_ASSIGN_OR_RETURN(Tally tally,
                         Tally::Open(client, examples::TallySpec(name, ScoreHistogram::kSums)));
  return std::make_unique<Tally>(std::move(tally));
}

// The run of one worker, from start to end.
class Run {
 public:
  Run(const Options& options, DataSet set)
      : options_(options), set_(std::move(set)), model_(options.factors_used()) {}

  absl::Status Open(Worker& worker, ParameterClient& client,
                    const SharedPasses::Surroundings& surroundings) {
    const uint32_t groups = worker.initial_groups();
    COVEY_ASSIGN_OR_RETURN(weights_, RowTable::Open(worker, client, WeightsSpec(options_, groups)));
    if (options_.factors_used() > 0) {
      COVEY_ASSIGN_OR_RETURN(factors_,
                             RowTable::Open(worker, client, FactorsSpec(options_, groups)));
    }
    workers_ = worker.size();
    COVEY_ASSIGN_OR_RETURN(tally_, OpenTally(client, "factorization/scores"));
    if (options_.objective) {
      COVEY_ASSIGN_OR_RETURN(training_tally_, OpenTally(client, "factorization/training-scores"));
    }
    COVEY_ASSIGN_OR_RETURN(passes_,
                           SharedPasses::Open(worker, client, "factorization", surroundings));
    return absl::OkStatus();
  }

  absl::StatusOr<Outcome> TrainAndMeasure(const std::function<void(absl::string_view)>& print) {
    Outcome outcome;
    outcome.training_samples = set_.training.size();
    outcome.test_samples = set_.test.size();
    COVEY_RETURN_IF_ERROR(StartFilters());
    if (!options_.untrained) {
      COVEY_RETURN_IF_ERROR(passes_->Train(
          {.name = "factorization/training",
           .examples = set_.training.size(),
           .batch = options_.batch,
           .passes = options_.passes,
           .seed = options_.seed},
          [this](std::span<const uint32_t> numbers) { return TrainBatch(numbers); },
          [&](const PassReport& report) {
            print(DescribePass(report, options_.passes, "samples"));
            outcome.trained += report.examples;
            outcome.duration += report.duration;
            outcome.loss = report.loss;
            passes_over_ = report.pass;
          }));
    }
    COVEY_RETURN_IF_ERROR(StopFilters());
    COVEY_ASSIGN_OR_RETURN(outcome.row_bytes, weights_->Bytes());
    COVEY_RETURN_IF_ERROR(weights_->EndRounds());
    if (factors_ != nullptr) COVEY_RETURN_IF_ERROR(factors_->EndRounds());
    outcome.weights_filtered = weights_->filtered();
    if (factors_ != nullptr) outcome.factors_filtered = factors_->filtered();
    COVEY_ASSIGN_OR_RETURN(const ScoreHistogram scores, Score("test", set_.test, *tally_));
    outcome.auc = scores.Auc();
    outcome.log_loss = scores.LogLossMean();
    if (options_.objective) {
      COVEY_ASSIGN_OR_RETURN(const ScoreHistogram trained,
                             Score("training-scores", set_.training, *training_tally_));
      outcome.objective = trained.LogLossMean();
    }
    COVEY_RETURN_IF_ERROR(MeasureWeights(outcome));
    return outcome;
  }

 private:
  // Gets the rows of all features of these samples, which FeaturesAt divides.
  absl::Status Pull(const Samples& samples, std::span<const uint32_t> numbers) {
    keys_.clear();
    for (const uint32_t number : numbers) {
      const std::span<const uint64_t> keys = samples.features(number).keys;
      keys_.insert(keys_.end(), keys.begin(), keys.end());
    }
    COVEY_RETURN_IF_ERROR(weights_->StartPull(keys_));
    if (factors_ != nullptr) COVEY_RETURN_IF_ERROR(factors_->StartPull(keys_));
    COVEY_RETURN_IF_ERROR(weights_->WaitForRows());
    return factors_ != nullptr ? factors_->WaitForRows() : absl::OkStatus();
  }

  // Of the sample whose first feature is the batch's feature `begin`.
  FeatureRows FeaturesAt(const Samples& samples, uint32_t number, size_t begin) const {
    const std::span<const float> values = samples.features(number).values;
    const size_t width = options_.factors_used();
    FeatureRows rows{
        .values = values, .weights = weights_->rows().subspan(begin, values.size()), .factors = {}};
    if (width > 0) rows.factors = factors_->rows().subspan(begin * width, values.size() * width);
    return rows;
  }

  absl::StatusOr<double> TrainBatch(std::span<const uint32_t> numbers) {
    if (numbers.empty()) {
      COVEY_RETURN_IF_ERROR(weights_->Skip());
      if (factors_ != nullptr) COVEY_RETURN_IF_ERROR(factors_->Skip());
      return 0;
    }
    if (passes_over_ + options_.unfiltered_passes >= options_.passes) {
      COVEY_RETURN_IF_ERROR(StopFilters());
    }
    COVEY_RETURN_IF_ERROR(Pull(set_.training, numbers));
    const bool is_ftrl = options_.optimizer == Optimizer::kFtrl;
    const auto l2 = is_ftrl ? 0.0f : static_cast<float>(options_.l2);
    const size_t width = options_.factors_used();
    double loss = 0;
    size_t begin = 0;
    for (const uint32_t number : numbers) {
      const FeatureRows rows = FeaturesAt(set_.training, number, begin);
      const size_t count = rows.values.size();
      FeatureGradients gradients{.weights = weights_->gradients().subspan(begin, count),
                                 .factors = {}};
      if (width > 0) {
        gradients.factors = factors_->gradients().subspan(begin * width, count * width);
      }
      const float label = set_.training.label(number);
      const float score = model_.Score(rows);
      loss += LogLoss(score, label);
      model_.Gradients(rows, LogLossSlope(score, label), l2, gradients);
      begin += count;
    }
    // The coefficients of FTRL are about sums of gradients, not means.
    COVEY_RETURN_IF_ERROR(weights_->Push(is_ftrl ? 1 : numbers.size()));
    if (factors_ != nullptr) COVEY_RETURN_IF_ERROR(factors_->Push(numbers.size()));
    return loss / static_cast<double>(numbers.size());
  }

  absl::Status StartFilters() {
    if (options_.filter == Filter::kNone) return absl::OkStatus();
    const bool is_kkt = options_.filter == Filter::kKkt;
    const client::FilterRule rule = {
        .kind = is_kkt ? client::FilterRule::Kind::kKkt : client::FilterRule::Kind::kSignificance,
        .threshold = is_kkt ? options_.l1 / workers_ : options_.significance};
    const client::RowFilter::Options filter = {
        .rule = rule, .pieces_max = static_cast<uint32_t>(options_.filter_pieces)};
    COVEY_RETURN_IF_ERROR(weights_->StartFilter(filter));
    return factors_ != nullptr ? factors_->StartFilter(filter) : absl::OkStatus();
  }

  absl::Status StopFilters() {
    COVEY_RETURN_IF_ERROR(weights_->StopFilter());
    return factors_ != nullptr ? factors_->StopFilter() : absl::OkStatus();
  }

  // Of all samples of a set, by all workers.
  absl::StatusOr<ScoreHistogram> Score(absl::string_view name, const Samples& samples,
                                       Tally& tally) {
    COVEY_RETURN_IF_ERROR(passes_->Visit(
        {.name = absl::StrCat("factorization/", name),
         .examples = samples.size(),
         .batch = kScoredAtOnce},
        [&](std::span<const uint32_t> numbers) { return ScoreBatch(samples, numbers, tally); }));
    COVEY_ASSIGN_OR_RETURN(std::vector<double> sums, tally.Read());
    return ScoreHistogram(std::move(sums));
  }

  absl::Status ScoreBatch(const Samples& samples, std::span<const uint32_t> numbers, Tally& tally) {
    if (numbers.empty()) return absl::OkStatus();
    COVEY_RETURN_IF_ERROR(Pull(samples, numbers));
    ScoreHistogram scores;
    size_t begin = 0;
    for (const uint32_t number : numbers) {
      const FeatureRows rows = FeaturesAt(samples, number, begin);
      scores.Add(model_.Score(rows), samples.label(number));
      begin += rows.values.size();
    }
    return tally.Add(scores.sums());
  }

  // Counts the weights; adds their norms to the objective, if it is measured.
  absl::Status MeasureWeights(Outcome& outcome) {
    std::vector<uint64_t> keys(set_.training.keys().begin(), set_.training.keys().end());
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    std::vector<float> weights(keys.size());
    COVEY_RETURN_IF_ERROR(weights_->Read(keys, weights));
    outcome.features = keys.size();
    outcome.zero_weights = static_cast<size_t>(std::count(weights.begin(), weights.end(), 0.0f));
    if (!options_.objective) return absl::OkStatus();
    double norms = 0;
    for (const double weight : weights) {
      norms += options_.l1 * std::abs(weight) + options_.l2 / 2 * weight * weight;
    }
    outcome.objective +=
        norms / static_cast<double>(options_.passes * std::max<size_t>(1, set_.training.size()));
    return absl::OkStatus();
  }

  const Options& options_;
  const DataSet set_;
  FactorizationModel model_;
  std::unique_ptr<RowTable> weights_;
  std::unique_ptr<RowTable> factors_;  // null: a linear model
  std::unique_ptr<Tally> tally_;
  std::unique_ptr<Tally> training_tally_;  // null: the objective is not measured
  std::unique_ptr<SharedPasses> passes_;
  std::vector<uint64_t> keys_;
  double workers_ = 1;
  uint64_t passes_over_ = 0;
};

}  // namespace

absl::StatusOr<Outcome> Train(Worker& worker, const worker::WorkerConfig& config,
                              const Options& options,
                              const SharedPasses::Surroundings& surroundings,
                              const std::function<void(absl::string_view)>& print) {
  COVEY_ASSIGN_OR_RETURN(DataSet set, ReadData(options));
  COVEY_ASSIGN_OR_RETURN(const auto client, examples::ConnectBesideWorker(config));
  Run run(options, std::move(set));
  COVEY_RETURN_IF_ERROR(run.Open(worker, *client, surroundings));
  return run.TrainAndMeasure(print);
}

}  // namespace covey::factorization
