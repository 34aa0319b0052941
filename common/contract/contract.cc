// SPDX-License-Identifier: Apache-2.0
#include "common/contract/contract.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/enum_map.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"

namespace covey {
namespace {

constexpr uint64_t kGraceMsMax = 3'600'000;

constexpr EnumMap kKinds({
    std::pair(Contract::Kind::kBsp, proto::Contract::BSP),
    std::pair(Contract::Kind::kSsp, proto::Contract::SSP),
    std::pair(Contract::Kind::kAsync, proto::Contract::ASYNC),
    std::pair(Contract::Kind::kBuffered, proto::Contract::BUFFERED),
    std::pair(Contract::Kind::kLocal, proto::Contract::LOCAL),
});
// All but KIND_UNSPECIFIED.
static_assert(kKinds.IsOneToOne() && kKinds.size() + 1 == proto::Contract::Kind_ARRAYSIZE);

absl::Status Unknown(absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(
      "contract '", text,
      "' is not known; use bsp, ssp:N (N steps of staleness), async, buffered, buffered:K (K "
      "arrivals per update; ,cut=N drops what is N updates old) or local:H (H steps per round; "
      ",quorum=N ,grace=TIME ,overlap=N)"));
}

// Takes "name=value" options into `contract`.
bool TakeOption(absl::string_view text, Contract& contract) {
  const std::pair<absl::string_view, absl::string_view> option =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  const auto [name, value] = option;
  if (contract.kind == Contract::Kind::kBuffered && name == "cut") {
    return absl::SimpleAtoi(value, &contract.staleness_cut) && contract.staleness_cut > 0;
  }
  if (contract.kind != Contract::Kind::kLocal) return false;
  if (name == "quorum") return absl::SimpleAtoi(value, &contract.quorum);
  if (name == "overlap") return absl::SimpleAtoi(value, &contract.overlap_steps);
  return name == "grace" && absl::ParseDuration(value, &contract.grace);
}

// Takes "kind" or "kind:number".
bool TakeKind(absl::string_view text, Contract& contract) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  const bool has_number = text.find(':') != absl::string_view::npos;
  uint64_t number = 0;
  if (has_number && !absl::SimpleAtoi(parts.second, &number)) return false;
  if (parts.first == "bsp" || parts.first == "async") {
    contract.kind = parts.first == "bsp" ? Contract::Kind::kBsp : Contract::Kind::kAsync;
    return !has_number;
  }
  if (parts.first == "ssp") {
    contract.kind = Contract::Kind::kSsp;
    contract.staleness = number;
    return has_number;
  }
  if (parts.first == "buffered") {
    contract.kind = Contract::Kind::kBuffered;
    contract.buffer = number;
    return !has_number || number > 0;
  }
  contract.kind = Contract::Kind::kLocal;
  contract.local_steps = number;
  return parts.first == "local" && has_number;
}

}  // namespace

std::optional<Step> Contract::RequiredStep(Step step) const {
  switch (kind) {
    case Kind::kBsp:
      return step;
    case Kind::kSsp:
      return Step(step.value() > staleness ? step.value() - staleness : 0);
    case Kind::kAsync:
    case Kind::kBuffered:
    case Kind::kLocal:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Step> Contract::RequiredRound(Step round) const {
  if (kind != Kind::kLocal) return std::nullopt;
  return round;
}

std::vector<LiveGroup> Contract::WaitedFor(std::vector<LiveGroup> live) const {
  if (kind != Kind::kLocal) return live;
  for (LiveGroup& group : live) {
    // The rounds of different tables end at different steps; this finds the first round that is
    // whole on all of them.
    if (group.first_step <= Step(1)) continue;
    const uint64_t steps_before = group.first_step.value() - 1 + local_steps - 1;
    group.first_step = Step(steps_before / local_steps + 1);
  }
  return live;
}

bool Contract::Discards(Version base, Version present) const {
  return kind == Kind::kBuffered && staleness_cut != 0 && base != Version() && base < present &&
         present.value() - base.value() >= staleness_cut;
}

absl::Status Contract::CheckSwitchTo(const Contract& other) const {
  const bool local = kind == Kind::kLocal;
  if (local && other.kind == Kind::kLocal &&
      (local_steps != other.local_steps || overlap_steps != other.overlap_steps)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a table in use cannot go from ", ContractName(*this), " to ", ContractName(other),
        ": its groups are in the middle of rounds, which are numbered by their length; keep length "
        "and overlap, or create another table"));
  }
  if (local == (other.kind == Kind::kLocal)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a table in use cannot go from ", ContractName(*this), " to ", ContractName(other),
      ": a push under local is a change over many steps, under the others a gradient; create "
      "another table"));
}

