#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/buffer.h"
#include "common/cluster/ids.h"
#include "common/cluster/limits.h"
#include "common/cluster/view.h"
#include "common/runtime/actor.h"
#include "worker/collective/schedule.h"
#include "worker/slice_sender.h"

namespace covey::worker {

struct CollectiveResult {
  absl::Status status;
  // Reduce-scatter: training examples of all members together; 0 when this member's part is empty.
  uint64_t samples = 0;
};

// One collective, as every member of the group starts it: same kind, same sizes, same root.
//
// Memory: `data` is read and written in place, sent without a copy, and belongs to the machine
// until `done`. A reduce-scatter leaves partial sums in the parts of others.
struct Collective {
  using Callback = std::function<void(absl::Time, const CollectiveResult&, Outbox&)>;

  CollectiveKind kind = CollectiveKind::kBarrier;
  // What errors call it: "'hidden/weight'". May be empty.
  std::string name;
  std::span<float> data;
  // One range of `data` per member, disjoint; broadcast and barrier need none.
  std::vector<PartRange> parts;
  uint32_t root = 0;  // broadcast
  // Reduce-scatter: training examples behind this member's data.
  uint64_t samples = 0;
  // All-gather: this member's part is not there yet; Contribute says when. Other parts flow
  // meanwhile.
  bool held = false;
  absl::Time deadline = absl::InfiniteFuture();
  // Optional: the result is in `data`, but the transport may still read from it. Not called on
  // failure.
  Callback arrived;
  // Called once, always: finished or failed, and `data` is the caller's again.
  Callback done;
};

// Runs the collectives of one group, several at once, over messages between ring neighbours.
//
//                    SetView: group is ACTIVE
//   waiting for a group ──────────▶ formed ──┬─ deadline, lost slice, members disagree: tells all
//                                            ├─ GroupAbort; view says BROKEN
//                                            ▼
//                                         failed: every collective, present and future, ends so
//
// Invariants:
//   1. Collectives are numbered in the order in which members start them; so all members must start
//      the same ones in the same order.
//   2. The sum of part i is taken in the order of members i + 1, i + 2, ..., i (wrapping): the same
//      bits on every run, whatever the timing (collective/reference_reduce.h).
//   3. Data is sent in slices of at most kSliceBytesMax, each passed on as soon as it has arrived.
//   4. A slice is sent once. One that a reconnect loses is noticed by the gap it leaves, or by the
//      deadline.
//   5. A collective is done only when the transport holds none of its frames.
//   6. Slices of another generation, of strangers, or of finished collectives have no effect.
//   7. Memory: kGroupEarlyBytesMax and kGroupEarlySlicesMax for members that are ahead; beyond them
//      the group fails with RESOURCE_EXHAUSTED.
//
// A member that leaves while a collective is under way fails it after a moment, in which its last
// slices may still arrive.
//
// Actor-confined. Deterministic.
class GroupMachine {
 public:
  // `slice_bytes`: a multiple of 4, the same on all members; smaller ones are for tests.
  explicit GroupMachine(size_t slice_bytes = kSliceBytesMax);
  ~GroupMachine();

  // Takes in the newest view; the first that has `self` in an ACTIVE group forms this one.
  void SetView(absl::Time now, NodeId self, std::shared_ptr<const ClusterView> view,
               Outbox& outbox);

  bool formed() const { return size_ > 0; }
  // The following mean something once formed.
  GroupId id() const { return id_; }
  uint64_t generation() const { return generation_; }
  uint32_t rank() const { return rank_; }
  uint32_t size() const { return size_; }
  // Why the group can do nothing any more. UNAVAILABLE: names the member that died, left or was not
  // heard; DEADLINE_EXCEEDED: names the member waited for; INVALID_ARGUMENT: members started
  // different collectives.
  const absl::Status& failure() const { return failure_; }

  // Begins the next collective; its number. Callbacks may run inside. Precondition: formed(), and
  // `parts` fit.
  uint64_t Start(absl::Time now, Collective collective, Outbox& outbox);
  // A held collective's own part is in place. Without effect once the collective has failed.
  void Contribute(absl::Time now, uint64_t number, Outbox& outbox);
  // This member cannot go on: ends everything here and tells the other members why.
  void Abort(absl::Time now, const absl::Status& status, Outbox& outbox);

  bool Receive(absl::Time now, const Message& message, Outbox& outbox);
  void Wake(absl::Time now, Outbox& outbox);
  absl::Time NextWake() const;

  size_t collectives() const { return active_.size(); }

 private:
  struct Active;
  struct SlicePlace {
    uint32_t hop = 0;
    size_t offset = 0;
    uint64_t samples = 0;
  };

  void Form(absl::Time now, const proto::Group& group, Outbox& outbox);
  bool IsMember(const Message& message, uint32_t rank) const;
  void ReceiveSlice(absl::Time now, const Message& message, Outbox& outbox);
  void ReceiveAbort(absl::Time now, const Message& message, Outbox& outbox);
  bool HasRoomForEarly(const Message& message) const;
  void KeepEarly(std::deque<Message>& queue, const Message& message);
  void Apply(absl::Time now, Active& active, const Message& message, Outbox& outbox);
  void SendOwnPart(Active& active);
  void QueueSlice(Active& active, const SlicePlace& place, std::span<const float> elements);
  void Fail(absl::Time now, absl::Status status, Outbox& outbox);
  // After every change: sends what may be sent, notices released frames, runs callbacks.
  void Advance(absl::Time now, Outbox& outbox);
  void Released(uint64_t number);
  void RunCallbacks(absl::Time now, Outbox& outbox);
  absl::Status DeadlineStatus(const Active& active) const;
  std::string Describe(const Active& active) const;
  Address AddressOf(uint32_t rank) const;
  std::string NameOf(uint32_t rank) const;

  const size_t slice_elements_;

  NodeId self_;
  std::shared_ptr<const ClusterView> view_;
  GroupId id_;
  uint64_t generation_ = 0;
  std::vector<NodeId> members_;
  uint32_t rank_ = 0;
  uint32_t size_ = 0;
  std::string next_endpoint_;
  absl::Status failure_;

  uint64_t last_started_ = 0;
  std::map<uint64_t, std::unique_ptr<Active>> active_;  // by number
  std::deque<uint64_t> changed_;                        // numbers whose callbacks may be due
  std::deque<Message> before_forming_;
  std::map<uint64_t, std::deque<Message>> early_;  // by number, above last_started_
  size_t early_bytes_ = 0;                         // of both
  size_t early_messages_ = 0;
  SliceSender sender_;
  absl::Time look_again_ = absl::InfiniteFuture();
};

}  // namespace covey::worker
