// SPDX-License-Identifier: Apache-2.0
#include "client/row_cache.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "client/row_batch.h"
#include "common/base/clock.h"
#include "common/tensor/row_copy.h"

namespace covey::client {
// A pull of rows that were missing. Its handle hands the memory over: the client's loop has it
// before, the cache afterwards.
struct RowCache::Reading {
  absl::Time since;
  std::vector<uint32_t> places;
  std::vector<uint64_t> keys;
  std::vector<float> rows;
  RowBatch batch;
  std::optional<Handle> handle;
  // Keys that were invalidated meanwhile, whose rows may be older than that.
  absl::flat_hash_set<uint64_t> invalidated;

  void DropInvalidated(size_t width) {
    if (invalidated.empty()) return;
    size_t left = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (invalidated.contains(keys[i])) continue;
      std::copy_n(rows.data() + i * width, width, rows.data() + left * width);
      keys[left++] = keys[i];
    }
    keys.resize(left);
    rows.resize(left * width);
  }
};

absl::StatusOr<std::unique_ptr<RowCache>> RowCache::Create(ParameterClient& client,
                                                           const Table& table,
                                                           const Options& options) {
  if (!table.is_sparse()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", table.name, "' is dense, and has no rows with keys; pull all its elements"));
  }
  if (options.rows_max == 0 || options.rows_max > std::numeric_limits<uint32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("a cache of ", options.rows_max,
                                                   " rows of table '", table.name, "'; keep 1 to ",
                                                   std::numeric_limits<uint32_t>::max()));
  }
  if (options.max_age <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a cache of rows of table '", table.name, "' that are at most ",
                     absl::FormatDuration(options.max_age),
                     " old; allow more than zero, or pull from the servers alone"));
  }
  return absl::WrapUnique(new RowCache(client, table, options));
}

RowCache::RowCache(ParameterClient& client, const Table& table, const Options& options)
    : client_(client),
      table_(table),
      kept_(table.width, table.shard_ends,
            {.rows = options.rows_max, .age = options.max_age, .updates = options.max_updates}) {}

RowCache::~RowCache() = default;

Handle RowCache::Pull(std::span<const uint64_t> keys, std::span<float> rows,
                      absl::Duration deadline) {
  const size_t width = table_.width;
  if (rows.size() != keys.size() * width || keys.size() > std::numeric_limits<uint32_t>::max()) {
    return Handle({.status = absl::InvalidArgumentError(absl::StrCat(
                       "table '", table_.name, "' has ", width, " columns; got ", keys.size(),
                       " keys and ", rows.size(), " row elements; pass a row for each key"))});
  }
  KeepWhatWasRead();
  const std::shared_ptr<Reading> reading = TakeSpare();
  reading->since = MonotonicNow();
  kept_.Find(reading->since, keys, rows, reading->places);
  if (reading->places.empty()) {
    spares_.push_back(reading);
    return Handle({.durable = true});
  }
  for (const uint32_t place : reading->places) reading->keys.push_back(keys[place]);
  reading->rows.resize(reading->keys.size() * width);
  if (const absl::Status fits = reading->batch.Assign(table_, reading->keys); !fits.ok()) {
    return Handle({.status = fits});
  }
  const auto finish = [reading, rows, width](const OperationResult&) {
    for (size_t i = 0; i < reading->places.size(); ++i) {
      CopyRow(reading->rows.data() + i * width, width * sizeof(float),
              rows.data() + reading->places[i] * width);
    }
  };
  reading->handle =
      client_.Pull(table_, reading->batch, reading->rows, {.deadline = deadline}, finish);
  in_flight_.push_back(reading);
  return *reading->handle;
}

std::shared_ptr<RowCache::Reading> RowCache::TakeSpare() {
  if (spares_.empty()) return std::make_shared<Reading>();
  std::shared_ptr<Reading> spare = std::move(spares_.back());
  spares_.pop_back();
  spare->places.clear();
  spare->keys.clear();
  spare->invalidated.clear();
  return spare;
}

void RowCache::KeepWhatWasRead() {
  const auto ended = std::stable_partition(
      in_flight_.begin(), in_flight_.end(),
      [](const std::shared_ptr<Reading>& reading) { return !reading->handle->done(); });
  const std::vector<std::shared_ptr<Reading>> readings(ended, in_flight_.end());
  in_flight_.erase(ended, in_flight_.end());
  for (const std::shared_ptr<Reading>& reading : readings) {
    const OperationResult result = reading->handle->result();
    if (!result.status.ok()) continue;
    reading->DropInvalidated(table_.width);
    kept_.Keep(reading->since, reading->keys, reading->rows, result.shard_versions);
    spares_.push_back(reading);
  }
}

void RowCache::Invalidate(std::span<const uint64_t> keys) {
  KeepWhatWasRead();
  for (const std::shared_ptr<Reading>& reading : in_flight_) {
    reading->invalidated.insert(keys.begin(), keys.end());
  }
  for (const uint64_t key : keys) kept_.Remove(key);
}

RowCache::Counts RowCache::counts() {
  KeepWhatWasRead();
  const KeptRows::Counts& of_keys = kept_.counts();
  return {.hits = of_keys.found,
          .misses = of_keys.missing + of_keys.stale,
          .stale = of_keys.stale,
          .rows = kept_.size()};
}

}  // namespace covey::client
