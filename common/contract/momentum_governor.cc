// SPDX-License-Identifier: Apache-2.0
#include "common/contract/momentum_governor.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace covey {

double ImplicitMomentum(double staleness) { return staleness / (1 + staleness); }

void MomentumGovernor::ObservePush(double staleness) {
  ++estimates_.pushes;
  const uint64_t window = std::min(estimates_.pushes, kPushesAveraged);
  estimates_.staleness += (staleness - estimates_.staleness) / static_cast<double>(window);
}

std::optional<MomentumGovernor::Setting> MomentumGovernor::BeginUpdate(const Update& update) {
  if (!target_) return std::nullopt;
  const bool is_known = estimates_.pushes > 0;
  const double others = update.groups > 1 ? static_cast<double>(update.groups - 1) : 0;
  const double staleness = is_known || !update.on_arrival ? estimates_.staleness : others;
  const double implicit = ImplicitMomentum(staleness);
  uint64_t& above_target = estimates_.updates_above_target;
  above_target = implicit > *target_ ? above_target + 1 : 0;

  const double round_share =
      update.on_arrival ? 1 / (1 + staleness)
      : update.groups > update.pushes
          ? static_cast<double>(update.pushes) / static_cast<double>(update.groups)
          : 1;
  momentum_ = std::max(0.0, *target_ - implicit);
  return Setting{.momentum = *momentum_,
                 .rate_factor = round_share * ((1 - *momentum_) / (1 - *target_))};
}

void MergeAsynchrony(const proto::TableAsynchrony& from, proto::TableAsynchrony& into) {
  const double before = static_cast<double>(into.updates());
  const double added = static_cast<double>(from.updates());
  // Without updates there is no weight; the halves are arbitrary.
  const double share = before + added > 0 ? added / (before + added) : 0.5;
  const auto mean = [share](double old_mean, double other) {
    return old_mean + share * (other - old_mean);
  };
  into.set_table(from.table());
  into.set_staleness(mean(into.staleness(), from.staleness()));
  into.set_implicit_momentum(mean(into.implicit_momentum(), from.implicit_momentum()));
  into.set_explicit_momentum(mean(into.explicit_momentum(), from.explicit_momentum()));
  into.set_target_momentum(from.target_momentum());
  if (from.updates() > 0) {
    into.set_updates_above_target(
        into.updates() > 0 ? std::min(into.updates_above_target(), from.updates_above_target())
                           : from.updates_above_target());
  }
  into.set_updates(into.updates() + from.updates());
  into.set_discarded(into.discarded() + from.discarded());
}

void AddAsynchrony(const proto::TableAsynchrony& report, AsynchronyByTable& tables) {
  const auto [entry, is_new] = tables.try_emplace(report.table(), report);
  if (!is_new) MergeAsynchrony(report, entry->second);
}

std::optional<ContractChange> FallBackToBuffered(const Contract& contract,
                                                 std::span<const proto::TableAsynchrony> reports) {
  if (!contract.AppliesOnArrival()) return std::nullopt;
  proto::TableAsynchrony all;
  int servers = 0;
  for (const proto::TableAsynchrony& report : reports) {
    if (report.updates() == 0) continue;
    if (servers++ == 0) {
      all = report;
    } else {
      MergeAsynchrony(report, all);
    }
  }
  if (servers == 0 || all.target_momentum() <= 0) return std::nullopt;
  if (all.updates_above_target() < MomentumGovernor::kUpdatesAboveTargetMax) return std::nullopt;
  return ContractChange{
      .contract = {.kind = Contract::Kind::kBuffered},
      .evidence = absl::StrFormat(
          "pushes come %.1f updates late, which adds momentum %.3f, more than the %.3f that the "
          "table asks for, since at least %d updates on each of %d servers (explicit momentum is "
          "at %.3f)",
          all.staleness(), all.implicit_momentum(), all.target_momentum(),
          all.updates_above_target(), servers, all.explicit_momentum())};
}

}  // namespace covey
