// SPDX-License-Identifier: Apache-2.0
#include "client/cli/snapshot/snapshot_command.h"

#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/cli/console/command.h"
#include "client/cli/console/figures.h"
#include "client/cli/console/json_text.h"
#include "client/cli/console/text_file.h"
#include "client/cli/scheduler/scheduler_options.h"
#include "client/cli/snapshot/snapshot_create.h"
#include "client/cli/snapshot/snapshot_delete.h"
#include "client/cli/snapshot/snapshot_export.h"
#include "client/cli/snapshot/snapshot_import.h"
#include "client/cli/snapshot/snapshot_restore.h"
#include "client/cli/snapshot/snapshot_view.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/runtime/config_file.h"
#include "common/runtime/process_main.h"
#include "common/snapshot/manifest.h"
#include "common/snapshot/snapshot_reader.h"
#include "common/store/disk_folder.h"

namespace covey::cli {
namespace {

struct Asked {
  SchedulerOptions scheduler;  // of `create` and `restore`
  std::string store;           // of the others
  bool force = false;
  bool lists_files = false;  // of `show`
  absl::Duration timeout = absl::Minutes(10);
  // Of `export`: the file to write.
  std::string out;
  // The action, and the name of a snapshot; empty = the newest complete one. Of `import`:
  // the name that the snapshot gets.
  std::string action;
  std::string name;
  // Of `import`: the paths to read.
  std::vector<std::string> files;
  // Of `restore`: NAME[=NEWNAME].
  std::vector<std::string> tables;
  proto::RestoreTablesRequest restore;

