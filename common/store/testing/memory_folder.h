// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/store/folder.h"

namespace covey {

// A store in memory, for tests: a disk that keeps what was synced and may lose everything else in a
// crash. Names are separate from bytes: a synced file is lost when the name in its folder is not
// synced, or its folder's name in the store.
//
// Every system call is an operation, and faults are planned by its number. Deterministic.
// Thread-compatible.
class MemoryFolder : public Folder {
 public:
  enum class Fault {
    kIoError,     // fails without effect; a failed sync loses what it should have made durable
    kNoSpace,     // fails without effect
    kShortWrite,  // a write takes half of the bytes, at least one; others succeed
    kPowerCut,    // this operation and all later ones fail without effect
  };
  // How the disk lies, for negative controls.
  enum class Lie { kNone, kForgetsFolderSyncs };

  explicit MemoryFolder(Lie lie = Lie::kNone) : lie_(lie) {}

  // The operations so far, failed ones included.
  uint64_t operations() const { return operations_; }
  // Operation `number`, from 1, meets this fault.
  void PlanFault(uint64_t number, Fault fault) { faults_[number] = fault; }
  void ForgetFaults() { faults_.clear(); }

  // Calls `visit` with a store for each state that a crash at this point may leave: all unsynced
  // changes are lost, all are kept, each single one is lost, each single one is kept, the last
  // write is torn at 3 places. `state` says which.
  void ForEachCrashState(
      absl::FunctionRef<void(MemoryFolder& crashed, const std::string& state)> visit) const;

  // A store as a crash at this point may leave it. `draw(n)` returns a number below n: whether all
  // unsynced changes are lost or kept, or which of them, and where a write is torn.
  std::unique_ptr<MemoryFolder> CrashState(absl::FunctionRef<uint64_t(uint64_t)> draw) const;

  // The bytes of a file, to be read or damaged. Precondition: it exists.
  std::string& BytesOf(const std::string& path);
  // Adds a durable file, and its folder.
  void AddFile(const std::string& path, std::string bytes);

  // Opens a file that is there for writing to its end. NOT_FOUND.
  absl::Status OpenFile(const std::string& path);
  // Leaves nothing in an open file.
  absl::Status EmptyFile(const std::string& path);
  // The process that uses it ends, and another may begin: no file is open, what is not synced is
  // still there, and no planned fault remains.
  void EndProcess();

  // The system calls, also for those who have other rules than Folder.
  absl::Status MakeFolder(const std::string& path) override;
  absl::Status CreateFile(const std::string& path) override;
  absl::StatusOr<size_t> WriteSome(const std::string& path, Bytes bytes) override;
  absl::Status SyncFile(const std::string& path) override;
  absl::Status CloseFile(const std::string& path) override;
  absl::Status SyncFolder(const std::string& path) override;
  // An open file stays open, under its new name.
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status RemoveFile(const std::string& path) override;
  absl::Status RemoveFolder(const std::string& path) override;
  absl::StatusOr<FolderEntry> Look(const std::string& path) override;
  absl::Status ReadAll(const std::string& path, uint64_t offset, std::span<uint8_t> bytes) override;
  absl::StatusOr<std::vector<FolderEntry>> Entries(const std::string& path) override;

 private:
  // A file or folder; numbered, because it may have lost its name or have two.
  struct Node {
    bool is_folder = false;
    std::string bytes;
    std::map<std::string, int> names;
  };
  // The disk's files and folders by number; the store's own folder is 0.
  struct State {
    std::map<int, Node> nodes = {{0, {.is_folder = true, .bytes = {}, .names = {}}}};
  };
  // A change that is not durable yet.
  struct Change {
    int node = 0;
    // Of a file: bytes written at `offset`, or that nothing is left.
    uint64_t offset = 0;
    std::string bytes;
    bool is_emptied = false;
    // Of a folder: the name that goes, and the one that comes and its node.
    std::string removed;
    std::string added;
    int added_node = 0;
    bool added_is_folder = false;
  };

  static void Apply(const Change& change, State& state);
  // The store after a crash that keeps these of the pending changes.
  std::unique_ptr<MemoryFolder> Crashed(const std::vector<Change>& kept) const;
  static const Node* Find(const State& state, const std::string& path, int* number);

  // Counts an operation. The fault that it meets, as a status; kShortWrite is no failure.
  absl::Status Begin(absl::string_view action, const std::string& path);
  // The number of the folder that holds `path`, and the name in there; NOT_FOUND.
  absl::StatusOr<int> FolderNode(const std::string& path, std::string* name) const;
  absl::Status AddNode(const std::string& path, bool is_folder);
  absl::Status Drop(const std::string& path, bool is_folder);
  // Changes the volatile state, and remembers the change until it is synced.
  void Record(Change change);
  // Makes the pending changes of a node durable.
  void Settle(int node);

  const Lie lie_;
  State volatile_;
  State durable_;
  std::vector<Change> pending_;
  int next_node_ = 1;
  uint64_t operations_ = 0;
  std::map<uint64_t, Fault> faults_;
  bool power_is_cut_ = false;
  bool next_write_is_short_ = false;
  // Files being written; their nodes, since a name may change.
  std::map<std::string, int> open_;
};

}  // namespace covey
