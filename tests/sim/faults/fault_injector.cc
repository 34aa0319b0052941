// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/faults/fault_injector.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/check.h"
#include "common/faults/fault_file.h"

namespace covey::sim {

size_t FaultInjector::IndexOf(const std::string& name) const {
  size_t index = 0;
  while (index < world_.processes.size() && world_.processes[index]->name() != name) ++index;
  COVEY_CHECK(index < world_.processes.size());
  return index;
}

HostId FaultInjector::HostOf(const std::string& name) const {
  return world_.processes[IndexOf(name)]->host();
}

void FaultInjector::Schedule(const FaultPlan& plan) {
  for (uint64_t number = 0; number < plan.size(); ++number) {
    const Fault& fault = plan[number];
    world_.simulator.After(fault.at, [this, number, fault] {
      if (!healed_) Begin(number, fault);
    });
  }
}

void FaultInjector::Begin(uint64_t number, const Fault& fault) {
  Simulator& simulator = world_.simulator;
  simulator.Count(
      absl::StrCat("fault_", absl::StrReplaceAll(FaultKindName(fault.kind), {{"-", "_"}})));
  if (simulator.tracing()) simulator.Trace(absl::StrCat("fault ", PrintFault(fault)));
  Active active{.fault = fault};
  if (fault.kind >= FaultKind::kDelay) {
    active.impairment = world_.network.Impair(ImpairmentBy(fault));
  } else if (IsOfNetwork(fault.kind)) {
    BeginOnLinks(fault);
  } else {
    BeginAtProcess(fault);
  }
  if (HappensOnce(fault.kind)) return;
  active_.emplace(number, active);
  if (fault.duration == absl::InfiniteDuration()) return;
  simulator.After(fault.duration, [this, number] {
    const auto found = active_.find(number);
    if (found == active_.end()) return;  // Healed in the meantime.
    const Active over = found->second;
    active_.erase(found);
    End(over);
  });
}

void FaultInjector::BeginAtProcess(const Fault& fault) {
  const size_t index = IndexOf(fault.target);
  Process& target = *world_.processes[index];
  switch (fault.kind) {
    case FaultKind::kKill:
      target.Crash();
      if (fault.duration == absl::InfiniteDuration()) {
        world_.simulator.Count("death_for_ever");
        world_.bury(index);
      }
      return;
    case FaultKind::kRestart:
      target.Crash();
      return world_.start(index);
    case FaultKind::kStop:
      return target.Pause();
    case FaultKind::kHang:
      return target.Hang(fault.loop);
    case FaultKind::kSlow:
      return target.SetSlowness(fault.factor);
    default:
      COVEY_CHECK(false);
  }
}

void FaultInjector::BeginOnLinks(const Fault& fault) {
  if (fault.kind == FaultKind::kIsolate) return AllOf(fault.target, &SimNetwork::Block);
  const HostId a = HostOf(fault.target);
  const HostId b = HostOf(fault.other);
  switch (fault.kind) {
    case FaultKind::kPartition:
      return Both(a, b, &SimNetwork::Block);
    case FaultKind::kOneWayPartition:
      return world_.network.Block(a, b);
    case FaultKind::kClog:
      return world_.network.Clog(a, b);
    case FaultKind::kDisconnect:
      world_.network.Disconnect(a, b);
      return world_.disconnected(a, b);
    default:
      COVEY_CHECK(false);
  }
}

void FaultInjector::End(const Active& active) {
  const Fault& fault = active.fault;
  if (active.impairment != 0) return world_.network.Repair(active.impairment);
  const size_t index = IndexOf(fault.target);
  Process& target = *world_.processes[index];
  const HostId a = target.host();
  switch (fault.kind) {
    case FaultKind::kKill:
      return world_.start(index);
    case FaultKind::kStop:
      return target.Resume();
    case FaultKind::kHang:
      return target.Unhang(fault.loop);
    case FaultKind::kSlow:
      return target.SetSlowness(1);
    case FaultKind::kPartition:
      return Both(a, HostOf(fault.other), &SimNetwork::Unblock);
    case FaultKind::kOneWayPartition:
      return world_.network.Unblock(a, HostOf(fault.other));
    case FaultKind::kIsolate:
      return AllOf(fault.target, &SimNetwork::Unblock);
    case FaultKind::kClog:
      return world_.network.Unclog(a, HostOf(fault.other));
    default:
      COVEY_CHECK(false);
  }
}

Impairment FaultInjector::ImpairmentBy(const Fault& fault) const {
  Impairment impairment;
  if (fault.target != kEverybody) impairment.from = HostOf(fault.target);
  if (!fault.other.empty()) impairment.to = HostOf(fault.other);
  switch (fault.kind) {
    case FaultKind::kDelay:
      impairment.delay = fault.by;
      break;
    case FaultKind::kJitter:
      impairment.jitter = fault.by;
      break;
    case FaultKind::kLoss:
      impairment.loss = fault.chance;
      break;
    case FaultKind::kDuplicate:
      impairment.retry = fault.chance;
      break;
    case FaultKind::kCorrupt:
      impairment.corruption = fault.chance;
      break;
    case FaultKind::kRate:
      impairment.bits_per_second = fault.bits_per_second;
      break;
    default:
      COVEY_CHECK(false);
  }
  return impairment;
}

void FaultInjector::Heal() {
  healed_ = true;
  for (const auto& [number, active] : std::exchange(active_, {})) {
    if (active.fault.kind != FaultKind::kKill || active.fault.duration < absl::InfiniteDuration()) {
      End(active);
    }
  }
}

void FaultInjector::Both(HostId a, HostId b, void (SimNetwork::*change)(HostId, HostId)) {
  (world_.network.*change)(a, b);
  (world_.network.*change)(b, a);
}

void FaultInjector::AllOf(const std::string& name, void (SimNetwork::*change)(HostId, HostId)) {
  const HostId host = HostOf(name);
  for (const auto& other : world_.processes) {
    if (other->host() != host) Both(host, other->host(), change);
  }
}

}  // namespace covey::sim
