// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "proto/log.pb.h"
#include "scheduler/work/range_set.h"

namespace covey::scheduler {

// Records which examples of one data set are trained, and by which node. The passes over the data
// set form one sequence of examples, pass after pass. Each example is
//
//                given                      reported
//   untouched ──────────▶ leased to a node ──────────▶ finished
//                            │        ▲
//                            ▼        │ given again, before untouched ones
//      the node departs, or ────▶ free
//      gives it back
//
// Finished examples are in the log; leases are not. So that a restarted scheduler knows which
// examples may be leased, the log contains in advance how far examples may be given (kGivenAhead):
// as the last `finished` range of the record, with a count of 0. A restarted scheduler does not
// know the holders of those examples ("orphaned"). It gives them again only when the lease is over
// and their pass has no other examples left, unless they are reported before.
//
// A record without that last range, as a snapshot has it, says that nothing is leased: all that is
// not finished may be given at once.
//
// Deterministic. Not thread-safe.
class ExampleLedger {
 public:
  using Range = RangeSet::Range;
  // How many items beyond those given one record allows to give.
  static constexpr uint64_t kGivenAhead = 64;

  // Starts from the record of a data set; orphaned examples are held until `lease_end`.
  ExampleLedger(const proto::WorkLedger& record, absl::Time lease_end);

  uint64_t total() const { return examples_ * passes_; }
  uint64_t finished() const { return finished_.size(); }
  // Everything that is not finished is leased.
  bool has_nothing_to_give() const { return next_ == total() && free_.size() == 0; }
  // The same for the examples of one pass; and whether these are finished. Precondition here and
  // below: `pass` is below the number of passes.
  bool HasNothingToGive(uint64_t pass) const;
  bool IsFinished(uint64_t pass) const;
  // Whether all of the range was given at some time.
  bool WasGiven(const proto::WorkItem& item) const;
  // Whether the data set has such an item.
  bool Exists(const proto::WorkItem& item) const;
  proto::WorkItem ItemOf(Range range) const;
  Range PositionsOf(const proto::WorkItem& item) const;
  // The part of an item that is not finished, in growing order.
  std::vector<Range> Unfinished(const proto::WorkItem& item) const;
  // Whether examples are leased to the node: of this pass or, without one, of any.
  bool Holds(NodeId node, std::optional<uint64_t> pass) const;
  // Whether examples are leased to the node, or to an unknown holder, which it may be.
  bool MayHold(NodeId node) const;
  // Whether a node that has not asked since the restart may be such an unknown holder: until the
  // lease is over, by which it would have reported.
  bool MayHoldSilently() const { return !orphaned_.empty() && !orphaned_lease_is_over_; }

  void Finish(const proto::WorkItem& item);
  // Frees what is leased to the node. What is orphaned stays so: the request may be a copy of one
  // that was received before the restart, so that another node holds the examples by now. Returns
  // the number of examples.
  uint64_t GiveBack(NodeId node, const proto::WorkItem& item);
  // The next items, at most `wanted`, of this pass or, without one, of any; the caller leases them.
  std::vector<Range> Take(uint32_t wanted, std::optional<uint64_t> pass = std::nullopt);
  void LeaseTo(NodeId node, const std::vector<Range>& items);
  // Leases items whose holder is uncertain.
  void LeaseAsOrphaned(const std::vector<Range>& items, absl::Time lease_end);
  // Frees what is leased to a departed node. Returns the number of examples.
  uint64_t Release(NodeId node);
  // From now on orphaned examples may be given again. Returns how many there are.
  uint64_t ExpireOrphaned();
  // When to call ExpireOrphaned.
  absl::Time orphaned_until() const { return orphaned_until_; }

  // True: more was given than the record allows, so a record has to be written before the items
  // leave. Moves the limit ahead.
  bool ExtendAllowance();
  void WriteTo(proto::WorkLedger& record) const;
  // A record in which `unfinished` is not finished, and nothing is leased.
  void WriteWithout(const RangeSet& unfinished, proto::WorkLedger& record) const;

 private:
  void WriteFinished(const RangeSet& finished, proto::WorkLedger& record) const;
  // Examples from `first` to the end of its pass.
  uint64_t LeftInPass(uint64_t first) const { return examples_ - first % examples_; }
  Range BoundsOf(uint64_t pass) const { return {pass * examples_, examples_}; }

  // Constant after construction.
  uint64_t examples_;
  uint64_t item_examples_;
  uint64_t passes_;

  RangeSet finished_;
  RangeSet free_;
  std::map<NodeId, RangeSet> leased_;
  RangeSet orphaned_;
  absl::Time orphaned_until_ = absl::InfiniteFuture();
  bool orphaned_lease_is_over_ = false;
  // The first example that was never given, and how far the record allows to give: 0 = it says that
  // nothing is leased.
  uint64_t next_ = 0;
  uint64_t allowed_ = 0;
};

}  // namespace covey::scheduler
