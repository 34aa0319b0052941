// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/cluster/scripted_client.h"

#include <algorithm>

#include "tests/sim/cluster/member_outcome.h"

namespace covey::sim {

ScriptedClient::ScriptedClient(const client::ClientActor::Options& options,
                               std::unique_ptr<Script> script)
    : script_(std::move(script)), client_(std::make_unique<client::ClientActor>(options)) {}

// The actor refers to the script's memory and to its callbacks.
ScriptedClient::~ScriptedClient() { client_.reset(); }

void ScriptedClient::Receive(absl::Time now, const Message& message, Outbox& outbox) {
  client_->Receive(now, message, outbox);
  Step(now, outbox);
}

void ScriptedClient::Wake(absl::Time now, Outbox& outbox) {
  client_->Wake(now, outbox);
  Step(now, outbox);
}

void ScriptedClient::Step(absl::Time now, Outbox& outbox) {
  if (client_->member().state() != Member::State::kMember || leaving_) return;
  script_->Step(now, *client_, outbox);
  if (!script_->done()) return;
  leaving_ = true;
  client_->member().Leave(now, "done", outbox);
}

Program::Outcome ScriptedClient::outcome() const { return OutcomeOf(client_->member()); }

absl::Time ScriptedClient::NextWake() const {
  const bool working = client_->member().state() == Member::State::kMember && !leaving_;
  return std::min(client_->NextWake(), working ? script_->NextWake() : absl::InfiniteFuture());
}

const proto::Table* TableCreation::Advance(absl::Time now, client::ClientActor& client,
                                           Outbox& outbox) {
  if (const proto::Table* table = client.member().view()->FindTable(spec_.name())) return table;
  if (asking_) return nullptr;
  asking_ = true;
  proto::Envelope request;
  *request.mutable_create_table_request()->mutable_spec() = spec_;
  client.control().Start(
      now, std::move(request), now + absl::Seconds(10),
      [this](absl::Time, const absl::Status& status, const proto::Envelope*, Outbox&) {
        asking_ = false;
        if (status.code() == absl::StatusCode::kInvalidArgument ||
            status.code() == absl::StatusCode::kAlreadyExists) {
          refusal_ = status;
        }
      },
      outbox);
  return nullptr;
}

}  // namespace covey::sim
