// SPDX-License-Identifier: Apache-2.0

// Keeps a ledger: pushes numbered increments to a table and logs which ones are certain.
//   ledger_client --do push --contract async --slot 0 --first 0     until SIGTERM
// Before pushes leave, "sending" logs up to which number. "durable" follows when every push up to a
// number is durable. In between, a push is in the table once or not at all.
//   ledger_client --do settle --contract buffered:2
// completes an update that waits for another push, by an empty push.
//   ledger_client --do audit --contract async
// logs the values of each slot's elements, shard by shard.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/parameter_client.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/runtime/config_file.h"
#include "common/runtime/process_main.h"
#include "tests/process/ledger.h"

namespace covey {
namespace {

using client::ParameterClient;

struct Config {
  client::ClientConfig cluster;
  std::string what = "push";
  std::string contract = "async";
  uint32_t replicas = 2;
  uint64_t slot = 0;
  uint64_t first = 0;
  uint64_t batch = 8;
  absl::Duration pause = absl::Milliseconds(2);
};

// A flush may time out while a server is replaced.
constexpr absl::Duration kFlushPatience = absl::Milliseconds(200);

absl::Status Push(const Config& config, ParameterClient& client, const client::Table& table,
                  float gradient) {
  std::vector<std::vector<float>> gradients(config.batch, std::vector<float>(table.elements));
  uint64_t next = config.first;
  while (!WaitForTermination(config.pause).has_value()) {
    const uint64_t end = next + config.batch;
    LogInfo("sending", {{"before", end}});
    std::vector<client::Handle> handles;
    for (uint64_t number = next; number < end; ++number) {
      std::vector<float>& values = gradients[number - next];
      for (size_t shard = 0; shard < kLedgerShards; ++shard) {
        values[LedgerPosition(shard, config.slot, number)] = gradient;
      }
      handles.push_back(client.Push(table, values));
    }
    for (const client::Handle& handle : handles) COVEY_RETURN_IF_ERROR(handle.Wait());
    for (std::vector<float>& values : gradients) values.assign(values.size(), 0);
    next = end;
    const absl::Status flushed = client.Flush(kFlushPatience);
    if (flushed.ok()) {
      LogInfo("durable", {{"before", next}});
    } else if (!absl::IsDeadlineExceeded(flushed)) {
      return flushed;
    }
  }
  COVEY_RETURN_IF_ERROR(client.Flush(config.cluster.operation_deadline));
  LogInfo("durable", {{"before", next}});
  return absl::OkStatus();
}

absl::Status Settle(ParameterClient& client, const client::Table& table) {
  const std::vector<float> nothing(table.elements);
  return client.Push(table, nothing).Wait();
}

absl::Status Audit(ParameterClient& client, const client::Table& table) {
  std::vector<float> values(table.elements);
  COVEY_RETURN_IF_ERROR(client.Pull(table, values).Wait());
  for (size_t shard = 0; shard < kLedgerShards; ++shard) {
    for (size_t slot = 0; slot < kLedgerSlots; ++slot) {
      const float* const begin = &values[LedgerPosition(shard, slot, 0)];
      const std::vector<float> counts(begin, begin + kLedgerElements);
      LogInfo("held", {{"shard", shard}, {"slot", slot}, {"counts", absl::StrJoin(counts, ",")}});
    }
  }
  return absl::OkStatus();
}

absl::Status Run(const Config& config) {
  if (config.slot >= kLedgerSlots) {
    return absl::InvalidArgumentError(absl::StrCat("slot ", config.slot, " of ", kLedgerSlots));
  }
  COVEY_ASSIGN_OR_RETURN(const auto client, ParameterClient::Connect(config.cluster));
  COVEY_ASSIGN_OR_RETURN(const auto spec, LedgerTable(config.contract, config.replicas));
  COVEY_ASSIGN_OR_RETURN(const client::Table table, client->CreateTable(spec));
  if (config.what == "push") return Push(config, *client, table, LedgerGradient(spec));
  if (config.what == "settle") return Settle(*client, table);
  if (config.what == "audit") return Audit(*client, table);
  return absl::InvalidArgumentError(absl::StrCat("--do ", config.what, " is unknown"));
}

int Main(int argc, char** argv) {
  InitProcess("ledger_client");
  Config config;
  ConfigFile options("ledger_client", "Pushes numbered increments, and audits them.");
  options.Add("scheduler", &config.cluster.scheduler, "host:port of the scheduler");
  options.Add("job", &config.cluster.job, "name of the job");
  options.Add("do", &config.what, "push, settle or audit");
  options.Add("contract", &config.contract, "of the table");
  options.Add("replicas", &config.replicas, "of the table");
  options.Add("slot", &config.slot, "this producer's; below 4");
  options.Add("first", &config.first, "number of the first push");
  options.Add("batch", &config.batch, "pushes on their way at once");
  options.Add("pause", &config.pause, "between two batches");
  if (const std::optional<int> code = options.LoadForMain(argc, argv)) return *code;
  const absl::Status status = Run(config);
  if (!status.ok()) LogError("failed", {{"reason", status.message()}});
  return status.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace covey

int main(int argc, char** argv) { return covey::Main(argc, argv); }
