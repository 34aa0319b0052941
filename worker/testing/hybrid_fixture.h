// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/cluster/ids.h"
#include "common/net/frame_checksum.h"
#include "common/optimizer/definition.h"
#include "common/tensor/codec.h"
#include "common/tensor/kernels.h"
#include "common/tensor/wire_format_proto.h"
#include "gtest/gtest.h"
#include "worker/hybrid/hybrid_step_engine.h"
#include "worker/testing/ring_fixture.h"

namespace covey::worker {

// The model that a test trains: tables with the given elements per shard, all with the same
// definition.
struct Model {
  std::vector<std::vector<uint64_t>> tables = {{5, 4, 7, 1, 6, 3}, {2}, {3, 1}};
  proto::TableSpec spec = DefaultSpec();

  static proto::TableSpec DefaultSpec() {
    proto::TableSpec spec;
    spec.mutable_optimizer()->set_kind(proto::Optimizer::MOMENTUM);
    spec.mutable_optimizer()->set_momentum(0.5);
    spec.mutable_learning_rate()->set_base(0.125);
    spec.mutable_learning_rate()->set_warmup_samples(40);
    spec.mutable_contract()->set_kind(proto::Contract::BSP);
    return spec;
  }
  size_t ElementsOf(size_t table) const {
    size_t elements = 0;
    for (const uint64_t count : tables[table]) elements += count;
    return elements;
  }
  size_t shards() const {
    size_t shards = 0;
    for (const auto& table : tables) shards += table.size();
    return shards;
  }

  static float FirstValue(size_t table, size_t element) {
    return static_cast<float>(table) + 0.01f * static_cast<float>(element);
  }
};

inline constexpr uint64_t kFakeServer = 500;
inline constexpr absl::Duration kPatience = absl::Seconds(20);

inline proto::ClusterView ViewWithTables(uint32_t members, const Model& model) {
  proto::ClusterView view = Ring::ActiveView(members);
  proto::Node& server = *view.add_nodes();
  server.set_id(kFakeServer);
  server.set_name("server-0");
  server.set_role(proto::SERVER);
  server.set_state(proto::Node::ALIVE);
  server.add_endpoints("");
  server.add_endpoints("tcp://127.0.0.1:9000");
  for (size_t t = 0; t < model.tables.size(); ++t) {
    proto::Table& table = *view.add_tables();
    table.set_id(static_cast<uint32_t>(t + 1));
    *table.mutable_spec() = model.spec;
    table.mutable_spec()->set_name(absl::StrCat("tensor-", t));
    table.mutable_spec()->set_data_type(proto::FLOAT32);
    if (model.spec.contract().kind() == proto::Contract::LOCAL) {
      table.mutable_spec()->mutable_inner_optimizer()->set_kind(proto::Optimizer::SGD);
    }
    uint64_t first = 0;
    for (const uint64_t count : model.tables[t]) {
      proto::Shard& shard = *table.add_shards();
      shard.set_index(static_cast<uint32_t>(table.shards_size() - 1));
      shard.set_first_element(first);
      shard.set_element_count(count);
      shard.set_generation(1);
      proto::Replica& replica = *shard.add_chain();
      replica.set_node(kFakeServer);
      replica.set_loop(1);
      first += count;
    }
    table.mutable_spec()->add_shape(first);
  }
  view.set_epoch(2);
  return view;
}

// A server's state of a shard, with the table's (outer) optimizer.
class FakeShard {
 public:
  FakeShard(const proto::TableSpec& spec, std::vector<float> values)
      : optimizer_(*MakeOptimizer(*OptimizerFromProto(spec.optimizer()))),
        schedule_(*LearningRateSchedule::Create(*LearningRateFromProto(spec.learning_rate()))),
        values_(std::move(values)),
        slots_(static_cast<size_t>(optimizer_->state_slots()), std::vector<float>(values_.size())) {
  }

