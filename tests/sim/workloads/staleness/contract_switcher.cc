// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/staleness/contract_switcher.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/sim/workloads/expected_errors.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {

void ContractSwitcher::Step(absl::Time now, client::ClientActor& client, Outbox& outbox) {
  if (under_way_ || done() || now < next_) return;
  if (next_ > absl::InfinitePast()) Switch(now, client, outbox);
  next_ = now + run_.pause_max * random_.Uniform();
}

void ContractSwitcher::Switch(absl::Time now, client::ClientActor& client, Outbox& outbox) {
  under_way_ = true;
  proto::Envelope request;
  proto::SetContractRequest& body = *request.mutable_set_contract_request();
  body.set_name(run_.plan.Spec().name());
  *body.mutable_contract() = ContractToProto(run_.plan.switches[next_switch_]);
  client.control().Start(
      now, std::move(request), now + absl::Seconds(10),
      [this](absl::Time, const absl::Status& status, const proto::Envelope*, Outbox&) {
        Ended(status);
      },
      outbox);
}

void ContractSwitcher::Ended(const absl::Status& status) {
  under_way_ = false;
  if (status.ok()) ++run_.progress.switched;
  if (status.ok() || absl::IsInvalidArgument(status)) {
    // Invalid argument: a switch to bsp after all groups have gone.
    ++next_switch_;
  } else if (!absl::IsNotFound(status) && !IsExpected(status)) {
    run_.violations.Add(kStaleness, absl::StrCat("switch: ", status.ToString()));
  }
}

}  // namespace covey::sim
