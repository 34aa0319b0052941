// SPDX-License-Identifier: Apache-2.0

// A member of a group whose every step adds 1 to each element of a table. After each step it checks
// that the table contains exactly as many steps as the group has made: none is lost and none is
// applied twice, whichever process has died meanwhile. On SIGTERM it asks to be drained. In a job
// of several groups the contract has to be bsp, with which all of them are at the same step. So it
// has to be where snapshots are made: a push beyond a cut waits for it, and under async its reply
// may not contain it yet.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/runtime/config_file.h"
#include "common/runtime/process_main.h"
#include "tests/process/ledger.h"
#include "worker/config.h"
#include "worker/hybrid_step.h"
#include "worker/worker.h"

namespace covey {
namespace {

absl::Status CheckValues(const std::vector<float>& values, uint64_t step) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == static_cast<float>(step)) continue;
    return absl::DataLossError(
        absl::StrCat("deviation: after step ", step, " element ", i, " is ", values[i]));
  }
  return absl::OkStatus();
}

struct Options {
  uint32_t replicas = 2;
  std::string contract = "async";
  absl::Duration pause = absl::Milliseconds(10);
};

absl::Status Train(const worker::WorkerConfig& config, const Options& options) {
  COVEY_ASSIGN_OR_RETURN(const auto worker, worker::Worker::Join(config));
  COVEY_ASSIGN_OR_RETURN(proto::TableSpec table, LedgerTable(options.contract, options.replicas));
  table.set_name("ledger/group");
  std::vector<float> values(kLedgerTableElements);
  std::vector<float> gradient(kLedgerTableElements);
  COVEY_ASSIGN_OR_RETURN(const auto hybrid,
                         worker::HybridStep::Create(
                             *worker, {{.table = table, .values = values, .gradient = gradient}}));
  LogInfo("training", {{"rank", worker->rank()}});
  while (true) {
    if (WaitForTermination(options.pause).has_value())
      COVEY_RETURN_IF_ERROR(worker->RequestDrain());
    COVEY_RETURN_IF_ERROR(hybrid->Begin(1));
    gradient.assign(gradient.size(), LedgerGradient(table));  // the buffer was overwritten by sums
    COVEY_RETURN_IF_ERROR(hybrid->Submit(0));
    COVEY_RETURN_IF_ERROR(hybrid->Wait(0));
    COVEY_ASSIGN_OR_RETURN(const uint64_t step, hybrid->step());
    COVEY_RETURN_IF_ERROR(CheckValues(values, step));
    hybrid->Report(0);
    LogInfo("step", {{"number", step}});
  }
}

int Main(int argc, char** argv) {
  InitProcess("ledger_worker");
  worker::WorkerConfig config;
  Options chosen;
  ConfigFile options("ledger_worker", "Counts its group's steps on the servers.");
  config.AddTo(options);
  options.Add("replicas", &chosen.replicas, "of the table");
  options.Add("contract", &chosen.contract, "of the table");
  options.Add("pause", &chosen.pause, "between two steps");
  if (const std::optional<int> code = options.LoadForMain(argc, argv)) return *code;
  absl::Status status = Train(config, chosen);
  // It was drained, and the group continues without it.
  if (absl::IsCancelled(status)) status = absl::OkStatus();
  if (!status.ok()) LogError("failed", {{"reason", status.message()}});
  return status.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace covey

int main(int argc, char** argv) { return covey::Main(argc, argv); }
