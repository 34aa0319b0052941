#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/engine/request_engine.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/net/message.h"
#include "worker/group/group_machine.h"
#include "worker/hybrid/bucket_flow.h"
#include "worker/hybrid/lateness.h"
#include "worker/hybrid_options.h"
#include "worker/layout/model_layout.h"
#include "worker/update/server_link.h"

namespace covey::worker {

// The hybrid step of one group member: synchronous inside the group, under each table's contract
// between groups. Each tensor of the model is one table; small ones share a bucket
// (model_layout.h), and each bucket goes its own way (bucket_flow.h), so that one's communication
// overlaps another's and the program's computation. Members may submit tensors in different orders.
//
// Every member's links work: member i answers for its own part only. Where the part is updated, the
// mode and the contract say (part_update.h): on the servers, or here.
//
// Invariants: all members end a step with the same bits in `values`; with one group under `bsp`
// they are those of one process that sums gradients in the order that the group's algorithm and
// ModelLayout::parts_of give, and applies one optimizer update. When one member's update fails, the
// group fails with its status: half a step is no step.
//
// Stepping aside (when the view asks for it, lateness.h): a program that is late does not hold the
// group up. This machine goes through the step in its stead, without a gradient; what the program
// submits for it is dropped and counted, and its next step is the group's.
//
// Another plan for the group: the first bucket's gather tells all members the same step s as the
// last of this generation (GroupMachine). No bucket begins another one; when all have finished s the
// new generation forms, and goes on after the highest step of its members. Values and optimizer
// state stay where they are, on the servers; what LOCAL members have learned since their last push,
// and the state of their inner optimizers, is given up. With kDistributed the group fails instead.
//
//   running ── cut known ──▶ last step ── all idle: Reform ──▶ forming ── ready ──▶ running
//      └── a member is gone: Interrupted ──────────────────────────▲    │
//                                                                       └─ in no group any more
//                                                                          ──▶ out: all ABORTED
//
// A member that dies in the middle of a step costs no step. The survivors stop, form the next
// generation and tell each other which step each of their buckets has finished. A step of a bucket
// that anybody has finished was applied by all its shards, so the others pull its values. One that
// nobody has finished is done again with the gradients that are left, weighted by their samples, and
// pushed under the same identity: each shard takes one update per group and step, whichever comes
// first. So who finished a step before the death and who pulls it later have values of different
// times; with one group they are the same bits. A member that is moved to another group meanwhile takes
// its gradient along, and it may count in both. LOCAL: the round that is under way goes on, from what
// the members have learned so far, and with the same push at its end; only the state of the inner
// optimizers is given up. kDistributed: as for any other plan.
//
// Deadlines hold in every state: what still waits when its deadline passes, for members to meet or for
// another step or pull, fails the group with DEADLINE_EXCEEDED.
//
// Actor-confined. Deterministic. Client and group machine outlive it, and see every message first.
class HybridMachine {
 public:
  using Work = worker::Work;

  HybridMachine(client::RequestEngine& client, GroupMachine& group)
      : group_(group), link_(client, group) {}
  ~HybridMachine();

  // After the group machine has taken it in.
  void SetView(absl::Time now, std::shared_ptr<const ClusterView> view, Outbox& outbox);
  // The group leaves its generation in the middle of a step: returns the newest step that is finished
  // here.
  uint64_t Interrupted(absl::Time now, Outbox& outbox);
  // How far each bucket has come; the members tell each other when they meet.
  MemberProgress Progress() const;
  // In no group any more: everything ends, with ABORTED, or CANCELLED when the worker was asked to go.
  void Left(absl::Time now, const absl::Status& status, Outbox& outbox);
  // The group has become ready.
  void GroupReady(absl::Time now, Outbox& outbox);

  // The model: one table per tensor, the same ones in the same order on every member. When the
  // group is ready, and nothing is under way. What has no deadline of the program's gets `patience`.
  // NOT_FOUND: a table is not in the view. INVALID_ARGUMENT: mode and contract do not go together,
  // or a definition that this member must follow is not valid; names the table.
  absl::Status SetTables(std::span<const TableId> tables, const HybridOptions& options,
                         absl::Duration patience);
  // The program submits no more: never steps aside for it.
  void Close() { closed_ = true; }
  // Elements of each tensor.
  size_t element_count(size_t tensor) const { return layout_->place_of(tensor).count; }

