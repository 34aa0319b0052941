// SPDX-License-Identifier: Apache-2.0
#include "client/row_reader.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "client/engine/connection.h"
#include "client/engine/operation.h"
#include "common/base/check.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"

namespace covey::client {
namespace {

absl::Status CheckToken(const ResumeToken& token, const Table& table, uint64_t run) {
  const absl::string_view why = token.run != run          ? "another run of the job"
                                : token.table != table.id ? "another table"
                                : token.shards.size() != table.shard_ends.size()
                                    ? "a table with other shards"
                                    : "";
  if (why.empty()) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("table '", table.name, "': the resume token is of ",
                                            why, "; read all rows again, into an empty copy"));
}

}  // namespace

// A piece that is being read. The client's loop has it until its handle is done.
struct RowReader::Reading {
  size_t shard = 0;
  ScannedRows rows;
  Handle handle;
};

absl::StatusOr<std::unique_ptr<RowReader>> RowReader::Create(ParameterClient& client,
                                                             const Table& table,
                                                             const Options& options) {
  if (!table.is_sparse()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", table.name, "' is dense, and has no rows with keys; pull all its elements"));
  }
  uint64_t run = 0;
  Connection& connection = *client.connection_;
  COVEY_RETURN_IF_ERROR(connection.Run([&connection, &run](absl::Time, Outbox&) {
    run = connection.client().member().view()->proto().run();
  }));
  if (options.since) COVEY_RETURN_IF_ERROR(CheckToken(*options.since, table, run));
  return absl::WrapUnique(new RowReader(client, table, options, run));
}

RowReader::RowReader(ParameterClient& client, const Table& table, const Options& options,
                     uint64_t run)
    : client_(client),
      table_(table),
      options_(options),
      token_({.run = run, .table = table.id, .shards = {}}),
      readings_({std::make_shared<Reading>(), std::make_shared<Reading>()}) {
  Begin(0, 0);
}

RowReader::~RowReader() = default;

void RowReader::Begin(size_t shard, uint64_t first) {
  const std::shared_ptr<Reading>& reading = readings_[1];
  reading->shard = shard;
  ScanOperation scan{.first = first, .width = table_.width, .into = &reading->rows};
  if (options_.since) {
    scan.generation = options_.since->shards[shard].generation;
    scan.since = options_.since->shards[shard].version.value();
  } else if (shard < token_.shards.size()) {
    scan.generation = token_.shards[shard].generation;
  }
  // The handle's operation shares the memory, so that the reader may go before it is done.
  reading->handle = client_.Start({.table = table_.id,
                                   .first_shard = ShardIndex(static_cast<uint32_t>(shard)),
                                   .shard_count = 1,
                                   .scan = scan,
                                   .read = options_.bound},
                                  options_.deadline, [reading](const OperationResult&) {});
}

void RowReader::TidyRemoved(Reading& reading) {
  std::vector<uint64_t>& removed = reading.rows.removed;
  const auto is_before = [](uint64_t a, uint64_t b) { return MixBits(a) < MixBits(b); };
  std::sort(removed.begin(), removed.end(), is_before);
  removed.erase(std::unique(removed.begin(), removed.end()), removed.end());
  // Keys whose rows were made again have changed, so their rows are in the same piece.
  const std::vector<uint64_t>& keys = reading.rows.keys;
  std::erase_if(removed, [&](uint64_t key) {
    return std::binary_search(keys.begin(), keys.end(), key, is_before);
  });
}

bool RowReader::ready() const { return is_done_ || readings_[1]->handle.done(); }

absl::Status RowReader::WaitFor(absl::Duration timeout) const {
  if (ready()) return absl::OkStatus();
  const absl::Status waited = readings_[1]->handle.WaitFor(timeout);
  return ready() ? absl::OkStatus() : waited;
}

absl::StatusOr<std::optional<RowReader::Piece>> RowReader::Next() {
  if (is_done_) return std::nullopt;
  COVEY_RETURN_IF_ERROR(readings_[1]->handle.Wait());
  std::swap(readings_[0], readings_[1]);
  Reading& read = *readings_[0];
  // What a later pass goes on from: this version is in all later pieces of the shard, too.
  if (read.shard == token_.shards.size()) token_.shards.push_back(read.rows.version);
  samples_ = std::max(samples_, read.rows.samples);
  const bool ends_shard = read.rows.last == (table_.shard_ends[read.shard] << 48) - 1;
  if (!ends_shard) {
    Begin(read.shard, read.rows.last + 1);
  } else if (read.shard + 1 < table_.shard_ends.size()) {
    Begin(read.shard + 1, read.rows.last + 1);
  } else {
    is_done_ = true;
  }
  TidyRemoved(read);
  return Piece{.shard = read.shard,
               .version = read.rows.version,
               .keys = read.rows.keys,
               .rows = read.rows.rows,
               .removed = read.rows.removed};
}

const ResumeToken& RowReader::token() const {
  COVEY_CHECK(is_done_);
  return token_;
}

}  // namespace covey::client
