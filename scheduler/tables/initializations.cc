// SPDX-License-Identifier: Apache-2.0
#include "scheduler/tables/initializations.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {
namespace {

// Those of the named tables that wait for their initial values.
absl::StatusOr<std::vector<const proto::Table*>> WaitingAmong(
    const proto::InitializeTablesRequest& request, const proto::ClusterView& view) {
  std::vector<const proto::Table*> waiting;
  for (const std::string& name : request.names()) {
    const auto table =
        std::find_if(view.tables().begin(), view.tables().end(),
                     [&](const proto::Table& other) { return other.spec().name() == name; });
    if (table == view.tables().end()) {
      return absl::NotFoundError(
          absl::StrCat("initialize table '", name, "': no such table; create it first"));
    }
    const auto kind = table->spec().initializer().kind();
    if (kind != proto::Initializer::GIVEN) {
      return absl::FailedPreconditionError(
          absl::StrCat("initialize table '", name, "': its initializer is ",
                       proto::Initializer::Kind_Name(kind), "; create it with GIVEN"));
    }
    const bool is_new = std::count(waiting.begin(), waiting.end(), &*table) == 0;
    if (table->has_initialization() && is_new) waiting.push_back(&*table);
  }
  return waiting;
}

std::vector<std::string> NamesOf(const std::vector<const proto::Table*>& tables) {
  std::vector<std::string> names;
  for (const proto::Table* table : tables) names.push_back(table->spec().name());
  return names;
}

}  // namespace

absl::StatusOr<Epoch> Initializations::OnRequest(NodeId node,
                                                 const proto::InitializeTablesRequest& request) {
  const proto::ClusterView& view = state_.view();
  COVEY_ASSIGN_OR_RETURN(const std::vector<const proto::Table*> waiting,
                         WaitingAmong(request, view));
  if (waiting.empty()) return Epoch();
  bool is_giver = true;
  bool holds_all = request.held_epoch() != 0;
  for (const proto::Table* table : waiting) {
    const proto::Initialization& initialization = table->initialization();
    holds_all = holds_all && initialization.epoch() == request.held_epoch();
    if (initialization.node() == node.value()) continue;
    is_giver = false;
    const proto::Node* const other = FindNode(view, NodeId(initialization.node()));
    if (other == nullptr || other->state() != proto::Node::ALIVE) continue;
    return absl::UnavailableError(absl::StrCat(
        "initialize table '", table->spec().name(), "': ", other->name(),
        " gives its initial values since epoch ", initialization.epoch(),
        " and has not ended; see whether that process goes on, or stop it, and another one does"));
  }
  if (is_giver && holds_all) {
    End(node, waiting);
    return Epoch();
  }
  const uint64_t epoch = waiting.front()->initialization().epoch();
  const bool has_one_epoch = std::all_of(
      waiting.begin(), waiting.end(),
      [epoch](const proto::Table* table) { return table->initialization().epoch() == epoch; });
  if (is_giver && has_one_epoch) return Epoch(epoch);
  Transaction change(state_);
  for (const proto::Table* table : waiting) {
    proto::Initialization& initialization = *change.Edit(*table).mutable_initialization();
    initialization.set_node(node.value());
    initialization.set_epoch(change.epoch().value());
  }
  change.Add(InitializationBegun{.tables = NamesOf(waiting), .node = FindNode(view, node)->name()});
  change.Commit();
  return change.epoch();
}

void Initializations::End(NodeId node, const std::vector<const proto::Table*>& tables) {
  Transaction change(state_);
  for (const proto::Table* table : tables) change.Edit(*table).clear_initialization();
  change.Add(
      TablesInitialized{.tables = NamesOf(tables), .node = FindNode(state_.view(), node)->name()});
  change.Commit();
}

}  // namespace covey::scheduler
