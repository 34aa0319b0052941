// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/administrator.h"

#include <algorithm>

#include "tests/sim/checkers/whole_cluster.h"
#include "tests/sim/workloads/expected_errors.h"

namespace covey::sim {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10);
constexpr absl::Duration kAgainAfter = absl::Milliseconds(500);
constexpr uint64_t kRows = 3;
constexpr uint64_t kColumns = 32;

proto::Envelope RequestFor(const ElasticAction& action) {
  proto::Envelope request;
  switch (action.kind) {
    case ElasticAction::Kind::kDrain:
    case ElasticAction::Kind::kCancelDrain:
      request.mutable_drain_request()->set_node(action.name);
      request.mutable_drain_request()->set_cancel(action.kind == ElasticAction::Kind::kCancelDrain);
      break;
    case ElasticAction::Kind::kScaleServers:
      request.mutable_scale_request()->set_servers(action.number);
      break;
    case ElasticAction::Kind::kCreateTable: {
      proto::TableSpec& spec = *request.mutable_create_table_request()->mutable_spec();
      spec.set_name(action.name);
      spec.set_data_type(proto::FLOAT32);
      spec.add_shape(kRows);
      spec.add_shape(kColumns);
      spec.mutable_learning_rate()->set_base(1);
      spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
      spec.set_shard_bytes(kColumns * sizeof(float));
      SetReplicas(action.number, spec);
      break;
    }
    case ElasticAction::Kind::kDropTable:
      request.mutable_drop_table_request()->set_name(action.name);
      break;
  }
  return request;
}

}  // namespace

void Administration::AdministratorScript::Step(absl::Time now, client::ClientActor& client,
                                               Outbox& outbox) {
  if (under_way_ || done() || now < NextWake()) return;
  under_way_ = true;
  not_before_ = now + kAgainAfter;
  client.control().Start(
      now, RequestFor(all_.actions_[all_.next_]), now + kPatience,
      [this](absl::Time, const absl::Status& status, const proto::Envelope*, Outbox&) {
        Answered(status);
      },
      outbox);
}

void Administration::AdministratorScript::Answered(const absl::Status& status) {
  under_way_ = false;
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kNotFound:            // It has gone already.
    case absl::StatusCode::kFailedPrecondition:  // The others cannot take over.
    case absl::StatusCode::kInvalidArgument:
      ++all_.next_;
      return;
    default:
      if (IsExpected(status)) return;
      all_.violations_.Add("administration", status.ToString());
  }
}

absl::Time Administration::AdministratorScript::NextWake() const {
  if (under_way_ || done()) return absl::InfiniteFuture();
  return std::max(not_before_, absl::UnixEpoch() + all_.actions_[all_.next_].at);
}

}  // namespace covey::sim
