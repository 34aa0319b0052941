// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/c/boundary.h"
#include "client/c/client_calls.h"
#include "client/c/covey.h"
#include "client/c/definitions.h"
#include "client/c/objects.h"
#include "client/config.h"
#include "common/base/status_macros.h"
#include "common/contract/contract.h"
#include "common/runtime/config_file.h"
#include "proto/scheduler.pb.h"
#include "proto/view.pb.h"

namespace covey::c {
namespace {

absl::StatusOr<std::vector<client::InitialValues>> InitialValuesOf(
    const covey_initial_values* tables, size_t count) {
  std::vector<client::InitialValues> all;
  const auto take = [&all](const covey_initial_values& given) -> absl::Status {
    COVEY_ASSIGN_OR_RETURN(
        const covey_initial_values table,
        OptionsOf<covey_initial_values>(&given, "covey_initial_values", COVEY_INITIAL_VALUES_INIT));
    COVEY_RETURN_IF_ERROR(CheckMemory(table.table, table.values, "values", table.elements));
    all.push_back({.table = table.table->table, .values = {table.values, table.elements}});
    if (table.slots == nullptr && table.slot_elements > 0) {
      return absl::InvalidArgumentError("argument 'slots' is NULL; pass its address");
    }
    if (table.slots != nullptr || table.updates > 0 || table.samples > 0) {
      all.back().state = client::InitialState{.slots = {table.slots, table.slot_elements},
                                              .updates = table.updates,
                                              .samples = table.samples};
    }
    return absl::OkStatus();
  };
  COVEY_RETURN_IF_ERROR(ForEachOf(tables, count, "table", take));
  return all;
}

}  // namespace
}  // namespace covey::c

using covey::c::CheckMemory;
using covey::c::CheckRows;
using covey::c::Guard;
using covey::c::GuardClient;
using covey::c::GuardObject;
using covey::c::NewHandle;
using covey::c::NewObject;
using covey::c::NewText;
using covey::c::NotNull;
using covey::c::Release;
using covey::client::FilterRule;
using covey::client::ParameterClient;
using covey::client::RowCache;
using covey::client::RowFilter;
using covey::client::RowReader;

extern "C" {

covey_code covey_client_connect(const char* const* settings, covey_client** client,
                                covey_error* error) {
  return Guard(error, [&]() -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(client, "client"));
    covey::client::ClientConfig config;
    covey::ConfigFile options("covey_client", "");
    config.AddTo(options);
    COVEY_RETURN_IF_ERROR(covey::c::LoadSettings(settings, options));
    const covey::c::SignalsBlocked blocked;
    COVEY_ASSIGN_OR_RETURN(auto connected, ParameterClient::Connect(config));
    *client = NewObject(covey_client{.client = std::move(connected)});
    return absl::OkStatus();
  });
}

void covey_client_close(covey_client* client) {
  if (client != nullptr && client->creator.is_this()) Release(client);
}

covey_code covey_client_create_table(covey_client* client, const char* definition,
                                     covey_table** table, covey_error* error) {
  return GuardClient(client, error, [&](ParameterClient& parameters) -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(definition, "definition"));
    COVEY_RETURN_IF_ERROR(NotNull(table, "table"));
    COVEY_ASSIGN_OR_RETURN(const auto spec, covey::c::TableSpecOf(definition));
    COVEY_ASSIGN_OR_RETURN(auto created, parameters.CreateTable(spec));
    *table = NewObject(covey_table{.table = std::move(created)});
    return absl::OkStatus();
  });
}

covey_code covey_client_find_table(covey_client* client, const char* name, covey_table** table,
                                   covey_error* error) {
  return GuardClient(client, error, [&](ParameterClient& parameters) -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(name, "name"));
    COVEY_RETURN_IF_ERROR(NotNull(table, "table"));
    COVEY_ASSIGN_OR_RETURN(auto found, parameters.FindTable(name));
    *table = NewObject(covey_table{.table = std::move(found)});
    return absl::OkStatus();
  });
}