absl::Status Contract::Validate() const {
  const auto bad = [this](absl::string_view field, uint64_t value, absl::string_view allowed) {
    return absl::InvalidArgumentError(absl::StrCat("contract ", ContractName(*this), ": ", field,
                                                   " = ", value, ", but ", allowed));
  };
  if (kind == Kind::kBuffered && buffer > kBufferedArrivalsMax) {
    return bad("buffer", buffer,
               absl::StrCat("at most ", kBufferedArrivalsMax, " arrivals make one update"));
  }
  if (kind != Kind::kLocal) return absl::OkStatus();
  if (local_steps < 1 || local_steps > kLocalStepsMax) {
    return bad("local_steps", local_steps, absl::StrCat("it lies in 1..", kLocalStepsMax));
  }
  if (overlap_steps >= local_steps) {
    return bad("overlap_steps", overlap_steps, "it is less than local_steps");
  }
  if (quorum > kNodesMax) return bad("quorum", quorum, "there are not so many groups");
  const int64_t grace_ms = absl::ToInt64Milliseconds(grace);
  if (grace < absl::ZeroDuration() || grace_ms > static_cast<int64_t>(kGraceMsMax)) {
    return absl::InvalidArgumentError(absl::StrCat("contract ", ContractName(*this),
                                                   ": grace = ", absl::FormatDuration(grace),
                                                   ", but it lies between 0 and 1h"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Contract> ParseContract(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ',');
  Contract contract;
  if (!TakeKind(parts[0], contract)) return Unknown(text);
  for (size_t i = 1; i < parts.size(); ++i) {
    if (!TakeOption(parts[i], contract)) return Unknown(text);
  }
  COVEY_RETURN_IF_ERROR(contract.Validate());
  return contract;
}

std::string ContractName(const Contract& contract) {
  switch (contract.kind) {
    case Contract::Kind::kBsp:
      return "bsp";
    case Contract::Kind::kSsp:
      return absl::StrCat("ssp:", contract.staleness);
    case Contract::Kind::kAsync:
      return "async";
    case Contract::Kind::kBuffered: {
      std::string name = "buffered";
      if (contract.buffer != 0) absl::StrAppend(&name, ":", contract.buffer);
      if (contract.staleness_cut != 0) absl::StrAppend(&name, ",cut=", contract.staleness_cut);
      return name;
    }
    case Contract::Kind::kLocal: {
      std::string name = absl::StrCat("local:", contract.local_steps);
      if (contract.quorum != 0) absl::StrAppend(&name, ",quorum=", contract.quorum);
      if (contract.grace != absl::ZeroDuration()) {
        absl::StrAppend(&name, ",grace=", absl::FormatDuration(contract.grace));
      }
      if (contract.overlap_steps != 0) absl::StrAppend(&name, ",overlap=", contract.overlap_steps);
      return name;
    }
  }
  return "unknown";
}

absl::StatusOr<Contract> ContractFromProto(const proto::Contract& contract) {
  const std::optional<Contract::Kind> kind = kKinds.ToOurs(contract.kind());
  if (!kind.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("contract kind ", static_cast<int>(contract.kind()),
                     " is not known here; one of BSP, SSP, ASYNC, BUFFERED, LOCAL is needed"));
  }
  Contract result{.kind = *kind};
  switch (*kind) {
    case Contract::Kind::kBsp:
    case Contract::Kind::kAsync:
      break;
    case Contract::Kind::kSsp:
      result.staleness = contract.staleness();
      break;
    case Contract::Kind::kBuffered:
      result.buffer = contract.buffer();
      result.staleness_cut = contract.staleness_cut();
      break;
    case Contract::Kind::kLocal:
      result.local_steps = contract.local_steps();
      result.quorum = contract.quorum();
      result.grace = absl::Milliseconds(contract.grace_ms());
      result.overlap_steps = contract.overlap_steps();
      break;
  }
  COVEY_RETURN_IF_ERROR(result.Validate());
  return result;
}

absl::StatusOr<Contract> ContractInForce(const proto::Table& table) {
  return ContractFromProto(table.has_contract() ? table.contract() : table.spec().contract());
}

proto::Contract ContractToProto(const Contract& contract) {
  proto::Contract result;
  result.set_kind(kKinds.ToTheirs(contract.kind));
  switch (contract.kind) {
    case Contract::Kind::kBsp:
    case Contract::Kind::kAsync:
      break;
    case Contract::Kind::kSsp:
      result.set_staleness(contract.staleness);
      break;
    case Contract::Kind::kBuffered:
      result.set_buffer(contract.buffer);
      result.set_staleness_cut(contract.staleness_cut);
      break;
    case Contract::Kind::kLocal:
      result.set_local_steps(contract.local_steps);
      result.set_quorum(contract.quorum);
      result.set_grace_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(contract.grace)));
      result.set_overlap_steps(contract.overlap_steps);
      break;
  }
  return result;
}

}  // namespace covey
