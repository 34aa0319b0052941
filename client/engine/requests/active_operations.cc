// SPDX-License-Identifier: Apache-2.0
#include "client/engine/requests/active_operations.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/optimizer/learning_rate.h"
#include "common/table/matrix_columns.h"
#include "common/table/row_type.h"
#include "common/tensor/codec.h"
#include "common/vectors/evaluate.h"

namespace covey::client {
namespace {

// Of an operation on a dense table.
absl::Status CheckSpans(const Operation& operation, const std::string& name, uint64_t elements) {
  if (operation.calls()) return absl::OkStatus();
  const bool has_elements = operation.pushes() && !operation.factors;
  if ((has_elements && operation.gradient.size() != elements) ||
      (operation.pulls() && operation.values.size() != elements * (1 + operation.slots)) ||
      (!operation.pushes() && !operation.pulls())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", name, "': these shards hold ", elements, " elements; got ",
        operation.gradient.size(), " gradient and ", operation.values.size(),
        " value elements; pass spans of the table's size (or an empty one for the half that is not "
        "wanted)"));
  }
  if (!operation.residual.empty() && operation.residual.size() != operation.gradient.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", name, "': the residual has ", operation.residual.size(),
        " elements and the gradient ", operation.gradient.size(), "; they go together"));
  }
  if (operation.initial_state && operation.initial_state->slots.size() % elements != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("table '", name, "': these shards hold ", elements, " elements; got ",
                     operation.initial_state->slots.size(),
                     " elements of optimizer slots; pass whole slots of the table's size"));
  }
  return absl::OkStatus();
}

absl::Status CheckValueFormat(const Operation& operation, const std::string& name) {
  if (operation.value_format == WireFormat::kFloat32) return absl::OkStatus();
  const char* const why = operation.keyed              ? "rows travel as they are stored"
                          : operation.slots > 0        ? "the optimizer's state is read in float32"
                          : !operation.queries.empty() ? "answers have no wire format"
                          : NeedsFeedback(operation.value_format) ? "that leaves out most values"
                                                                  : nullptr;
  if (why == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("table '", name, "': values cannot be read in ",
                                                 WireFormatName(operation.value_format), ": ", why,
                                                 "; leave the format of the pull at float32"));
}

absl::Status CheckFactors(const Operation& operation, const proto::Table& table,
                          uint64_t elements) {
  const Factors& factors = *operation.factors;
  const uint64_t columns = MatrixColumns(table.spec());
  const uint64_t rows = columns == 0 ? 0 : elements / columns;
  const auto fits = [&factors](std::span<const float> part, uint64_t length) {
    return part.size() % factors.terms == 0 && part.size() / factors.terms == length;
  };
  const bool covers_all = operation.first_shard == ShardIndex(0) && operation.shard_count == 0;
  if (columns > 0 && factors.terms > 0 && covers_all && fits(factors.left, rows) &&
      fits(factors.right, columns)) {
    return absl::OkStatus();
  }
  const std::string& name = table.spec().name();
  if (columns == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("table '", name,
                     "' has one dimension, or is one of vectors; outer products "
                     "are for dense tables of two dimensions or more, push a gradient"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "table '", name, "' has ", rows, " rows and ", columns, " columns; got ", factors.left.size(),
      " left and ", factors.right.size(), " right elements in ", factors.terms,
      " terms; pass at least one term, and for each of them a left "
      "element for each row, and a right one for each column"));
}

