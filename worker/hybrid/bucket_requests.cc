// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/bucket_requests.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace covey::worker {

void BucketRequests::AddSubmission(Step step, TensorRequest request) {
  COVEY_CHECK(submissions_.empty() || submitted_ == step);
  submitted_ = step;
  submissions_.push_back(std::move(request));
}

absl::Time BucketRequests::Due() const {
  absl::Time due = SoonestDeadline(deliveries_);
  if (IsComplete(submissions_)) due = std::min(due, SoonestDeadline(submissions_));
  if (IsComplete(pulls_)) due = std::min(due, SoonestDeadline(pulls_));
  return due;
}

void BucketRequests::DropSubmissions(Step step) {
  if (submitted_ != step) return;
  for (TensorRequest& request : TakeSubmissions()) deliveries_.push_back(std::move(request));
}

void BucketRequests::PrependDeliveries(const std::vector<TensorRequest>& requests) {
  deliveries_.insert(deliveries_.begin(), requests.begin(), requests.end());
}

void BucketRequests::FailAll(absl::Time now, const absl::Status& status, Outbox& outbox) {
  for (std::vector<TensorRequest>* queue : {&submissions_, &pulls_, &deliveries_}) {
    EndAll(now, std::exchange(*queue, {}), status, outbox);
  }
}

absl::Time SoonestDeadline(const std::vector<TensorRequest>& requests) {
  absl::Time soonest = absl::InfiniteFuture();
  for (const TensorRequest& request : requests) soonest = std::min(soonest, request.deadline);
  return soonest;
}

void WriteServerTimes(const ServerTimes& times, const std::vector<TensorRequest>& requests) {
  for (const TensorRequest& request : requests) {
    if (request.server_times != nullptr) *request.server_times = times;
  }
}

void EndAll(absl::Time now, const std::vector<TensorRequest>& requests, const absl::Status& status,
            Outbox& outbox) {
  for (const TensorRequest& request : requests) {
    if (request.done) request.done(now, status, outbox);
  }
}

}  // namespace covey::worker
