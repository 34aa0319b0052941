// SPDX-License-Identifier: Apache-2.0
#include "server/shard/cut_alignment.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace covey::server {
namespace {

// The last step by the table's clock: under local, the last round.
Step ByClock(uint64_t step, const Contract& contract) {
  return Step(contract.kind == Contract::Kind::kLocal ? step / contract.local_steps : step);
}

}  // namespace

void CutAlignment::Begin(const proto::SnapshotOrder& order, const Contract& contract,
                         const UpdateGate& gate) {
  End();
  order_ = order.id();
  epoch_ = Epoch(order.epoch());
  passed_ = order.passed();
  for (const proto::CutStep& cut : order.groups()) {
    const GroupId group(cut.group());
    const Step last = ByClock(cut.step(), contract);
    last_.emplace(group, last);
    if (gate.last_received(group) > last) {
      Fail(absl::StrCat("group ", group.value(), " had pushed step ",
                        gate.last_received(group).value(), " when the order for step ",
                        last.value(), " came"));
    }
  }
}

void CutAlignment::End() {
  order_ = 0;
  last_.clear();
  held_since_ = absl::InfiniteFuture();
  failure_.clear();
}

void CutAlignment::Fail(std::string why) {
  failure_ = std::move(why);
  failure_is_new_ = true;
}

void CutAlignment::NoteHeld(absl::Time now) { held_since_ = std::min(held_since_, now); }

void CutAlignment::Wake(absl::Time now, const UpdateGate& gate) {
  if (now < deadline()) return;
  std::string behind;
  for (const auto& [group, last] : last_) {
    if (gate.last_received(group) >= last) continue;
    absl::StrAppend(&behind, behind.empty() ? "" : ", ", "group ", group.value(), " is at step ",
                    gate.last_received(group).value(), " of ", last.value());
  }
  Fail(absl::StrCat("pushes of other groups have waited for ", absl::FormatDuration(kHoldMax), ": ",
                    behind.empty() ? "some pushes were late" : behind));
}

bool CutAlignment::IsReached(IsReceived is_received) const {
  // No push up to the steps is on its way, or to be sent again; groups that have not pushed never
  // will.
  if (passed_) return true;
  return std::all_of(last_.begin(), last_.end(), [&](const auto& entry) {
    const auto& [group, last] = entry;
    // A group has at most two pushes on their way to a shard, and the later one may come first.
    return last == Step() || (is_received(group, last) &&
                              (last == Step(1) || is_received(group, Step(last.value() - 1))));
  });
}

std::optional<std::string> CutAlignment::TakeFailure() {
  if (!std::exchange(failure_is_new_, false)) return std::nullopt;
  return failure_;
}

}  // namespace covey::server
