// SPDX-License-Identifier: Apache-2.0

// A worker that follows a test's commands. It joins its group; every line on standard input is a
// number that it adds to those of the other members. Without a scheduler it does not join, so that
// a test can measure the cost of joining.

#include <iostream>
#include <memory>
#include <span>
#include <string>

#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/runtime/config_file.h"
#include "common/runtime/process_main.h"
#include "worker/config.h"
#include "worker/worker.h"

namespace {

absl::Status Run(const covey::worker::WorkerConfig& config) {
  std::unique_ptr<covey::worker::Worker> worker;
  if (!config.cluster.scheduler.empty()) {
    COVEY_ASSIGN_OR_RETURN(worker, covey::worker::Worker::Join(config));
  }
  covey::LogInfo("ready");
  float number = 0;
  while (std::cin >> number) {
    COVEY_RETURN_IF_ERROR(worker->group().AllReduce(std::span(&number, 1)).Wait());
    covey::LogInfo("sum", {{"value", number}});
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  covey::InitProcess("ring_worker");
  covey::worker::WorkerConfig config;
  covey::ConfigFile options("ring_worker", "Adds numbers in a ring.");
  config.AddTo(options);
  if (const auto code = options.LoadForMain(argc, argv)) return *code;
  const absl::Status status = Run(config);
  if (!status.ok()) covey::LogError("failed", {{"reason", status.message()}});
  return status.ok() ? 0 : 1;
}
