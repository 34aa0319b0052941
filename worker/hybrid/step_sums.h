// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/runtime/actor.h"
#include "worker/group/communicator.h"

namespace covey::worker {

// Adds up a few numbers of each step over all buckets and all members of the group. A small
// all-gather brings the members' numbers together:
//
//   numbers of each bucket ──▶ Add ──▶ last bucket of the step ──▶ all-gather of ──▶ `then` of each
//                                                                  the members'      bucket
//                                                                  numbers
//
// All members have the same sums, bit for bit: they are taken in double, in the order of buckets
// and ranks. Numbers may be anything, also NaN.
//
// Actor-confined. Deterministic. The communicator outlives it.
class StepSums : public std::enable_shared_from_this<StepSums> {
 public:
  struct Sums {
    // The buckets that are in it: fewer than all where others had finished the step in an earlier
    // generation.
    size_t buckets = 0;
    std::vector<double> values;
  };
  // `sums`: null when the group failed, or was interrupted, before they were known.
  using Then = std::function<void(absl::Time, const Sums* sums, Outbox&)>;

  // `count`: numbers of a bucket. `stream`, `name`: of the collectives, and for errors.
  StepSums(Communicator& group, uint32_t stream, std::string name, size_t count)
      : group_(group), stream_(stream), name_(std::move(name)), count_(count) {}

  // The generation begins in which bucket b goes on after the step finished[b]. What waits is
  // forgotten.
  void BeginGeneration(std::vector<Step> finished);

  // Once per bucket and step. `then` is called, perhaps at once, unless the generation ends before.
  void Add(absl::Time now, uint32_t bucket, Step step, std::span<const double> numbers,
           absl::Time deadline, Then then, Outbox& outbox);

  // Buckets of the model.
  size_t buckets() const { return finished_.size(); }
  // Whether a step's numbers are on their way between the members.
  bool gathering() const { return gathering_ > 0; }

 private:
  struct Pending {
    std::vector<double> numbers;  // by bucket
    size_t added = 0;
    std::vector<Then> waiting;
  };

  void Gather(absl::Time now, Step step, absl::Time deadline, Outbox& outbox);
  // `words`: of all members; null after a failure.
  void Gathered(absl::Time now, Step step, const std::vector<float>* words, Outbox& outbox);

  Communicator& group_;
  const uint32_t stream_;
  const std::string name_;
  const size_t count_;
  uint64_t generations_ = 0;
  std::vector<Step> finished_;  // by bucket, when the generation began
  std::map<Step, Pending> pending_;
  size_t gathering_ = 0;
};

}  // namespace covey::worker
