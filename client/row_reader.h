// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/handle.h"
#include "client/operation_result.h"
#include "client/parameter_client.h"
#include "client/read_bound.h"
#include "client/resume_token.h"
#include "client/table.h"

namespace covey::client {

// Reads all rows of a sparse table, whatever their keys, or those that have changed since an
// earlier reading: for serving, for copies elsewhere, and for export.
//
//   COVEY_ASSIGN_OR_RETURN(auto reader, RowReader::Create(*client, table, {.since = token}));
//   while (true) {
//     COVEY_ASSIGN_OR_RETURN(const auto piece, reader->Next());
//     if (!piece) break;
//     // forget the rows of piece->removed; take piece->rows, one for each of piece->keys
//   }
//   token = reader->token();  // for the next reading
//
// The rows come in pieces of about 1 MiB, ascending by MixBits(key): shard by shard, in one order
// whatever the cluster. Each piece is of one version of its shard, and all of it is durable. Pieces
// of one pass may be of different versions, so a pass over a table that trains is no single
// version; but a program that applies the changes of all passes since a full one holds, after each
// piece, exactly the rows of its range at its version. A snapshot is exact.
//
// Not thread-safe. The client outlives the reader.
class RowReader {
 public:
  struct Options {
    // Reads what has changed since; absent = all rows.
    std::optional<ResumeToken> since = {};
    // How fresh each piece must be.
    ReadBound bound = {};
    // Of each piece; zero = ClientConfig::operation_deadline.
    absl::Duration deadline = absl::ZeroDuration();
  };
  // Valid until the next call of Next.
  struct Piece {
    size_t shard = 0;
    ShardVersion version;
    std::span<const uint64_t> keys;
    std::span<const float> rows;  // table.width elements for each key
    // Keys that have no row any more, ascending by MixBits(key). Only with Options::since.
    std::span<const uint64_t> removed;
  };

  // INVALID_ARGUMENT: the table is dense. OUT_OF_RANGE: the token is of another run of the job, or
  // of another table.
  static absl::StatusOr<std::unique_ptr<RowReader>> Create(ParameterClient& client,
                                                           const Table& table,
                                                           const Options& options);
  ~RowReader();

  // The next piece, which may have no rows; nothing after the last one. Blocks. After an error the
  // reader is of no use. OUT_OF_RANGE: changes since then are not known any more: a shard was lost
  // and made again, or more rows went than servers remember, or the shard has moved since; read
  // all rows again, into an empty copy. Others as ParameterClient::Pull.
  absl::StatusOr<std::optional<Piece>> Next();
  // Whether Next would not block now.
  bool ready() const;
  // Waits until it would not; DEADLINE_EXCEEDED: the timeout has passed before.
  absl::Status WaitFor(absl::Duration timeout) const;

  // From here a later reader goes on. Precondition: Next has returned nothing.
  const ResumeToken& token() const;
  // Most training examples behind a shard, of the pieces so far.
  uint64_t samples() const { return samples_; }

 private:
  struct Reading;
  RowReader(ParameterClient& client, const Table& table, const Options& options, uint64_t run);

  // Begins to read from this place in a shard.
  void Begin(size_t shard, uint64_t first);
  // The order and the keys of Piece::removed.
  static void TidyRemoved(Reading& reading);

  ParameterClient& client_;
  const Table table_;
  const Options options_;
  ResumeToken token_;  // of this pass: shards that were begun
  uint64_t samples_ = 0;
  bool is_done_ = false;
  // The piece that the program has, and the next one, which is on its way meanwhile.
  std::array<std::shared_ptr<Reading>, 2> readings_;
};

}  // namespace covey::client
