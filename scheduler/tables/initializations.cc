// SPDX-License-Identifier: Apache-2.0
#include "scheduler/tables/initializations.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {
namespace {

// Those of the named tables that wait for their initial values, each once.
absl::StatusOr<std::vector<const proto::Table*>> WaitingAmong(
    const proto::InitializeTablesRequest& request, const proto::ClusterView& view) {
  absl::flat_hash_map<absl::string_view, const proto::Table*> left;
  for (const proto::Table& table : view.tables()) left.emplace(table.spec().name(), &table);
  std::set<absl::string_view> taken;
  std::vector<const proto::Table*> waiting;
  for (const std::string& name : request.names()) {
    const auto found = left.find(name);
    if (found == left.end()) {
      return absl::NotFoundError(
          absl::StrCat("initialize table '", name, "': no such table; create it first"));
    }
    const proto::Table* const table = found->second;
    const auto kind = table->spec().initializer().kind();
    if (kind != proto::Initializer::GIVEN) {
      return absl::FailedPreconditionError(
          absl::StrCat("initialize table '", name, "': its initializer is ",
                       proto::Initializer::Kind_Name(kind), "; create it with GIVEN"));
    }
    if (table->has_initialization() && taken.insert(name).second) waiting.push_back(table);
  }
  return waiting;
}

absl::Status CheckForm(const proto::InitializeTablesRequest& request) {
  if (request.call() == 0) {
    return absl::InvalidArgumentError(
        "initialize tables: the request has no number of its call; use a client of the "
        "scheduler's version");
  }
  if (request.names_size() > static_cast<int>(kTablesMax)) {
    return absl::InvalidArgumentError(absl::StrCat("initialize ", request.names_size(),
                                                   " tables: at most ", kTablesMax,
                                                   " at a time; initialize them in several calls"));
  }
  return absl::OkStatus();
}

std::vector<std::string> NamesOf(const std::vector<const proto::Table*>& tables) {
  std::vector<std::string> names;
  for (const proto::Table* table : tables) names.push_back(table->spec().name());
  return names;
}

}  // namespace

absl::StatusOr<Epoch> Initializations::OnRequest(NodeId node,
                                                 const proto::InitializeTablesRequest& request) {
  COVEY_RETURN_IF_ERROR(CheckForm(request));
  if (request.gives_up()) {
    GiveUp(node, request.call());
    return Epoch();
  }
  const proto::ClusterView& view = state_.view();
  COVEY_ASSIGN_OR_RETURN(const Waiting waiting, WaitingAmong(request, view));
  if (waiting.empty()) return Epoch();
  bool gives_all = true;
  for (const proto::Table* table : waiting) {
    const proto::Initialization& named = table->initialization();
    if (named.node() == node.value() && named.call() == request.call()) continue;
    gives_all = false;
    const proto::Node* const other = FindNode(view, NodeId(named.node()));
    if (other == nullptr || other->state() != proto::Node::ALIVE) continue;
    return absl::UnavailableError(absl::StrCat(
        "initialize table '", table->spec().name(),
        "': ", NodeId(named.node()) == node ? "another call of this process, " : "", other->name(),
        " gives its initial values since epoch ", named.epoch(),
        " and has not finished; allow more time (operation-deadline), or, if that process makes no "
        "progress, end it, and another one gives them"));
  }
  const uint64_t epoch = waiting.front()->initialization().epoch();
  const bool has_one_epoch = std::all_of(
      waiting.begin(), waiting.end(),
      [epoch](const proto::Table* table) { return table->initialization().epoch() == epoch; });
  if (gives_all && has_one_epoch) {
    if (request.held_epoch() != epoch) return Epoch(epoch);
    COVEY_RETURN_IF_ERROR(End(node, waiting));
    return Epoch();
  }
  Transaction change(state_);
  for (const proto::Table* table : waiting) {
    proto::Initialization& named = *change.Edit(*table).mutable_initialization();
    named.set_node(node.value());
    named.set_call(request.call());
    named.set_epoch(change.epoch().value());
  }
  change.Add(InitializationBegun{.tables = NamesOf(waiting), .node = FindNode(view, node)->name()});
  change.Commit();
  return change.epoch();
}

absl::Status Initializations::End(NodeId node, const Waiting& tables) {
  for (const proto::Table* table : tables) {
    // The values are given again, under the epoch in which the shard gets a server.
    if (!chains_.HasLostShard(*table)) continue;
    return absl::UnavailableError(absl::StrCat(
        "initialize table '", table->spec().name(),
        "': no server has one of its shards any more; start a server, or see `covey status`"));
  }
  Transaction change(state_);
  for (const proto::Table* table : tables) change.Edit(*table).clear_initialization();
  change.Add(
      TablesInitialized{.tables = NamesOf(tables), .node = FindNode(state_.view(), node)->name()});
  change.Commit();
  return absl::OkStatus();
}

void Initializations::GiveUp(NodeId node, uint64_t call) {
  const proto::ClusterView& view = state_.view();
  Waiting given;
  for (const proto::Table& table : view.tables()) {
    const proto::Initialization& named = table.initialization();
    if (named.node() == node.value() && named.call() == call) given.push_back(&table);
  }
  if (given.empty()) return;
  Transaction change(state_);
  for (const proto::Table* table : given) {
    proto::Initialization& named = *change.Edit(*table).mutable_initialization();
    named.Clear();
    named.set_epoch(change.epoch().value());
  }
  change.Add(InitializationGivenUp{.tables = NamesOf(given), .node = FindNode(view, node)->name()});
  change.Commit();
}

}  // namespace covey::scheduler
