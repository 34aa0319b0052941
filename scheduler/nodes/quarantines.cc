// SPDX-License-Identifier: Apache-2.0
#include "scheduler/nodes/quarantines.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/cluster/limits.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {
namespace {

constexpr size_t kNamed = 8;

const proto::Table* FindTable(const proto::ClusterView& view, uint32_t id) {
  const auto& tables = view.tables();
  const auto found = std::find_if(tables.begin(), tables.end(),
                                  [id](const proto::Table& table) { return table.id() == id; });
  return found == tables.end() ? nullptr : &*found;
}

// "group-1, client-0 and 3 more".
std::string Join(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kNamed);
  return absl::StrCat(
      absl::StrJoin(names.begin(), names.begin() + shown, ", "),
      names.size() > shown ? absl::StrCat(" and ", names.size() - shown, " more") : "");
}

std::string Quoted(absl::string_view name) {
  return absl::StrCat("'", name.substr(0, kNameBytesMax), "'");
}

}  // namespace

void Quarantines::Start() {
  if (state_.record().index() > 0) started_ = state_.epoch();
}

absl::StatusOr<Epoch> Quarantines::OnRequest(const proto::QuarantineRequest& request,
                                             absl::string_view asked_by) {
  return request.release() ? Release(request.producer(), asked_by) : Quarantine(request, asked_by);
}

absl::StatusOr<Epoch> Quarantines::Quarantine(const proto::QuarantineRequest& request,
                                              absl::string_view asked_by) {
  const std::string& name = request.producer();
  const proto::ClusterView& view = state_.view();
  std::optional<Producer> found;
  for (const proto::Group& group : view.groups()) {
    const Producer producer{.is_group = true, .id = group.id()};
    if (NameOf(producer) == name && !HasEnded(producer)) found = producer;
  }
  for (const proto::Node& node : view.nodes()) {
    const Producer producer{.is_group = false, .id = node.id()};
    if (node.name() == name && !HasEnded(producer)) found = producer;
  }
  if (!found) {
    return absl::NotFoundError(absl::StrCat("quarantine ", Quoted(name),
                                            ": no active group and no live node has this name; ",
                                            Candidates()));
  }
  if (request.reason().size() > kNameBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("quarantine ", name, ": the reason has ",
                                                   request.reason().size(), " bytes; at most ",
                                                   kNameBytesMax, " are possible, shorten it"));
  }
  if (const proto::QuarantinedProducer* already = Find(*found)) return Epoch(already->epoch());
  if (view.quarantined_size() >= static_cast<int>(kQuarantinedMax)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("quarantine ", name, ": ", kQuarantinedMax,
                     " producers are quarantined, as many as possible; release some first"));
  }
  return Add(*found, absl::StrCat(request.reason().empty() ? "by request" : request.reason(), ", ",
                                  asked_by));
}

Epoch Quarantines::Add(const Producer& producer, std::string reason) {
  Transaction change(state_);
  change.Add(ProducerQuarantined{.producer = NameOf(producer), .why = reason});
  auto& list = *change.EditView().mutable_quarantined();
  proto::QuarantinedProducer& added = *list.Add();
  added.set_is_group(producer.is_group);
  added.set_id(producer.id);
  added.set_epoch(change.epoch().value());
  added.set_reason(std::move(reason));
  const auto at = [&list](int index) {
    return Producer{.is_group = list.Get(index).is_group(), .id = list.Get(index).id()};
  };
  for (int i = list.size() - 1; i > 0 && at(i) < at(i - 1); --i) list.SwapElements(i, i - 1);
  change.Commit();
  return state_.epoch();
}

absl::StatusOr<Epoch> Quarantines::Release(absl::string_view name, absl::string_view asked_by) {
  const auto& quarantined = state_.view().quarantined();
  std::vector<std::string> names;
  for (int i = 0; i < quarantined.size(); ++i) {
    const Producer producer{.is_group = quarantined[i].is_group(), .id = quarantined[i].id()};
    names.push_back(NameOf(producer));
    if (names.back() != name) continue;
    Transaction change(state_);
    change.Add(ProducerReleased{.producer = std::string(name), .why = std::string(asked_by)});
    change.EditView().mutable_quarantined()->DeleteSubrange(i, 1);
    change.Commit();
    released_[producer] = state_.epoch();
    return state_.epoch();
  }
  return absl::NotFoundError(absl::StrCat(
      "release ", Quoted(name), ": it is not quarantined; ",
      names.empty() ? "no producer is, so there is nothing to release"
                    : absl::StrCat("these are: ", Join(names), "; give one of their names")));
}

void Quarantines::OnHeartbeat(absl::Time now, NodeId server, Epoch known,
                              const proto::ServerLoad& load) {
  const int count = std::min(load.gated_size(), static_cast<int>(kGatedProducersToldMax));
  for (int i = 0; i < count; ++i) Judge(now, server, known, load.gated(i));
}