  void Apply(std::span<const float> sum, uint64_t samples, double rate_factor = 1) {
    if (samples == 0) return;
    samples_ += samples;
    std::vector<SlotSpans> slots;
    for (std::vector<float>& slot : slots_) slots.push_back(InPlace(slot));
    optimizer_->Apply({.learning_rate = schedule_.RateAt(samples_) * rate_factor,
                       .gradient_scale = 1 / static_cast<double>(samples),
                       .update_index = ++updates_},
                      sum, values_, values_, slots);
  }
  const std::vector<float>& values() const { return values_; }
  uint64_t samples() const { return samples_; }
  uint64_t updates() const { return updates_; }

 private:
  std::unique_ptr<Optimizer> optimizer_;
  LearningRateSchedule schedule_;
  std::vector<float> values_;
  std::vector<std::vector<float>> slots_;
  uint64_t updates_ = 0;
  uint64_t samples_ = 0;
};

// Applies every push on arrival, as if each group were alone. Fails the test when a group skips or
// repeats a step, or when an old generation continues.
class FakeServer {
 public:
  explicit FakeServer(const Model& model) {
    for (size_t t = 0; t < model.tables.size(); ++t) {
      size_t element = 0;
      for (size_t s = 0; s < model.tables[t].size(); ++s) {
        std::vector<float> values;
        for (uint64_t i = 0; i < model.tables[t][s]; ++i) {
          values.push_back(Model::FirstValue(t, element++));
        }
        shards_.emplace(std::pair(t + 1, s), FakeShard(model.spec, std::move(values)));
      }
    }
  }

  Message Answer(const Message& request) {
    Message reply = MakeReply(request);
    reply.envelope.mutable_header()->set_node(kFakeServer);
    if (request.envelope.has_pull_request()) {
      const proto::PullRequest& pull = request.envelope.pull_request();
      Frame(pull.read(), shards_.at({pull.table(), pull.shard()}).values(), reply);
      reply.envelope.mutable_pull_reply()->mutable_state()->set_version(
          std::max<uint64_t>(1, versions_[{pull.table(), pull.shard()}]));
      ++pulls;
      return reply;
    }
    const proto::PushRequest& push = request.envelope.push_request();
    proto::PushReply& body = *reply.envelope.mutable_push_reply();
    if (refuse_table == push.id().table()) {
      SetStatus(absl::InvalidArgumentError("NaN in the gradient of shard 0"), reply);
      return reply;
    }
    FakeShard& shard = shards_.at({push.id().table(), push.id().shard()});
    uint64_t& newest = newest_[{push.id().producer(), push.id().table(), push.id().shard()}];
    if (members_die) {
      // As a server does with pushes of a step that is retried.
      uint64_t& known =
          generation_of_shard_[{push.id().producer(), push.id().table(), push.id().shard()}];
      if (push.id().producer_incarnation() < known) {
        SetStatus(absl::AbortedError("a newer generation has pushed"), reply);
        return reply;
      }
      known = push.id().producer_incarnation();
      if (push.id().sequence() <= newest) {
        EXPECT_EQ(push.id().sequence(), newest) << "a step was repeated";
        Frame(push.read(), shard.values(), reply);
        body.mutable_state()->set_version(newest);
        body.set_has_values(true);
        body.set_durable(true);
        body.set_duplicate(true);
        return reply;
      }
    }
    EXPECT_GT(push.id().sequence(), newest) << "a step was repeated";
    if (!groups_merge) {
      EXPECT_EQ(push.id().sequence(), newest + 1) << "a step was skipped";
    }
    newest = push.id().sequence();
    EXPECT_EQ(push.id().producer_kind(), proto::PushId::GROUP);
    uint64_t& generation = generations_[push.id().producer()];
    if (!members_die) {
      EXPECT_GE(push.id().producer_incarnation(), generation) << "an old generation goes on";
    }
    generation = push.id().producer_incarnation();
    EXPECT_EQ(push.read().step(), push.step());
    const auto format = WireFormatFromProto(push.format()).value();
    std::vector<float> sum(shard.values().size());
    EXPECT_EQ(request.frames[0].size(), EncodedBytes(format, sum.size()));
    push_bytes += request.frames[0].size();
    Decode(format, request.frames[0].bytes(), sum);
    if (on_push) on_push(push, sum);
    shard.Apply(sum, push.samples(), push.has_rate_factor() ? push.rate_factor() : 1);
    samples += push.samples();
    samples_of_table[push.id().table()] += push.samples();
    Frame(push.read(), shard.values(), reply);
    uint64_t& version = versions_[{push.id().table(), push.id().shard()}];
    version = std::max(version, push.step());
    body.mutable_state()->set_version(version);
    body.set_durable(true);
    body.set_has_values(true);
    body.set_staleness(3);
    return reply;
  }

