// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/config.h"
#include "client/counters.h"
#include "client/handle.h"
#include "client/initial_state.h"
#include "client/read_bound.h"
#include "client/row_batch.h"
#include "client/table.h"
#include "common/cluster/ids.h"
#include "common/tensor/wire_format.h"
#include "common/vectors/vector_function.h"

namespace covey {
struct Contract;
namespace proto {
class StatusReply;
class Table;
class TableSpec;
}  // namespace proto
}  // namespace covey

namespace covey::client {

class Connection;
struct Operation;

// The values with which a table is to begin.
struct InitialValues {
  Table table;
  // As large as the table.
  std::span<const float> values;
  // Absent = the optimizer begins empty.
  std::optional<InitialState> state = {};
};

// A gradient of a table with two dimensions or more as a sum of outer products, one for each
// training example: those of a dense layer are the derivatives by its outputs and its inputs. The
// table is taken as a matrix of as many rows as its first dimension, whose columns are the product
// of the others. The gradient is the sum over the terms, in their order, of left[row] *
// right[column].
struct OuterProducts {
  size_t terms = 0;  // at least 1
  // Those of a term follow those of the term before: an element for each row, and one for each
  // column.
  std::span<const float> left;
  std::span<const float> right;
};

// Of an operation on several sparse tables: the rows of one of them. They, the table and the batch
// are as in an operation on this table alone.
struct RowsToPull {
  const Table& table;
  const RowBatch& batch;
  std::span<float> rows;
};
struct RowsToPush {
  const Table& table;
  const RowBatch& batch;
  std::span<const float> gradient;
};

struct PushOptions {
  // Training examples behind the gradient, which is their SUM. With 1, the gradient is applied as
  // it is.
  uint64_t samples = 1;
  // The gradient's format on the wire; see common/tensor/wire_format.h for the loss of each. Not
  // topk, which leaves out most elements, and has to be followed by the rest.
  WireFormat format = WireFormat::kFloat32;
  // Zero = ClientConfig::operation_deadline.
  absl::Duration deadline = absl::ZeroDuration();
};

struct PullOptions {
  ReadBound bound;
  // The format of a dense table's values on the wire; the servers keep float32, and a server of an
  // earlier version sends it. Not topk. Rows of sparse tables travel as they are stored: float32
  // here. PullState reads float32, and Ask no values: both refuse another format.
  WireFormat format = WireFormat::kFloat32;
  absl::Duration deadline = absl::ZeroDuration();
};

// Reads and changes parameters that live on servers. The entry point for programs that belong to no
// group; training in groups is worker/worker.h. A program that creates or lists tables includes
// proto/table.pb.h or proto/view.pb.h itself, one that reads the status proto/scheduler.pb.h, one
// that changes a contract common/contract/contract.h.
//
//   COVEY_ASSIGN_OR_RETURN(auto client, ParameterClient::Connect({.scheduler = "127.0.0.1:7000"}));
//   proto::TableSpec spec;  // name, shape, optimizer, contract
//   COVEY_ASSIGN_OR_RETURN(Table table, client->CreateTable(spec));
//   Handle step = client->PushPull(table, gradient, values, {.samples = 64});
//   COVEY_RETURN_IF_ERROR(step.Wait());   // applied exactly once, `values` are at least as new
//
// Thread-safety: thread-safe. Operations of one thread leave in the order of the calls. A thread
// that waits for a handle sends and receives for the client meanwhile, so an operation and its wait
// cost no switch between threads. An operation that is started within a millisecond after such a
// wait, and is not waited for, may leave up to a millisecond later.
// Memory: spans stay valid, gradients unchanged and values untouched, until the handle is done.
// Retries: an operation is retried under the same identity until its deadline. A push is applied at
// most once, however often it is sent. After DEADLINE_EXCEEDED or UNAVAILABLE it is unknown whether
// the push was applied.
// Durability: a handle is done when every shard has *received* the push. A table whose contract
// buffers pushes may receive a push before the update is made and copied to all replicas; then
// OperationResult::durable is false. The client keeps such pushes, up to
// kUndurableBytesPerClientMax in all, and resends them to a server that takes over. The death of a
// server therefore loses nothing while this process lives. Beyond that limit a handle is done only
// when its push is durable. Flush waits for all of them.
// Reads: values are always durable. The values of a shard are never older than any that this client
// has seen before, whichever server answers and however often servers were replaced.
// Errors of operations: NOT_FOUND: no such table. INVALID_ARGUMENT: spans do not fit, NaN or
// infinity in a gradient. DEADLINE_EXCEEDED: names server, shard and last refusal. DATA_LOSS: every
// copy of the shard was lost before the push was durable, and the push was larger than what a
// client keeps (limits.h kUndurableBytesPerClientMax). ABORTED: this process was declared dead or
// replaced. CANCELLED: the client was destroyed first.
// Not promised: order between operations on different shards; a common version across shards (a
// pull sees one version of each shard).
class ParameterClient {
 public:
  // Joins the cluster. UNAVAILABLE: no scheduler at this address; ALREADY_EXISTS: the rank is
  // taken; INVALID_ARGUMENT: bad config or another job's scheduler. Blocks up to
  // config.join_deadline.
  static absl::StatusOr<std::unique_ptr<ParameterClient>> Connect(const ClientConfig& config);
  // Leaves the cluster; takes up to two seconds.
  ~ParameterClient();

