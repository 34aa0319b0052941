// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "worker/testing/hybrid_fixture.h"

namespace covey::worker {

// Workers, some of them in one group, whose members die. Gradients are integers, so that sums show
// which members they include, in any order.
class GroupWithLosses {
 public:
  struct Options {
    Algorithm algorithm = Algorithm::kRing;
    HybridOptions hybrid;
    uint64_t seed = 1;
    Model model = Integers();
    // The workers that are in the group at first; empty = all.
    std::vector<uint32_t> members;
    // Of each element, by rank; not for CheckSum when changed.
    std::function<float(uint32_t)> gradient = [](uint32_t rank) {
      return -static_cast<float>(1 + rank);
    };
  };
  GroupWithLosses(uint32_t workers, const Options& options)
      : fleet(FirstView(workers, options),
              {.slice_bytes = 16,
               .rendezvous = RendezvousMode::kAgreed,
               .algorithm = options.algorithm},
              options.model, options.hybrid, options.seed),
        gradient_(options.gradient),
        alive_(workers, true),
        waiting_(workers, 0),
        failures(workers),
        view_(FirstView(workers, options)),
        members_(MembersOf(view_)) {
    fleet.server.members_die = true;
    // CheckUpdates notices when a step is skipped.
    fleet.server.groups_merge = true;
    fleet.server.on_push = [this](const proto::PushRequest& push, const std::vector<float>& sum) {
      CheckSum(push, sum);
    };
    for (uint32_t rank = 0; rank < workers; ++rank) fleet.ring.KeepApart(rank);
    fleet.PullAll();
  }
  static Model Integers() {
    Model model;
    model.tables = {{5, 4, 7, 1}, {2, 3}, {3}};
    model.spec = proto::TableSpec();
    model.spec.mutable_optimizer()->set_kind(proto::Optimizer::SGD);
    model.spec.mutable_learning_rate()->set_base(1);
    model.spec.mutable_contract()->set_kind(proto::Contract::BSP);
    return model;
  }

  void Kill(uint32_t rank) {
    alive_[rank] = false;
    fleet.Kill(rank);
  }
  // The worker hangs, and the scheduler declares it dead.
  void Freeze(uint32_t rank) {
    alive_[rank] = false;
    fleet.ring.Freeze(rank);
  }
  // Makes a new plan, which no worker has received yet: the live ones of `members`.
  void Plan(const std::vector<uint32_t>& members, bool recovery) {
    view_.set_epoch(view_.epoch() + 1);
    proto::Group& group = *view_.mutable_groups(0);
    group.set_generation(group.generation() + 1);
    if (recovery) group.set_recovery_generation(group.generation());
    group.clear_members();
    group.clear_minimum_members();
    for (const uint32_t rank : members) {
      if (alive_[rank]) group.add_members(Ring::kFirstNode + rank);
    }
    for (uint32_t rank = 0; rank < alive_.size(); ++rank) {
      if (alive_[rank]) continue;
      view_.mutable_nodes(static_cast<int>(rank))->set_state(proto::Node::DEAD);
      view_.mutable_nodes(static_cast<int>(rank))->set_departure("silent for 2.6 s");
    }
    members_ = MembersOf(view_);
  }
  // The same for a new group, which contracts wait for from `first_step` on; the old group has
  // ended.
  void PlanNewGroup(const std::vector<uint32_t>& members, uint64_t first_step) {
    Plan(members, false);
    proto::Group& group = *view_.mutable_groups(0);
    group.set_id(group.id() + 1);
    group.set_generation(1);
    group.set_first_step(first_step);
  }
  void PlanWithoutTheDead() { Plan(members_, true); }
  void Drain(uint32_t rank) { view_.mutable_nodes(static_cast<int>(rank))->set_draining(true); }
  void LetGoOnWith(uint32_t minimum_members) {
    view_.set_epoch(view_.epoch() + 1);
    view_.mutable_groups(0)->set_minimum_members(minimum_members);
    view_.mutable_groups(0)->set_grace_ms(100);
  }
  void Show(uint32_t rank) { fleet.ShowView(rank, view_); }
  void ShowAll() {
    for (uint32_t rank = 0; rank < alive_.size(); ++rank) {
      if (alive_[rank]) Show(rank);
    }
  }
  // The members in the newest plan.
  const std::vector<uint32_t>& members() const { return members_; }