  bool json() const { return scheduler.json; }
};

absl::Status CheckStore(const Asked& asked) {
  if (!asked.store.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("no store given; pass --store DIR or set COVEY_STORE");
}

absl::Status SetImport(const std::vector<std::string>& words, Asked& asked) {
  asked.files.assign(words.begin() + 1, words.end());
  if (asked.files.empty()) {
    return absl::InvalidArgumentError(
        "no file given; write import model.safetensors, import weight.npy, or a model's folder");
  }
  if (asked.name.empty()) asked.name = ImportNameOf(asked.files[0]);
  if (IsImportFolderName(ImportFolderName(asked.name))) return CheckStore(asked);
  return absl::InvalidArgumentError(
      absl::StrCat("'", asked.name,
                   "' cannot be the name of an import; pass --name, of letters, "
                   "digits, '.', '_' and '-'"));
}

absl::Status SetWords(const std::vector<std::string>& words, Asked& asked) {
  constexpr char kHow[] =
      "write create, restore NAME, list, show [NAME], verify [NAME], export [NAME], import FILE... "
      "or delete NAME";
  if (words.empty()) return absl::InvalidArgumentError(absl::StrCat("what is to be done? ", kHow));
  asked.action = words[0];
  if (asked.action == "import") return SetImport(words, asked);
  if (!asked.name.empty()) return absl::InvalidArgumentError("only import takes --name");
  if (words.size() > 1) asked.name = words[1];
  const bool makes = asked.action == "create";
  const bool restores = asked.action == "restore";
  if (!restores && !asked.tables.empty()) {
    return absl::InvalidArgumentError("only restore takes --table");
  }
  const bool one_word = (makes || asked.action == "list") && words.size() == 1;
  const bool two_words = (restores || asked.action == "delete") && words.size() == 2;
  const bool reads = asked.action == "show" || asked.action == "verify" || asked.action == "export";
  const bool either = reads && words.size() <= 2;
  if (!one_word && !two_words && !either) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", words[0], "' with ", words.size() - 1, " words after it; ", kHow));
  }
  if (asked.action == "export" && asked.out.empty()) {
    return absl::InvalidArgumentError("no file given; pass --out, as in --out model.safetensors");
  }
  if (asked.lists_files && asked.action != "show") {
    return absl::InvalidArgumentError("only show takes --files");
  }
  if (restores) {
    COVEY_ASSIGN_OR_RETURN(asked.restore, RestoreRequest(asked.name, asked.tables));
  }
  return makes || restores ? asked.scheduler.Check() : CheckStore(asked);
}

// What a snapshot uses of earlier ones, after its own bytes.
std::string AndReused(uint64_t bytes) {
  return bytes == 0 ? "" : absl::StrCat(", and ", ShowBytes(bytes), " of earlier snapshots,");
}

absl::StatusOr<std::string> Create(const Asked& asked) {
  COVEY_ASSIGN_OR_RETURN(const proto::SnapshotStatus made,
                         CreateSnapshot(asked.scheduler.target(), asked.timeout));
  if (!asked.json()) {
    return absl::StrCat(
        made.folder(), " is complete: ", ShowBytes(made.bytes()), AndReused(made.reused_bytes()),
        " after ", absl::FormatDuration(absl::Milliseconds(static_cast<int64_t>(made.took_ms()))),
        "\n");
  }
  const nlohmann::ordered_json json = {{"name", made.folder()},
                                       {"id", made.id()},
                                       {"bytes", made.bytes()},
                                       {"reused_bytes", made.reused_bytes()},
                                       {"took_ms", made.took_ms()}};
  return json.dump(2) + "\n";
}

absl::StatusOr<std::string> Restore(const Asked& asked) {
  COVEY_ASSIGN_OR_RETURN(const proto::RestoreStatus restored,
                         RestoreTables(asked.scheduler.target(), asked.restore, asked.timeout));
  return asked.json() ? RestoredJson(restored) : RestoredText(restored);
}

absl::StatusOr<std::string> List(const Asked& asked, Folder& store) {
  COVEY_ASSIGN_OR_RETURN(const std::vector<SnapshotSummary> snapshots, ListSnapshots(store));
  return asked.json() ? SnapshotsJson(snapshots) : SnapshotsText(snapshots);
}

absl::StatusOr<std::string> Show(const Asked& asked, Folder& store) {
  COVEY_ASSIGN_OR_RETURN(const SnapshotReader reader, SnapshotReader::Open(store, asked.name));
  const proto::SnapshotManifest& manifest = reader.manifest();
  if (asked.lists_files) {
    return asked.json() ? SnapshotFilesJson(manifest) : SnapshotFilesText(manifest);
  }
  return asked.json() ? SnapshotJson(manifest, reader.bytes())
                      : SnapshotText(manifest, reader.bytes());
}

// Says on standard error how far it is, once per second.
absl::Status VerifyAloud(const SnapshotReader& reader) {
  absl::Time last = MonotonicNow();
  return reader.Verify([&last](uint64_t done, uint64_t all) {
    if (WaitForTermination(absl::ZeroDuration())) {
      return absl::CancelledError("interrupted; not all was verified");
    }
    if (const absl::Time now = MonotonicNow(); now - last >= absl::Seconds(1)) {
      last = now;
      WriteAll(STDERR_FILENO, absl::StrCat("covey snapshot: verified ", ShowBytes(done), " of ",
                                           ShowBytes(all), "\n"));
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::string> Verify(const Asked& asked, Folder& store) {
  COVEY_ASSIGN_OR_RETURN(const SnapshotReader reader, SnapshotReader::Open(store, asked.name));
  COVEY_RETURN_IF_ERROR(VerifyAloud(reader));
  const int files = reader.manifest().files_size() + 1;
  if (!asked.json()) {
    return absl::StrCat(asked.name,
                        " is intact: ", ShowBytes(reader.bytes() + reader.reused_bytes()), " in ",
                        files, " files\n");
  }
  const nlohmann::ordered_json json = {{"name", asked.name},
                                       {"intact", true},
                                       {"bytes", reader.bytes()},
                                       {"reused_bytes", reader.reused_bytes()},
                                       {"files", files}};
  return json.dump(2) + "\n";
}

absl::StatusOr<std::string> Export(const Asked& asked, Folder& store) {
  COVEY_ASSIGN_OR_RETURN(const SnapshotReader reader, SnapshotReader::Open(store, asked.name));
  COVEY_ASSIGN_OR_RETURN(const uint64_t bytes, ExportSnapshot(reader, asked.out));
  if (!asked.json()) {
    return absl::StrCat("wrote ", asked.out, ": the values of ", asked.name, ", ", ShowBytes(bytes),
                        "\n");
  }
  const nlohmann::ordered_json json = {{"name", asked.name}, {"file", asked.out}, {"bytes", bytes}};
  return json.dump(2) + "\n";
}

absl::StatusOr<std::string> Import(const Asked& asked, Folder& store) {
  const std::string folder = ImportFolderName(asked.name);
  COVEY_ASSIGN_OR_RETURN(const Imported imported, ImportFiles(asked.files, folder, store));
  for (const std::string& skipped : imported.skipped) {
    WriteAll(STDERR_FILENO, absl::StrCat("covey snapshot: skipped ", skipped, "\n"));
  }
  if (!asked.json()) {
    return absl::StrCat("imported ", folder, ": ", imported.tables, " tables, ",
                        ShowBytes(imported.bytes), "\n");
  }
  const nlohmann::ordered_json json = {{"name", folder},
                                       {"tables", imported.tables},
                                       {"bytes", imported.bytes},
                                       {"skipped", imported.skipped}};
  return JsonText(json);
}

absl::StatusOr<std::string> Delete(const Asked& asked, Folder& store) {
  COVEY_ASSIGN_OR_RETURN(const DeletedSnapshot deleted,
                         DeleteSnapshot(store, asked.name, asked.force));
  if (asked.json()) {
    const nlohmann::ordered_json json = {
        {"deleted", asked.name}, {"kept_files", deleted.kept}, {"needed_by", deleted.needed_by}};
    return json.dump(2) + "\n";
  }
  if (deleted.kept.empty()) return absl::StrCat("deleted ", asked.name, "\n");
  return absl::StrCat("deleted ", asked.name, "; files that stay, because ",
                      absl::StrJoin(deleted.needed_by, ", "),
                      " needs them: ", absl::StrJoin(deleted.kept, ", "), "\n");
}

absl::StatusOr<std::string> Run(Asked asked) {
  if (asked.action == "create") return Create(asked);
  if (asked.action == "restore") return Restore(asked);
  COVEY_ASSIGN_OR_RETURN(
      const std::unique_ptr<DiskFolder> store,
      DiskFolder::Open(asked.store, asked.action == "import" ? DiskFolder::Missing::kIsCreated
                                                             : DiskFolder::Missing::kIsError));
  if (asked.action == "list") return List(asked, *store);
  if (asked.action == "import") return Import(asked, *store);
  COVEY_ASSIGN_OR_RETURN(asked.name,
                         FindSnapshot(*store, asked.name.empty() ? kNewestSnapshot : asked.name));
  if (asked.action == "delete") return Delete(asked, *store);
  if (asked.action == "export") return Export(asked, *store);
  return asked.action == "show" ? Show(asked, *store) : Verify(asked, *store);
}

}  // namespace

int SnapshotCommand(int count, const char* const* arguments) {
  Asked asked;
  std::vector<std::string> words;
  ConfigFile options(
      "covey snapshot",
      "Makes a snapshot of a running job (create), or tables of a snapshot in a "
      "running job (restore), and lists, shows, verifies, exports, imports and "
      "deletes those in a folder, which needs no running job. `restore` makes all "
      "tables of the snapshot, or those that --table names, with values, optimizer "
      "state and samples, and waits until they are ready; when one cannot be made, "
      "none is. `verify` reads every byte, and names the file and offset of the first "
      "damage. `export` writes the values of all tables to a safetensors file, as "
      "float32. `import` reads FILEs that other programs wrote: .safetensors, .npy, "
      "or the folder of a model; tables of a new job may begin with their values "
      "(--initial-values). "
      "Exit code: 0 ok, 1 failed or damaged, 3 no scheduler answers.");
  options.Add("store", &asked.store,
              "folder with the snapshots; required, except for create and restore");
  options.Add("scheduler", &asked.scheduler.scheduler,
              "create, restore: HOST:PORT[,HOST:PORT] of the job's scheduler");
  options.Add("tls", &asked.scheduler.tls,
              "create, restore: folder of your certificate, where the scheduler has --tls");
  options.Add("timeout", &asked.timeout, "create, restore: give up waiting after this duration");
  options.Add("table", &asked.tables,
              "restore: NAME[=NEWNAME], a table of the snapshot, and its name in the job when "
              "that is another one; may be given several times. Without it all tables");
  options.Add("files", &asked.lists_files,
              "show: only the paths of all files that the snapshot needs, for programs that copy "
              "it; some may be in folders of earlier snapshots");
  options.Add("force", &asked.force,
              "delete: also the newest complete snapshot, or one that may be in the making");
  options.Add("out", &asked.out, "export: file to write, as in model.safetensors");
  options.Add("name", &asked.name,
              "import: the NAME in import-NAME; without it the name of the first file");
  AddOutput(options, &asked.scheduler.json);
  options.TakeRest(
      &words,
      "create | restore NAME | list | show [NAME] | verify [NAME] | export [NAME] | import FILE... "
      "| "
      "delete NAME   NAME as `list` shows it, or its id; without it the newest complete "
      "snapshot of a job");
  if (const auto code = LoadWithShortOutput(options, count, arguments)) return *code;
  if (const absl::Status status = SetWords(words, asked); !status.ok()) {
    PrintFailure(arguments[0], status);
    return kExitUsage;
  }
  const absl::StatusOr<std::string> output = Run(asked);
  if (!output.ok()) {
    PrintFailure(arguments[0], output.status());
    return ExitCodeOf(output.status());
  }
  WriteAll(STDOUT_FILENO, *output);
  return kExitOk;
}

}  // namespace covey::cli
