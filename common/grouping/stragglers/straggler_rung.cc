// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/stragglers/straggler_rung.h"

#include <array>
#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace covey {
namespace {

struct RungName {
  absl::string_view name;
  StragglerRung rung;
};
constexpr std::array<RungName, 6> kRungNames = {{{"off", StragglerRung::kOff},
                                                 {"observe", StragglerRung::kObserve},
                                                 {"shift", StragglerRung::kShift},
                                                 {"partial", StragglerRung::kPartial},
                                                 {"regroup", StragglerRung::kRegroup},
                                                 {"evict", StragglerRung::kEvict}}};

}  // namespace

absl::StatusOr<StragglerRung> ParseStragglerRung(absl::string_view text) {
  for (const auto& [name, rung] : kRungNames) {
    if (name == text) return rung;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text, "' is none of ", absl::StrJoin(kRungNames, ", ", [](std::string* out, auto& rung) {
        absl::StrAppend(out, rung.name);
      })));
}

absl::string_view StragglerRungName(StragglerRung rung) {
  return kRungNames[static_cast<size_t>(rung)].name;
}

}  // namespace covey
