// SPDX-License-Identifier: Apache-2.0

// Measures how long shards accept no pushes: keeps one push (or pull) in flight to each of some
// tables of one shard. Logs "slow" for each operation that took longer than a threshold, with its
// start and end times, and periodically "rate": operations per table, and their durations, in the
// last interval. Runs until SIGTERM.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/parameter_client.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/runtime/config_file.h"
#include "common/runtime/process_main.h"
#include "proto/table.pb.h"

namespace covey {
namespace {

using client::ParameterClient;

struct Config {
  client::ClientConfig cluster;
  bool pull = false;
  uint32_t tables = 6;
  uint64_t elements = 1024;
  uint32_t replicas = 2;
  absl::Duration slow = absl::Milliseconds(100);
  absl::Duration interval = absl::Milliseconds(250);
};

struct Probe {
  client::Table table;
  client::Handle operation{client::OperationResult{}};
  std::vector<float> values;
  absl::Time began = absl::InfiniteFuture();
  uint64_t operations = 0;
};

proto::TableSpec Spec(const Config& config, uint32_t index) {
  proto::TableSpec spec;
  spec.set_name(absl::StrCat("probe/", index));
  spec.set_data_type(proto::FLOAT32);
  spec.add_shape(config.elements);
  spec.mutable_optimizer()->set_kind(proto::Optimizer::SGD);
  spec.mutable_learning_rate()->set_base(1);
  spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
  spec.set_durability(config.replicas > 1 ? proto::REPLICATED : proto::MEMORY);
  if (config.replicas > 1) spec.set_replicas(config.replicas);
  return spec;
}

// Seconds since 1970, the clock of other programs on this machine.
std::string Seconds(absl::Time time) {
  return absl::StrFormat("%.4f", absl::ToDoubleSeconds(time - absl::UnixEpoch()));
}

class Prober {
 public:
  Prober(const Config& config, ParameterClient& client)
      : config_(config), client_(client), gradient_(config.elements, -1) {}

  absl::Status CreateTables() {
    for (uint32_t i = 0; i < config_.tables; ++i) {
      COVEY_ASSIGN_OR_RETURN(const client::Table table, client_.CreateTable(Spec(config_, i)));
      probes_.push_back({.table = table, .values = std::vector<float>(config_.elements)});
    }
    return absl::OkStatus();
  }

  absl::Status Run() {
    interval_end_ = absl::Now() + config_.interval;
    while (!WaitForTermination(absl::Milliseconds(1)).has_value()) {
      for (size_t i = 0; i < probes_.size(); ++i) {
        if (probes_[i].operation.done()) COVEY_RETURN_IF_ERROR(Next(i));
      }
      if (absl::Now() >= interval_end_) LogRate();
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Next(size_t index) {
    Probe& probe = probes_[index];
    COVEY_RETURN_IF_ERROR(probe.operation.Wait());
    const absl::Time now = absl::Now();
    if (probe.began < now) {
      ++probe.operations;
      times_.push_back(absl::ToDoubleSeconds(now - probe.began));
      if (now - probe.began > config_.slow) {
        LogInfo("slow",
                {{"probe", index}, {"began", Seconds(probe.began)}, {"ended", Seconds(now)}});
      }
    }
    probe.began = now;
    probe.operation = config_.pull ? client_.Pull(probe.table, probe.values)
                                   : client_.Push(probe.table, gradient_);
    return absl::OkStatus();
  }

  void LogRate() {
    std::vector<uint64_t> operations;
    for (Probe& probe : probes_) operations.push_back(std::exchange(probe.operations, 0));
    std::sort(times_.begin(), times_.end());
    if (times_.empty()) times_.push_back(0);
    const absl::Time now = absl::Now();
    LogInfo("rate", {{"ended", Seconds(now)},
                     {"operations", absl::StrJoin(operations, ",")},
                     {"p50", times_[times_.size() / 2]},
                     {"p99", times_[times_.size() * 99 / 100]},
                     {"slowest", times_.back()}});
    times_.clear();
    interval_end_ = now + config_.interval;
  }

  const Config& config_;
  ParameterClient& client_;
  const std::vector<float> gradient_;
  std::vector<Probe> probes_;
  std::vector<double> times_;  // of the operations of this interval, in seconds
  absl::Time interval_end_;
};

absl::Status Run(const Config& config) {
  COVEY_ASSIGN_OR_RETURN(const auto client, ParameterClient::Connect(config.cluster));
  Prober prober(config, *client);
  COVEY_RETURN_IF_ERROR(prober.CreateTables());
  return prober.Run();
}

int Main(int argc, char** argv) {
  InitProcess("outage_probe");
  Config config;
  ConfigFile options("outage_probe", "Finds out how long shards take no pushes.");
  options.Add("scheduler", &config.cluster.scheduler, "host:port of the scheduler");
  options.Add("job", &config.cluster.job, "name of the job");
  options.Add("pull", &config.pull, "pull instead of pushing");
  options.Add("elements", &config.elements, "of each table");
  options.Add("tables", &config.tables, "of one shard each");
  options.Add("bytes-in-flight", ConfigFile::Bytes{&config.cluster.bytes_in_flight_max},
              "of this client, on the wire at once");
  options.Add("replicas", &config.replicas, "of each table");
  options.Add("deadline", &config.cluster.operation_deadline, "of each operation");
  options.Add("slow", &config.slow, "pushes that take longer are logged");
  options.Add("interval", &config.interval, "between two counts");
  if (const std::optional<int> code = options.LoadForMain(argc, argv)) return *code;
  const absl::Status status = Run(config);
  if (!status.ok()) LogError("failed", {{"reason", status.message()}});
  return status.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace covey

int main(int argc, char** argv) { return covey::Main(argc, argv); }
