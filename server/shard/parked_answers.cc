#include "server/shard/parked_answers.h"

#include <algorithm>
#include <utility>

#include "common/cluster/limits.h"

namespace covey::server {

PendingAnswer BeginAnswer(absl::Time now, const Message& request, const proto::ReadBound& bound,
                          uint32_t deadline_ms) {
  return {.node = request.from().node,
          .incarnation = request.incarnation(),
          .request_id = request.envelope.header().request_id(),
          .reply = MakeReply(request),
          .bound = bound,
          .deadline = now + std::min<absl::Duration>(absl::Milliseconds(deadline_ms), kBarrierMax)};
}

bool ParkedAnswers::Park(PendingAnswer& answer) {
  const auto same = std::find_if(answers_.begin(), answers_.end(), [&](const PendingAnswer& other) {
    return other.request_id == answer.request_id && other.node == answer.node &&
           other.incarnation == answer.incarnation;
  });
  if (same == answers_.end() && answers_.size() >= kParkedPerShardMax) return false;
  next_deadline_ = std::min(next_deadline_, answer.deadline);
  if (same != answers_.end()) {
    *same = std::move(answer);
  } else {
    answers_.push_back(std::move(answer));
  }
  return true;
}

void ParkedAnswers::Take(absl::FunctionRef<bool(const PendingAnswer&)> wanted,
                         absl::FunctionRef<void(PendingAnswer&)> take) {
  if (answers_.empty()) return;
  const auto first_taken =
      std::stable_partition(answers_.begin(), answers_.end(),
                            [&](const PendingAnswer& answer) { return !wanted(answer); });
  for (auto answer = first_taken; answer != answers_.end(); ++answer) take(*answer);
  answers_.erase(first_taken, answers_.end());
  next_deadline_ = absl::InfiniteFuture();
  for (const PendingAnswer& answer : answers_) {
    next_deadline_ = std::min(next_deadline_, answer.deadline);
  }
}

}  // namespace covey::server
