// SPDX-License-Identifier: Apache-2.0
#include "common/cluster/view.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"

namespace covey {
namespace {

// Binary search in a repeated field that is sorted by id().
template <typename Repeated, typename Id>
auto Find(const Repeated& items, Id id) -> decltype(&*items.begin()) {
  const auto at = std::lower_bound(items.begin(), items.end(), id,
                                   [](const auto& item, Id wanted) { return item.id() < wanted; });
  return at != items.end() && at->id() == id ? &*at : nullptr;
}

template <typename Repeated>
bool GrowingIds(const Repeated& items) {
  return std::adjacent_find(items.begin(), items.end(), [](const auto& a, const auto& b) {
           return a.id() >= b.id();
         }) == items.end();
}

// A server holds a shard once. The head is not joining, and all replicas behind a joining one are
// joining, too.
absl::Status CheckChain(const proto::Table& table, const proto::Shard& shard) {
  bool good = shard.chain_size() <= static_cast<int>(kReplicasMax) &&
              (shard.chain_size() == 0 || !shard.chain(0).joining());
  for (int i = 1; i < shard.chain_size(); ++i) {
    good = good && shard.chain(i).joining() >= shard.chain(i - 1).joining();
    for (int before = 0; before < i; ++before) {
      good = good && shard.chain(i).node() != shard.chain(before).node();
    }
  }
  return good ? absl::OkStatus()
              : absl::InvalidArgumentError(absl::StrCat("table ", table.id(), ": shard ",
                                                        shard.index(), " has a wrong chain"));
}

absl::Status CheckTable(const proto::Table& table) {
  uint64_t elements = table.spec().has_sparse() ? kKeySlots : 1;
  for (uint64_t extent : table.spec().shape()) {
    if (extent == 0 || elements > kTableElementsMax / extent) {
      return absl::InvalidArgumentError(absl::StrCat("table ", table.id(), ": shape out of range"));
    }
    elements *= extent;
  }
  uint64_t covered = 0;
  uint32_t index = 0;
  for (const proto::Shard& shard : table.shards()) {
    if (shard.index() != index++ || shard.first_element() != covered ||
        shard.element_count() == 0 || shard.element_count() > kShardBytesMax / sizeof(float) ||
        shard.element_count() > elements - covered) {
      return absl::InvalidArgumentError(absl::StrCat("table ", table.id(), ": shard ",
                                                     shard.index(),
                                                     " does not continue at element ", covered));
    }
    covered += shard.element_count();
    COVEY_RETURN_IF_ERROR(CheckChain(table, shard));
  }
  if (covered != elements) {
    return absl::InvalidArgumentError(absl::StrCat("table ", table.id(), ": shards cover ", covered,
                                                   " of ", elements, " elements"));
  }
  return absl::OkStatus();
}

absl::Status Check(const proto::ClusterView& view) {
  size_t shards = 0;
  for (const proto::Table& table : view.tables()) shards += table.shards_size();
  if (view.nodes_size() > static_cast<int>(kNodesMax) ||
      view.tables_size() > static_cast<int>(kTablesMax) || shards > kShardsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("view of epoch ", view.epoch(), ": more than the limits allow"));
  }
  if (!GrowingIds(view.nodes()) || !GrowingIds(view.groups()) || !GrowingIds(view.tables())) {
    return absl::InvalidArgumentError(
        absl::StrCat("view of epoch ", view.epoch(), ": ids do not grow"));
  }
  for (const proto::Group& group : view.groups()) {
    if (group.members_size() == 0 || group.members_size() > static_cast<int>(kGroupMembersMax)) {
      return absl::InvalidArgumentError(
          absl::StrCat("group ", group.id(), ": ", group.members_size(), " members"));
    }
    for (uint64_t member : group.members()) {
      if (Find(view.nodes(), member) == nullptr) {
        return absl::InvalidArgumentError(
            absl::StrCat("group ", group.id(), ": unknown member node ", member));
      }
    }
  }
  for (const proto::Table& table : view.tables()) COVEY_RETURN_IF_ERROR(CheckTable(table));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ClusterView>> ClusterView::Make(proto::ClusterView view) {
  COVEY_RETURN_IF_ERROR(Check(view));
  return std::shared_ptr<const ClusterView>(new ClusterView(std::move(view)));
}

std::shared_ptr<const ClusterView> ClusterView::Empty() {
  return std::shared_ptr<const ClusterView>(new ClusterView(proto::ClusterView()));
}

ClusterView::ClusterView(proto::ClusterView view) : proto_(std::move(view)) {
  for (const proto::Group& group : proto_.groups()) {
    // The first groups begin at the same step, and late ones after it.
    if (group.first_step() == proto_.groups(0).first_step()) ++initial_groups_;
    if (group.state() != proto::Group::ACTIVE) continue;
    live_groups_.push_back(
        {.id = GroupId(group.id()), .first_step = Step(std::max<uint64_t>(1, group.first_step()))});
  }
}

const proto::Node* ClusterView::FindNode(NodeId id) const {
  return Find(proto_.nodes(), id.value());
}

bool ClusterView::IsAlive(NodeId id) const {
  const proto::Node* node = FindNode(id);
  return node != nullptr && node->state() == proto::Node::ALIVE;
}

const proto::Group* ClusterView::FindGroup(GroupId id) const {
  return Find(proto_.groups(), id.value());
}

const proto::Table* ClusterView::FindTable(TableId id) const {
  return Find(proto_.tables(), id.value());
}

const proto::Table* ClusterView::FindTable(absl::string_view name) const {
  for (const proto::Table& table : proto_.tables()) {
    if (table.spec().name() == name) return &table;
  }
  return nullptr;
}

const proto::Group* ClusterView::GroupOf(NodeId worker) const {
  const proto::Group* ended = nullptr;
  for (const proto::Group& group : proto_.groups()) {
    if (std::find(group.members().begin(), group.members().end(), worker.value()) ==
        group.members().end()) {
      continue;
    }
    if (group.state() == proto::Group::ACTIVE) return &group;
    ended = &group;
  }
  return ended;
}

const proto::Shard* ClusterView::FindShard(ShardId id) const {
  const proto::Table* table = FindTable(id.table);
  if (table == nullptr || id.index.value() >= static_cast<uint32_t>(table->shards_size()))
    return nullptr;
  return &table->shards(static_cast<int>(id.index.value()));
}

Address ClusterView::HeadOf(const proto::Shard& shard) const {
  if (shard.chain_size() == 0) return {};
  return {NodeId(shard.chain(0).node()), shard.chain(0).loop()};
}

std::optional<int> ClusterView::PositionInChain(const proto::Shard& shard, const Address& loop) {
  for (int position = 0; position < shard.chain_size(); ++position) {
    const proto::Replica& replica = shard.chain(position);
    if (NodeId(replica.node()) == loop.node && replica.loop() == loop.loop) return position;
  }
  return std::nullopt;
}

std::string ClusterView::EndpointOf(const Address& address) const {
  const proto::Node* node = FindNode(address.node);
  if (node == nullptr || address.loop >= static_cast<uint32_t>(node->endpoints_size())) return "";
  return node->endpoints(static_cast<int>(address.loop));
}

std::string ClusterView::NameOf(NodeId id) const {
  const proto::Node* node = FindNode(id);
  return node != nullptr ? node->name() : absl::StrCat("node ", id.value());
}

uint64_t JobFingerprint(absl::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : name) hash = (hash ^ c) * 0x100000001b3;
  return MixBits(hash) | 1;
}

}  // namespace covey
