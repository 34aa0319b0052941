// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/handle.h"
#include "client/kept_rows.h"
#include "client/operation_result.h"
#include "client/parameter_client.h"
#include "client/table.h"

namespace covey::client {

// Reads rows of a sparse table, and keeps them for reads that tolerate stale rows: for serving, and
// for training where few keys are most of what is read (how much faster: docs/BENCHMARKS.md). Once
// the cache is full, a row is kept when it is read a second time within a short time.
//
//   COVEY_ASSIGN_OR_RETURN(auto cache, RowCache::Create(*client, table, {}));
//   COVEY_RETURN_IF_ERROR(cache->Pull(keys, rows).Wait());  // in any order; keys may repeat
//
// A row that is answered from here was the server's at some time within Options::max_age. The
// contract of the table bounds only what is read from servers. A program sees its own pushes if it
// calls Invalidate when they are done.
//
// Not thread-safe. The client outlives the cache.
class RowCache {
 public:
  struct Options {
    // Rows that are kept at most: 1 to 2^32 - 1. Each takes its floats, rounded up to whole cache
    // lines of 16 (fewer to a power of two), and 21 bytes more. Create reserves the memory for all;
    // the system gives it as rows come.
    size_t rows_max = 100'000;
    // A row that was read longer ago than this is read again. More than zero.
    absl::Duration max_age = absl::Seconds(1);
    // A row whose shard has had more updates since is read again, as far as earlier pulls of this
    // cache have seen. An update is a push under async, and otherwise what the contract makes of
    // several. Rows of a shard that was lost and made again are read again.
    uint64_t max_updates = std::numeric_limits<uint64_t>::max();
  };
  // Keys of all pulls; one that repeats in a pull counts each time.
  struct Counts {
    uint64_t hits = 0;
    uint64_t misses = 0;
    uint64_t stale = 0;  // of the misses: kept, but too old
    uint64_t rows = 0;   // kept now
  };

  // INVALID_ARGUMENT: the table is dense, or an option is out of its range. Throws std::bad_alloc.
  static absl::StatusOr<std::unique_ptr<RowCache>> Create(ParameterClient& client,
                                                          const Table& table,
                                                          const Options& options);
  ~RowCache();

  // Fills `rows`, which has table.width elements for each key: at once where all rows are kept,
  // otherwise with a pull of the others. `keys` is the caller's again when the call returns, `rows`
  // when the handle is done; after an error its contents are undefined. `deadline` and errors are
  // as for ParameterClient::Pull. The result's version and age are those of rows that this pull has
  // read from servers.
  Handle Pull(std::span<const uint64_t> keys, std::span<float> rows,
              absl::Duration deadline = absl::ZeroDuration());
  // The next pull of these keys reads them from the servers. Pulls in progress are not changed, but
  // their rows of these keys are not kept.
  void Invalidate(std::span<const uint64_t> keys);

  Counts counts();

 private:
  struct Reading;
  RowCache(ParameterClient& client, const Table& table, const Options& options);

  std::shared_ptr<Reading> TakeSpare();
  // Keeps the rows of pulls that have ended.
  void KeepWhatWasRead();

  ParameterClient& client_;
  const Table table_;
  KeptRows kept_;
  std::vector<std::shared_ptr<Reading>> in_flight_;  // shared with the client's loop
  std::vector<std::shared_ptr<Reading>> spares_;     // whose memory serves others
};

}  // namespace covey::client