  // The number of updates of each shard.
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> updates() const {
    std::map<std::pair<uint64_t, uint64_t>, uint64_t> updates;
    for (const auto& [id, shard] : shards_) updates[id] = shard.updates();
    return updates;
  }

  uint32_t refuse_table = 0;
  // Whether pushes may come twice, and from older generations.
  bool members_die = false;
  // Called with each applied push.
  std::function<void(const proto::PushRequest&, const std::vector<float>& sum)> on_push;
  // A group may continue after the steps of another one, whose members it has taken in.
  bool groups_merge = false;
  uint64_t samples = 0;  // of all pushes
  std::map<uint64_t, uint64_t> samples_of_table;
  uint64_t push_bytes = 0;   // of gradients
  uint64_t value_bytes = 0;  // in replies
  uint64_t pulls = 0;

 private:
  void Frame(const proto::ReadBound& read, const std::vector<float>& values, Message& reply) {
    const WireFormat format = WireFormatFromProto(read.value_format()).value();
    Buffer frame = Buffer::Allocate(EncodedBytes(format, values.size()));
    Encode(format, values, {frame.MutableData(), frame.size()});
    value_bytes += frame.size();
    reply.frames.push_back(std::move(frame));
    if (reply.envelope.has_push_reply()) {
      reply.envelope.mutable_push_reply()->set_value_format(read.value_format());
    } else {
      reply.envelope.mutable_pull_reply()->set_value_format(read.value_format());
    }
    SetFrameChecksums(reply);
  }