  bool Idle(uint32_t rank) const { return waiting_[rank] == 0; }
  void Begin(uint32_t rank) {
    fleet.hybrids[rank]->BeginStep(fleet.ring.now(), fleet.ring.outbox(rank));
    for (const size_t t : fleet.RandomOrder()) {
      std::fill(fleet.gradients[{rank, t}].begin(), fleet.gradients[{rank, t}].end(),
                gradient_(rank));
      fleet.hybrids[rank]->Submit(fleet.ring.now(),
                                  Watched(rank, fleet.RequestFor(rank, t, 1 + rank)),
                                  fleet.ring.outbox(rank));
    }
  }
  void Begin() {
    for (const uint32_t rank : members_) Begin(rank);
  }
  void Step() {
    Begin();
    fleet.Run();
  }
  // A step in which a member dies after so many messages, and the others go on without it. Returns
  // whether the step was over before.
  bool StepWithDeath(uint32_t victim, uint64_t messages) {
    Begin();
    const bool over = !fleet.RunMessages(messages);
    Kill(victim);
    // Messages of the dead member that are still in the network arrive, or are lost with it.
    if (messages % 2 == 0) fleet.Run();
    PlanWithoutTheDead();
    for (const uint32_t rank : members_) {
      Show(rank);
      fleet.RunMessages(messages % 5);
    }
    fleet.Run();
    return over;
  }
  // The same with one to `deaths_max` deaths, at random moments: some of them during the rendezvous
  // after another. One member is left at least.
  void StepWithDeaths(Random& random, uint64_t deaths_max) {
    Begin();
    for (uint64_t deaths = 1 + random.Below(deaths_max); deaths > 0 && members_.size() > 1;
         --deaths) {
      fleet.RunMessages(random.Below(120));
      Kill(members_[random.Below(members_.size())]);
      if (random.Chance(0.3)) fleet.Run();
      PlanWithoutTheDead();
      for (const uint32_t rank : members_) {
        if (random.Chance(0.7)) Show(rank);
        fleet.RunMessages(random.Below(20));
      }
    }
    ShowAll();
    fleet.Run();
  }
  void Pull(uint32_t rank) {
    for (const size_t t : fleet.RandomOrder()) {
      fleet.hybrids[rank]->Pull(fleet.ring.now(), Watched(rank, fleet.RequestFor(rank, t, 0)),
                                fleet.ring.outbox(rank));
    }
  }
  void Join(uint32_t rank) {
    ASSERT_TRUE(fleet.ring.communicator(rank).ready());
    fleet.SetTables(rank);
    Pull(rank);
    fleet.Run();
  }

  // Checks that all members have ended exactly step `step`, with the same values.
  void CheckAllWell(uint64_t step) {
    for (const uint32_t rank : members_) {
      const Communicator& group = fleet.ring.communicator(rank);
      if (!Idle(rank)) Complain(absl::StrCat(rank, " waits for ", waiting_[rank]));
      if (!failures[rank].ok()) Complain(failures[rank].ToString());
      if (!group.failure().ok()) Complain(group.failure().ToString());
      if (fleet.hybrids[rank]->step().value() != step) {
        Complain(absl::StrCat(rank, " is at step ", fleet.hybrids[rank]->step().value()));
      }
      for (size_t t = 0; t < fleet.model.tables.size(); ++t) {
        if (!SameBits(fleet.values[{rank, t}], fleet.values[{members_[0], t}])) {
          Complain(absl::StrCat(rank, " has other values of tensor ", t));
        }
      }
    }
  }
  // Pushes may come late, or twice, or from an older generation; each shard applies one per step.
  void CheckUpdates(uint64_t steps) {
    for (const auto& [shard, updates] : fleet.server.updates()) {
      if (updates != steps) Complain(absl::StrCat(updates, " updates after step ", steps));
    }
  }
  // Steps with one or two deaths each until one member is left, and then one more, all of them
  // checked. Stops at the first step with violations; returns the number of the last step.
  uint64_t StepUntilOneIsLeft(Random& random) {
    uint64_t step = 0;
    while (members_.size() > 1) {
      StepWithDeaths(random, 2);
      ++step;
      CheckAllWell(step);
      CheckUpdates(step);
      if (!violations.empty()) return step;
    }
    Step();
    CheckAllWell(step + 1);
    return step + 1;
  }

