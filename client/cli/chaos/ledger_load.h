// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/handle.h"
#include "client/parameter_client.h"

namespace covey::cli {

// Load that can be audited: each push adds one to every element of a table, which is exact in
// float32 up to 2^24. At the end an element is the number of updates that were applied.
//
// There is one lane per table, each with one push in flight. Confined to one thread, which calls
// Step often; the client's own loop does the work.
class LedgerLoad {
 public:
  struct Options {
    std::string scheduler;
    std::string job;
    size_t lanes = 1;
    uint64_t elements = 4096;
    // A push that takes longer is given up: it may have been applied or not.
    absl::Duration push_deadline = absl::Seconds(30);
  };
  // A table of one shard, and the state of the pushes to it.
  struct Lane {
    client::Table table;
    uint64_t acknowledged = 0;
    // Pushes that failed, and may have been applied.
    uint64_t unknown = 0;
    std::string last_error;
    // The times of acknowledgments, oldest first; of the last `kTimesMax`.
    std::deque<absl::Time> times;

   private:
    friend class LedgerLoad;
    client::Handle handle{client::OperationResult{}};
    bool under_way = false;
  };
  static constexpr size_t kTimesMax = 200'000;

  // Joins the cluster and creates the tables, replicated on two servers. Errors: those of
  // ParameterClient.
  static absl::StatusOr<std::unique_ptr<LedgerLoad>> Start(const Options& options);
  // Waits for the pushes in flight.
  ~LedgerLoad();

  // Handles acknowledgments and pushes again.
  void Step(absl::Time now);
  // Ends the load: waits for the pushes in flight, and until all are durable. Errors as
  // ParameterClient::Flush.
  absl::Status Finish();

  // The tables' values compared with the pushes; valid after Finish.
  struct Audit {
    uint64_t acknowledged = 0;
    uint64_t unknown = 0;
    // Acknowledged pushes that the values lack; updates beyond all that were ever pushed; lanes
    // whose elements differ.
    uint64_t lost = 0;
    uint64_t doubled = 0;
    uint64_t torn = 0;
  };
  absl::StatusOr<Audit> Check();

  const std::vector<std::unique_ptr<Lane>>& lanes() const { return lanes_; }
  // The pushes per second of `lane` that were acknowledged in [from, to).
  static double RateOf(const Lane& lane, absl::Time from, absl::Time to);

 private:
  explicit LedgerLoad(const Options& options) : options_(options) {}

  const Options options_;
  std::unique_ptr<client::ParameterClient> client_;
  std::vector<float> gradient_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace covey::cli
