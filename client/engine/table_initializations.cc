// SPDX-License-Identifier: Apache-2.0
#include "client/engine/table_initializations.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/optimizer/kernels.h"

namespace covey::client {
namespace {

using TablesByName = absl::flat_hash_map<absl::string_view, const proto::Table*>;

TablesByName ByName(const proto::ClusterView& view) {
  TablesByName tables;
  for (const proto::Table& table : view.tables()) tables.emplace(table.spec().name(), &table);
  return tables;
}

// Null when there is none.
const proto::Table* Find(const TablesByName& tables, const std::string& name) {
  const auto found = tables.find(name);
  return found == tables.end() ? nullptr : found->second;
}

uint64_t ElementsOf(const proto::Table& table) {
  const proto::Shard& last = table.shards(table.shards_size() - 1);
  return last.first_element() + last.element_count();
}

absl::Status CheckState(const NamedValues& given) {
  const InitialState& state = *given.state;
  if (const std::optional<size_t> bad = FirstNonFinite(state.slots); bad) {
    const size_t elements = std::max<size_t>(given.values.size(), 1);
    return absl::InvalidArgumentError(absl::StrCat(
        "initialize table '", given.table, "': element ", *bad % elements, " of optimizer slot ",
        1 + *bad / elements, " is ", state.slots[*bad], "; give finite slots"));
  }
  if (state.updates <= kInitialUpdatesMax && state.samples <= kInitialSamplesMax) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "initialize table '", given.table, "': its state stands for ", state.updates, " updates and ",
      state.samples, " samples; give at most ", kInitialUpdatesMax, " and ", kInitialSamplesMax));
}

}  // namespace

absl::Status CheckSize(const NamedValues& given, uint64_t elements) {
  if (given.values.size() == elements) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("initialize table '", given.table, "': it has ",
                                                 elements, " elements, and ", given.values.size(),
                                                 " values were given; give one for each"));
}

absl::Status CheckSlots(const NamedValues& given, size_t slots) {
  if (!given.state || given.state->slots.size() == slots * given.values.size()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "initialize table '", given.table, "': its optimizer keeps ", slots, " slots of ",
      given.values.size(), " elements, and ", given.state->slots.size(),
      " elements of state were given; give the state of an equal optimizer, as PullState reads it, "
      "or values alone"));
}

absl::Status CheckNamedValues(std::span<const NamedValues> tables) {
  if (tables.size() > kTablesMax) {
    return absl::InvalidArgumentError(absl::StrCat("initialize ", tables.size(),
                                                   " tables: at most ", kTablesMax,
                                                   " at a time; initialize them in several calls"));
  }
  absl::flat_hash_set<absl::string_view> names;
  for (const NamedValues& given : tables) {
    if (!names.insert(given.table).second) {
      return absl::InvalidArgumentError(absl::StrCat("initialize table '", given.table,
                                                     "': it is named twice; give its values once"));
    }
    if (const std::optional<size_t> bad = FirstNonFinite(given.values); bad) {
      return absl::InvalidArgumentError(absl::StrCat("initialize table '", given.table,
                                                     "': the value of element ", *bad, " is ",
                                                     given.values[*bad], "; give finite values"));
    }
    if (given.state) COVEY_RETURN_IF_ERROR(CheckState(given));
  }
  return absl::OkStatus();
}

class TableInitializations::Call : public std::enable_shared_from_this<Call> {
 public:
  Call(TableInitializations& owner, uint64_t number, std::vector<NamedValues> tables,
       absl::Time deadline, Done done)
      : owner_(owner),
        number_(number),
        tables_(std::move(tables)),
        deadline_(deadline),
        done_(std::move(done)) {}

  void Ask(absl::Time now, Outbox& outbox) {
    proto::Envelope request;
    proto::InitializeTablesRequest& body = *request.mutable_initialize_tables_request();
    for (const NamedValues& table : tables_) body.add_names(table.table);
    body.set_held_epoch(held_.value());
    body.set_call(number_);
    owner_.control_.Start(
        now, std::move(request), deadline_,
        [self = shared_from_this()](absl::Time now, const absl::Status& status,
                                    const proto::Envelope* reply, Outbox& outbox) {
          if (!status.ok()) return self->End(now, status, outbox);
          self->OnReply(now, reply->initialize_tables_reply(), outbox);
        },
        outbox);
  }

