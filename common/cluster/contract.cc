#include "common/cluster/contract.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace covey {

std::optional<Step> Contract::RequiredStep(Step step) const {
  switch (kind) {
    case Kind::kBsp:
      return step;
    case Kind::kSsp:
      return Step(step.value() > staleness ? step.value() - staleness : 0);
    case Kind::kAsync:
    case Kind::kBuffered:
      return std::nullopt;
  }
  return std::nullopt;
}

absl::StatusOr<Contract> ParseContract(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  const bool has_number = text.find(':') != absl::string_view::npos;
  uint64_t number = 0;
  const bool number_ok = has_number && absl::SimpleAtoi(parts.second, &number);
  if (parts.first == "bsp" && !has_number) return Contract{.kind = Contract::Kind::kBsp};
  if (parts.first == "async" && !has_number) return Contract{.kind = Contract::Kind::kAsync};
  if (parts.first == "ssp" && number_ok) {
    return Contract{.kind = Contract::Kind::kSsp, .staleness = number};
  }
  if (parts.first == "buffered" && (!has_number || (number_ok && number > 0))) {
    return Contract{.kind = Contract::Kind::kBuffered, .buffer = number};
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "contract '", text,
      "' is not known; use bsp, ssp:N (N steps of staleness), async, buffered or buffered:K"));
}

std::string ContractName(const Contract& contract) {
  switch (contract.kind) {
    case Contract::Kind::kBsp:
      return "bsp";
    case Contract::Kind::kSsp:
      return absl::StrCat("ssp:", contract.staleness);
    case Contract::Kind::kAsync:
      return "async";
    case Contract::Kind::kBuffered:
      return contract.buffer == 0 ? "buffered" : absl::StrCat("buffered:", contract.buffer);
  }
  return "unknown";
}

}  // namespace covey