absl::Status CheckKeyed(const Operation& operation, const proto::Table& table) {
  const std::string& name = table.spec().name();
  const KeyBatch& batch = *operation.keyed->batch;
  const bool is_of_table =
      batch.shards() == static_cast<size_t>(table.shards_size()) &&
      std::equal(batch.shard_ends().begin(), batch.shard_ends().end(), table.shards().begin(),
                 [](uint64_t end, const proto::Shard& shard) {
                   return end == shard.first_element() + shard.element_count();
                 });
  if (!is_of_table) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", name, "': the batch was made for another table; make one for this table"));
  }
  const size_t width = table.spec().sparse().width();
  if ((operation.pushes() && operation.gradient.size() != batch.distinct() * width) ||
      (operation.pulls() && operation.values.size() != batch.size() * width)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", name, "': the batch has ", batch.size(), " keys, ", batch.distinct(),
        " of them distinct, and the table ", width, " columns; got ", operation.gradient.size(),
        " gradient and ", operation.values.size(),
        " value elements; pass a gradient for each distinct key, and room for all rows"));
  }
  const size_t keys_max = std::min(kKeysPerRequestMax, kFrameBytesMax / (width * sizeof(float)));
  for (size_t shard = 0; shard < batch.shards(); ++shard) {
    if (batch.KeysOf(shard).size() <= keys_max) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", name, "': ", batch.KeysOf(shard).size(), " keys of the batch lie in shard ",
        shard, "; the most is ", keys_max, " for rows of ", width, "; divide the batch"));
  }
  return absl::OkStatus();
}

absl::StatusOr<WireFormat> RowTypeOf(const proto::Table& table) {
  const std::optional<WireFormat> type = RowTypeFromProto(table.spec().data_type());
  if (type) return *type;
  return absl::InvalidArgumentError(
      absl::StrCat("table '", table.spec().name(), "': its rows are of type ",
                   static_cast<int>(table.spec().data_type()),
                   ", which is unknown here; run this program in the servers' version"));
}

absl::StatusOr<ShardRange> ShardOfScan(const Operation& operation, const proto::Table& table) {
  const uint32_t shard = operation.first_shard.value();
  if (table.spec().has_sparse() && table.spec().sparse().width() == operation.scan->width &&
      operation.shard_count == 1 && shard < static_cast<uint32_t>(table.shards_size())) {
    COVEY_ASSIGN_OR_RETURN(const WireFormat row_type, RowTypeOf(table));
    return ShardRange{.first = shard, .count = 1, .row_type = row_type};
  }
  return absl::InvalidArgumentError(absl::StrCat("table '", table.spec().name(), "' has no shard ",
                                                 shard, " with rows of ", operation.scan->width,
                                                 " elements; look up the table again"));
}

}  // namespace

absl::StatusOr<ShardRange> ShardsOf(const Operation& operation, const proto::Table& table) {
  const std::string& name = table.spec().name();
  if (operation.scan) return ShardOfScan(operation, table);
  if (operation.keyed.has_value() != table.spec().has_sparse()) {
    return absl::InvalidArgumentError(
        absl::StrCat("table '", name, "' is ",
                     operation.keyed ? "dense; pass all its elements, and no batch of keys"
                                     : "sparse; make a batch of keys, and pass a row for each"));
  }
  const uint32_t shards = static_cast<uint32_t>(table.shards_size());
  const uint32_t first = operation.first_shard.value();
  if (first >= shards || operation.shard_count > shards - first) {
    return absl::InvalidArgumentError(absl::StrCat("table '", name, "' has ", shards,
                                                   " shards; asked for ", operation.shard_count,
                                                   " from shard ", first));
  }
  const uint32_t count = operation.shard_count == 0 ? shards - first : operation.shard_count;
  const proto::Shard& last = table.shards(static_cast<int>(first + count - 1));
  const uint64_t begin = table.shards(static_cast<int>(first)).first_element();
  const uint64_t elements = last.first_element() + last.element_count() - begin;
  COVEY_RETURN_IF_ERROR(operation.keyed ? CheckKeyed(operation, table)
                                        : CheckSpans(operation, name, elements));
  COVEY_RETURN_IF_ERROR(CheckValueFormat(operation, name));
  if (operation.factors) COVEY_RETURN_IF_ERROR(CheckFactors(operation, table, elements));
  if (!IsRateFactor(operation.rate_factor)) {
    return absl::InvalidArgumentError(
        absl::StrCat("table '", name, "': the learning rate's factor is ", operation.rate_factor,
                     "; use at least 0, and at most ", kRateFactorMax));
  }
  const bool has_elements = operation.factors || !operation.gradient.empty();
  if (has_elements && NeedsFeedback(operation.format) && operation.residual.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", name, "': ", WireFormatName(operation.format),
        " leaves out most of a gradient, and only steps of a model send it later; push in another "
        "format"));
  }
  if (operation.samples == 0 && !operation.group) {
    return absl::InvalidArgumentError(
        absl::StrCat("table '", name, "': a push stands for at least 1 sample"));
  }
  if (operation.keyed) {
    COVEY_ASSIGN_OR_RETURN(const WireFormat row_type, RowTypeOf(table));
    return ShardRange{
        .first = 0,
        .count = shards,
        .first_element = 0,
        .elements = operation.keyed->batch->distinct() * uint64_t{table.spec().sparse().width()},
        .row_type = row_type};
  }
  return ShardRange{.first = first, .count = count, .first_element = begin, .elements = elements};
}