  // Returns an existing table if its spec is equal. ALREADY_EXISTS: it exists with another spec.
  absl::StatusOr<Table> CreateTable(const proto::TableSpec& spec);
  // NOT_FOUND: no table of that name.
  absl::StatusOr<Table> FindTable(absl::string_view name);
  absl::StatusOr<std::vector<proto::Table>> ListTables();
  // Drops values and history. NOT_FOUND: no table of that name.
  absl::Status DropTable(absl::string_view name);

  // Gives tables whose initializer is GIVEN the values with which they begin, and the state of
  // their optimizers where the program has it: updates go on from there. Of all calls for the same
  // tables, in all programs, one gives the values of all of them; the others wait until it has
  // finished. When it fails, or its program dies, another one gives all again: tables never mix the
  // values or the state of two calls. True: this call has given those of the tables that had none.
  // False: all had theirs. Blocks, at most for `timeout` (zero = ClientConfig::operation_deadline),
  // which covers the transfer of all values: large models need more. Until a table has its values,
  // pushes and pulls of it wait, and fail with DEADLINE_EXCEEDED when their own time is over.
  // NOT_FOUND: no such table. FAILED_PRECONDITION: its initializer is another one.
  // INVALID_ARGUMENT: values or state do not fit the table and its optimizer, are not finite, or a
  // table is named twice. UNAVAILABLE: another call has not finished in time; names its program.
  // DEADLINE_EXCEEDED: this one has not.
  absl::StatusOr<bool> InitializeTables(std::span<const InitialValues> tables,
                                        absl::Duration timeout = absl::ZeroDuration());

  // Changes the contract of a table in use, from the next epoch on. Values, optimizer state and
  // clocks stay, and buffered pushes are applied. The servers follow within milliseconds of the
  // reply. No effect when the contract is already in force. NOT_FOUND: no table of that name.
  // INVALID_ARGUMENT: the table may not change to this contract: a table can neither leave nor
  // enter local, and bsp needs groups.
  absl::Status SetContract(absl::string_view name, const Contract& contract);

  Handle Push(const Table& table, std::span<const float> gradient, const PushOptions& options = {});
  Handle Pull(const Table& table, std::span<float> values, const PullOptions& options = {});
  // As Pull, with the optimizer's state: `arrays` takes the values and then each of the table's
  // slots, (1 + table.slots) times the table in all. Each shard's are of one version; shards may
  // differ in it while the table trains. The result has the number of updates (`version`, the
  // lowest of a shard) and of examples (`samples`, the highest). Slots are those of the optimizer's
  // formula, in its order (common/optimizer/kernels.h); for Adam the running mean and the mean
  // square. INTERNAL: a server of an earlier version has answered.
  Handle PullState(const Table& table, std::span<float> arrays, const PullOptions& options = {});
  // One round trip: applies the gradient (when the contract does), then reads the values.
  Handle PushPull(const Table& table, std::span<const float> gradient, std::span<float> values,
                  const PushOptions& push = {}, const PullOptions& pull = {});

  // The same of a gradient in factors. Each shard is sent these, with the left elements of its own
  // rows and all right ones, or its elements of the gradient: the smaller of both in the format of
  // `push`. A table of one shard is sent 4 * terms * (rows + columns) bytes of float32 in place of
  // 4 * rows * columns, which are fewer for terms < rows * columns / (rows + columns); many shards
  // of few rows each make that bound lower (TableSpec.shard_bytes). Both forms of float32 make the
  // same update, bit for bit; in other formats factors are rounded, not their products.
  // INVALID_ARGUMENT, besides the errors above: the table is sparse, has one dimension, or is one
  // of vectors, or the lengths do not fit.
  Handle Push(const Table& table, const OuterProducts& gradient, const PushOptions& options = {});
  Handle PushPull(const Table& table, const OuterProducts& gradient, std::span<float> values,
                  const PushOptions& push = {}, const PullOptions& pull = {});

