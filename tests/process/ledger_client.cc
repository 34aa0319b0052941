// SPDX-License-Identifier: Apache-2.0

// Keeps a ledger: pushes numbered increments to a table and logs which ones are certain.
//   ledger_client --do push --contract async --slot 0 --first 0     until SIGTERM
// Before pushes leave, "sending" logs up to which number. "durable" follows when every push up to a
// number is durable. In between, a push is in the table once or not at all.
//   ledger_client --do settle --contract buffered:2
// completes an update that waits for another push, by an empty push.
//   ledger_client --do audit --contract async
// logs the values of each slot's elements, shard by shard.
// With --rows the table is sparse; its audit logs the values of the keys below --keys.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
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
  bool rows = false;
  uint64_t keys = 0;
  uint64_t slot = 0;
  uint64_t first = 0;
  uint64_t batch = 8;
  absl::Duration pause = absl::Milliseconds(2);
};

// A flush may time out while a server is replaced.
constexpr absl::Duration kFlushPatience = absl::Milliseconds(200);

// One of the pushes on their way: what it adds, which stays until it is done.
class Entry {
 public:
  Entry(const Config& config, const client::Table& table, float gradient)
      : config_(config), table_(table), gradient_(gradient) {}

  absl::StatusOr<client::Handle> Push(ParameterClient& client, uint64_t number) {
    if (table_.is_sparse()) return PushRows(client, number);
    values_.assign(table_.elements, 0);
    for (size_t shard = 0; shard < kLedgerShards; ++shard) {
      values_[LedgerPosition(shard, config_.slot, number)] = gradient_;
    }
    return client.Push(table_, values_);
  }

 private:
  // The first key comes twice, with half of the gradient each time.
  absl::StatusOr<client::Handle> PushRows(ParameterClient& client, uint64_t number) {
    const auto of_push = LedgerKeys(number);
    std::vector<uint64_t> keys(of_push.begin(), of_push.end());
    keys.push_back(keys.front());
    values_.assign(keys.size() * table_.width, 0);
    for (size_t place = 0; place < keys.size(); ++place) {
      const bool is_half = place == 0 || place == keys.size() - 1;
      values_[place * table_.width + config_.slot] = is_half ? gradient_ / 2 : gradient_;
    }
    COVEY_RETURN_IF_ERROR(batch_.Assign(table_, keys));
    return client.Push(table_, batch_, values_);
  }

  const Config& config_;
  const client::Table& table_;
  const float gradient_;
  std::vector<float> values_;
  client::RowBatch batch_;
};

absl::Status Push(const Config& config, ParameterClient& client, const client::Table& table,
                  float gradient) {
  std::vector<Entry> entries(config.batch, Entry(config, table, gradient));
  uint64_t next = config.first;
  while (!WaitForTermination(config.pause).has_value()) {
    const uint64_t end = next + config.batch;
    LogInfo("sending", {{"before", end}});
    std::vector<client::Handle> handles;
    for (uint64_t number = next; number < end; ++number) {
      COVEY_ASSIGN_OR_RETURN(client::Handle handle, entries[number - next].Push(client, number));
      handles.push_back(std::move(handle));
    }
    for (const client::Handle& handle : handles) COVEY_RETURN_IF_ERROR(handle.Wait());
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
  if (table.is_sparse()) {
    client::RowBatch no_keys;
    COVEY_RETURN_IF_ERROR(no_keys.Assign(table, {}));
    return client.Push(table, no_keys, {}).Wait();
  }
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

absl::Status AuditRows(const Config& config, ParameterClient& client, const client::Table& table) {
  std::vector<uint64_t> keys(config.keys);
  std::iota(keys.begin(), keys.end(), 0);
  client::RowBatch batch;
  COVEY_RETURN_IF_ERROR(batch.Assign(table, keys));
  std::vector<float> rows(keys.size() * table.width);
  COVEY_RETURN_IF_ERROR(client.Pull(table, batch, rows).Wait());
  for (size_t slot = 0; slot < kLedgerSlots; ++slot) {
    std::vector<float> counts;
    for (size_t key = 0; key < keys.size(); ++key) counts.push_back(rows[key * table.width + slot]);
    LogInfo("held", {{"shard", 0}, {"slot", slot}, {"counts", absl::StrJoin(counts, ",")}});
  }
  return absl::OkStatus();
}

absl::Status Run(const Config& config) {
  if (config.slot >= kLedgerSlots) {
    return absl::InvalidArgumentError(absl::StrCat("slot ", config.slot, " of ", kLedgerSlots));
  }
  COVEY_ASSIGN_OR_RETURN(const auto client, ParameterClient::Connect(config.cluster));
  COVEY_ASSIGN_OR_RETURN(const auto spec, config.rows
                                              ? LedgerRows(config.contract, config.replicas)
                                              : LedgerTable(config.contract, config.replicas));
  COVEY_ASSIGN_OR_RETURN(const client::Table table, client->CreateTable(spec));
  if (config.what == "push") return Push(config, *client, table, LedgerGradient(spec));
  if (config.what == "settle") return Settle(*client, table);
  if (config.what == "audit") {
    return config.rows ? AuditRows(config, *client, table) : Audit(*client, table);
  }
  return absl::InvalidArgumentError(absl::StrCat("--do ", config.what, " is unknown"));
}

int Main(int argc, char** argv) {
  InitProcess("ledger_client");
  Config config;
  ConfigFile options("ledger_client", "Pushes numbered increments, and audits them.");
  options.Add("scheduler", &config.cluster.scheduler, "host:port of the scheduler");
  options.Add("job", &config.cluster.job, "name of the job");
  options.Add("tls", &config.cluster.tls, "folder of a client's certificate; empty = none");
  options.Add("do", &config.what, "push, settle or audit");
  options.Add("contract", &config.contract, "of the table");
  options.Add("replicas", &config.replicas, "of the table");
  options.Add("rows", &config.rows, "whether the table is sparse");
  options.Add("keys", &config.keys, "with --do audit and --rows: reads the keys below");
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
