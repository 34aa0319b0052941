// SPDX-License-Identifier: Apache-2.0
#include "client/cli/lookup/lookup_command.h"

#include <unistd.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/console/command.h"
#include "client/cli/console/text_file.h"
#include "client/cli/lookup/lookup_keys.h"
#include "client/cli/lookup/lookup_view.h"
#include "client/cli/scheduler/scheduler_options.h"
#include "client/cli/scheduler/scheduler_stub.h"
#include "client/parameter_client.h"
#include "common/base/status_macros.h"
#include "common/runtime/config_file.h"
#include "proto/view.pb.h"

namespace covey::cli {
namespace {

// Keys of one pull.
constexpr size_t kKeysAtOnce = 4096;
// Elements of all rows: 64 MiB, and about 1 GiB as text.
constexpr size_t kElementsMax = size_t{1} << 24;

struct LookupOptions {
  std::string job = "default";
  std::string table;
  std::vector<uint64_t> keys;
  client::PullOptions pull;
};

// `words`: the table and keys; `keys_file`: empty, or a file with more keys, "-" = standard input.
absl::Status TakeWords(const std::vector<std::string>& words, const std::string& keys_file,
                       LookupOptions& options) {
  if (words.empty()) {
    return absl::InvalidArgumentError(
        "no table is named; write covey lookup TABLE KEY..., and see `covey tables`");
  }
  options.table = words.front();
  for (const std::string& word : std::span(words).subspan(1)) {
    COVEY_ASSIGN_OR_RETURN(const uint64_t key, ParseKey(word));
    options.keys.push_back(key);
  }
  if (!keys_file.empty()) {
    const bool is_input = keys_file == "-";
    COVEY_ASSIGN_OR_RETURN(const std::string text,
                           ReadTextFile(is_input ? "/dev/stdin" : keys_file));
    COVEY_ASSIGN_OR_RETURN(const std::vector<uint64_t> more,
                           ParseKeys(is_input ? "standard input" : keys_file, text));
    options.keys.insert(options.keys.end(), more.begin(), more.end());
  }
  if (options.keys.empty()) {
    return absl::InvalidArgumentError(
        "no key is given; write them after the table, or name a "
        "file with --keys-file");
  }
  return absl::OkStatus();
}

// The table, as the scheduler lists it, so that a mistake is told before this program joins.
absl::StatusOr<client::Table> FindTable(SchedulerStub scheduler, const std::string& name) {
  COVEY_ASSIGN_OR_RETURN(const proto::ListTablesReply reply, scheduler.ListTables());
  for (const proto::Table& table : reply.tables()) {
    if (table.spec().name() != name) continue;
    if (table.spec().has_sparse()) return client::TableOf(table);
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", name, "' is dense and has no keys; `covey export` writes its values"));
  }
  return absl::NotFoundError(
      absl::StrCat("no table '", name, "'; `covey tables` lists those of the cluster"));
}

absl::StatusOr<LookedUpRows> LookUp(const SchedulerTarget& scheduler,
                                    const LookupOptions& options) {
  COVEY_ASSIGN_OR_RETURN(const client::Table table,
                         FindTable(SchedulerStub(scheduler), options.table));
  if (options.keys.size() > kElementsMax / table.width) {
    return absl::InvalidArgumentError(absl::StrCat(options.keys.size(), " rows of ", table.width,
                                                   " elements are more than ", kElementsMax,
                                                   " numbers; look up fewer keys at a time"));
  }
  COVEY_ASSIGN_OR_RETURN(
      const auto client,
      client::ParameterClient::Connect(
          {.scheduler = scheduler.addresses, .job = options.job, .tls = scheduler.tls}));
  LookedUpRows rows{.table = table.name,
                    .width = table.width,
                    .keys = options.keys,
                    .values = std::vector<float>(options.keys.size() * table.width)};
  client::RowBatch batch;
  for (size_t first = 0; first < rows.keys.size(); first += kKeysAtOnce) {
    const size_t count = std::min(kKeysAtOnce, rows.keys.size() - first);
    COVEY_RETURN_IF_ERROR(batch.Assign(table, std::span(rows.keys).subspan(first, count)));
    const auto values = std::span(rows.values).subspan(first * table.width, count * table.width);
    const client::Handle pull = client->Pull(table, batch, values, options.pull);
    COVEY_RETURN_IF_ERROR(pull.Wait());
    const client::OperationResult result = pull.result();
    const uint64_t version = result.version.value();
    rows.version = first == 0 ? version : std::min(rows.version, version);
    rows.age_seconds = std::max(rows.age_seconds, absl::ToDoubleSeconds(result.age));
  }
  return rows;
}

}  // namespace

int LookupCommand(int count, const char* const* arguments) {
  SchedulerOptions scheduler;
  LookupOptions what;
  std::string keys_file;
  std::vector<std::string> words;
  ConfigFile options("covey lookup",
                     "Shows rows of a sparse table in a running cluster. Keys are numbers below "
                     "2^64, decimal or hexadecimal (0x2a). A row that no push has made yet shows "
                     "its first values; looking it up does not make it. Exit code: 0 shown, 1 "
                     "failed, 2 a word is no key, 3 no scheduler answers.");
  scheduler.AddTo(options);
  options.Add("job", &what.job, "job of the scheduler");
  options.Add("keys-file", &keys_file,
              "file with more keys, spaces or line ends between, # begins a comment; - = standard "
              "input");
  options.Add("max-age", &what.pull.bound.max_age,
              "waits until each shard was updated within this time; 0 = takes what is there");
  options.Add("timeout", &what.pull.deadline, "longest wait for rows; 0 = a minute");
  options.TakeRest(&words, "TABLE [KEY...]");
  if (const auto code = scheduler.Load(options, count, arguments)) return *code;
  if (const absl::Status status = TakeWords(words, keys_file, what); !status.ok()) {
    PrintFailure(arguments[0], status);
    return kExitUsage;
  }
  const absl::StatusOr<LookedUpRows> rows = LookUp(scheduler.target(), what);
  if (!rows.ok()) {
    PrintFailure(arguments[0], rows.status());
    return ExitCodeOf(rows.status());
  }
  WriteAll(STDOUT_FILENO, scheduler.json ? LookupJson(*rows) : LookupText(*rows));
  return kExitOk;
}

}  // namespace covey::cli