  std::map<std::pair<uint64_t, uint64_t>, uint64_t> versions_;  // by table and shard
  std::map<std::pair<uint64_t, uint64_t>, FakeShard> shards_;   // by table and shard
  std::map<uint64_t, uint64_t> generations_;                    // by group
  // By group, table and shard.
  std::map<std::tuple<uint64_t, uint64_t, uint64_t>, uint64_t> newest_;
  std::map<std::tuple<uint64_t, uint64_t, uint64_t>, uint64_t> generation_of_shard_;
};

// One group with clients, hybrid engines and one server. Messages between members arrive in random
// order, each pair's in its own; the server's answers too, when asked for.
class Fleet {
 public:
  explicit Fleet(uint32_t members, const Model& model = {}, const HybridOptions& options = {},
                 uint64_t seed = 1, size_t slice_bytes = 16)
      : Fleet(ViewWithTables(members, model),
              {.slice_bytes = slice_bytes,
               .rendezvous = RendezvousMode::kAtOnce,
               .algorithm = Algorithm::kRing},
              model, options, seed) {}
  // `view` has the model's tables; workers that are in no group may join later.
  Fleet(const proto::ClusterView& view, const Communicator::Options& group, const Model& model,
        const HybridOptions& options, uint64_t seed)
      : model(model),
        options(options),
        ring(Workers(view), group, seed),
        server(model),
        random_(seed),
        request_ids_(ring.size(), 1) {
    rate_factors.assign(model.tables.size(), 1);
    ring.SetElsewhere([this](uint32_t from, Message message) {
      if (message.to().node == NodeId(kFakeServer)) {
        requests_.emplace_back(from, std::move(message));
      }
    });
    ring.SetHeard([this](uint32_t to, const Message& message) {
      if (to < hybrids.size()) hybrids[to]->Observe(ring.now(), message, ring.outbox(to));
    });
    for (uint32_t rank = 0; rank < ring.size(); ++rank) {
      clients.push_back(std::make_unique<client::RequestEngine>(
          client::RequestEngine::Options{.incarnation = Incarnation(100 + rank)},
          request_ids_[rank]));
      hybrids.push_back(
          std::make_unique<HybridStepEngine>(*clients[rank], ring.communicator(rank)));
      ring.communicator(rank).OnReady(
          [hybrid = hybrids.back().get()](absl::Time now, Outbox& outbox) {
            hybrid->GroupReady(now, outbox);
          });
      ring.communicator(rank).OnInterrupted(
          [hybrid = hybrids.back().get()](absl::Time now, Outbox& outbox) {
            return hybrid->Interrupted(now, outbox);
          });
      ring.communicator(rank).OnRendezvous(
          [hybrid = hybrids.back().get()] { return hybrid->Progress(); });
      ring.communicator(rank).OnLeft(
          [hybrid = hybrids.back().get()](absl::Time now, const absl::Status& status,
                                          Outbox& outbox) { hybrid->Left(now, status, outbox); });
      for (size_t t = 0; t < model.tables.size(); ++t) {
        gradients[{rank, t}].assign(model.ElementsOf(t), 0);
        values[{rank, t}].assign(model.ElementsOf(t), -1);
      }
    }
    for (uint32_t rank = 0; rank < ring.size(); ++rank) ShowView(rank, view);
    Settle();
    for (uint32_t rank = 0; rank < ring.size(); ++rank) {
      if (ring.communicator(rank).ready()) SetTables(rank);
    }
  }
  // Ends what is under way, as a worker does before its loop stops: callbacks own what they use,
  // so what they belong to is leaked otherwise.
  void End() {
    const absl::Status closed = absl::CancelledError("the test is over");
    for (uint32_t rank = 0; rank < ring.size(); ++rank) {
      ring.communicator(rank).Abort(ring.now(), closed, ring.outbox(rank));
      clients[rank]->FailAll(ring.now(), closed, ring.outbox(rank));
    }
  }

  void ShowView(uint32_t rank, const proto::ClusterView& view) {
    ring.Collect();
    const auto made = *ClusterView::Make(view);
    const NodeId self(Ring::kFirstNode + rank);
    clients[rank]->SetView(ring.now(), self, made, ring.outbox(rank));
    hybrids[rank]->SetView(ring.now(), made, ring.outbox(rank));
    ring.communicator(rank).SetView(ring.now(), self, made, ring.outbox(rank));
  }
  void SetTables(uint32_t rank) {
    std::vector<TableId> tables;
    for (size_t t = 0; t < model.tables.size(); ++t) {
      tables.push_back(TableId(static_cast<uint32_t>(t + 1)));
    }
    const absl::Status set = hybrids[rank]->SetTables(tables, options, kPatience);
    EXPECT_TRUE(set.ok()) << set;
  }

  TensorRequest RequestFor(uint32_t rank, size_t tensor, uint64_t samples) {
    return {.tensor = tensor,
            .gradient = gradients[{rank, tensor}],
            .values = values[{rank, tensor}],
            .samples = samples,
            .rate_factor = rate_factors[tensor],
            .deadline = ring.now() + kPatience,
            .step = &steps[{rank, tensor}],
            .mean_samples = &mean_samples[{rank, tensor}],
            .done = [this](absl::Time, const absl::Status& status, Outbox&) {
              outcomes.push_back(status);
            }};
  }

