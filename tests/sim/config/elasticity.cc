// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/config/elasticity.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace covey::sim {
namespace {

constexpr uint64_t kLateServersMax = 2;
constexpr uint64_t kActionsMax = 4;
constexpr uint64_t kTablesMax = 3;
constexpr uint64_t kTerminationsMax = 3;
// Longer than some moves of shards, and shorter than others.
constexpr absl::Duration kDrainDeadlineMax = absl::Seconds(4);

using Kind = ElasticAction::Kind;

void DrawDrain(Random& random, uint32_t servers, absl::Duration at, absl::Duration safety,
               Elasticity& elasticity) {
  // The first server is never asked to leave.
  const std::string name = absl::StrCat("server-", 1 + random.Below(servers - 1));
  elasticity.actions.push_back({.kind = Kind::kDrain, .at = at, .name = name});
  if (!random.Chance(0.2)) return;
  elasticity.actions.push_back(
      {.kind = Kind::kCancelDrain, .at = at + safety * (0.2 * random.Uniform()), .name = name});
}

void DrawTable(Random& random, uint64_t number, absl::Duration at, absl::Duration safety,
               Elasticity& elasticity) {
  const std::string name = absl::StrCat("extra-", number);
  elasticity.actions.push_back({.kind = Kind::kCreateTable,
                                .at = at,
                                .name = name,
                                .number = static_cast<uint32_t>(random.Below(4))});
  if (!random.Chance(0.4)) return;
  elasticity.actions.push_back(
      {.kind = Kind::kDropTable, .at = at + safety * (0.5 * random.Uniform()), .name = name});
}

absl::string_view NameOf(Kind kind) {
  switch (kind) {
    case Kind::kDrain:
      return "drain";
    case Kind::kCancelDrain:
      return "keep";
    case Kind::kScaleServers:
      return "scale";
    case Kind::kCreateTable:
      return "create";
    case Kind::kDropTable:
      return "drop";
  }
  return "";
}

}  // namespace

Elasticity DrawElasticity(Random random, uint32_t servers, absl::Duration safety) {
  Elasticity elasticity;
  if (random.Chance(0.5)) {
    const uint64_t late = 1 + random.Below(kLateServersMax);
    for (uint64_t i = 0; i < late; ++i) {
      elasticity.late_servers.push_back(safety * (0.05 + 0.9 * random.Uniform()));
    }
  }
  servers += static_cast<uint32_t>(elasticity.late_servers.size());
  if (random.Chance(0.5)) {
    const uint64_t count = 1 + random.Below(kActionsMax);
    for (uint64_t i = 0; i < count && servers > 1; ++i) {
      const absl::Duration at = safety * random.Uniform();
      if (random.Chance(0.8)) {
        DrawDrain(random, servers, at, safety, elasticity);
      } else {
        elasticity.actions.push_back({.kind = Kind::kScaleServers,
                                      .at = at,
                                      .number = 1 + static_cast<uint32_t>(random.Below(servers))});
      }
    }
  }
  if (random.Chance(0.3)) {
    const uint64_t tables = 1 + random.Below(kTablesMax);
    for (uint64_t i = 0; i < tables; ++i) {
      DrawTable(random, i, safety * random.Uniform(), safety, elasticity);
    }
  }
  std::stable_sort(elasticity.actions.begin(), elasticity.actions.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
  return elasticity;
}

std::vector<Termination> DrawTerminations(Random random, uint32_t servers, absl::Duration safety) {
  std::vector<Termination> terminations;
  if (servers < 2 || !random.Chance(0.2)) return terminations;
  const uint64_t count = 1 + random.Below(kTerminationsMax);
  for (uint64_t i = 0; i < count; ++i) {
    terminations.push_back({.at = safety * random.Uniform(),
                            .server = absl::StrCat("server-", 1 + random.Below(servers - 1)),
                            .drain_deadline = kDrainDeadlineMax * random.Uniform()});
  }
  return terminations;
}

std::string Describe(const Elasticity& elasticity) {
  std::string text = absl::StrCat("late_servers=", elasticity.late_servers.size());
  for (const ElasticAction& action : elasticity.actions) {
    absl::StrAppend(
        &text, " ", NameOf(action.kind), " ", action.name,
        action.number > 0 ? absl::StrCat(action.name.empty() ? "" : "/", action.number) : "",
        " at ", absl::FormatDuration(absl::Trunc(action.at, absl::Milliseconds(1))));
  }
  for (const Termination& termination : elasticity.terminations) {
    absl::StrAppend(&text, " terminate ", termination.server, " at ",
                    absl::FormatDuration(absl::Trunc(termination.at, absl::Milliseconds(1))));
  }
  return text;
}

}  // namespace covey::sim
