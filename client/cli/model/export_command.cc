// SPDX-License-Identifier: Apache-2.0
#include "client/cli/model/export_command.h"

#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/console/command.h"
#include "client/cli/console/text_file.h"
#include "client/cli/model/model_export.h"
#include "client/cli/scheduler/scheduler_options.h"
#include "common/runtime/config_file.h"

namespace covey::cli {
namespace {

std::string JsonOf(const ExportOptions& options, const ExportedModel& model) {
  nlohmann::ordered_json tables = nlohmann::ordered_json::array();
  for (const ExportedTable& table : model.tables) {
    tables.push_back({{"name", table.name}, {"shape", table.shape}, {"version", table.version}});
  }
  const nlohmann::ordered_json json = {{"file", options.path},
                                       {"bytes", model.bytes},
                                       {"type", WireFormatName(options.format)},
                                       {"tables", std::move(tables)}};
  return absl::StrCat(json.dump(2), "\n");
}

}  // namespace

int ExportCommand(int count, const char* const* arguments) {
  SchedulerOptions scheduler;
  ExportOptions what;
  std::string job = "default";
  ConfigFile options("covey export",
                     "Writes the values of a running cluster's tables to a safetensors file, one "
                     "tensor per table, for PyTorch, JAX and others; or one table to an NPY file, "
                     "for NumPy. Training goes on meanwhile; "
                     "tables that change may be some updates apart. Exit code: 0 written, 1 "
                     "failed and nothing written, 3 no scheduler answers.");
  scheduler.AddTo(options);
  options.Add("job", &job, "job of the scheduler");
  options.Add("out", &what.path,
              "file to write, required: model.safetensors, or weight.npy for one table");
  options.Add(
      "tables",
      [&what](absl::string_view text) {
        what.tables = absl::StrSplit(text, ',', absl::SkipEmpty());
        return absl::OkStatus();
      },
      [&what] { return absl::StrJoin(what.tables, ","); },
      "tables to write, separated by commas; empty = all");
  options.Add(
      "type",
      [&what](absl::string_view text) {
        const absl::StatusOr<WireFormat> format = ParseWireFormat(text);
        if (format.ok()) what.format = *format;
        return format.status();
      },
      [&what] { return std::string(WireFormatName(what.format)); },
      "type of the tensors: float32, float16 or bfloat16 (not in NPY)");
  options.Add("timeout", &what.timeout, "longest wait for the values of one table");
  if (const auto code = scheduler.Load(options, count, arguments)) return *code;
  if (const absl::Status status = what.Validate(); !status.ok()) {
    PrintFailure(arguments[0], status);
    return kExitUsage;
  }
  const absl::StatusOr<ExportedModel> model =
      ExportModel(scheduler.target(), job, what, [&](absl::string_view line) {
        WriteAll(STDERR_FILENO, absl::StrCat("covey export: ", line, "\n"));
      });
  if (!model.ok()) {
    PrintFailure(arguments[0], model.status());
    return ExitCodeOf(model.status());
  }
  WriteAll(STDOUT_FILENO, scheduler.json ? JsonOf(what, *model)
                                         : absl::StrCat(DescribeExport(what.path, *model), "\n"));
  return kExitOk;
}

}  // namespace covey::cli
