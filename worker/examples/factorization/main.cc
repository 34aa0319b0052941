// SPDX-License-Identifier: Apache-2.0

// Trains a factorization machine or a linear model as one worker of a cluster, in rows of sparse
// tables; `covey run` starts any number of workers:
//   covey run --servers 2 --groups 4 -- factorization
//   covey run --servers 2 --groups 4 -- factorization --contract local:8
//   covey run -- factorization --data roles --model linear --optimizer ftrl --l1 1 --l2 0
//     --learning-rate 0.5 --passes 3 --batch 16

#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/row_residuals.h"
#include "common/base/status_macros.h"
#include "common/contract/contract.h"
#include "common/runtime/config_file.h"
#include "common/runtime/event_loop.h"
#include "common/runtime/process_main.h"
#include "worker/examples/factorization/options.h"
#include "worker/examples/factorization/train.h"
#include "worker/examples/worker_program.h"

namespace covey::factorization {
namespace {

void Print(absl::string_view line) { std::cout << line << std::endl; }

// The part of a push's rows that were spared.
double Saved(uint64_t pushed, uint64_t held_back, uint64_t pushed_later) {
  const auto rows = static_cast<double>(pushed + held_back);
  return rows > 0 ? (static_cast<double>(held_back) - static_cast<double>(pushed_later)) / rows : 0;
}

nlohmann::ordered_json FilteredJson(const client::RowResiduals::Counts& counts) {
  return {{"pushed", counts.pushed},
          {"held_back", counts.held_back},
          {"zero_pushed", counts.zero_pushed},
          {"zero_held_back", counts.zero_held_back},
          {"pushed_later", counts.pushed_later}};
}

void PrintFiltered(absl::string_view name, const client::RowResiduals::Counts& counts) {
  if (counts.pushed + counts.held_back == 0) return;
  Print(absl::StrFormat("%-18s %9.1f%%", absl::StrCat(name, " not sent"),
                        100 * Saved(counts.pushed, counts.held_back, counts.pushed_later)));
}

void PrintTable(const Options& options, const Outcome& outcome) {
  Print(absl::StrFormat("%-18s %10s", "figure", "value"));
  Print(absl::StrFormat("%-18s %10d", "training samples", outcome.training_samples));
  Print(absl::StrFormat("%-18s %10d", "test samples", outcome.test_samples));
  Print(absl::StrFormat("%-18s %10d", "features", outcome.features));
  Print(absl::StrFormat("%-18s %10d", "zero weights", outcome.zero_weights));
  Print(absl::StrFormat("%-18s %10.4f", "AUC", outcome.auc));
  Print(absl::StrFormat("%-18s %10.4f", "log loss", outcome.log_loss));
  Print(
      absl::StrFormat("%-18s %10.1f", "MB of rows", static_cast<double>(outcome.row_bytes) / 1e6));
  if (options.objective) Print(absl::StrFormat("%-18s %10.6f", "objective", outcome.objective));
  const client::RowResiduals::Counts& weights = outcome.weights_filtered;
  PrintFiltered("weights", weights);
  PrintFiltered("factors", outcome.factors_filtered);
  if (options.filter != Filter::kKkt) return;
  // Only zeros wait, so whatever goes later was one.
  Print(absl::StrFormat(
      "%-18s %9.1f%%", "zeros not sent",
      100 * Saved(weights.zero_pushed, weights.zero_held_back, weights.pushed_later)));
}

void PrintResult(const worker::Worker& worker, const Options& options, const Outcome& outcome) {
  const double seconds = absl::ToDoubleSeconds(outcome.duration);
  nlohmann::ordered_json json = {
      {"auc", outcome.auc},
      {"log_loss", outcome.log_loss},
      {"data", std::string(SourceName(options.source))},
      {"model", std::string(ModelName(options.model))},
      {"training_samples", outcome.training_samples},
      {"test_samples", outcome.test_samples},
      {"features", outcome.features},
      {"zero_weights", outcome.zero_weights},
      {"loss", outcome.loss},
      {"objective", outcome.objective},
      {"contract", ContractName(options.contract)},
      {"row_bytes", outcome.row_bytes},
      {"filter", std::string(FilterName(options.filter))},
      {"weights_filtered", FilteredJson(outcome.weights_filtered)},
      {"factors_filtered", FilteredJson(outcome.factors_filtered)},
      {"train_seconds", seconds},
      {"samples", outcome.trained},
      {"samples_per_second", seconds > 0 ? static_cast<double>(outcome.trained) / seconds : 0},
      {"groups", worker.groups()},
      {"workers", worker.size()}};
  if (options.contract.kind == Contract::Kind::kLocal) {
    json["outer_rate"] = options.OuterRate(worker.initial_groups());
  }
  Print(absl::StrCat("result ", json.dump()));
}

absl::Status Run(const worker::WorkerConfig& config, const Options& options,
                 worker::Worker& worker) {
  DrainOnSignal drain(worker);
  COVEY_ASSIGN_OR_RETURN(
      const Outcome outcome,
      Train(worker, config, options,
            {.now = MonotonicNow,
             .may_go_on = [&drain] { return drain.Pause(absl::ZeroDuration()); }},
            [&worker](absl::string_view line) {
              if (worker.rank() == 0) Print(line);
            }));
  if (worker.rank() == 0) PrintTable(options, outcome);
  // One worker of each group, because the others may be lost.
  if (worker.group().rank() == 0) PrintResult(worker, options, outcome);
  return absl::OkStatus();
}

int Main(int argc, const char* const* argv) {
  Options options;
  return RunWorkerProgram(
      {.name = "factorization",
       .description = "Trains a factorization machine or a linear model as one worker of a "
                      "cluster, in rows of sparse tables: which Debian package depends on which, "
                      "or samples in files.",
       .add_options = [&options](ConfigFile& file) { options.AddTo(file); },
       .validate = [&options] { return options.Validate(); },
       .run = [&options](const worker::WorkerConfig& config,
                         worker::Worker& worker) { return Run(config, options, worker); }},
      argc, argv, std::cerr);
}

}  // namespace
}  // namespace covey::factorization

int main(int argc, char** argv) {
  covey::InitProcess("");
  return covey::factorization::Main(argc, argv);
}
