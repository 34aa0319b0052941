// SPDX-License-Identifier: Apache-2.0
#include "common/faults/fault.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/edit_distance.h"
#include "common/base/status_macros.h"

namespace covey {
namespace {

constexpr size_t kNameBytesMax = 256;

enum class Other { kNone, kOptional, kNeeded };
enum class Amount { kNone, kBy, kChance, kFactor, kBitsPerSecond, kLoop };

struct KindInfo {
  FaultKind kind;
  absl::string_view name;
  bool once;
  bool of_network;
  Other other;
  Amount amount;
};

// In the order of FaultKind.
constexpr KindInfo kKinds[] = {
    {FaultKind::kKill, "kill", false, false, Other::kNone, Amount::kNone},
    {FaultKind::kStop, "stop", false, false, Other::kNone, Amount::kNone},
    {FaultKind::kHang, "hang", false, false, Other::kNone, Amount::kLoop},
    {FaultKind::kSlow, "slow", false, false, Other::kNone, Amount::kFactor},
    {FaultKind::kRestart, "restart", true, false, Other::kNone, Amount::kNone},
    {FaultKind::kPartition, "partition", false, true, Other::kNeeded, Amount::kNone},
    {FaultKind::kOneWayPartition, "one-way-partition", false, true, Other::kNeeded, Amount::kNone},
    {FaultKind::kIsolate, "isolate", false, true, Other::kNone, Amount::kNone},
    {FaultKind::kClog, "clog", false, true, Other::kNeeded, Amount::kNone},
    {FaultKind::kDisconnect, "disconnect", true, true, Other::kNeeded, Amount::kNone},
    {FaultKind::kDelay, "delay", false, true, Other::kOptional, Amount::kBy},
    {FaultKind::kJitter, "jitter", false, true, Other::kOptional, Amount::kBy},
    {FaultKind::kLoss, "loss", false, true, Other::kOptional, Amount::kChance},
    {FaultKind::kDuplicate, "duplicate", false, true, Other::kOptional, Amount::kChance},
    {FaultKind::kCorrupt, "corrupt", false, true, Other::kOptional, Amount::kChance},
    {FaultKind::kRate, "rate", false, true, Other::kOptional, Amount::kBitsPerSecond},
};

const KindInfo& InfoOf(FaultKind kind) { return kKinds[static_cast<size_t>(kind)]; }

auto Fields(const Fault& fault) {
  return std::tie(fault.at, fault.duration, fault.kind, fault.target, fault.other, fault.by,
                  fault.chance, fault.factor, fault.bits_per_second, fault.loop);
}

absl::string_view Nearest(absl::string_view name, const std::vector<std::string>& known) {
  return *std::min_element(known.begin(), known.end(),
                           [&](const std::string& a, const std::string& b) {
                             return EditDistance(name, a) < EditDistance(name, b);
                           });
}

absl::Status Wrong(const Fault& fault, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(FaultKindName(fault.kind), ": ", what));
}

absl::Status ValidateName(const Fault& fault, absl::string_view key, absl::string_view name) {
  const bool well_formed = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
  });
  if (well_formed && !name.empty() && name.size() <= kNameBytesMax) return absl::OkStatus();
  return Wrong(fault, absl::StrCat(key, " is \"", name.substr(0, kNameBytesMax),
                                   "\", not the name of a node as in \"server-0\""));
}

absl::Status ValidateNodes(const Fault& fault, const KindInfo& info) {
  const bool everybody = info.other == Other::kOptional && fault.target == kEverybody;
  if (!everybody) COVEY_RETURN_IF_ERROR(ValidateName(fault, "target", fault.target));
  if (fault.other.empty()) {
    return info.other == Other::kNeeded ? Wrong(fault, "needs args.other, the other node")
                                        : absl::OkStatus();
  }
  if (info.other == Other::kNone) return Wrong(fault, "takes no args.other");
  COVEY_RETURN_IF_ERROR(ValidateName(fault, "args.other", fault.other));
  if (fault.other == fault.target) {
    return Wrong(fault, absl::StrCat("target and args.other are both ", fault.target));
  }
  return absl::OkStatus();
}