covey_code covey_client_list_tables(covey_client* client, char** definitions, covey_error* error) {
  return GuardClient(client, error, [&](ParameterClient& parameters) -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(definitions, "definitions"));
    COVEY_ASSIGN_OR_RETURN(const auto tables, parameters.ListTables());
    std::string text = "[";
    for (const covey::proto::Table& table : tables) {
      absl::StrAppend(&text, text.size() > 1 ? "," : "", covey::c::JsonOf(table.spec()));
    }
    *definitions = NewText(text + "]");
    return absl::OkStatus();
  });
}

covey_code covey_client_drop_table(covey_client* client, const char* name, covey_error* error) {
  return GuardClient(client, error, [&](ParameterClient& parameters) -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(name, "name"));
    return parameters.DropTable(name);
  });
}

covey_code covey_client_set_contract(covey_client* client, const char* name, const char* contract,
                                     covey_error* error) {
  return GuardClient(client, error, [&](ParameterClient& parameters) -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(name, "name"));
    COVEY_RETURN_IF_ERROR(NotNull(contract, "contract"));
    COVEY_ASSIGN_OR_RETURN(const covey::Contract parsed, covey::ParseContract(contract));
    return parameters.SetContract(name, parsed);
  });
}

covey_code covey_client_status(covey_client* client, char** status, covey_error* error) {
  return GuardClient(client, error, [&](ParameterClient& parameters) -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(status, "status"));
    COVEY_ASSIGN_OR_RETURN(const auto reply, parameters.GetStatus());
    *status = NewText(covey::c::JsonOf(reply));
    return absl::OkStatus();
  });
}

uint64_t covey_table_elements(const covey_table* table) {
  return table == nullptr ? 0 : table->table.elements;
}

uint64_t covey_table_width(const covey_table* table) {
  return table == nullptr ? 0 : table->table.width;
}

uint64_t covey_table_slots(const covey_table* table) {
  return table == nullptr ? 0 : table->table.slots;
}

const char* covey_table_name(const covey_table* table) {
  return table == nullptr ? "" : table->table.name.c_str();
}

void covey_table_free(covey_table* table) { Release(table); }

covey_code covey_client_push(covey_client* client, const covey_table* table, const float* gradient,
                             uint64_t elements, const covey_push_options* options,
                             covey_handle** handle, covey_error* error) {
  return GuardClient(client, error, [&](ParameterClient& parameters) -> absl::Status {
    COVEY_RETURN_IF_ERROR(CheckMemory(table, gradient, "gradient", elements));
    COVEY_RETURN_IF_ERROR(NotNull(handle, "handle"));
    COVEY_ASSIGN_OR_RETURN(const auto push, covey::c::PushOptionsOf(options));
    *handle = NewHandle(parameters.Push(table->table, {gradient, elements}, push));
    return absl::OkStatus();
  });
}

covey_code covey_client_pull(covey_client* client, const covey_table* table, float* values,
                             uint64_t elements, const covey_pull_options* options,
                             covey_handle** handle, covey_error* error) {
  return GuardClient(client, error, [&](ParameterClient& parameters) -> absl::Status {
    COVEY_RETURN_IF_ERROR(CheckMemory(table, values, "values", elements));
    COVEY_RETURN_IF_ERROR(NotNull(handle, "handle"));
    COVEY_ASSIGN_OR_RETURN(const auto pull, covey::c::PullOptionsOf(options));
    *handle = NewHandle(parameters.Pull(table->table, {values, elements}, pull));
    return absl::OkStatus();
  });
}

covey_code covey_client_pull_state(covey_client* client, const covey_table* table, float* arrays,
                                   uint64_t elements, const covey_pull_options* options,
                                   covey_handle** handle, covey_error* error) {
  return GuardClient(client, error, [&](ParameterClient& parameters) -> absl::Status {
    COVEY_RETURN_IF_ERROR(
        CheckMemory(table, arrays, "arrays", elements, 1 + covey_table_slots(table)));
    COVEY_RETURN_IF_ERROR(NotNull(handle, "handle"));
    COVEY_ASSIGN_OR_RETURN(const auto pull, covey::c::PullOptionsOf(options));
    *handle = NewHandle(parameters.PullState(table->table, {arrays, elements}, pull));
    return absl::OkStatus();
  });
}

