// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/initialize/initialize_workload.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/sim/cluster/scripted_client.h"
#include "tests/sim/workloads/initialize/initializer_script.h"
#include "tests/sim/workloads/initialize/one_origin.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {
namespace {

class InitializeWorkload : public Workload {
 public:
  InitializeWorkload(Random random, Violations& violations)
      : violations_(violations),
        programs_(2 + static_cast<uint32_t>(random.Below(5))),
        readers_(static_cast<uint32_t>(random.Below(3))),
        rounds_(1 + static_cast<int>(random.Below(20))),
        shard_bytes_(64 << random.Below(2)),
        replicas_(random.Chance(0.8) ? 0 : 1),
        lateness_(random.Uniform()),
        origin_(violations) {}

  std::string name() const override { return std::string(kInitialize); }
  uint32_t groups() const override { return 1; }
  // A program that the scheduler does not reach must still reach servers, and the reverse.
  void Adapt(SimConfig& config) const override {
    config.all_links_fail = true;
    // A push waits until some program gives the table its values, and that one may have died.
    config.answer = config.liveness;
  }
  void SetUp(SimCluster& cluster) override;
  bool Finished() const override;
  void Check() override {
    if (origin_.numbers() == 0) violations_.Add(kInitialize, "no program has begun");
  }
  std::string Report() const override {
    return absl::StrCat("programs=", programs_, " readers=", readers_, " rounds=", rounds_,
                        " begun=", origin_.numbers(),
                        " shown=", origin_.shown() ? *origin_.shown() : 0);
  }

 private:
  proto::TableSpec Spec(const std::string& name) const;

  Violations& violations_;
  const uint32_t programs_;
  const uint32_t readers_;
  const int rounds_;
  const uint64_t shard_bytes_;
  const uint32_t replicas_;
  const double lateness_;
  OneOrigin origin_;
  const SimCluster* cluster_ = nullptr;
};

proto::TableSpec InitializeWorkload::Spec(const std::string& name) const {
  proto::TableSpec spec;
  spec.set_name(name);
  spec.set_data_type(proto::FLOAT32);
  spec.add_shape(kElements);
  spec.set_shard_bytes(shard_bytes_);
  spec.mutable_initializer()->set_kind(proto::Initializer::GIVEN);
  spec.mutable_learning_rate()->set_base(1);
  // Its slot does not change by a gradient of zero.
  spec.mutable_optimizer()->set_kind(proto::Optimizer::ADAGRAD);
  spec.mutable_optimizer()->set_epsilon(1e-6);
  spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
  if (replicas_ == 1) spec.set_durability(proto::MEMORY);
  return spec;
}

void InitializeWorkload::SetUp(SimCluster& cluster) {
  cluster_ = &cluster;
  cluster.AddObserver(origin_);
  for (uint32_t i = 0; i < programs_ + readers_; ++i) {
    const InitializerScript::Options options{.tables = {Spec("a"), Spec("b"), Spec("c"), Spec("d")},
                                             .gives = i < programs_,
                                             .rounds = rounds_,
                                             .think_max = cluster.config().safety * (2.0 / rounds_),
                                             .origin = origin_,
                                             .cluster = cluster,
                                             .violations = violations_};
    // Those that come late meet tables that are being initialized.
    cluster.AddLateClient(cluster.config().safety * (lateness_ * i / (programs_ + readers_)),
                          absl::StrCat("client-", i), proto::CLIENT, [options](Random random) {
                            return std::make_unique<InitializerScript>(options, random);
                          });
  }
}

bool InitializeWorkload::Finished() const {
  return std::none_of(cluster_->processes().begin(), cluster_->processes().end(),
                      [](const auto& process) {
                        return process->name().rfind("client-", 0) == 0 && process->running();
                      });
}

}  // namespace

std::unique_ptr<Workload> MakeInitializeWorkload(Random random, Violations& violations) {
  return std::make_unique<InitializeWorkload>(random, violations);
}

}  // namespace covey::sim
