// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/contract/contract.h"
#include "common/runtime/config_file.h"
#include "common/table/round_mean.h"
#include "worker/examples/factorization/package_samples.h"

namespace covey::factorization {

// Where samples come from.
enum class Source { kDependencies, kRoles, kLibsvm, kCriteo };
// A factorization machine, or a linear model, which is one without factors.
enum class Model { kFactorization, kLinear };
enum class Optimizer { kAdagrad, kFtrl };
// How servers store the rows.
enum class RowType { kFloat32, kBfloat16, kFloat16 };
// Which rows of a push wait (client/filter_rule.h).
enum class Filter { kNone, kKkt, kSignificance };

// Command-line options of a run; they must be the same for all workers of a run.
//
// The defaults suit Source::kDependencies.
struct Options {
  Source source = Source::kDependencies;
  // The index of packages, from a file instead of `apt-cache dumpavail`.
  std::string index;
  // Of kLibsvm and kCriteo, both required.
  std::string train_file;
  std::string test_file;
  // Of the packages, the part by which the model is measured.
  HeldOut evaluate = HeldOut::kTest;
  Model model = Model::kFactorization;
  // Numbers of each feature besides its weight, 1 to 1024.
  uint64_t factors = 16;
  Optimizer optimizer = Optimizer::kAdagrad;
  // Of both tables. local:H is for groups of one worker, whose own steps use the optimizer.
  Contract contract{.kind = Contract::Kind::kAsync};
  // Under local:H, which groups the mean of a row's changes is over: all, or those that touched it.
  RoundMean round_mean = RoundMean::kOfAllPushes;
  // Under local:H, by how much of this mean the servers move a row; 0.001 to 100. SGD is their
  // optimizer. None: as OuterRate says.
  std::optional<double> outer_rate;
  // Passes over the training samples, 1 to 1000.
  uint64_t passes = 1;
  // Samples of a worker's step, 1 to 65,536.
  uint64_t batch = 512;
  // 1e-6 to 10. Of FTRL it is alpha.
  double learning_rate = 0.02;
  RowType row_type = RowType::kFloat32;
  // A feature has a row from the update on that holds it for this time, 1 to 65,535.
  uint64_t admit_after = 1;
  // Adds this times a feature's row to its gradient, each time that it occurs; 0 to 10. With FTRL
  // the coefficient of the L2 norm.
  double l2 = 1e-4;
  // FTRL: coefficient of the L1 norm, which makes weights zero; 0 to 1000.
  double l1 = 0;
  // Of pushes; kKkt needs FTRL, whose l1 is the threshold, divided by the number of workers.
  Filter filter = Filter::kNone;
  // Of kSignificance, 0 to 1000: part of a row's norm that a gradient has to reach to be pushed.
  double significance = 0.01;
  // Pieces in which a gradient that has waited goes at most, 1 to 16.
  uint64_t filter_pieces = 4;
  // Passes at the end without a filter, 0 to 1000.
  uint64_t unfiltered_passes = 0;
  // Also scores the training samples at the end, for Outcome::objective; needs FTRL.
  bool objective = false;
  // Measures at once: a control that shows what the figures are worth.
  bool untrained = false;
  // Seed of first values, of drawn samples and of the order.
  uint64_t seed = 1;

  // The outer rate of a job of `groups` groups. Unless it is given: for the mean over all groups,
  // the square root of their number. Each worker's Adagrad has seen its part of a row's gradients
  // only, so its steps are larger by this root than those of one that has seen all (ADR 0057). For
  // the other mean, whose divisor differs from row to row, it is 1.
  double OuterRate(uint32_t groups) const;
  uint64_t factors_used() const { return model == Model::kLinear ? 0 : factors; }

  // INVALID_ARGUMENT: names the flag, its value and the range.
  absl::Status Validate() const;
  // Makes every field an option of a program; this outlives `options`.
  void AddTo(ConfigFile& options);
};

absl::string_view SourceName(Source source);
absl::string_view ModelName(Model model);
absl::string_view FilterName(Filter filter);

}  // namespace covey::factorization
