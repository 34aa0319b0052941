// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/initialize/initializer_script.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tests/sim/workloads/expected_errors.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {
namespace {

constexpr absl::Duration kLookAgain = absl::Milliseconds(100);

}  // namespace

InitializerScript::InitializerScript(const Options& options, Random random)
    : run_(options), random_(random), zeros_(kElements, 0.0f) {
  for (const proto::TableSpec& spec : run_.tables) creations_.emplace_back(spec);
}

void InitializerScript::Step(absl::Time now, client::ClientActor& client, Outbox& outbox) {
  std::vector<TableId> tables;
  for (TableCreation& creation : creations_) {
    const proto::Table* const table = creation.Advance(now, client, outbox);
    if (table != nullptr) tables.push_back(TableId(table->id()));
  }
  if (done_ || under_way_ > 0 || now < next_) return;
  next_ = now + kLookAgain;
  if (run_.cluster.must_stop()) done_ = true;
  if (done_ || tables.size() < creations_.size()) return;
  if (run_.gives && !initialized_) {
    Initialize(now, client, outbox);
    if (random_.Chance(0.3)) Initialize(now, client, outbox);
    return;
  }
  ++under_way_;
  Train(now, tables[random_.Below(tables.size())], client, outbox);
}

void InitializerScript::Initialize(absl::Time now, client::ClientActor& client, Outbox& outbox) {
  ++under_way_;
  const auto gives = random_.Chance(0.5) ? OneOrigin::Gives::kState : OneOrigin::Gives::kValues;
  const float number = run_.origin.NewNumber(gives);
  const OneOrigin::State state = run_.origin.StateOf(number);
  const auto numbers = std::make_shared<const std::vector<float>>(kElements, number);
  const auto slot = std::make_shared<const std::vector<float>>(kElements, state.slot);
  std::vector<client::NamedValues> values;
  for (const proto::TableSpec& spec : run_.tables) {
    client::NamedValues& given = values.emplace_back();
    given = {.table = spec.name(), .values = *numbers};
    if (gives == OneOrigin::Gives::kValues) continue;
    given.state = {.slots = *slot, .updates = state.updates, .samples = state.samples};
  }
  client.initializations().Start(
      now, std::move(values), now + absl::Seconds(1 + random_.Below(60)),
      [this, numbers, slot](absl::Time at, const absl::Status& status, bool given, Outbox&) {
        if (status.ok()) initialized_ = true;
        if (given) run_.origin.NoteGiven((*numbers)[0]);
        Ended(at, status);
      },
      outbox);
}

void InitializerScript::Train(absl::Time now, TableId table, client::ClientActor& client,
                              Outbox& outbox) {
  const bool pushes = initialized_ && random_.Chance(0.5);
  const size_t slots = !pushes && random_.Chance(0.5) ? 1 : 0;
  values_.assign(kElements * (1 + slots), -1);
  const absl::Status started = client.engine().Start(
      now,
      {.table = table,
       .gradient = pushes ? std::span<const float>(zeros_) : std::span<const float>(),
       .values = std::span<float>(values_),
       .slots = slots,
       .deadline = now + absl::Seconds(1 + random_.Below(60)),
       .done =
           [this](absl::Time at, const client::OperationResult& result, Outbox&) {
             if (result.status.ok()) {
               const std::span<const float> arrays(values_);
               run_.origin.Check(arrays.first(kElements));
               run_.origin.CheckSlot(arrays.subspan(kElements));
               done_ = ++rounds_ >= run_.rounds;
             }
             Ended(at, result.status);
           }},
      outbox);
  if (!started.ok()) Ended(now, started);
}

void InitializerScript::Ended(absl::Time now, const absl::Status& status) {
  --under_way_;
  next_ = now + std::max(kLookAgain, run_.think_max * random_.Uniform());
  if (!IsExpected(status)) run_.violations.Add(kInitialize, status.ToString());
}

}  // namespace covey::sim
