#include "client/cli/tables_command.h"

#include <unistd.h>

#include "client/cli/command.h"
#include "client/cli/scheduler_options.h"
#include "client/cli/scheduler_stub.h"
#include "client/cli/status_view.h"
#include "client/cli/text_file.h"

namespace covey::cli {

int TablesCommand(int count, const char* const* arguments) {
  SchedulerOptions asked;
  ConfigFile options("covey tables", "Shows the tables of a cluster, their contracts and sizes.");
  asked.AddTo(options);
  if (const auto code = asked.Load(options, count, arguments)) return *code;

  const absl::StatusOr<proto::ListTablesReply> tables = SchedulerStub(asked.scheduler).ListTables();
  if (!tables.ok()) {
    PrintFailure(arguments[0], tables.status());
    return ExitCodeOf(tables.status());
  }
  WriteAll(STDOUT_FILENO, asked.json ? TablesJson(*tables) : TablesText(*tables));
  return kExitOk;
}

}  // namespace covey::cli