 private:
  void OnReply(absl::Time now, const proto::InitializeTablesReply& reply, Outbox& outbox) {
    const Epoch epoch(reply.epoch());
    if (epoch == Epoch()) return End(now, absl::OkStatus(), outbox);
    // Servers have refused this epoch for good, and the scheduler names it again.
    if (!pushed_.ok() && epoch == given_) return End(now, pushed_, outbox);
    const TablesByName tables = ByName(reply.view());
    for (const NamedValues& values : tables_) {
      const proto::Table* const table = Find(tables, values.table);
      if (table == nullptr) continue;
      const absl::Status fits = CheckSize(values, ElementsOf(*table));
      if (!fits.ok()) return End(now, fits, outbox);
    }
    given_ = epoch;
    held_ = Epoch();
    pushed_ = absl::OkStatus();
    left_ = 1;  // until all have been started
    for (const NamedValues& values : tables_) {
      const proto::Table* const table = Find(tables, values.table);
      if (table == nullptr || !table->has_initialization()) continue;
      Push(now, TableId(table->id()), values, outbox);
    }
    OnePushed(now, absl::OkStatus(), outbox);
  }

  void Push(absl::Time now, TableId table, const NamedValues& given, Outbox& outbox) {
    ++left_;
    Operation push{.table = table, .gradient = given.values};
    push.initialization = given_;
    push.initial_state = given.state;
    push.deadline = deadline_;
    push.done = [self = shared_from_this()](absl::Time now, const OperationResult& result,
                                            Outbox& outbox) {
      self->OnePushed(now, result.status, outbox);
    };
    const absl::Status started = owner_.engine_.Start(now, std::move(push), outbox);
    if (!started.ok()) OnePushed(now, started, outbox);
  }

  void OnePushed(absl::Time now, const absl::Status& status, Outbox& outbox) {
    pushed_.Update(status);
    if (--left_ > 0) return;
    if (!pushed_.ok() && !absl::IsAborted(pushed_)) return End(now, pushed_, outbox);
    if (pushed_.ok()) held_ = given_;
    Ask(now, outbox);
  }

  void End(absl::Time now, const absl::Status& status, Outbox& outbox) {
    owner_.under_way_.erase(number_);
    owner_.GiveUpEnded(now, outbox);
    done_(now, status, status.ok() && held_ != Epoch(), outbox);
  }

  TableInitializations& owner_;
  const uint64_t number_;
  const std::vector<NamedValues> tables_;
  const absl::Time deadline_;
  const Done done_;

  Epoch given_;          // under which the values were pushed last
  Epoch held_;           // under which all shards hold them
  absl::Status pushed_;  // the first error of these pushes
  size_t left_ = 0;      // pushes that have not ended
};

void TableInitializations::Start(absl::Time now, std::vector<NamedValues> tables,
                                 absl::Time deadline, Done done, Outbox& outbox) {
  if (tables.empty()) return done(now, absl::OkStatus(), false, outbox);
  const uint64_t number = next_call_++;
  under_way_.insert(number);
  std::make_shared<Call>(*this, number, std::move(tables), deadline, std::move(done))
      ->Ask(now, outbox);
}

void TableInitializations::SetView(absl::Time now, NodeId self,
                                   std::shared_ptr<const ClusterView> view, Outbox& outbox) {
  self_ = self;
  view_ = std::move(view);
  GiveUpEnded(now, outbox);
}

void TableInitializations::GiveUpEnded(absl::Time now, Outbox& outbox) {
  if (self_ == NodeId()) return;
  for (const proto::Table& table : view_->proto().tables()) {
    const uint64_t call = table.initialization().call();
    if (table.initialization().node() != self_.value() || under_way_.contains(call)) continue;
    if (!giving_up_.insert(call).second) continue;
    proto::Envelope request;
    request.mutable_initialize_tables_request()->set_call(call);
    request.mutable_initialize_tables_request()->set_gives_up(true);
    control_.Start(
        now, std::move(request), absl::InfiniteFuture(),
        [this, call](absl::Time, const absl::Status&, const proto::Envelope*, Outbox&) {
          giving_up_.erase(call);
        },
        outbox);
  }
}

}  // namespace covey::client
