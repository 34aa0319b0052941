#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/buffer.h"
#include "common/base/random.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "proto/parameter.pb.h"

namespace covey::client {

// The pushes of a client that a server has received and that are not durable yet: kept, to be sent
// again under the same identity when the shard gets another head; a group's as of its newest
// generation, because servers refuse an older one once a newer one has pushed. Now and then the
// server is asked, without the bytes, whether they have become durable, in case the answer that says
// so was lost.
//
//   received ──▶ kept ──durable, refused for good, or the shard's content lost──▶ gone
//                 │ ▲
//            due  ▼ │ answered: received (again)
//               on the wire
//
// Order: a head that does not have a producer's earlier push must not get a later one, or its clock
// would pass the gap. So from a change of the head until that head has received a push, the push
// holds back the later ones of the same producer to the same shard, kept (Due) or new (HoldsBack),
// and that producer's reads: they find what it pushed.
//
// Limits: kUndurableBytesPerClientMax in memory of its own (HasRoomFor); what a push borrows from
// its operation is not counted. Actor-confined. Deterministic.
class UndurablePushes {
 public:
  struct Push {
    uint64_t request_id = 0;
    ShardId shard;
    proto::PushRequest request;  // as it is sent again: no values wanted
    Buffer gradient;
    uint32_t checksum = 0;
    // The operation that ends only when this push is durable, and whose memory `gradient` may be;
    // 0 = none, the bytes are the client's own.
    uint64_t operation = 0;
    // Who has received it; then, who it was last sent to.
    Address peer;
    bool received = true;  // by `peer`, as far as is known
    bool asks = false;     // as ClientMachine::Request
    bool on_wire = false;
    uint64_t window_number = 0;
    absl::Time again = absl::InfiniteFuture();
    int tries = 0;
  };

  explicit UndurablePushes(uint64_t seed) : random_(seed) {}

  bool HasRoomFor(size_t bytes) const;
  void Keep(absl::Time now, Push push);
  // Null when there is none.
  Push* Find(uint64_t request_id);
  // Precondition: it is there.
  Push Drop(uint64_t request_id);
  // Received, not durable: asks again later.
  void Postpone(absl::Time now, Push& push);
  // To be sent again at `when`, if that is sooner.
  void Hasten(absl::Time when, Push& push);
  // `peer` is known to have it, or not to.
  void SetReceived(bool received, Push& push);
  // Whether an earlier push must reach the shard's present head before this request.
  // `group` is the producer; none = the client.
  bool HoldsBack(uint64_t request_id, ShardId shard, GroupId group) const;
  bool HoldsBack(const Push& push) const;

  // Makes those due that have another head now. Returns those that can never become durable: their
  // table is gone or their shard's content was lost; not dropped.
  std::vector<uint64_t> FollowView(absl::Time now, const ClusterView& view);
  // Those to be sent now, oldest first; a push stays among them until it was sent, or dropped.
  const std::set<uint64_t>& Due(absl::Time now);
  void Sent(absl::Time now, Push& push);
  // InfiniteFuture() when nothing is pending. Those that are due wait for the caller.
  absl::Time next_due() const { return next_due_; }
  void UpdateNextDue();

  const std::map<uint64_t, Push>& pushes() const { return pushes_; }
  // In memory of its own.
  size_t bytes() const { return bytes_; }

 private:
  // The pushes of one producer to one shard, whose order matters.
  using Stream = std::pair<ShardId, GroupId>;

  static Stream StreamOf(const Push& push) { return {push.shard, GroupId(push.request.group())}; }
  absl::Duration Patience(const Push& push);

  Random random_;
  std::map<uint64_t, Push> pushes_;  // by request id
  std::map<Stream, std::set<uint64_t>> not_received_;
  std::set<uint64_t> due_;
  size_t bytes_ = 0;
  absl::Time next_due_ = absl::InfiniteFuture();  // never later than the next one
};

}  // namespace covey::client
