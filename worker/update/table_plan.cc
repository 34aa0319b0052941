// SPDX-License-Identifier: Apache-2.0
#include "worker/update/table_plan.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/contract/contract.h"
#include "common/table/definition.h"
#include "common/tensor/codec.h"
#include "worker/update/member_update.h"
#include "worker/update/program_update.h"
#include "worker/update/server_update.h"

namespace covey::worker {
namespace {

bool FeedsBack(ErrorFeedback when, WireFormat format) {
  if (format == WireFormat::kFloat32 || when == ErrorFeedback::kNever) return false;
  return when == ErrorFeedback::kAlways || format == WireFormat::kInt8Block ||
         format == WireFormat::kFloat8Block || format == WireFormat::kTopBlock;
}

// Of mean gradients for the program, which nothing brings later: formats that keep elements of any
// size, with 8 bits at least.
absl::Status CheckMeanFormat(const TableDefinition& definition) {
  const WireFormat format = definition.value_format;
  if (format == WireFormat::kFloat32 || format == WireFormat::kBfloat16 ||
      format == WireFormat::kFloat16Block) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("table '", definition.name, "': where the program updates, mean gradients in ",
                   WireFormatName(format),
                   " would lose small elements in each step, or become infinite; choose ",
                   WireFormatName(WireFormat::kBfloat16), " or ",
                   WireFormatName(WireFormat::kFloat16Block), " as the format of values"));
}

absl::StatusOr<TablePlan> PlanTable(const proto::Table& table, const proto::ClusterView& view,
                                    const HybridOptions& options) {
  const int groups = view.groups_size();
  COVEY_ASSIGN_OR_RETURN(const TableDefinition definition, TableDefinition::InForce(table));
  const Contract& contract = definition.contract;
  TablePlan plan;
  plan.gradient.format = definition.gradient_format;
  plan.value_format = definition.value_format;
  plan.gradient.error_feedback = FeedsBack(options.error_feedback, definition.gradient_format);
  if (NeedsFeedback(plan.gradient.format) && !plan.gradient.error_feedback) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", definition.name, "': gradients in ", WireFormatName(plan.gradient.format),
        " lose most of their elements without error feedback; leave that at its default"));
  }
  const Synchronization mode = options.synchronization;
  if (mode != Synchronization::kCentralized &&
      (contract.kind != Contract::Kind::kBsp || groups != 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("table '", definition.name, "': ",
                     mode == Synchronization::kProgram ? "updates by the program are"
                                                       : "distributed synchronization is",
                     " for one group and contract bsp; this is contract ", ContractName(contract),
                     " with ", groups, " groups. Use centralized synchronization"));
  }
  if (mode == Synchronization::kProgram) {
    COVEY_RETURN_IF_ERROR(CheckMeanFormat(definition));
    plan.program_mean = {.refuses_non_finite = definition.refuses_non_finite};
  }
  if (mode == Synchronization::kDistributed) {
    plan.member_optimizer = {.optimizer = definition.optimizer,
                             .learning_rate = definition.learning_rate,
                             .refuses_non_finite = definition.refuses_non_finite};
  }
  if (contract.kind == Contract::Kind::kLocal) {
    plan.rounds = LocalRounds{.steps = contract.local_steps, .overlap = contract.overlap_steps};
    plan.member_optimizer = {.optimizer = definition.inner->optimizer,
                             .learning_rate = definition.inner->learning_rate,
                             .refuses_non_finite = definition.refuses_non_finite};
  }
  // Snapshots lack what members hold where these update the values.
  const bool servers_update = !plan.member_optimizer && !plan.program_mean;
  if (servers_update) plan.gradient.flush_steps = view.feedback_flush_steps();
  return plan;
}

// The shards of this member's part of the bucket.
std::vector<PartShards> ShardsOf(const Bucket& bucket, uint32_t rank,
                                 std::span<const proto::Table* const> tables) {
  std::vector<PartShards> all;
  for (const ShardRun& run : bucket.runs[rank]) {
    const proto::Table& table = *tables[run.tensor];
    PartShards& shards = all.emplace_back();
    shards.table = TableId(table.id());
    shards.name = absl::StrCat("'", table.spec().name(), "'");
    shards.first_shard = run.first_shard;
    for (uint32_t i = 0; i < run.shard_count; ++i) {
      const int index = static_cast<int>(run.first_shard.value() + i);
      shards.shards.push_back(table.shards(index).element_count());
    }
    shards.elements = {.first = run.elements.first - bucket.parts[rank].first,
                       .count = run.elements.count};
    const auto piece =
        std::find_if(bucket.pieces.begin(), bucket.pieces.end(),
                     [&](const Bucket::Piece& piece) { return piece.tensor == run.tensor; });
    shards.piece = static_cast<size_t>(piece - bucket.pieces.begin());
  }
  return all;
}

}  // namespace