covey_code covey_client_push_pull(covey_client* client, const covey_table* table,
                                  const float* gradient, float* values, uint64_t elements,
                                  const covey_push_options* push, const covey_pull_options* pull,
                                  covey_handle** handle, covey_error* error) {
  return GuardClient(client, error, [&](ParameterClient& parameters) -> absl::Status {
    COVEY_RETURN_IF_ERROR(CheckMemory(table, gradient, "gradient", elements));
    COVEY_RETURN_IF_ERROR(CheckMemory(table, values, "values", elements));
    COVEY_RETURN_IF_ERROR(NotNull(handle, "handle"));
    COVEY_ASSIGN_OR_RETURN(const auto push_options, covey::c::PushOptionsOf(push));
    COVEY_ASSIGN_OR_RETURN(const auto pull_options, covey::c::PullOptionsOf(pull));
    *handle = NewHandle(parameters.PushPull(table->table, {gradient, elements}, {values, elements},
                                            push_options, pull_options));
    return absl::OkStatus();
  });
}

covey_code covey_batch_new(const covey_table* table, const uint64_t* keys, uint64_t count,
                           covey_batch** batch, covey_error* error) {
  return Guard(error, [&]() -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(table, "table"));
    COVEY_RETURN_IF_ERROR(NotNull(batch, "batch"));
    if (count > 0) COVEY_RETURN_IF_ERROR(NotNull(keys, "keys"));
    covey::client::RowBatch rows;
    COVEY_RETURN_IF_ERROR(rows.Assign(table->table, {keys, count}));
    *batch = NewObject(covey_batch{.batch = std::move(rows)});
    return absl::OkStatus();
  });
}

void covey_batch_free(covey_batch* batch) { Release(batch); }

covey_code covey_client_push_rows(covey_client* client, const covey_table* table,
                                  const covey_batch* batch, const float* gradient,
                                  uint64_t elements, const covey_push_options* options,
                                  covey_handle** handle, covey_error* error) {
  return GuardClient(client, error, [&](ParameterClient& parameters) -> absl::Status {
    COVEY_RETURN_IF_ERROR(CheckRows(table, batch, gradient, "gradient", elements));
    COVEY_RETURN_IF_ERROR(NotNull(handle, "handle"));
    COVEY_ASSIGN_OR_RETURN(const auto push, covey::c::PushOptionsOf(options));
    *handle = NewHandle(parameters.Push(table->table, batch->batch, {gradient, elements}, push));
    return absl::OkStatus();
  });
}

covey_code covey_client_pull_rows(covey_client* client, const covey_table* table,
                                  const covey_batch* batch, float* rows, uint64_t elements,
                                  const covey_pull_options* options, covey_handle** handle,
                                  covey_error* error) {
  return GuardClient(client, error, [&](ParameterClient& parameters) -> absl::Status {
    COVEY_RETURN_IF_ERROR(CheckRows(table, batch, rows, "rows", elements));
    COVEY_RETURN_IF_ERROR(NotNull(handle, "handle"));
    COVEY_ASSIGN_OR_RETURN(const auto pull, covey::c::PullOptionsOf(options));
    *handle = NewHandle(parameters.Pull(table->table, batch->batch, {rows, elements}, pull));
    return absl::OkStatus();
  });
}