  // Steps are counted from 1; every tensor is submitted once per step, in any order. The step that
  // begins is the next one, or, after stepping aside, the one that the group is at.
  void BeginStep(absl::Time now, Outbox& outbox);
  // The newest one that has begun here, also without the program.
  Step step() const;
  // Preconditions: after SetTables and BeginStep; spans have the tensor's size.
  // Errors, like all that follow: those of the group and of pushes; ABORTED: this worker is in no
  // group any more; CANCELLED: the same, because it was asked to go.
  void Submit(absl::Time now, Work work, Outbox& outbox);
  // The newest values of the servers (of the members, where these update): every member gets the
  // same bits. For all tensors, by all members, between the same steps.
  void Pull(absl::Time now, Work work, Outbox& outbox);
  // With lag, the values of the last step submitted; else what is there already.
  void Flush(absl::Time now, Work work, Outbox& outbox);

  // What the group machine has taken: tells how far the others are.
  void Notice(absl::Time now, const Message& message, Outbox& outbox);
  void Wake(absl::Time now, Outbox& outbox);
  absl::Time NextWake() const;

  // See ServerLink.
  double TakeStaleness() { return link_.TakeStaleness(); }
  // Steps that the group took without this program's gradient.
  uint64_t steps_aside() const { return steps_aside_; }
  // Steps that were left because a member was gone; and how long the last one took from then until it
  // was finished.
  uint64_t recoveries() const { return recoveries_; }
  absl::Duration recovery_time() const { return recovery_time_; }

 private:
  BucketFlow& FlowOf(size_t tensor) { return *flows_[layout_->bucket_of(tensor)]; }
  absl::StatusOr<std::vector<const proto::Table*>> FindTables() const;
  LatenessRule Rule() const;
  bool MayBegin(uint32_t bucket, Step step) const;
  void Changed(absl::Time now, uint32_t bucket, uint64_t seen_epoch, Outbox& outbox);
  // When bucket b is to step aside; InfinitePast() = as soon as possible.
  absl::Time AsideAt(size_t bucket, const LatenessRule& rule) const;
  // The soonest deadline of what waits.
  absl::Time Due() const;
  void GiveUpWhatIsDue(absl::Time now, Outbox& outbox);
  bool MayReform() const;
  void Reform(absl::Time now, Outbox& outbox);
  absl::Status Adopt(absl::Time now, Outbox& outbox);
  // After an interruption, of any member.
  absl::Status Rejoin(absl::Time now, Outbox& outbox);
  // What the members have brought along says of one bucket.
  struct Standing {
    Step finished;  // by anybody, or before the group was made
    uint64_t pulls = 0;
    bool even = true;  // all have finished the same steps and pulls, and nobody is new
    // The first of those that know most of LOCAL rounds.
    std::optional<uint32_t> heir_of;
  };
  Standing StandingOf(size_t bucket) const;
  void Relabel(Step agreed);
  void NoteRecovery(absl::Time now);

  GroupMachine& group_;
  ServerLink link_;
  std::shared_ptr<const ClusterView> view_ = ClusterView::Empty();

  std::vector<TableId> tables_;
  HybridOptions options_;
  absl::Duration patience_ = absl::ZeroDuration();
  bool closed_ = false;
  std::unique_ptr<const ModelLayout> layout_;
  std::vector<std::shared_ptr<BucketFlow>> flows_;  // by bucket

  Step step_;                // of the program
  std::optional<Step> cut_;  // the last one of this generation
  bool forming_ = false;     // the next generation
  Step base_;                // the newest one that any bucket had begun in the one before
  absl::Status failure_;     // in no group any more

  std::vector<Lateness> lateness_;       // by bucket
  std::map<Step, Lateness> any_bucket_;  // of the steps that are under way
  Step submitted_;                       // newest step of which the program has given something
  Step last_aside_;
  uint64_t steps_aside_ = 0;

  uint64_t recoveries_ = 0;
  absl::Duration recovery_time_ = absl::ZeroDuration();
  absl::Time recovering_since_ = absl::InfiniteFuture();
  std::vector<Step> to_recover_;  // by bucket: what was interrupted
};

}  // namespace covey::worker