  void PullAll() {
    for (uint32_t rank = 0; rank < ring.size(); ++rank) {
      if (!ring.communicator(rank).ready()) continue;
      for (const size_t t : RandomOrder()) {
        hybrids[rank]->Pull(ring.now(), RequestFor(rank, t, 0), ring.outbox(rank));
      }
    }
    Run();
  }
  void Submit(uint32_t rank, size_t tensor, uint64_t samples) {
    hybrids[rank]->Submit(ring.now(), RequestFor(rank, tensor, samples), ring.outbox(rank));
  }
  // Runs a step of every member, each with its tensors in an order of its own. `gradient` fills in
  // the gradient of a member's tensor.
  template <typename Gradient>
  void Step(const std::vector<uint64_t>& samples, Gradient gradient) {
    std::vector<std::vector<size_t>> orders;
    for (uint32_t rank = 0; rank < ring.size(); ++rank) {
      hybrids[rank]->BeginStep(ring.now(), ring.outbox(rank));
      for (size_t t = 0; t < model.tables.size(); ++t) gradient(rank, t, gradients[{rank, t}]);
      orders.push_back(RandomOrder());
    }
    for (size_t i = 0; i < model.tables.size(); ++i) {
      for (uint32_t rank = 0; rank < ring.size(); ++rank) {
        Submit(rank, orders[rank][i], samples[rank]);
        for (uint64_t steps = random_.Below(4); steps > 0; --steps) Deliver();
      }
    }
    Run();
  }

  // Delivers `count` messages between members and replies of the server; false when there are
  // fewer.
  bool RunMessages(uint64_t count) {
    int quiet = 0;
    while (count > 0) {
      const bool moved =
          random_.Below(3) == 0 ? AnswerOne() || Deliver() : Deliver() || AnswerOne();
      if (moved) {
        --count;
        quiet = 0;
        continue;
      }
      if (++quiet > 5) return false;
      WakeAll();
    }
    return true;
  }
  void Kill(uint32_t rank) { ring.Kill(rank); }

  // Runs until no message is left.
  void Run() {
    for (int quiet = 0; quiet < 20; ++quiet) {
      if (Settle()) quiet = 0;
      if (!answering) continue;
      while (AnswerOne()) quiet = 0;
      WakeAll();
    }
  }

  // Whether no outcome so far is an error.
  bool AllOk() const {
    return std::all_of(outcomes.begin(), outcomes.end(),
                       [](const absl::Status& s) { return s.ok(); });
  }
  std::vector<size_t> RandomOrder() {
    std::vector<size_t> order;
    for (size_t t = 0; t < model.tables.size(); ++t) {
      order.insert(order.begin() + static_cast<ptrdiff_t>(random_.Below(t + 1)), t);
    }
    return order;
  }

  const Model model;
  const HybridOptions options;
  Ring ring;
  FakeServer server;
  bool answering = true;
  uint64_t withheld_table = 0;  // its requests wait
  uint64_t group_messages = 0;
  std::vector<std::unique_ptr<client::RequestEngine>> clients;
  std::vector<std::unique_ptr<HybridStepEngine>> hybrids;
  std::map<std::pair<uint32_t, size_t>, std::vector<float>> gradients;  // by member and tensor
  std::map<std::pair<uint32_t, size_t>, std::vector<float>> values;
  std::map<std::pair<uint32_t, size_t>, covey::Step> steps;      // that submissions were for
  std::map<std::pair<uint32_t, size_t>, uint64_t> mean_samples;  // by member and tensor
  std::vector<absl::Status> outcomes;
  std::vector<double> rate_factors;  // by tensor, of all members