covey_code covey_client_push_pull_rows(covey_client* client, const covey_table* table,
                                       const covey_batch* batch, const float* gradient, float* rows,
                                       uint64_t elements, const covey_push_options* push,
                                       const covey_pull_options* pull, covey_handle** handle,
                                       covey_error* error) {
  return GuardClient(client, error, [&](ParameterClient& parameters) -> absl::Status {
    COVEY_RETURN_IF_ERROR(CheckRows(table, batch, gradient, "gradient", elements));
    COVEY_RETURN_IF_ERROR(CheckRows(table, batch, rows, "rows", elements));
    COVEY_RETURN_IF_ERROR(NotNull(handle, "handle"));
    COVEY_ASSIGN_OR_RETURN(const auto push_options, covey::c::PushOptionsOf(push));
    COVEY_ASSIGN_OR_RETURN(const auto pull_options, covey::c::PullOptionsOf(pull));
    *handle = NewHandle(parameters.PushPull(table->table, batch->batch, {gradient, elements},
                                            {rows, elements}, push_options, pull_options));
    return absl::OkStatus();
  });
}

covey_code covey_row_cache_new(covey_client* client, const covey_table* table,
                               const covey_row_cache_options* options, covey_row_cache** cache,
                               covey_error* error) {
  return GuardClient(client, error, [&](ParameterClient& parameters) -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(table, "table"));
    COVEY_RETURN_IF_ERROR(NotNull(cache, "cache"));
    COVEY_ASSIGN_OR_RETURN(const auto given,
                           covey::c::OptionsOf<covey_row_cache_options>(
                               options, "covey_row_cache_options", COVEY_ROW_CACHE_OPTIONS_INIT));
    COVEY_ASSIGN_OR_RETURN(const absl::Duration max_age, covey::c::DeadlineOf(given.max_age));
    COVEY_ASSIGN_OR_RETURN(auto rows,
                           RowCache::Create(parameters, table->table,
                                            {.rows_max = static_cast<size_t>(given.rows_max),
                                             .max_age = max_age,
                                             .max_updates = given.max_updates}));
    auto object = std::make_unique<covey_row_cache>();
    object->cache = std::move(rows);
    *cache = object.release();
    return absl::OkStatus();
  });
}

void covey_row_cache_free(covey_row_cache* cache) {
  if (cache != nullptr && cache->creator.is_this()) Release(cache);
}

covey_code covey_row_cache_pull(covey_row_cache* cache, const uint64_t* keys, uint64_t count,
                                float* rows, uint64_t elements, double seconds,
                                covey_handle** handle, covey_error* error) {
  return GuardObject(cache, "cache", error, [&]() -> absl::Status {
    if (count > 0) COVEY_RETURN_IF_ERROR(NotNull(keys, "keys"));
    if (elements > 0) COVEY_RETURN_IF_ERROR(NotNull(rows, "rows"));
    COVEY_RETURN_IF_ERROR(NotNull(handle, "handle"));
    COVEY_ASSIGN_OR_RETURN(const absl::Duration deadline, covey::c::DeadlineOf(seconds));
    *handle = NewHandle(cache->cache->Pull({keys, count}, {rows, elements}, deadline));
    return absl::OkStatus();
  });
}

covey_code covey_row_cache_invalidate(covey_row_cache* cache, const uint64_t* keys, uint64_t count,
                                      covey_error* error) {
  return GuardObject(cache, "cache", error, [&]() -> absl::Status {
    if (count > 0) COVEY_RETURN_IF_ERROR(NotNull(keys, "keys"));
    cache->cache->Invalidate({keys, count});
    return absl::OkStatus();
  });
}

covey_code covey_row_cache_count(covey_row_cache* cache, covey_row_cache_counts* counts,
                                 covey_error* error) {
  return GuardObject(cache, "cache", error, [&]() -> absl::Status {
    const RowCache::Counts now = cache->cache->counts();
    covey::c::Return({.hits = now.hits, .misses = now.misses, .stale = now.stale, .rows = now.rows},
                     counts);
    return absl::OkStatus();
  });
}

