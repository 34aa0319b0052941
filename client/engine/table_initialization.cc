// SPDX-License-Identifier: Apache-2.0
#include "client/engine/table_initialization.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace covey::client {
namespace {

class Initialization : public std::enable_shared_from_this<Initialization> {
 public:
  using Done = std::function<void(absl::Time, const absl::Status&, bool, Outbox&)>;

  Initialization(ClientActor& client, std::vector<NamedValues> tables, absl::Time deadline,
                 Done done)
      : client_(client), tables_(std::move(tables)), deadline_(deadline), done_(std::move(done)) {}

  void Ask(absl::Time now, Outbox& outbox) {
    proto::Envelope request;
    proto::InitializeTablesRequest& body = *request.mutable_initialize_tables_request();
    for (const NamedValues& table : tables_) body.add_names(table.table);
    body.set_held_epoch(held_.value());
    client_.control().Start(
        now, std::move(request), deadline_,
        [self = shared_from_this()](absl::Time now, const absl::Status& status,
                                    const proto::Envelope* reply, Outbox& outbox) {
          if (!status.ok()) return self->done_(now, status, false, outbox);
          self->OnReply(now, reply->initialize_tables_reply(), outbox);
        },
        outbox);
  }

 private:
  void OnReply(absl::Time now, const proto::InitializeTablesReply& reply, Outbox& outbox) {
    const Epoch epoch(reply.epoch());
    if (epoch == Epoch()) return done_(now, absl::OkStatus(), held_ != Epoch(), outbox);
    // Servers have refused this epoch for good, and the scheduler names it again.
    if (!pushed_.ok() && epoch == given_) return done_(now, pushed_, false, outbox);
    given_ = epoch;
    held_ = Epoch();
    pushed_ = absl::OkStatus();
    left_ = 1;  // until all have been started
    for (const NamedValues& values : tables_) {
      const auto& tables = reply.view().tables();
      const auto table = std::find_if(tables.begin(), tables.end(), [&](const proto::Table& other) {
        return other.spec().name() == values.table;
      });
      if (table == tables.end() || !table->has_initialization()) continue;
      Push(now, TableId(table->id()), values.values, outbox);
    }
    OnePushed(now, absl::OkStatus(), outbox);
  }

  void Push(absl::Time now, TableId table, std::span<const float> values, Outbox& outbox) {
    ++left_;
    Operation push{.table = table, .gradient = values};
    push.initialization = given_;
    push.deadline = deadline_;
    push.done = [self = shared_from_this()](absl::Time now, const OperationResult& result,
                                            Outbox& outbox) {
      self->OnePushed(now, result.status, outbox);
    };
    const absl::Status started = client_.engine().Start(now, std::move(push), outbox);
    if (!started.ok()) OnePushed(now, started, outbox);
  }

  void OnePushed(absl::Time now, const absl::Status& status, Outbox& outbox) {
    pushed_.Update(status);
    if (--left_ > 0) return;
    if (!pushed_.ok() && !absl::IsAborted(pushed_)) return done_(now, pushed_, false, outbox);
    if (pushed_.ok()) held_ = given_;
    Ask(now, outbox);
  }

  ClientActor& client_;
  const std::vector<NamedValues> tables_;
  const absl::Time deadline_;
  const Done done_;

  Epoch given_;          // under which the values were pushed last
  Epoch held_;           // under which all shards hold them
  absl::Status pushed_;  // the first error of these pushes
  size_t left_ = 0;      // pushes that have not ended
};

}  // namespace

void InitializeTables(
    absl::Time now, ClientActor& client, std::vector<NamedValues> tables, absl::Time deadline,
    std::function<void(absl::Time, const absl::Status& status, bool given, Outbox&)> done,
    Outbox& outbox) {
  std::make_shared<Initialization>(client, std::move(tables), deadline, std::move(done))
      ->Ask(now, outbox);
}

}  // namespace covey::client
