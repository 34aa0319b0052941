#pragma once

#include <cstdint>
#include <deque>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "common/net/message.h"

namespace covey::server {

// An answer that is complete, and shows the shard as of a record that the chain does not hold yet.
struct UndurableAnswer {
  uint64_t index = 0;  // of that record
  Message reply;
  // InfiniteFuture(): whenever it is durable.
  absl::Time deadline;
  // Of the version that it shows.
  absl::Time updated;
};

// Answers that wait for the chain, in the order of their records. Nobody sees what could still be
// lost, so no reader sees a version go back when a primary is gone.
//
// Actor-confined. Memory: one old copy of the values per version that waits; the records that wait
// are bounded (kRecordsInFlightPerShard), and so are these.
class UndurableAnswers {
 public:
  // Precondition (checked): the index is not below those that wait.
  void Add(UndurableAnswer answer);
  // Gives those up to `durable` to `take`, in order.
  void TakeDurable(uint64_t durable, absl::FunctionRef<void(UndurableAnswer&)> take);
  // Those whose deadline has passed; with InfiniteFuture(), all.
  void TakeLate(absl::Time now, absl::FunctionRef<void(UndurableAnswer&)> take);

  // Earliest deadline.
  absl::Time next_deadline() const { return next_deadline_; }
  size_t size() const { return answers_.size(); }
  // Of their frames; values of one version count once.
  size_t bytes() const;

 private:
  void FindDeadline();

  std::deque<UndurableAnswer> answers_;
  absl::Time next_deadline_ = absl::InfiniteFuture();
};

}  // namespace covey::server