std::vector<VectorAnswer> ActiveOperation::JoinedAnswers() const {
  std::vector<VectorAnswer> joined;
  for (size_t i = 0; i < operation.queries.size(); ++i) {
    std::vector<VectorAnswer> of_shards;
    for (const std::vector<VectorAnswer>& answers : shard_answers) of_shards.push_back(answers[i]);
    joined.push_back(JoinAnswers(operation.queries[i], of_shards));
  }
  return joined;
}

ActiveOperation& ActiveOperations::Add(Operation operation, const ShardRange& shards,
                                       uint64_t first_request) {
  auto active = std::make_unique<ActiveOperation>();
  active->number = next_number_++;
  active->operation = std::move(operation);
  if (active->operation.pushes() && !active->operation.calls() && !active->operation.factors) {
    const Buffer& memory = active->operation.gradient_memory;
    const auto* first = reinterpret_cast<const uint8_t*>(active->operation.gradient.data());
    const size_t bytes = shards.elements * sizeof(float);
    active->gradient = active->shares_gradient()
                           ? memory.Slice(static_cast<size_t>(first - memory.data()), bytes)
                           : Buffer::Wrap(first, bytes, {});
  }
  if (active->operation.initial_state && !active->operation.initial_state->slots.empty()) {
    const std::span<const float> slots = active->operation.initial_state->slots;
    active->slots =
        Buffer::Wrap(reinterpret_cast<const uint8_t*>(slots.data()), slots.size_bytes(), {});
  }
  active->first_request = first_request;
  active->unanswered = shards.count;
  active->row_type = shards.row_type;
  active->result.version = Version(~uint64_t{0});
  if (active->operation.keyed) active->result.shard_versions.resize(shards.count);
  if (!active->operation.queries.empty()) active->shard_answers.resize(shards.count);
  active->result.durable = true;
  ActiveOperation& added = *active;
  active_.emplace(added.number, std::move(active));
  return added;
}

bool ActiveOperations::MarkIfOver(ActiveOperation& operation) {
  if (!operation.over() || operation.is_retiring) return false;
  operation.is_retiring = true;
  retiring_.push_back(operation.number);
  return true;
}

void ActiveOperations::Retire(absl::Time now, Outbox& outbox) {
  // Operations that `done` starts may end at once; they enter a list of their own.
  std::vector<uint64_t> still_referenced;
  while (!retiring_.empty()) {
    for (const uint64_t number : std::exchange(retiring_, {})) {
      const auto found = active_.find(number);
      if (!found->second->FramesReleased()) {
        still_referenced.push_back(number);
        continue;
      }
      const std::unique_ptr<ActiveOperation> over = std::move(found->second);
      active_.erase(found);
      // `done` may write to the memory.
      over->gradient = Buffer();
      over->slots = Buffer();
      over->operation.gradient_memory = Buffer();
      if (over->operation.done) over->operation.done(now, over->result, outbox);
    }
  }
  retiring_ = std::move(still_referenced);
}

}  // namespace covey::client