absl::StatusOr<std::vector<TablePlan>> PlanTables(std::span<const proto::Table* const> tables,
                                                  const ClusterView& view,
                                                  const HybridOptions& options) {
  std::vector<TablePlan> plans;
  for (size_t t = 0; t < tables.size(); ++t) {
    COVEY_ASSIGN_OR_RETURN(TablePlan plan, PlanTable(*tables[t], view.proto(), options));
    if (plan.rounds) {
      plan.rounds->offset = LocalRounds::OffsetOf(t, tables.size(), plan.rounds->steps);
    }
    plans.push_back(std::move(plan));
  }
  return plans;
}

absl::StatusOr<ModelPlan> PlanModel(std::span<const TableId> tables,
                                    std::shared_ptr<const ClusterView> view,
                                    const HybridOptions& options, uint32_t members) {
  if (options.combine == Combine::kAdasum && members > kAdasumMembersMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("Adasum combines the gradients of at most ", kAdasumMembersMax,
                     " members, and this group has ", members,
                     "; make more and smaller groups, or combine by the mean"));
  }
  ModelPlan model;
  model.view = std::move(view);
  for (const TableId id : tables) {
    model.tables.push_back(model.view->FindTable(id));
    if (model.tables.back() != nullptr) continue;
    return absl::NotFoundError(absl::StrCat("table ", id.value(), " is not in the view of epoch ",
                                            model.view->epoch().value(), "; create it first"));
  }
  COVEY_ASSIGN_OR_RETURN(model.plans, PlanTables(model.tables, *model.view, options));
  std::vector<FusionKind> kinds;
  for (const TablePlan& plan : model.plans) kinds.push_back(plan.kind());
  model.layout = std::make_unique<ModelLayout>(model.tables, members, options.fusion, kinds);
  return model;
}

std::optional<RoundMemory> MakeRoundMemory(const Bucket& bucket, std::span<const TablePlan> plans) {
  if (!plans[bucket.position()].rounds) return std::nullopt;
  std::vector<RoundMemory::Piece> pieces;
  for (const Bucket::Piece& piece : bucket.pieces) {
    pieces.push_back({.elements = piece.elements, .rounds = *plans[piece.tensor].rounds});
  }
  return std::optional<RoundMemory>(std::in_place, bucket.element_count, std::move(pieces));
}

absl::StatusOr<std::unique_ptr<PartUpdate>> MakeUpdate(const Bucket& bucket, const ModelPlan& model,
                                                       Communicator& group, ServerLink& link) {
  const std::vector<TablePlan>& plans = model.plans;
  std::vector<PartShards> shards = ShardsOf(bucket, group.rank(), model.tables);
  // All tables of a bucket are of one kind.
  const TablePlan& plan = plans[bucket.position()];
  if (plan.program_mean) {
    std::vector<bool> refuses_non_finite;
    for (const ShardRun& run : bucket.runs[group.rank()]) {
      refuses_non_finite.push_back(plans[run.tensor].program_mean->refuses_non_finite);
    }
    return std::make_unique<ProgramUpdate>(link, group, std::move(shards),
                                           std::move(refuses_non_finite));
  }
  if (!plan.member_optimizer) {
    return std::make_unique<ServerUpdate>(link, std::move(shards), plan.gradient,
                                          plan.value_format);
  }
  std::vector<MemberShards::Config> owned;
  for (const ShardRun& run : bucket.runs[group.rank()])
    owned.push_back(*plans[run.tensor].member_optimizer);
  if (!plan.rounds) {
    COVEY_ASSIGN_OR_RETURN(auto update,
                           MemberUpdate::Create(link, group, std::move(shards), owned));
    return std::unique_ptr<PartUpdate>(std::move(update));
  }
  std::vector<std::shared_ptr<LocalSgdPart>> machines;
  for (size_t i = 0; i < shards.size(); ++i) {
    const LocalSgdPart::Config config{.rounds = *plans[bucket.runs[group.rank()][i].tensor].rounds,
                                      .inner = owned[i]};
    COVEY_ASSIGN_OR_RETURN(auto machine, LocalSgdPart::Create(link, std::move(shards[i]), config));
    machines.push_back(std::move(machine));
  }
  return std::make_unique<LocalUpdate>(group, std::move(machines));
}

}  // namespace covey::worker