absl::Status ValidateTimes(const Fault& fault, const KindInfo& info) {
  if (fault.at < absl::ZeroDuration() || fault.at == absl::InfiniteDuration()) {
    return Wrong(fault, "`at` has to be 0s or later");
  }
  if (info.once && fault.duration != absl::InfiniteDuration()) {
    return Wrong(fault, "happens once and takes no `for`");
  }
  if (fault.duration <= absl::ZeroDuration()) return Wrong(fault, "`for` has to be above 0s");
  return absl::OkStatus();
}

struct Setting {
  Amount amount;
  absl::string_view name;
  bool given;
  bool in_range;
  absl::string_view range;
};

absl::Status ValidateAmount(const Fault& fault, const KindInfo& info) {
  const bool chance_fits = fault.chance > 0 && fault.chance <= 1;
  const bool by_fits = fault.by > absl::ZeroDuration() && fault.by != absl::InfiniteDuration();
  const Setting settings[] = {
      {Amount::kBy, "by", fault.by != absl::ZeroDuration(), by_fits, "a time above 0s"},
      {Amount::kChance, "chance", fault.chance != 0, chance_fits, "above 0 and at most 1"},
      {Amount::kFactor, "factor", fault.factor != 0,
       fault.factor > 1 && std::isfinite(fault.factor), "a number above 1"},
      {Amount::kBitsPerSecond, "bits_per_second", fault.bits_per_second != 0, true, "above 0"},
      {Amount::kLoop, "loop", fault.loop != 0, true, "the number of a data loop, from 1"},
  };
  for (const Setting& setting : settings) {
    if (setting.amount == info.amount && !setting.given) {
      return Wrong(fault, absl::StrCat("needs args.", setting.name, ", ", setting.range));
    }
    if (setting.amount != info.amount && setting.given) {
      return Wrong(fault, absl::StrCat("takes no args.", setting.name));
    }
    if (setting.given && !setting.in_range) {
      return Wrong(fault, absl::StrCat("args.", setting.name, " has to be ", setting.range));
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool operator==(const Fault& a, const Fault& b) { return Fields(a) == Fields(b); }

absl::string_view FaultKindName(FaultKind kind) { return InfoOf(kind).name; }

absl::StatusOr<FaultKind> ParseFaultKind(absl::string_view name) {
  std::vector<std::string> known;
  for (const KindInfo& info : kKinds) {
    if (info.name == name) return info.kind;
    known.emplace_back(info.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown kind \"", name.substr(0, kNameBytesMax),
                                                 "\"; did you mean \"", Nearest(name, known),
                                                 "\"?"));
}

std::vector<FaultKind> AllFaultKinds() {
  std::vector<FaultKind> kinds;
  for (const KindInfo& info : kKinds) kinds.push_back(info.kind);
  return kinds;
}

bool HappensOnce(FaultKind kind) { return InfoOf(kind).once; }
bool IsOfNetwork(FaultKind kind) { return InfoOf(kind).of_network; }

absl::Status Validate(const Fault& fault) {
  const KindInfo& info = InfoOf(fault.kind);
  COVEY_RETURN_IF_ERROR(ValidateTimes(fault, info));
  COVEY_RETURN_IF_ERROR(ValidateNodes(fault, info));
  return ValidateAmount(fault, info);
}

absl::Status ValidateNames(const FaultPlan& plan, const std::vector<std::string>& names) {
  for (const Fault& fault : plan) {
    for (const std::string& name : {fault.target, fault.other}) {
      if (name.empty() || name == kEverybody) continue;
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      const std::string where = fault.line > 0 ? absl::StrCat("line ", fault.line, ": ") : "";
      return absl::InvalidArgumentError(
          absl::StrCat(where, FaultKindName(fault.kind), ": there is no node \"", name,
                       "\"; did you mean \"", Nearest(name, names), "\"?"));
    }
  }
  return absl::OkStatus();
}

}  // namespace covey