covey_code covey_row_filter_new(covey_client* client, const covey_table* table,
                                const covey_row_filter_options* options, covey_row_filter** filter,
                                covey_error* error) {
  return GuardClient(client, error, [&](ParameterClient& parameters) -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(table, "table"));
    COVEY_RETURN_IF_ERROR(NotNull(filter, "filter"));
    COVEY_ASSIGN_OR_RETURN(const auto given,
                           covey::c::OptionsOf<covey_row_filter_options>(
                               options, "covey_row_filter_options", COVEY_ROW_FILTER_OPTIONS_INIT));
    if (given.rule != COVEY_FILTER_KKT && given.rule != COVEY_FILTER_SIGNIFICANCE) {
      return absl::InvalidArgumentError(absl::StrCat("covey_row_filter_options.rule is ",
                                                     given.rule, "; use a COVEY_FILTER_ number"));
    }
    const FilterRule rule = {.kind = given.rule == COVEY_FILTER_KKT
                                         ? FilterRule::Kind::kKkt
                                         : FilterRule::Kind::kSignificance,
                             .threshold = given.threshold};
    COVEY_ASSIGN_OR_RETURN(auto pushes,
                           RowFilter::Create(parameters, table->table,
                                             {.rule = rule,
                                              .rows_max = static_cast<size_t>(given.rows_max),
                                              .pieces_max = given.pieces_max}));
    auto object = std::make_unique<covey_row_filter>();
    object->filter = std::move(pushes);
    *filter = object.release();
    return absl::OkStatus();
  });
}

void covey_row_filter_free(covey_row_filter* filter) {
  if (filter != nullptr && filter->creator.is_this()) Release(filter);
}

covey_code covey_row_filter_push(covey_row_filter* filter, const covey_batch* batch,
                                 const float* rows, const float* gradient, uint64_t elements,
                                 const covey_push_options* options, covey_handle** handle,
                                 covey_error* error) {
  return GuardObject(filter, "filter", error, [&]() -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(batch, "batch"));
    if (elements > 0) COVEY_RETURN_IF_ERROR(NotNull(rows, "rows"));
    if (elements > 0) COVEY_RETURN_IF_ERROR(NotNull(gradient, "gradient"));
    COVEY_RETURN_IF_ERROR(NotNull(handle, "handle"));
    COVEY_ASSIGN_OR_RETURN(const auto push_options, covey::c::PushOptionsOf(options));
    *handle = NewHandle(
        filter->filter->Push(batch->batch, {rows, elements}, {gradient, elements}, push_options));
    return absl::OkStatus();
  });
}

covey_code covey_row_filter_flush(covey_row_filter* filter, double seconds, covey_error* error) {
  return GuardObject(filter, "filter", error, [&]() -> absl::Status {
    COVEY_ASSIGN_OR_RETURN(const absl::Duration deadline, covey::c::DeadlineOf(seconds));
    return filter->filter->Flush(deadline);
  });
}

covey_code covey_row_filter_count(covey_row_filter* filter, covey_row_filter_counts* counts,
                                  covey_error* error) {
  return GuardObject(filter, "filter", error, [&]() -> absl::Status {
    const RowFilter::Counts now = filter->filter->counts();
    covey::c::Return({.pushed = now.pushed,
                      .held_back = now.held_back,
                      .zero_pushed = now.zero_pushed,
                      .zero_held_back = now.zero_held_back,
                      .pushed_later = now.pushed_later,
                      .held = now.held},
                     counts);
    return absl::OkStatus();
  });
}

covey_code covey_row_reader_new(covey_client* client, const covey_table* table,
                                const covey_row_reader_options* options, covey_row_reader** reader,
                                covey_error* error) {
  return GuardClient(client, error, [&](ParameterClient& parameters) -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(table, "table"));
    COVEY_RETURN_IF_ERROR(NotNull(reader, "reader"));
    COVEY_ASSIGN_OR_RETURN(const auto given,
                           covey::c::OptionsOf<covey_row_reader_options>(
                               options, "covey_row_reader_options", COVEY_ROW_READER_OPTIONS_INIT));
    RowReader::Options wanted;
    COVEY_ASSIGN_OR_RETURN(wanted.deadline, covey::c::DeadlineOf(given.seconds));
    COVEY_ASSIGN_OR_RETURN(wanted.bound.max_age, covey::c::DeadlineOf(given.max_age));
    if (given.since != nullptr) {
      COVEY_ASSIGN_OR_RETURN(wanted.since, covey::client::ResumeToken::Parse(given.since));
    }
    COVEY_ASSIGN_OR_RETURN(auto made, RowReader::Create(parameters, table->table, wanted));
    auto object = std::make_unique<covey_row_reader>();
    object->reader = std::move(made);
    *reader = object.release();
    return absl::OkStatus();
  });
}