void Quarantines::Judge(absl::Time now, NodeId server, Epoch known,
                        const proto::GatedProducer& report) {
  const proto::Table* table = FindTable(state_.view(), report.table());
  if (table == nullptr || report.shard() >= static_cast<uint32_t>(table->shards_size())) return;
  const proto::NormGate& gate = table->spec().norm_gate();
  const proto::Shard& shard = table->shards(static_cast<int>(report.shard()));
  const bool is_head = shard.chain_size() > 0 && NodeId(shard.chain(0).node()) == server;
  if (gate.quarantine_after() == 0 || !is_head) return;
  const Producer producer{.is_group = report.is_group(), .id = report.id()};
  if (HasEnded(producer) || Find(producer) != nullptr) return;
  const uint64_t in_row = CountOf(now, known, report);
  if (in_row < gate.quarantine_after()) return;
  const bool others_disagree =
      report.usual_of_others() > 0 && report.usual() > gate.factor() * report.usual_of_others();
  if (!others_disagree) return;
  if (state_.view().quarantined_size() >= static_cast<int>(kQuarantinedMax)) return;
  Add(producer,
      absl::StrCat(in_row, in_row == 1 ? " push" : " pushes",
                   " in a row beyond the gate of table '", table->spec().name(), "', shard ",
                   report.shard(), ": norms of about ", absl::StrFormat("%.2g", report.usual()),
                   ", those of others about ", absl::StrFormat("%.2g", report.usual_of_others())));
}

uint64_t Quarantines::CountOf(absl::Time now, Epoch known, const proto::GatedProducer& report) {
  const Place place{.producer = {.is_group = report.is_group(), .id = report.id()},
                    .table = report.table(),
                    .shard = report.shard()};
  const auto released = released_.find(place.producer);
  const Epoch since = released == released_.end() ? started_ : released->second;
  if (since == Epoch()) return report.beyond_in_row();
  if (known < since) return 0;
  auto found = counts_.find(place);
  if (found == counts_.end() && counts_.size() >= kCountedMax) return 0;
  if (found == counts_.end()) found = counts_.emplace(place, Count()).first;
  Count& count = found->second;
  if (count.since < since) count = {.since = since, .settled = now + kSettled, .ignored = 0};
  if (now < count.settled) {
    count.ignored = report.beyond_in_row();
  } else if (report.beyond_in_row() < count.ignored) {
    // A push within the gate has ended that row.
    count.ignored = 0;
  }
  return report.beyond_in_row() - count.ignored;
}

void Quarantines::Tick() {
  std::vector<std::string> ended;
  for (const proto::QuarantinedProducer& each : state_.view().quarantined()) {
    const Producer producer{.is_group = each.is_group(), .id = each.id()};
    if (HasEnded(producer)) ended.push_back(NameOf(producer));
  }
  if (!ended.empty()) {
    Transaction change(state_);
    change.Add(QuarantinesEnded{.producers = std::move(ended)});
    auto& list = *change.EditView().mutable_quarantined();
    list.erase(std::remove_if(list.begin(), list.end(),
                              [this](const proto::QuarantinedProducer& each) {
                                return HasEnded({.is_group = each.is_group(), .id = each.id()});
                              }),
               list.end());
    change.Commit();
  }
  std::erase_if(released_, [this](const auto& each) { return HasEnded(each.first); });
  if (counts_.empty()) return;
  std::set<uint32_t> tables;
  for (const proto::Table& table : state_.view().tables()) tables.insert(table.id());
  std::erase_if(counts_, [&](const auto& each) {
    return HasEnded(each.first.producer) || tables.count(each.first.table) == 0;
  });
}

bool Quarantines::HasEnded(const Producer& producer) const {
  if (producer.is_group) {
    if (producer.id > std::numeric_limits<uint32_t>::max()) return true;
    const proto::Group* group =
        FindGroup(state_.view(), GroupId(static_cast<uint32_t>(producer.id)));
    return group == nullptr || group->state() != proto::Group::ACTIVE;
  }
  const proto::Node* node = FindNode(state_.view(), NodeId(producer.id));
  return node == nullptr || node->state() != proto::Node::ALIVE;
}

std::string Quarantines::NameOf(const Producer& producer) const {
  return producer.is_group ? absl::StrCat("group-", producer.id)
                           : scheduler::NameOf(state_.view(), NodeId(producer.id));
}

const proto::QuarantinedProducer* Quarantines::Find(const Producer& producer) const {
  for (const proto::QuarantinedProducer& each : state_.view().quarantined()) {
    if (each.is_group() == producer.is_group && each.id() == producer.id) return &each;
  }
  return nullptr;
}

std::string Quarantines::Candidates() const {
  std::vector<std::string> names;
  for (const proto::Group& group : state_.view().groups()) {
    const Producer producer{.is_group = true, .id = group.id()};
    if (!HasEnded(producer)) names.push_back(NameOf(producer));
  }
  for (const proto::Node& node : state_.view().nodes()) {
    if (node.role() == proto::CLIENT && node.state() == proto::Node::ALIVE) {
      names.push_back(node.name());
    }
  }
  if (names.empty()) return "no group and no client has joined yet, see covey status";
  return absl::StrCat("groups and clients are ", Join(names), "; give one of their names");
}

}  // namespace covey::scheduler