 private:
  static proto::ClusterView FirstView(uint32_t workers, const Options& options) {
    proto::ClusterView view = ViewWithTables(workers, options.model);
    if (options.members.empty()) return view;
    view.mutable_groups(0)->clear_members();
    for (const uint32_t rank : options.members) {
      view.mutable_groups(0)->add_members(Ring::kFirstNode + rank);
    }
    return view;
  }
  static std::vector<uint32_t> MembersOf(const proto::ClusterView& view) {
    std::vector<uint32_t> ranks;
    for (const uint64_t node : view.groups(0).members()) {
      ranks.push_back(static_cast<uint32_t>(node - Ring::kFirstNode));
    }
    return ranks;
  }
  void Complain(std::string what) { violations.push_back(std::move(what)); }
  TensorRequest Watched(uint32_t rank, TensorRequest request) {
    ++waiting_[rank];
    request.done = [this, rank](absl::Time, const absl::Status& status, Outbox&) {
      --waiting_[rank];
      failures[rank].Update(status);
    };
    return request;
  }

  // Each member's gradient is included with all its samples, or not at all.
  void CheckSum(const proto::PushRequest& push, const std::vector<float>& sum) {
    if (push.format() != proto::WIRE_FLOAT32) return;
    for (uint32_t set = 1; set < 1u << alive_.size(); ++set) {
      uint64_t samples = 0;
      float expected = 0;
      for (uint32_t rank = 0; rank < alive_.size(); ++rank) {
        if ((set >> rank & 1) == 0) continue;
        samples += 1 + rank;
        expected -= static_cast<float>((1 + rank) * (1 + rank));
      }
      if (samples == push.samples() &&
          std::all_of(sum.begin(), sum.end(),
                      [expected](float element) { return element == expected; })) {
        return;
      }
    }
    Complain(absl::StrCat("a sum of ", sum[0], " over ", push.samples(), " samples in step ",
                          push.step()));
  }

 public:
  Fleet fleet;

 private:
  const std::function<float(uint32_t)> gradient_;
  std::vector<bool> alive_;
  std::vector<size_t> waiting_;

 public:
  std::vector<absl::Status> failures;   // the first of each program
  std::vector<std::string> violations;  // broken promises

 private:
  proto::ClusterView view_;
  std::vector<uint32_t> members_;
};

// The configuration of a group that loses members or messages.
struct Case {
  Algorithm algorithm = Algorithm::kRing;
  uint32_t lag = 0;
  bool fused = false;

  GroupWithLosses::Options OptionsOf(uint64_t seed) const {
    return {.algorithm = algorithm,
            .hybrid = {.lag = lag, .fusion = {.bucket_bytes = fused ? 1u << 20 : 0u}},
            .seed = seed};
  }
};

// A LOCAL group whose servers take the mean of the learned values, so that its values after each
// step equal those of a single process.
class LocalGroupWithLosses : public GroupWithLosses {
 public:
  static constexpr uint64_t kSteps = 4;  // per round
  static constexpr float kRate = 0.5;

  // `members`: as Options.
  LocalGroupWithLosses(uint32_t workers, uint64_t overlap, bool fused, uint64_t seed,
                       std::vector<uint32_t> members = {})
      : GroupWithLosses(workers, OptionsOf(overlap, fused, seed, std::move(members))) {
    fleet.server.on_push = nullptr;
  }
  ~LocalGroupWithLosses() { fleet.End(); }

  // The change of each element in one step.
  float Lesson(const std::vector<uint32_t>& members) const {
    float sum = 0;
    float samples = 0;
    for (const uint32_t rank : members) {
      sum += static_cast<float>((1 + rank) * (1 + rank));
      samples += static_cast<float>(1 + rank);
    }
    return kRate * sum / samples;
  }
  // Checks that all elements of all members have changed by a total in [least, most].
  void CheckLearned(float least, float most) {
    for (const uint32_t rank : members()) {
      for (size_t t = 0; t < fleet.model.tables.size(); ++t) {
        const std::vector<float>& values = fleet.values[{rank, t}];
        for (size_t i = 0; i < values.size(); ++i) {
          const float learned = values[i] - Model::FirstValue(t, i);
          if (learned > least - 0.001f && learned < most + 0.001f) continue;
          violations.push_back(absl::StrCat(
              "element ", i, " of tensor ", t, " at ", rank, " has learned ", learned, " and not ",
              least, " to ", most, " after step ", fleet.hybrids[rank]->step().value()));
        }
      }
    }
  }

 private:
  static Options OptionsOf(uint64_t overlap, bool fused, uint64_t seed,
                           std::vector<uint32_t> members) {
    Options options = Case{.fused = fused}.OptionsOf(seed);
    options.members = std::move(members);
    proto::TableSpec& spec = options.model.spec;
    spec.mutable_inner_learning_rate()->set_base(kRate);
    spec.mutable_contract()->set_kind(proto::Contract::LOCAL);
    spec.mutable_contract()->set_local_steps(kSteps);
    spec.mutable_contract()->set_overlap_steps(overlap);
    return options;
  }
};

}  // namespace covey::worker