void covey_row_reader_free(covey_row_reader* reader) {
  if (reader != nullptr && reader->creator.is_this()) Release(reader);
}

int32_t covey_row_reader_ready(covey_row_reader* reader) {
  bool is_ready = false;
  GuardObject(reader, "reader", nullptr, [&]() -> absl::Status {
    is_ready = reader->reader->ready();
    return absl::OkStatus();
  });
  return is_ready ? 1 : 0;
}

covey_code covey_row_reader_next(covey_row_reader* reader, double seconds, covey_row_piece* piece,
                                 int32_t* has_piece, covey_error* error) {
  return GuardObject(reader, "reader", error, [&]() -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(piece, "piece"));
    COVEY_RETURN_IF_ERROR(NotNull(has_piece, "has_piece"));
    COVEY_ASSIGN_OR_RETURN(const absl::Duration wait, covey::c::WaitOf(seconds));
    COVEY_RETURN_IF_ERROR(reader->reader->WaitFor(wait));
    COVEY_ASSIGN_OR_RETURN(const auto next, reader->reader->Next());
    *has_piece = next ? 1 : 0;
    reader->has_ended = !next;
    if (!next) return absl::OkStatus();
    covey::c::Return({.shard = static_cast<uint32_t>(next->shard),
                      .generation = next->version.generation,
                      .version = next->version.version.value(),
                      .keys = next->keys.data(),
                      .count = next->keys.size(),
                      .rows = next->rows.data(),
                      .elements = next->rows.size(),
                      .removed = next->removed.data(),
                      .removed_count = next->removed.size()},
                     piece);
    return absl::OkStatus();
  });
}

covey_code covey_row_reader_token(covey_row_reader* reader, char** token, covey_error* error) {
  return GuardObject(reader, "reader", error, [&]() -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(token, "token"));
    if (!reader->has_ended) {
      return absl::FailedPreconditionError(
          "the reader has pieces left; take them until there is none, then ask for its token");
    }
    *token = NewText(reader->reader->token().ToText());
    return absl::OkStatus();
  });
}

covey_code covey_client_initialize_tables(covey_client* client, const covey_initial_values* tables,
                                          size_t count, double seconds, int32_t* given,
                                          covey_error* error) {
  return GuardClient(client, error, [&](ParameterClient& parameters) -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(tables, "tables"));
    COVEY_ASSIGN_OR_RETURN(const absl::Duration timeout, covey::c::DeadlineOf(seconds));
    COVEY_ASSIGN_OR_RETURN(const auto all, covey::c::InitialValuesOf(tables, count));
    COVEY_ASSIGN_OR_RETURN(const bool is_giver, parameters.InitializeTables(all, timeout));
    if (given != nullptr) *given = is_giver ? 1 : 0;
    return absl::OkStatus();
  });
}

covey_code covey_client_flush(covey_client* client, double seconds, covey_error* error) {
  return GuardClient(client, error, [&](ParameterClient& parameters) -> absl::Status {
    COVEY_ASSIGN_OR_RETURN(const absl::Duration timeout, covey::c::DeadlineOf(seconds));
    return parameters.Flush(timeout);
  });
}

covey_code covey_client_barrier(covey_client* client, const char* name, uint32_t participants,
                                double seconds, covey_error* error) {
  return GuardClient(client, error, [&](ParameterClient& parameters) -> absl::Status {
    COVEY_RETURN_IF_ERROR(NotNull(name, "name"));
    COVEY_ASSIGN_OR_RETURN(const absl::Duration timeout, covey::c::DeadlineOf(seconds));
    return parameters.Barrier(name, participants, timeout);
  });
}

}  // extern "C"
