// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/runtime/actor.h"
#include "worker/hybrid/server_times.h"
#include "worker/hybrid/tensor_request.h"

namespace covey::worker {

// What the program has asked of one bucket and the pipeline has not begun. Three queues:
//
//   submissions  of one step, the next one or a later one; complete with one per tensor
//   pulls        complete with one per tensor
//   deliveries   requests that only need the newest values: of steps that are over, and flushes
//
// Actor-confined. Deterministic.
class BucketRequests {
 public:
  explicit BucketRequests(size_t tensors) : tensors_(tensors) {}

  // Precondition: what has been submitted before and not taken is of the same step.
  void AddSubmission(Step step, TensorRequest request);
  void AddPull(TensorRequest request) { pulls_.push_back(std::move(request)); }
  void AddDelivery(TensorRequest request) { deliveries_.push_back(std::move(request)); }

  // Every tensor has been submitted for `step`.
  bool HasSubmitted(Step step) const { return IsComplete(submissions_) && submitted_ == step; }
  bool HasPull() const { return IsComplete(pulls_); }
  bool empty() const { return submissions_.empty() && pulls_.empty() && deliveries_.empty(); }
  // The soonest deadline of what is complete: the rest waits for the program.
  absl::Time Due() const;

  std::vector<TensorRequest> TakeSubmissions() { return std::exchange(submissions_, {}); }
  std::vector<TensorRequest> TakePulls() { return std::exchange(pulls_, {}); }
  std::vector<TensorRequest> TakeDeliveries() { return std::exchange(deliveries_, {}); }

  // The step that the submissions are for, and another number for it.
  Step submitted_step() const { return submitted_; }
  void RenumberSubmissions(Step step) { submitted_ = step; }
  bool HasSubmissions() const { return !submissions_.empty(); }
  // `step` goes on, or is over, without the program: its submissions become deliveries.
  void DropSubmissions(Step step);
  // These come before other deliveries.
  void PrependDeliveries(const std::vector<TensorRequest>& requests);

  // Ends all requests with `status`.
  void FailAll(absl::Time now, const absl::Status& status, Outbox& outbox);

 private:
  bool IsComplete(const std::vector<TensorRequest>& requests) const {
    return requests.size() == tensors_;
  }

  const size_t tensors_;
  Step submitted_;
  std::vector<TensorRequest> submissions_;
  std::vector<TensorRequest> pulls_;
  std::vector<TensorRequest> deliveries_;
};

// The soonest deadline; InfiniteFuture() without requests.
absl::Time SoonestDeadline(const std::vector<TensorRequest>& requests);
// Tells each, where it asks for them.
void WriteServerTimes(const ServerTimes& times, const std::vector<TensorRequest>& requests);
// Ends each with `status`.
void EndAll(absl::Time now, const std::vector<TensorRequest>& requests, const absl::Status& status,
            Outbox& outbox);

}  // namespace covey::worker
