// SPDX-License-Identifier: Apache-2.0
#include "client/cli/rows/export_rows_command.h"

#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/console/command.h"
#include "client/cli/console/figures.h"
#include "client/cli/console/text_file.h"
#include "client/cli/rows/rows_export.h"
#include "client/cli/rows/rows_manifest.h"
#include "client/cli/scheduler/scheduler_options.h"
#include "common/base/status_macros.h"
#include "common/runtime/config_file.h"

namespace covey::cli {
namespace {

std::string Describe(const RowsExportOptions& options, const ExportedRows& exported) {
  const bool is_of_changes = exported.origin.since.has_value();
  return absl::StrCat(
      "wrote ", options.out, ": ", ShowCount(exported.rows), is_of_changes ? " changed" : "",
      " rows of table ", options.table,
      is_of_changes ? absl::StrCat(", ", ShowCount(exported.removed), " removed keys") : "",
      exported.origin.snapshot.empty() ? "" : absl::StrCat(" from ", exported.origin.snapshot),
      ", ", ShowBytes(exported.bytes()), "\n");
}

absl::Status Check(const std::vector<std::string>& words, const SchedulerOptions& scheduler,
                   RowsExportOptions& what) {
  if (!words.empty()) what.table = words.front();
  COVEY_RETURN_IF_ERROR(what.Validate());
  if (words.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", words[1], "' follows the table; export one table at a time"));
  }
  return what.snapshot.empty() ? scheduler.Check() : absl::OkStatus();
}

}  // namespace

int ExportRowsCommand(int count, const char* const* arguments) {
  SchedulerOptions scheduler;
  RowsExportOptions what;
  std::vector<std::string> words;
  ConfigFile options(
      "covey export-rows",
      "Writes the rows of a sparse table to a new folder, for NumPy: keys.npy (unsigned 64-bit, "
      "ascending, for numpy.searchsorted), values.npy (float32, a row for each key) and "
      "manifest.json. From a running cluster, while training goes on: rows may then be some "
      "updates apart. Or from a snapshot (--snapshot), where they are as of its cut; that needs "
      "no running job. --changed-since reads only rows that have changed since an earlier "
      "export, also one of a snapshot of the same run, and writes the keys of rows that went to "
      "removed.npy; when servers do not know these any more, it fails, and a full export is "
      "needed. On disk it needs room for the rows twice. Exit code: 0 written, 1 failed and "
      "nothing written, 3 no scheduler answers.");
  scheduler.AddTo(options);
  options.Add("job", &what.job, "job of the scheduler");
  options.Add("out", &what.out, "folder to make, required; it must not exist");
  options.Add("snapshot", &what.snapshot,
              "snapshot to read: its name or id, or latest; without it the running cluster");
  options.Add("store", &what.store, "folder with the snapshots, for --snapshot");
  options.Add("changed-since", &what.changed_since,
              "folder of an earlier export, or its manifest.json");
  options.Add("timeout", &what.timeout, "longest wait for a piece of the rows, about 1 MiB");
  options.TakeRest(&words, "TABLE");
  if (const auto code = LoadWithShortOutput(options, count, arguments)) return *code;
  if (const absl::Status status = Check(words, scheduler, what); !status.ok()) {
    PrintFailure(arguments[0], status);
    return kExitUsage;
  }
  what.scheduler = scheduler.target();
  const absl::StatusOr<ExportedRows> exported = ExportRows(what, [](absl::string_view line) {
    WriteAll(STDERR_FILENO, absl::StrCat("covey export-rows: ", line, "\n"));
  });
  if (!exported.ok()) {
    PrintFailure(arguments[0], exported.status());
    return ExitCodeOf(exported.status());
  }
  // The manifest in the folder is also the JSON output.
  WriteAll(STDOUT_FILENO, scheduler.json ? RowsManifest(*exported) : Describe(what, *exported));
  return kExitOk;
}

}  // namespace covey::cli
