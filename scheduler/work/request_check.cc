// SPDX-License-Identifier: Apache-2.0
#include "scheduler/work/request_check.h"

#include <algorithm>

#include "common/cluster/limits.h"

namespace covey::scheduler {
namespace {

// Passes times examples; far from overflow.
constexpr uint64_t kExamplesMax = uint64_t{1} << 62;

}  // namespace

bool TellsNothing(const proto::WorkRequest& request) {
  return request.wanted() == 0 && request.finished().empty() && request.returned().empty() &&
         request.finished_step() == 0;
}

std::optional<uint64_t> PassOf(const proto::WorkRequest& request) {
  return request.has_pass() ? std::optional(request.pass()) : std::nullopt;
}

bool Leaves(const proto::WorkRequest& request) {
  return request.has_pass() && request.pass() == request.passes();
}

absl::Status CheckAlone(const proto::WorkRequest& request) {
  const std::string& name = request.name();
  if (name.empty() || name.size() > kNameBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("work: a data set's name has 1 to ", kNameBytesMax, " bytes"));
  }
  const uint64_t examples = request.examples();
  const uint64_t item = request.item_examples();
  if (examples == 0 || item == 0 || item > examples || (examples - 1) / item + 1 > kWorkItemsMax) {
    return Refusal(name, examples, " examples in items of ", item, "; choose 1 to ", kWorkItemsMax,
                   " items of at least 1 example");
  }
  if (request.passes() == 0 || request.passes() > kExamplesMax / examples) {
    return Refusal(name, request.passes(), " passes over ", examples, " examples; choose 1 to ",
                   kExamplesMax / examples, " passes");
  }
  if (request.pass() > request.passes()) {
    return Refusal(name, "pass ", request.pass(), " is beyond the end of ", request.passes());
  }
  const int told = std::max(request.finished_size(), request.returned_size());
  if (std::max<uint64_t>(request.wanted(), static_cast<uint64_t>(told)) > kWorkItemsPerRequestMax) {
    return Refusal(name, "one request is about ", kWorkItemsPerRequestMax, " items at most");
  }
  return absl::OkStatus();
}

absl::Status CheckSameDescription(const proto::WorkRequest& request,
                                  const proto::WorkLedger& record) {
  if (record.examples() == request.examples() &&
      record.item_examples() == request.item_examples() && record.passes() == request.passes() &&
      record.seed() == request.seed()) {
    return absl::OkStatus();
  }
  return Refusal(request.name(), "this worker says ", request.examples(), " examples in items of ",
                 request.item_examples(), ", ", request.passes(), " passes, seed ", request.seed(),
                 "; others said ", record.examples(), " in items of ", record.item_examples(), ", ",
                 record.passes(), " passes, seed ", record.seed(), ": all have to agree");
}

}  // namespace covey::scheduler