  // The same of rows of a sparse table: `gradient` and `rows` have table.width elements for each
  // key of the batch, as it was given. A row that no push has made yet reads as its first values,
  // and no pull makes one. `gradient` is the caller's again when the call returns; after an error
  // `rows` may have some of the rows. One version of each shard is read. INVALID_ARGUMENT, besides
  // the errors above: the table is dense, the batch was made for another table, or one shard gets
  // more than 2^20 of its keys or 16 MiB of rows.
  Handle Push(const Table& table, const RowBatch& batch, std::span<const float> gradient,
              const PushOptions& options = {});
  Handle Pull(const Table& table, const RowBatch& batch, std::span<float> rows,
              const PullOptions& options = {});
  Handle PushPull(const Table& table, const RowBatch& batch, std::span<const float> gradient,
                  std::span<float> rows, const PushOptions& push = {},
                  const PullOptions& pull = {});

  // The same of several sparse tables, as of the embeddings of a model: their requests are in
  // flight at once, under one deadline, and the handle is done when all have ended. It is neither
  // one update nor one instant: each table is pushed and read for itself, one version of each of
  // its shards.
  // The handle's error is that of the first table that failed, in the order of `tables`, and names
  // it; other tables may have been pushed and read then. The result is over all shards of all
  // tables, without `shard_versions`; `rows_refused` is their sum. INVALID_ARGUMENT for spans that
  // do not fit their table: nothing has been started. A table may come more than once.
  Handle PullMany(std::span<const RowsToPull> tables, const PullOptions& options = {});
  Handle PushMany(std::span<const RowsToPush> tables, const PushOptions& options = {});

  // Of a table of vectors (common/vectors/vector_function.h): one update of each shard, by these
  // functions in their order, on arrival and exactly once, as durable as a push. They see what
  // earlier operations have applied that were waited for, and pushes of other programs that were
  // flushed. An overflow is not looked for. INVALID_ARGUMENT: the table is not one of vectors, or
  // has none of that number, or the contract in force is neither async nor ssp, or a limit of
  // CheckFunctions. Of `options`, the deadline counts.
  Handle Call(const Table& table, std::vector<VectorFunction> functions,
              const PushOptions& options = {});
  // Answers to queries, in the result, of one durable version of each shard; reads as Pull does.
  // The answers of shards are combined in their order. INVALID_ARGUMENT as above. INTERNAL: a
  // server of an earlier version has answered.
  Handle Ask(const Table& table, std::vector<VectorQuery> queries, const PullOptions& options = {});

  // Returns when every push that was started before has ended, and those that servers have received
  // are as durable as their tables require. Servers apply at once the buffers (of a buffered table)
  // in which these pushes wait; under bsp and local it waits for the other groups. Call it before
  // reporting that pushes were applied, and at the end.
  // DEADLINE_EXCEEDED: names a push that is not durable yet, with its shard and server.
  // DATA_LOSS: since the last flush, pushes were lost after a server had received them, because all
  // replicas of a shard were lost. ABORTED: this process was declared dead, and it is unknown
  // whether its last pushes were applied.
  absl::Status Flush(absl::Duration timeout);

  // Returns when `participants` nodes wait under this name; one call per name at a time.
  // DEADLINE_EXCEEDED: names the missing nodes.
  absl::Status Barrier(absl::string_view name, uint32_t participants, absl::Duration timeout);
  // The data behind `covey status`.
  absl::StatusOr<proto::StatusReply> GetStatus(uint64_t events_after = 0);

  absl::StatusOr<Counters> GetCounters();

  NodeId node() const;

 private:
  friend class RowCache;
  friend class RowReader;
  // Runs on the loop before the handle is done, if the operation has succeeded.
  using Finish = std::function<void(const OperationResult&)>;

  explicit ParameterClient(std::unique_ptr<Connection> connection, const ClientConfig& config);
  Handle Start(Operation operation, absl::Duration deadline, Finish finish = {});
  // Starts all or none of them; operation i is on tables[i], of this name.
  Handle StartMany(std::vector<Operation> operations, std::vector<std::string> tables,
                   absl::Duration deadline);
  absl::Duration PatienceFor(absl::Duration deadline) const;
  // Gives the operation the rows of a batch; spans may be empty. INVALID_ARGUMENT: they do not fit.
  static absl::Status FillKeyed(const Table& table, const RowBatch& batch,
                                std::span<const float> gradient, std::span<float> rows,
                                Operation& operation);
  // Starts what the operation says with them.
  Handle StartKeyed(const Table& table, const RowBatch& batch, Operation operation,
                    std::span<const float> gradient, std::span<float> rows, absl::Duration deadline,
                    Finish finish = {});
  Handle Pull(const Table& table, const RowBatch& batch, std::span<float> rows,
              const PullOptions& options, Finish finish);

  const ClientConfig config_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace covey::client
