// SPDX-License-Identifier: Apache-2.0
#include "client/parameter_client.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/engine/connection.h"
#include "client/engine/operation.h"
#include "client/joined_result.h"
#include "common/base/annotate.h"
#include "common/base/buffer.h"
#include "common/base/status_macros.h"
#include "common/contract/contract.h"
#include "common/tensor/outer_product.h"
#include "proto/scheduler.pb.h"

namespace covey::client {
namespace {

absl::Status TooManyWait() {
  return absl::ResourceExhaustedError(
      "too many operations wait in this client; wait for some of them first");
}

}  // namespace

absl::StatusOr<std::unique_ptr<ParameterClient>> ParameterClient::Connect(
    const ClientConfig& config) {
  COVEY_ASSIGN_OR_RETURN(auto connection, Connection::Open(config, {}));
  return std::unique_ptr<ParameterClient>(new ParameterClient(std::move(connection), config));
}

ParameterClient::ParameterClient(std::unique_ptr<Connection> connection, const ClientConfig& config)
    : config_(config), connection_(std::move(connection)) {}

ParameterClient::~ParameterClient() = default;

absl::StatusOr<Table> ParameterClient::CreateTable(const proto::TableSpec& spec) {
  proto::Envelope request;
  *request.mutable_create_table_request()->mutable_spec() = spec;
  COVEY_ASSIGN_OR_RETURN(const proto::Envelope reply,
                         connection_->Request(std::move(request), config_.operation_deadline));
  const proto::CreateTableReply& created = reply.create_table_reply();
  for (const proto::Table& table : created.view().tables()) {
    if (table.id() == created.table()) return TableOf(table);
  }
  return absl::InternalError(absl::StrCat("the scheduler created table '", spec.name(),
                                          "' but does not show it; report this as a bug"));
}

absl::StatusOr<Table> ParameterClient::FindTable(absl::string_view name) {
  COVEY_ASSIGN_OR_RETURN(const std::vector<proto::Table> tables, ListTables());
  for (const proto::Table& table : tables) {
    if (table.spec().name() == name) return TableOf(table);
  }
  return absl::NotFoundError(absl::StrCat("no table '", name, "' in job '", config_.job,
                                          "'; create it, or see `covey tables`"));
}

absl::StatusOr<std::vector<proto::Table>> ParameterClient::ListTables() {
  proto::Envelope request;
  request.mutable_list_tables_request();
  COVEY_ASSIGN_OR_RETURN(proto::Envelope reply,
                         connection_->Request(std::move(request), config_.operation_deadline));
  auto& tables = *reply.mutable_list_tables_reply()->mutable_tables();
  return std::vector<proto::Table>(std::make_move_iterator(tables.begin()),
                                   std::make_move_iterator(tables.end()));
}

absl::Status ParameterClient::DropTable(absl::string_view name) {
  proto::Envelope request;
  request.mutable_drop_table_request()->set_name(std::string(name));
  return connection_->Request(std::move(request), config_.operation_deadline).status();
}

absl::StatusOr<bool> ParameterClient::InitializeTables(std::span<const InitialValues> tables,
                                                       absl::Duration timeout) {
  std::vector<NamedValues> named;
  for (const InitialValues& initial : tables) {
    named.push_back(
        {.table = initial.table.name, .values = initial.values, .state = initial.state});
    COVEY_RETURN_IF_ERROR(CheckSize(named.back(), initial.table.elements));
    COVEY_RETURN_IF_ERROR(CheckSlots(named.back(), initial.table.slots));
  }
  return connection_->InitializeTables(
      std::move(named), timeout == absl::ZeroDuration() ? config_.operation_deadline : timeout);
}

absl::Status ParameterClient::SetContract(absl::string_view name, const Contract& contract) {
  proto::Envelope request;
  request.mutable_set_contract_request()->set_name(std::string(name));
  *request.mutable_set_contract_request()->mutable_contract() = ContractToProto(contract);
  return connection_->Request(std::move(request), config_.operation_deadline).status();
}

Handle ParameterClient::Push(const Table& table, std::span<const float> gradient,
                             const PushOptions& options) {
  return Start({.table = table.id,
                .gradient = gradient,
                .samples = options.samples,
                .format = options.format},
               options.deadline);
}

Handle ParameterClient::Pull(const Table& table, std::span<float> values,
                             const PullOptions& options) {
  return Start(
      {.table = table.id, .values = values, .value_format = options.format, .read = options.bound},
      options.deadline);
}

Handle ParameterClient::PullState(const Table& table, std::span<float> arrays,
                                  const PullOptions& options) {
  if (options.format != WireFormat::kFloat32) {
    return Handle({.status = absl::InvalidArgumentError(absl::StrCat(
                       "table '", table.name, "': the optimizer's state is read in float32; leave ",
                       "the format of the pull at that"))});
  }
  return Start({.table = table.id, .values = arrays, .slots = table.slots, .read = options.bound},
               options.deadline);
}

Handle ParameterClient::PushPull(const Table& table, std::span<const float> gradient,
                                 std::span<float> values, const PushOptions& push,
                                 const PullOptions& pull) {
  return Start({.table = table.id,
                .gradient = gradient,
                .values = values,
                .value_format = pull.format,
                .samples = push.samples,
                .format = push.format,
                .read = pull.bound},
               std::max(push.deadline, pull.deadline));
}

Handle ParameterClient::Push(const Table& table, const OuterProducts& gradient,
                             const PushOptions& options) {
  return PushPull(table, gradient, {}, options, {.deadline = options.deadline});
}

Handle ParameterClient::PushPull(const Table& table, const OuterProducts& gradient,
                                 std::span<float> values, const PushOptions& push,
                                 const PullOptions& pull) {
  return Start(
      {.table = table.id,
       .factors = Factors{.terms = gradient.terms, .left = gradient.left, .right = gradient.right},
       .values = values,
       .value_format = pull.format,
       .samples = push.samples,
       .format = push.format,
       .read = pull.bound},
      std::max(push.deadline, pull.deadline));
}

Handle ParameterClient::Call(const Table& table, std::vector<VectorFunction> functions,
                             const PushOptions& options) {
  if (const absl::Status fits = CheckFunctions(functions, table.vectors); !fits.ok()) {
    return Handle({.status = Annotate(absl::StrCat("table '", table.name, "'"), fits)});
  }
  return Start({.table = table.id, .functions = std::move(functions)}, options.deadline);
}

Handle ParameterClient::Ask(const Table& table, std::vector<VectorQuery> queries,
                            const PullOptions& options) {
  if (const absl::Status fits = CheckQueries(queries, table.vectors); !fits.ok()) {
    return Handle({.status = Annotate(absl::StrCat("table '", table.name, "'"), fits)});
  }
  return Start({.table = table.id,
                .value_format = options.format,
                .queries = std::move(queries),
                .read = options.bound},
               options.deadline);
}

Handle ParameterClient::Push(const Table& table, const RowBatch& batch,
                             std::span<const float> gradient, const PushOptions& options) {
  return StartKeyed(table, batch,
                    {.keyed = KeyedOperation{.batch = {}, .pushes = true},
                     .samples = options.samples,
                     .format = options.format},
                    gradient, {}, options.deadline);
}

Handle ParameterClient::Pull(const Table& table, const RowBatch& batch, std::span<float> rows,
                             const PullOptions& options) {
  return Pull(table, batch, rows, options, {});
}

Handle ParameterClient::Pull(const Table& table, const RowBatch& batch, std::span<float> rows,
                             const PullOptions& options, Finish finish) {
  return StartKeyed(table, batch,
                    {.keyed = KeyedOperation{.batch = {}, .pulls = true},
                     .value_format = options.format,
                     .read = options.bound},
                    {}, rows, options.deadline, std::move(finish));
}

Handle ParameterClient::PushPull(const Table& table, const RowBatch& batch,
                                 std::span<const float> gradient, std::span<float> rows,
                                 const PushOptions& push, const PullOptions& pull) {
  return StartKeyed(table, batch,
                    {.keyed = KeyedOperation{.batch = {}, .pushes = true, .pulls = true},
                     .value_format = pull.format,
                     .samples = push.samples,
                     .format = push.format,
                     .read = pull.bound},
                    gradient, rows, std::max(push.deadline, pull.deadline));
}

Handle ParameterClient::PullMany(std::span<const RowsToPull> tables, const PullOptions& options) {
  std::vector<Operation> operations;
  std::vector<std::string> names;
  for (const RowsToPull& each : tables) {
    Operation operation{.keyed = KeyedOperation{.batch = {}, .pulls = true},
                        .value_format = options.format,
                        .read = options.bound};
    const absl::Status fits = FillKeyed(each.table, each.batch, {}, each.rows, operation);
    if (!fits.ok()) return Handle({.status = fits});
    operations.push_back(std::move(operation));
    names.push_back(each.table.name);
  }
  return StartMany(std::move(operations), std::move(names), options.deadline);
}

Handle ParameterClient::PushMany(std::span<const RowsToPush> tables, const PushOptions& options) {
  std::vector<Operation> operations;
  std::vector<std::string> names;
  for (const RowsToPush& each : tables) {
    Operation operation{.keyed = KeyedOperation{.batch = {}, .pushes = true},
                        .samples = options.samples,
                        .format = options.format};
    const absl::Status fits = FillKeyed(each.table, each.batch, each.gradient, {}, operation);
    if (!fits.ok()) return Handle({.status = fits});
    operations.push_back(std::move(operation));
    names.push_back(each.table.name);
  }
  return StartMany(std::move(operations), std::move(names), options.deadline);
}

absl::Status ParameterClient::FillKeyed(const Table& table, const RowBatch& batch,
                                        std::span<const float> gradient, std::span<float> rows,
                                        Operation& operation) {
  const std::shared_ptr<const KeyBatch> keys = batch.batch_;
  const size_t elements = batch.size() * table.width;
  if (keys == nullptr || !table.is_sparse() ||
      (operation.pushes() && gradient.size() != elements) ||
      (operation.pulls() && rows.size() != elements)) {
    return absl::InvalidArgumentError(
        absl::StrCat("table '", table.name, "' has ", table.width, " columns, and the batch ",
                     batch.size(), " keys; got ", gradient.size(), " gradient and ", rows.size(),
                     " row elements; assign the keys to the batch, and pass a row for each"));
  }
  operation.table = table.id;
  operation.keyed->batch = keys;
  if (operation.pulls()) operation.values = rows;
  if (operation.pushes()) {
    operation.gradient_memory = Buffer::Allocate(keys->distinct() * table.width * sizeof(float));
    const std::span<float> sums = operation.gradient_memory.MutableAs<float>();
    keys->SumAllRows(table.width, gradient, sums);
    operation.gradient = sums;
  }
  return absl::OkStatus();
}

Handle ParameterClient::StartKeyed(const Table& table, const RowBatch& batch, Operation operation,
                                   std::span<const float> gradient, std::span<float> rows,
                                   absl::Duration deadline, Finish finish) {
  const absl::Status fits = FillKeyed(table, batch, gradient, rows, operation);
  if (!fits.ok()) return Handle({.status = fits});
  return Start(std::move(operation), deadline, std::move(finish));
}

absl::Duration ParameterClient::PatienceFor(absl::Duration deadline) const {
  return deadline == absl::ZeroDuration() ? config_.operation_deadline : deadline;
}

Handle ParameterClient::Start(Operation operation, absl::Duration deadline, Finish finish) {
  Handle handle(connection_->runner());
  operation.done = [handle, finish = std::move(finish)](absl::Time, const OperationResult& result,
                                                        Outbox&) {
    if (finish && result.status.ok()) finish(result);
    handle.Complete(result);
  };
  Connection& connection = *connection_;
  const bool posted = connection.PostBeforeWaiting(
      [&connection, operation = std::move(operation), patience = PatienceFor(deadline), handle](
          absl::Time now, Outbox& outbox) mutable {
        operation.deadline = now + patience;
        const absl::Status status =
            connection.client().engine().Start(now, std::move(operation), outbox);
        if (!status.ok()) handle.Complete({.status = status});
      });
  if (!posted) handle.Complete({.status = TooManyWait()});
  return handle;
}

Handle ParameterClient::StartMany(std::vector<Operation> operations,
                                  std::vector<std::string> tables, absl::Duration deadline) {
  if (operations.empty()) return Handle({.durable = true});
  Handle handle(connection_->runner());
  const auto joined = std::make_shared<JoinedResult>(
      std::move(tables), [handle](const OperationResult& result) { handle.Complete(result); });
  for (size_t i = 0; i < operations.size(); ++i) {
    operations[i].done = [joined, i](absl::Time, const OperationResult& result, Outbox&) {
      joined->End(i, result);
    };
  }
  Connection& connection = *connection_;
  const bool posted = connection.PostBeforeWaiting(
      [&connection, operations = std::move(operations), joined, patience = PatienceFor(deadline)](
          absl::Time now, Outbox& outbox) mutable {
        for (size_t i = 0; i < operations.size(); ++i) {
          operations[i].deadline = now + patience;
          const absl::Status status =
              connection.client().engine().Start(now, std::move(operations[i]), outbox);
          if (!status.ok()) joined->End(i, {.status = status});
        }
      });
  if (!posted) handle.Complete({.status = TooManyWait()});
  return handle;
}

absl::Status ParameterClient::Flush(absl::Duration timeout) { return connection_->Flush(timeout); }

absl::Status ParameterClient::Barrier(absl::string_view name, uint32_t participants,
                                      absl::Duration timeout) {
  return connection_->Barrier(name, participants, timeout);
}

absl::StatusOr<proto::StatusReply> ParameterClient::GetStatus(uint64_t events_after) {
  proto::Envelope request;
  request.mutable_status_request()->set_events_after(events_after);
  COVEY_ASSIGN_OR_RETURN(proto::Envelope reply,
                         connection_->Request(std::move(request), config_.operation_deadline));
  return std::move(*reply.mutable_status_reply());
}

absl::StatusOr<Counters> ParameterClient::GetCounters() {
  Counters counters;
  COVEY_RETURN_IF_ERROR(connection_->Run([this, &counters](absl::Time, Outbox&) {
    counters = connection_->client().engine().counters();
  }));
  return counters;
}

NodeId ParameterClient::node() const { return connection_->node(); }

}  // namespace covey::client
