// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/groups/group_results.h"

#include <algorithm>
#include <bit>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/random.h"

namespace covey::sim {
namespace {

constexpr absl::string_view kName = "groups";

uint64_t DigestOf(std::span<const float> values) {
  uint64_t digest = values.size();
  for (const float value : values) digest = MixBits(digest ^ std::bit_cast<uint32_t>(value));
  return digest;
}

bool FaultsExplain(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kDataLoss:  // Damaged in flight, and detected.
      return true;
    default:
      return false;
  }
}

bool NamesSomebody(absl::string_view message) {
  constexpr absl::string_view kNames[] = {"worker-", "server-", "scheduler", "shard", "group"};
  return std::any_of(std::begin(kNames), std::end(kNames), [message](absl::string_view name) {
    return absl::StrContains(message, name);
  });
}

}  // namespace

void GroupResults::Succeeded(absl::string_view member, const Moment& moment, size_t tensor,
                             std::span<const float> values) {
  ++succeeded_;
  const uint64_t digest = DigestOf(values);
  const auto [first, is_first] = first_.try_emplace({moment, tensor});
  Result& known = first->second;
  if (is_first) {
    known = {.member = std::string(member), .digest = digest};
  } else if (known.digest == digest) {
    ++compared_;
  } else {
    violations_.Add(
        kName, absl::StrCat(member, " and ", known.member, " of group ", moment.round.group.value(),
                            " have different bits of tensor ", tensor, " after step ",
                            moment.step.value()));
  }
}

void GroupResults::Failed(absl::string_view member, const std::string& what,
                          const absl::Status& status) {
  ++failed_;
  if (FaultsExplain(status) && NamesSomebody(status.message())) return;
  violations_.Add(kName, absl::StrCat(what, " of ", member, " ended with ", status.ToString()));
}

}  // namespace covey::sim
