// SPDX-License-Identifier: Apache-2.0
#include "scheduler/work/example_ledger.h"

#include <algorithm>

#include "common/base/planted_bug.h"

namespace covey::scheduler {

ExampleLedger::ExampleLedger(const proto::WorkLedger& record, absl::Time lease_end)
    : examples_(record.examples()),
      item_examples_(record.item_examples()),
      passes_(record.passes()) {
  next_ = record.pass() * examples_;
  finished_.Add({0, next_});
  for (const proto::WorkItem& item : record.finished()) {
    const Range range = PositionsOf(item);
    finished_.Add(range);
    next_ = std::max(next_, range.first + range.count);
  }
  const std::vector<Range> unfinished = finished_.Missing({0, next_});
  const bool has_allowance = !record.finished().empty() && record.finished().rbegin()->count() == 0;
  if (!has_allowance) {
    free_.Add(unfinished);
    return;
  }
  allowed_ = next_;
  orphaned_.Add(unfinished);
  if (!orphaned_.empty()) orphaned_until_ = lease_end;
}

ExampleLedger::Range ExampleLedger::PositionsOf(const proto::WorkItem& item) const {
  return {item.pass() * examples_ + item.first(), item.count()};
}

proto::WorkItem ExampleLedger::ItemOf(Range range) const {
  proto::WorkItem item;
  item.set_pass(range.first / examples_);
  item.set_first(range.first % examples_);
  item.set_count(range.count);
  return item;
}

bool ExampleLedger::Exists(const proto::WorkItem& item) const {
  return item.pass() < passes_ && item.first() < examples_ && item.count() > 0 &&
         item.count() <= examples_ - item.first();
}

bool ExampleLedger::WasGiven(const proto::WorkItem& item) const {
  const Range range = PositionsOf(item);
  return range.first + range.count <= next_;
}

std::vector<ExampleLedger::Range> ExampleLedger::Unfinished(const proto::WorkItem& item) const {
  return finished_.Missing(PositionsOf(item));
}

bool ExampleLedger::Holds(NodeId node, std::optional<uint64_t> pass) const {
  const auto leased = leased_.find(node);
  if (leased == leased_.end()) return false;
  const Range bounds = pass ? BoundsOf(*pass) : Range{0, total()};
  return leased->second.LowestIn(bounds, 1).count > 0;
}

bool ExampleLedger::MayHold(NodeId node) const {
  return !orphaned_.empty() || Holds(node, std::nullopt);
}

void ExampleLedger::Finish(const proto::WorkItem& item) {
  const Range range = PositionsOf(item);
  free_.Remove(range);
  orphaned_.Remove(range);
  if (!Planted(PlantedBug::kWorkGivenTwice)) {
    // Another node has it only if the first holder was silent for the whole lease.
    for (auto& [node, leased] : leased_) leased.Remove(range);
  }
  finished_.Add(range);
}

uint64_t ExampleLedger::GiveBack(NodeId node, const proto::WorkItem& item) {
  const auto leased = leased_.find(node);
  if (leased == leased_.end()) return 0;
  const uint64_t before = free_.size();
  free_.Add(leased->second.Remove(PositionsOf(item)));
  return free_.size() - before;
}

bool ExampleLedger::HasNothingToGive(uint64_t pass) const {
  const Range bounds = BoundsOf(pass);
  return next_ >= bounds.first + bounds.count && free_.LowestIn(bounds, 1).count == 0;
}

bool ExampleLedger::IsFinished(uint64_t pass) const {
  return finished_.LowestIn(BoundsOf(pass), examples_).count == examples_;
}

std::vector<ExampleLedger::Range> ExampleLedger::Take(uint32_t wanted,
                                                      std::optional<uint64_t> pass) {
  const Range bounds = pass ? BoundsOf(*pass) : Range{0, total()};
  std::vector<Range> items;
  // An item never spans two passes.
  const auto take = [&](RangeSet& from, Range range) {
    range.count = std::min(range.count, LeftInPass(range.first));
    from.Remove(range);
    items.push_back(range);
  };
  while (items.size() < wanted) {
    const Range free = free_.LowestIn(bounds, item_examples_);
    const Range orphaned =
        orphaned_lease_is_over_ ? orphaned_.LowestIn(bounds, item_examples_) : Range{};
    if (free.count > 0) {
      take(free_, free);
    } else if (orphaned.count > 0 && orphaned.first + LeftInPass(orphaned.first) <= next_) {
      // No other examples are left in their pass, so waiting longer would delay its end.
      take(orphaned_, orphaned);
    } else if (next_ >= bounds.first && next_ < bounds.first + bounds.count) {
      items.push_back({next_, std::min(item_examples_, LeftInPass(next_))});
      next_ += items.back().count;
    } else {
      break;
    }
  }
  return items;
}

void ExampleLedger::LeaseTo(NodeId node, const std::vector<Range>& items) {
  leased_[node].Add(items);
}

void ExampleLedger::LeaseAsOrphaned(const std::vector<Range>& items, absl::Time lease_end) {
  if (items.empty()) return;
  orphaned_.Add(items);
  orphaned_until_ = lease_end;
  orphaned_lease_is_over_ = false;
}

uint64_t ExampleLedger::Release(NodeId node) {
  const auto leased = leased_.find(node);
  if (leased == leased_.end()) return 0;
  const uint64_t examples = leased->second.size();
  free_.Add(leased->second.ranges());
  leased_.erase(leased);
  return examples;
}

uint64_t ExampleLedger::ExpireOrphaned() {
  orphaned_until_ = absl::InfiniteFuture();
  orphaned_lease_is_over_ = true;
  return orphaned_.size();
}

bool ExampleLedger::ExtendAllowance() {
  if (next_ <= allowed_) return false;
  const uint64_t ahead = kGivenAhead * item_examples_;
  allowed_ = total() - next_ <= ahead ? total() : next_ + ahead;
  return true;
}

void ExampleLedger::WriteFinished(const RangeSet& finished, proto::WorkLedger& record) const {
  const auto gaps = finished.Missing({0, total()});
  record.set_pass((gaps.empty() ? total() : gaps.front().first) / examples_);
  record.clear_finished();
  const uint64_t start = record.pass() * examples_;
  for (Range range : finished.ranges()) {
    const uint64_t end = range.first + range.count;
    if (end <= start) continue;
    for (uint64_t first = std::max(range.first, start); first < end;) {
      const uint64_t count = std::min(end - first, LeftInPass(first));
      *record.add_finished() = ItemOf({first, count});
      first += count;
    }
  }
}

void ExampleLedger::WriteTo(proto::WorkLedger& record) const {
  WriteFinished(finished_, record);
  *record.add_finished() = ItemOf({allowed_, 0});
}

void ExampleLedger::WriteWithout(const RangeSet& unfinished, proto::WorkLedger& record) const {
  RangeSet finished = finished_;
  for (const Range& range : unfinished.ranges()) finished.Remove(range);
  WriteFinished(finished, record);
}

}  // namespace covey::scheduler
