// SPDX-License-Identifier: Apache-2.0
#include "client/c/client_calls.h"

#include "absl/strings/str_cat.h"
#include "client/c/definitions.h"
#include "common/base/status_macros.h"

namespace covey::c {

absl::Status CheckMemory(const covey_table* table, const void* memory, absl::string_view argument,
                         uint64_t elements, uint64_t arrays) {
  COVEY_RETURN_IF_ERROR(NotNull(table, "table"));
  COVEY_RETURN_IF_ERROR(NotNull(memory, argument));
  if (table->table.is_sparse()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table '", table->table.name,
        "' is sparse; make a batch of keys, and use covey_client_push_rows or its like"));
  }
  if (elements == table->table.elements * arrays) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("table '", table->table.name, "' has ",
                                                 table->table.elements,
                                                 arrays == 1 ? "" : absl::StrCat(" times ", arrays),
                                                 " elements; '", argument, "' has ", elements));
}

absl::Status CheckRows(const covey_table* table, const covey_batch* batch, const void* memory,
                       absl::string_view argument, uint64_t elements) {
  COVEY_RETURN_IF_ERROR(NotNull(table, "table"));
  COVEY_RETURN_IF_ERROR(NotNull(batch, "batch"));
  if (batch->batch.size() > 0) COVEY_RETURN_IF_ERROR(NotNull(memory, argument));
  if (elements == batch->batch.size() * table->table.width) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "table '", table->table.name, "' has ", table->table.width, " columns, and the batch ",
      batch->batch.size(), " keys; '", argument, "' has ", elements, " elements"));
}

absl::StatusOr<client::PushOptions> PushOptionsOf(const covey_push_options* given) {
  COVEY_ASSIGN_OR_RETURN(
      const covey_push_options options,
      OptionsOf<covey_push_options>(given, "covey_push_options", COVEY_PUSH_OPTIONS_INIT));
  COVEY_ASSIGN_OR_RETURN(const WireFormat format, FormatOf(options.format));
  COVEY_ASSIGN_OR_RETURN(const absl::Duration deadline, DeadlineOf(options.deadline_seconds));
  return client::PushOptions{.samples = options.samples, .format = format, .deadline = deadline};
}

absl::StatusOr<client::PullOptions> PullOptionsOf(const covey_pull_options* given) {
  COVEY_ASSIGN_OR_RETURN(
      const covey_pull_options options,
      OptionsOf<covey_pull_options>(given, "covey_pull_options", COVEY_PULL_OPTIONS_INIT));
  COVEY_ASSIGN_OR_RETURN(const absl::Duration max_age, DeadlineOf(options.max_age_seconds));
  COVEY_ASSIGN_OR_RETURN(const absl::Duration deadline, DeadlineOf(options.deadline_seconds));
  COVEY_ASSIGN_OR_RETURN(const WireFormat format, FormatOf(options.format));
  client::PullOptions pull{.format = format, .deadline = deadline};
  pull.bound.min_version = Version(options.min_version);
  pull.bound.max_age = max_age;
  if (options.has_staleness != 0) pull.bound.max_staleness = options.staleness;
  return pull;
}

}  // namespace covey::c
