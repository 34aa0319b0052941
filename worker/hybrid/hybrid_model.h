// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "worker/group/communicator.h"
#include "worker/group/member_progress.h"
#include "worker/hybrid/bucket_consensus.h"
#include "worker/hybrid/bucket_pipeline.h"
#include "worker/hybrid/gradient_clip.h"
#include "worker/hybrid/noise_meter.h"
#include "worker/hybrid/step_route.h"
#include "worker/hybrid/step_tuning.h"
#include "worker/hybrid_options.h"
#include "worker/update/server_link.h"
#include "worker/update/table_plan.h"

namespace covey::worker {

// The model that a group member trains: its tables, how the group's present members divide them,
// and one pipeline per bucket. Actor-confined. Deterministic.
class HybridModel {
 public:
  struct Definition {
    std::vector<TableId> tables;
    HybridOptions options;
    // Deadline of runs that begin without a request of the program.
    absl::Duration patience = absl::ZeroDuration();
  };

  // `group` and `link` outlive the model.
  HybridModel(Communicator& group, ServerLink& link) : group_(group), link_(link) {}
  ~HybridModel() { TakePipelines(); }

  // Replaces the model by another, whose buckets go on after `step`; those of a member that joins a
  // group in recovery go on where the other members are. Precondition: nothing is under way.
  // NOT_FOUND, INVALID_ARGUMENT: as PlanModel and MakeUpdate.
  absl::Status Set(Definition definition, std::shared_ptr<const ClusterView> view, Step step,
                   const BucketPipeline::Environment& environment);
  // The same model in other buckets. Precondition: all buckets have finished `step`, and no other
  // has begun; the members' memory of earlier steps is not needed any more. Errors as Set.
  absl::Status SetFusion(const FusionLimits& fusion, std::shared_ptr<const ClusterView> view,
                         Step step, const BucketPipeline::Environment& environment);
  // The present division into buckets, and where SetFusion will do also others that are worth
  // trying.
  std::vector<StepTuning::Layout> TunableLayouts() const;
  void SetRoute(const StepRoute& route) {
    for (const auto& pipeline : pipelines_) pipeline->SetRoute(route);
  }
  // Divides the tables again, for the group's present members. Errors as Set.
  absl::Status Divide(std::shared_ptr<const ClusterView> view);
  // How this member's part of a bucket is updated after that. Errors as MakeUpdate.
  absl::StatusOr<std::unique_ptr<PartUpdate>> MakeUpdateOf(size_t bucket) const;
  // The worker leaves its group: the pipelines are the caller's, and report no changes any more.
  std::vector<std::shared_ptr<BucketPipeline>> TakePipelines();

  const Definition& definition() const { return definition_; }
  const ModelLayout& layout() const { return *plan_.layout; }
  // The members run an optimizer on their parts of the bucket.
  bool MembersUpdate(size_t bucket) const;
  // The program runs an optimizer, on the group's mean gradients.
  bool ProgramUpdates() const {
    return definition_.options.synchronization == Synchronization::kProgram;
  }
  bool empty() const { return pipelines_.empty(); }
  // By bucket.
  const std::vector<std::shared_ptr<BucketPipeline>>& pipelines() const { return pipelines_; }
  BucketPipeline& PipelineOf(size_t tensor) { return *pipelines_[layout().bucket_of(tensor)]; }
  // The newest step that any bucket has begun or finished.
  Step begun() const;
  Step finished() const;
  // The newest step that all buckets have finished. Step() when there is none.
  Step finished_by_all() const;
  // The newest step of which nothing is under way in any bucket.
  Step ended_by_all() const;
  // What the members of an interrupted group know of the first step after these, which is done
  // again by some buckets, or by all.
  std::optional<GradientNorm> NormOf(const std::vector<Step>& finished) const;
  // The buckets go on after these steps in the group's new generation; before the first of them
  // does.
  void BeginGeneration(std::vector<Step> finished, std::optional<GradientNorm> norm);
  // The norm of the gradient of the newest step; absent where it is not clipped, and before the
  // first step.
  std::optional<double> gradient_norm() const {
    return clip_ == nullptr ? std::nullopt : clip_->last_norm();
  }
  // Of the members' gradients; null where their norms are not taken.
  NoiseMeter* noise() const { return noise_.get(); }
  // How far each bucket has come, and what the members agree on from that.
  MemberProgress Progress() const;
  BucketConsensus ConsensusOn(size_t bucket) const;

 private:
  // Of all buckets; 0 without any.
  Step Oldest(Step (BucketPipeline::*step)() const) const;

  Communicator& group_;
  ServerLink& link_;
  Definition definition_;
  ModelPlan plan_;
  std::shared_ptr<GradientClip> clip_;  // null: gradients are not clipped
  std::shared_ptr<NoiseMeter> noise_;
  std::vector<std::shared_ptr<BucketPipeline>> pipelines_;
};

}  // namespace covey::worker
