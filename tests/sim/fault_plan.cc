#include "tests/sim/fault_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/sim/sim_config.h"

namespace covey::sim {
namespace {

struct KindDraw {
  Fault::Kind kind;
  const char* name;
  double chance;  // that a run has any
  uint64_t count_max;
  int shortest_ms;
  int longest_ms;
};

// In the order of Fault::Kind. The longest silences are beyond every detector's patience.
constexpr KindDraw kKinds[] = {
    {Fault::Kind::kCrash, "crash", 0.7, 6, 20, 8000},
    {Fault::Kind::kPause, "pause", 0.5, 6, 10, 10000},
    {Fault::Kind::kSlow, "slow", 0.3, 3, 100, 8000},
    {Fault::Kind::kPartition, "partition", 0.4, 6, 50, 8000},
    {Fault::Kind::kOneWayPartition, "one_way_partition", 0.4, 6, 50, 8000},
    {Fault::Kind::kClog, "clog", 0.4, 12, 50, 6000},
    {Fault::Kind::kIsolation, "isolation", 0.3, 2, 50, 10000},
    {Fault::Kind::kDisconnect, "disconnect", 0.5, 16, 0, 0},
};

bool IsBetweenTwo(Fault::Kind kind) {
  return kind == Fault::Kind::kPartition || kind == Fault::Kind::kOneWayPartition ||
         kind == Fault::Kind::kClog || kind == Fault::Kind::kDisconnect;
}

}  // namespace

FaultPlan DrawFaults(Random random, size_t processes, size_t hubs, absl::Duration safety) {
  FaultPlan plan;
  for (const KindDraw& draw : kKinds) {
    if (!random.Chance(draw.chance)) continue;
    const uint64_t count = 1 + random.Below(draw.count_max);
    for (uint64_t i = 0; i < count; ++i) {
      Fault fault{.kind = draw.kind};
      fault.at = safety * random.Uniform();
      if (draw.longest_ms > 0) {
        fault.duration = DrawDuration(random, absl::Milliseconds(draw.shortest_ms),
                                      absl::Milliseconds(draw.longest_ms));
      }
      fault.target = random.Below(processes);
      fault.other = random.Below(hubs);
      if (fault.other == fault.target) fault.other = (fault.target + 1) % processes;
      if (IsBetweenTwo(draw.kind) && random.Chance(0.5)) std::swap(fault.target, fault.other);
      plan.push_back(fault);
    }
  }
  std::stable_sort(plan.begin(), plan.end(),
                   [](const Fault& a, const Fault& b) { return a.at < b.at; });
  return plan;
}

const char* KindName(Fault::Kind kind) { return kKinds[static_cast<size_t>(kind)].name; }

std::string Describe(const Fault& fault, const std::vector<std::string>& names) {
  return absl::StrCat(KindName(fault.kind), " ", names[fault.target],
                      IsBetweenTwo(fault.kind) ? absl::StrCat(" and ", names[fault.other]) : "",
                      " at ", absl::FormatDuration(absl::Trunc(fault.at, absl::Milliseconds(1))),
                      " for ",
                      absl::FormatDuration(absl::Trunc(fault.duration, absl::Milliseconds(1))));
}

}  // namespace covey::sim