 private:
  // The view without server and tables, which the communicators do not need.
  static proto::ClusterView Workers(proto::ClusterView view) {
    view.clear_tables();
    view.mutable_nodes()->RemoveLast();
    return view;
  }
  bool Deliver() {
    if (!ring.Step()) return false;
    ++group_messages;
    return true;
  }
  bool Settle() {
    bool moved = false;
    for (uint32_t round = 0; round < 2 * ring.size(); ++round) {
      while (Deliver()) moved = true;
      WakeGroups();
    }
    return moved;
  }
  void WakeGroups() {
    for (uint32_t rank = 0; rank < ring.size(); ++rank) {
      if (ring.IsStill(rank)) continue;
      ring.communicator(rank).Wake(ring.now(), ring.outbox(rank));
      if (rank < hybrids.size()) hybrids[rank]->Wake(ring.now(), ring.outbox(rank));
    }
  }
  void WakeAll() {
    WakeGroups();
    for (uint32_t rank = 0; rank < ring.size(); ++rank) {
      if (!ring.IsStill(rank)) clients[rank]->Wake(ring.now(), ring.outbox(rank));
    }
  }
  static uint64_t TableOf(const Message& request) {
    return request.envelope.has_pull_request() ? request.envelope.pull_request().table()
                                               : request.envelope.push_request().id().table();
  }
  bool AnswerOne() {
    std::vector<size_t> due;
    for (size_t i = 0; i < requests_.size(); ++i) {
      if (TableOf(requests_[i].second) != withheld_table) due.push_back(i);
    }
    if (due.empty()) return false;
    const size_t chosen = due[random_.Below(due.size())];
    const auto [rank, reply] = [&] {
      const auto request = std::move(requests_[chosen]);
      requests_.erase(requests_.begin() + static_cast<ptrdiff_t>(chosen));
      return std::pair(request.first, server.Answer(request.second));
    }();
    if (ring.IsDead(rank)) return true;
    clients[rank]->Receive(ring.now(), reply, ring.outbox(rank));
    return true;
  }

  Random random_;
  std::vector<uint64_t> request_ids_;
  std::deque<std::pair<uint32_t, Message>> requests_;
};

inline bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// One process that trains the same model: sums in the order of a ring, one optimizer per table.
class OneProcess {
 public:
  OneProcess(const Model& model, uint32_t members, const FusionLimits& fusion)
      : view_(ViewWithTables(members, model)) {
    std::vector<const proto::Table*> tables;
    for (const proto::Table& table : view_.tables()) tables.push_back(&table);
    layout_ = std::make_unique<ModelLayout>(tables, members, fusion);
    for (size_t t = 0; t < model.tables.size(); ++t) {
      std::vector<float> values;
      for (size_t i = 0; i < model.ElementsOf(t); ++i) values.push_back(Model::FirstValue(t, i));
      tables_.emplace_back(model.spec, std::move(values));
    }
  }

  // `gradients`: each member's mean over its samples.
  void Apply(size_t tensor, std::vector<std::vector<float>> gradients,
             const std::vector<uint64_t>& samples, double rate_factor = 1) {
    uint64_t all = 0;
    for (size_t member = 0; member < gradients.size(); ++member) {
      Scale(gradients[member], static_cast<float>(samples[member]));
      all += samples[member];
    }
    std::vector<float> sum(gradients[0].size());
    const std::vector<PartRange> parts = layout_->parts_of(tensor);
    for (size_t owner = 0; owner < parts.size(); ++owner) {
      for (size_t i = parts[owner].first; i < parts[owner].first + parts[owner].count; ++i) {
        // In ring order, with the owner last.
        sum[i] = gradients[(owner + 1) % parts.size()][i];
        for (size_t hop = 2; hop <= parts.size(); ++hop) {
          sum[i] += gradients[(owner + hop) % parts.size()][i];
        }
      }
    }
    tables_[tensor].Apply(sum, all, rate_factor);
  }
  const std::vector<float>& values(size_t tensor) const { return tables_[tensor].values(); }

 private:
  proto::ClusterView view_;
  std::unique_ptr<ModelLayout> layout_;
  std::vector<FakeShard> tables_;  // each as one shard, because the optimizer works by element
};

}  // namespace covey::worker
