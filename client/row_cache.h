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
#include "client/parameter_client.h"
#include "client/table.h"
#include "common/cluster/ids.h"

namespace covey::client {

// Reads rows of a sparse table, and keeps them for reads that may be a little old: for serving, and
// for training where few keys are most of what is read.
//
//   COVEY_ASSIGN_OR_RETURN(auto cache, RowCache::Create(*client, table, {}));
//   COVEY_RETURN_IF_ERROR(cache->Pull(keys, rows).Wait());  // in any order; keys may repeat
//
// A row that is answered from here was the server's at some time within Options::max_age. The
// contract of the table bounds only what is read from servers. A program sees its own pushes if it
// calls Forget when they are done.
//
// Not thread-safe. The client outlives the cache.
class RowCache {
 public:
  struct Options {
    // Rows that are kept: 1 to 2^32 - 2. Each takes 4 bytes per element and about 60 more.
    size_t rows_max = 100'000;
    // A row is read again when so much time has passed since it was read last. More than zero.
    absl::Duration max_age = absl::Seconds(1);
    // So it is when its shard has had more updates since, as far as earlier pulls of this cache
    // have seen. An update is a push under async, and otherwise what the contract makes of several.
    uint64_t max_updates = std::numeric_limits<uint64_t>::max();
  };
  // Keys of all pulls; one that repeats in a pull counts each time.
  struct Counts {
    uint64_t hits = 0;
    uint64_t misses = 0;
    uint64_t outdated = 0;  // of the misses: rows that were kept, and had to be read again
    uint64_t rows = 0;      // kept now
  };

  // INVALID_ARGUMENT: the table is dense, or an option is out of its range.
  static absl::StatusOr<std::unique_ptr<RowCache>> Create(ParameterClient& client,
                                                          const Table& table,
                                                          const Options& options);
  ~RowCache();

  // Fills `rows`, which has table.width elements for each key: at once where all rows are kept,
  // otherwise with a pull of the others. `keys` is the caller's again when the call returns, `rows`
  // when the handle is done; after an error its contents are undefined. `deadline` and errors are
  // as for ParameterClient::Pull.
  Handle Pull(std::span<const uint64_t> keys, std::span<float> rows,
              absl::Duration deadline = absl::ZeroDuration());
  // Has the rows of these keys read again when they are pulled next. Pulls in progress fill their
  // memory, and are not kept.
  void Forget(std::span<const uint64_t> keys);

  Counts counts();

 private:
  struct Reading;
  RowCache(ParameterClient& client, const Table& table, const Options& options);

  std::shared_ptr<Reading> TakeSpare();
  // Keeps the rows of pulls that have ended.
  void KeepWhatWasRead();
  void Keep(const Reading& reading, const std::vector<Version>& versions);

  ParameterClient& client_;
  const Table table_;
  KeptRows kept_;
  std::vector<std::shared_ptr<Reading>> under_way_;  // shared with the client's loop
  std::vector<std::shared_ptr<Reading>> spares_;     // whose memory serves others
};

}  // namespace covey::client
