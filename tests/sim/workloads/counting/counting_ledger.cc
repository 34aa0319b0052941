// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/counting/counting_ledger.h"

#include <algorithm>
#include <cmath>

#include "common/table/key_list.h"
#include "common/tensor/codec.h"
#include "common/vectors/vector_proto.h"
#include "tests/sim/checkers/published_view.h"
#include "tests/sim/workloads/counting/counting_functions.h"
#include "tests/sim/workloads/counting/counting_momentum.h"

namespace covey::sim {
namespace {

// As PushNorms of the product.
constexpr int64_t kPushesUntilKnown = 8;

}  // namespace

void CountingLedger::OnSend(absl::Time, const Message& message) {
  if (message.envelope.has_push_request()) return NotePush(message);
  if (const proto::ClusterView* view = PublishedView(message)) return NoteView(*view);
  auto reply = ReadShardReply(message);
  if (!reply) return;
  if (reply->push != nullptr) NoteAnswer(*reply);
  std::vector<float> slots;
  if (!message.envelope.pull_reply().answers().empty()) {
    slots = SlotsIn(AnswersFromProto(message.envelope.pull_reply().answers()).value(), slots_);
    reply->values = slots;
  } else if (row_type_ != WireFormat::kFloat32 && message.frames.size() == 1) {
    slots.resize(message.frames[0].size() / EncodedBytes(row_type_, 1));
    Decode(row_type_, message.frames[0].bytes(), slots);
    reply->values = slots;
  }
  // The rows of a push to a sparse table, with others than the home row, are checked at the end.
  if (reply->values.size() == slots_ && !rows_are_late_) CheckValues(*reply);
}

void CountingLedger::NoteAnswer(const ShardReply& reply) {
  const proto::PushId& id = reply.push->id();
  const auto slot =
      slot_of_.find({reply.history.shard, id.producer(), id.producer_incarnation(), id.sequence()});
  if (slot == slot_of_.end()) {
    violations_.Add("counting",
                    absl::StrCat("a server acknowledged push ", id.sequence(), " of producer ",
                                 id.producer(), ", which nobody sent"));
    return;
  }
  Push& push = histories_[reply.history][slot->second];
  if (!reply.push->durable()) return;
  push.durable = true;
  push.applied = std::max(push.applied, reply.push->applied_version());
  if (is_gated_) NoteVerdict(reply, slot->second);
}

void CountingLedger::NoteVerdict(const ShardReply& reply, uint64_t slot) {
  Push& push = histories_[reply.history][slot];
  push.kept_out = push.kept_out || reply.push->discarded();
  const uint64_t applied = reply.push->applied_version();
  const auto complain = [&](const absl::AlphaNum& what) {
    violations_.Add("counting",
                    absl::StrCat("shard ", reply.history.shard.index.value(), " generation ",
                                 reply.history.generation, ": the push of slot ", slot, " ", what));
  };
  if (push.kept_out && !IsWild(slot)) complain("is ordinary, and was kept out");
  if (push.kept_out && push.applied > 0) complain("was applied, and was kept out");
  if (applied == 0) return;
  std::map<uint64_t, std::set<uint64_t>>& ordinary = ordinary_[reply.history];
  if (!IsWild(slot)) {
    ordinary[reply.push->id().producer()].insert(applied);
    return;
  }
  for (const auto& [producer, versions] : ordinary) {
    const auto before = std::distance(versions.begin(), versions.lower_bound(applied));
    if (before >= kPushesUntilKnown && alive_.contains(producer)) {
      return complain(absl::StrCat("is wild, and was applied as version ", applied, " after ",
                                   before, " ordinary ones of producer ", producer));
    }
  }
}

void CountingLedger::NoteView(const proto::ClusterView& view) {
  for (const proto::Node& node : view.nodes()) {
    if (node.state() == proto::Node::ALIVE) {
      alive_.insert(node.id());
    } else {
      alive_.erase(node.id());
    }
  }
  for (const proto::Table& table : view.tables()) {
    for (const proto::Shard& shard : table.shards()) {
      const auto joined =
          std::count_if(shard.chain().begin(), shard.chain().end(),
                        [](const proto::Replica& replica) { return !replica.joining(); });
      if (joined == 1 && shard.chain_size() > 1) {
        hurried_.insert({TableId(table.id()), ShardIndex(shard.index())});
      }
      uint64_t& newest = generations_[{TableId(table.id()), ShardIndex(shard.index())}];
      history_was_lost_ = history_was_lost_ || (newest != 0 && newest < shard.generation());
      newest = std::max<uint64_t>(newest, shard.generation());
    }
  }
}

void CountingLedger::NotePush(const Message& message) {
  const proto::PushId& id = message.envelope.push_request().id();
  const ShardId shard{TableId(id.table()), ShardIndex(id.shard())};
  const proto::PushRequest& push = message.envelope.push_request();
  if (push.flush()) hurried_.insert(shard);
  if (!push.functions().empty()) {
    has_functions_ = true;
    const uint64_t slot = SlotOfFunction(push.functions(0));
    slot_of_[{shard, id.producer(), id.producer_incarnation(), id.sequence()}] = slot;
    pushed_.insert({shard, slot});
    return;
  }
  // A query after an earlier push has no gradient. Keys that go by the name of their list have no
  // frame.
  if (message.frames.size() < (push.has_keys() && !IsNamed(push.keys()) ? 2 : 1)) return;
  const auto gradient = message.frames.back().As<float>();
  const auto one = std::find_if(gradient.begin(), gradient.end(), [](float x) { return x != 0; });
  // Each row of a sparse table shows the slot.
  const size_t width = push.has_keys() ? gradient.size() / push.keys().count() : gradient.size();
  const uint64_t slot = static_cast<uint64_t>(one - gradient.begin()) % width;
  slot_of_[{shard, id.producer(), id.producer_incarnation(), id.sequence()}] = slot;
  pushed_.insert({shard, slot});
}

void CountingLedger::Complain(const ShardHistory& history, uint64_t slot, float value,
                              absl::string_view what) {
  violations_.Add("counting", absl::StrCat("shard ", history.shard.index.value(), " generation ",
                                           history.generation, " holds ", value, " in slot ", slot,
                                           ": ", what));
}

float CountingLedger::TamedOf(uint64_t slot, float value) const {
  if (has_momentum_ && UpdatesSince(value)) return 1;
  return IsWild(slot) ? value / kWild : value;
}

void CountingLedger::CheckVelocity(const ShardReply& reply, uint64_t slot) {
  const uint64_t version = reply.state->version();
  const std::optional<uint64_t> since = UpdatesSince(reply.values[slot]);
  if (!since) return;  // Not applied exactly once.
  const auto push = histories_[reply.history].find(slot);
  uint64_t known = push == histories_[reply.history].end() ? 0 : push->second.applied;
  uint64_t& shown = shown_[reply.history][slot];
  if (known == 0) known = shown;
  if (*since < kUpdatesUntilTwo) shown = version - *since;
  const bool fits = known == 0                  ? version >= *since
                    : *since < kUpdatesUntilTwo ? version - known == *since
                                                : version - known >= *since;
  if (fits) return;
  Complain(reply.history, slot, reply.values[slot],
           absl::StrCat("version ", version, " lacks velocity of the push of version ", known));
}

void CountingLedger::CheckValues(const ShardReply& reply) {
  uint64_t included = 0;
  double sum = 0;
  for (uint64_t slot = 0; slot < reply.values.size(); ++slot) {
    const float value = TamedOf(slot, reply.values[slot]);
    if (value == 0) continue;
    ++included;
    sum += value;
    if (has_momentum_) CheckVelocity(reply, slot);
    if (!IsOnce(reply.history.shard, value)) {
      Complain(reply.history, slot, value, "not applied exactly once");
    }
    if (pushed_.count({reply.history.shard, slot}) == 0) {
      Complain(reply.history, slot, value, "nobody pushed it");
    }
  }
  const uint64_t version = reply.state->version();
  for (const auto& [slot, push] : histories_[reply.history]) {
    const float value = reply.values[slot];
    if (push.kept_out && value != 0) Complain(reply.history, slot, value, "it was kept out");
    if (push.applied == 0) continue;
    if (push.applied <= version && value == 0) {
      Complain(reply.history, slot, 0, "an applied push is lost");
    } else if (push.applied > version && value != 0) {
      Complain(reply.history, slot, value,
               absl::StrCat("version ", version, " has a push of version ", push.applied));
    }
  }
  // Each update adds the same total, however many pushes it has.
  const double expected = static_cast<double>(version * arrivals_);
  const bool fits = hurried_.count(reply.history.shard) > 0 ? std::fabs(sum - expected) < 0.01
                                                            : version * arrivals_ == included;
  if (!fits) {
    violations_.Add("counting", absl::StrCat("shard ", reply.history.shard.index.value(),
                                             " is at version ", version, " of ", arrivals_,
                                             " arrivals each, and holds ", included, " pushes"));
  }
  if (const uint64_t samples = reply.state->samples(); !has_functions_ && samples != included) {
    violations_.Add("counting",
                    absl::StrCat("shard ", reply.history.shard.index.value(), " at version ",
                                 version, " holds ", included, " pushes, and counts ", samples));
  }
}

bool CountingLedger::IsOnce(ShardId shard, float value) const {
  if (value == 1) return true;
  if (value <= 0 || hurried_.count(shard) == 0) return false;
  const float pushes = std::round(static_cast<float>(arrivals_) / value);
  return pushes >= 1 && std::fabs(pushes * value - static_cast<float>(arrivals_)) < 1e-4f;
}

bool CountingLedger::WasAcknowledged(ShardId shard, uint64_t slot, bool durable) const {
  // Histories of one shard are adjacent.
  for (auto at = histories_.lower_bound({shard, 0});
       at != histories_.end() && at->first.shard == shard; ++at) {
    const auto push = at->second.find(slot);
    if (push != at->second.end() && (push->second.durable || !durable)) return true;
  }
  return false;
}

uint64_t CountingLedger::AppliedVersion(const ShardHistory& history, uint64_t slot) const {
  const auto found = histories_.find(history);
  if (found == histories_.end()) return 0;
  const auto push = found->second.find(slot);
  return push == found->second.end() ? 0 : push->second.applied;
}

std::optional<uint64_t> CountingLedger::OnlyGenerationOf(ShardId shard, uint64_t slot) const {
  std::optional<uint64_t> generation;
  for (auto at = histories_.lower_bound({shard, 0});
       at != histories_.end() && at->first.shard == shard; ++at) {
    if (at->second.count(slot) == 0) continue;
    if (generation) return std::nullopt;
    generation = at->first.generation;
  }
  return generation;
}

void CountingLedger::CheckFinal(const ShardHistory& history, std::span<const float> values,
                                uint64_t slots_end) {
  for (const auto& [slot, push] : histories_[history]) {
    if (slot >= slots_end || IsOnce(history.shard, TamedOf(slot, values[slot]))) continue;
    if (push.kept_out && values[slot] == 0) continue;
    if (push.durable) {
      Complain(history, slot, values[slot], "an acknowledged push is lost");
    } else if (flushed_.count(slot) > 0 &&
               OnlyGenerationOf(history.shard, slot) == history.generation) {
      Complain(history, slot, values[slot],
               "a push is lost that its client had received as acknowledged, and waited for");
    }
  }
}

}  // namespace covey::sim
