// SPDX-License-Identifier: Apache-2.0
#include "server/replication/push_history.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/planted_bug.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"

namespace covey::server {

namespace {

// Stands for a version of a discarded push; no shard reaches it.
constexpr Version kDiscarded{std::numeric_limits<uint64_t>::max() - 1};

// Whether sequences continue in a new incarnation: a group continues its steps when its members
// change, a client begins at 1.
bool CountsOn(const Producer& producer) {
  return producer.kind == Producer::Kind::kGroup && !Planted(PlantedBug::kForgetStepsOfGroup);
}

}  // namespace

PushKey KeyOf(const proto::PushId& id) {
  return {.producer = {.kind = id.producer_kind() == proto::PushId::GROUP ? Producer::Kind::kGroup
                                                                          : Producer::Kind::kClient,
                       .id = id.producer()},
          .incarnation = id.producer_incarnation(),
          .sequence = id.sequence()};
}

absl::StatusOr<PushHistory::Finding> PushHistory::Find(const PushKey& key) const {
  const auto found = entries_.find(key.producer);
  if (found == entries_.end()) return Finding{};
  const Entry& entry = found->second;
  if (key.incarnation > entry.incarnation && !CountsOn(key.producer)) return Finding{};
  if (key.incarnation < entry.incarnation) {
    return absl::AbortedError(absl::StrCat("incarnation ", key.incarnation,
                                           " of the producer has been replaced by ",
                                           entry.incarnation, "; stop, or join the cluster again"));
  }
  const DedupWindow::Finding finding = entry.window.Find(key.sequence);
  if (finding.verdict == DedupWindow::Verdict::kTooOld) {
    return absl::InvalidArgumentError(absl::StrCat(
        "sequence ", key.sequence, " is too old: the last ", kDedupWindow, " up to ",
        entry.window.highest(), " are remembered; use the next sequence for a new push"));
  }
  const bool discarded = finding.version == kDiscarded;
  return Finding{.known = finding.verdict == DedupWindow::Verdict::kDuplicate,
                 .discarded = discarded,
                 .version = discarded ? Version() : finding.version};
}

bool PushHistory::Contains(const Producer& producer, uint64_t sequence) const {
  const auto entry = entries_.find(producer);
  return entry != entries_.end() &&
         entry->second.window.Find(sequence).verdict != DedupWindow::Verdict::kNew;
}

void PushHistory::Note(const PushKey& key, Version version) {
  Entry& entry = entries_[key.producer];
  if (key.incarnation > entry.incarnation) {
    if (!CountsOn(key.producer)) entry.window = DedupWindow();
    entry.incarnation = key.incarnation;
  } else if (key.incarnation < entry.incarnation && !CountsOn(key.producer)) {
    return;
  }
  entry.last_use = ++uses_;
  switch (entry.window.Find(key.sequence).verdict) {
    case DedupWindow::Verdict::kNew:
      entry.window.Record(key.sequence, version);
      break;
    case DedupWindow::Verdict::kDuplicate:
      entry.window.SetVersion(key.sequence, version);
      break;
    case DedupWindow::Verdict::kTooOld:
      break;
  }
}

void PushHistory::NoteDiscarded(const PushKey& key) { Note(key, kDiscarded); }

void PushHistory::NoteNorm(const Producer& producer, float norm, bool is_beyond) {
  const auto entry = entries_.find(producer);
  if (entry != entries_.end()) entry->second.norms.Note(norm, is_beyond);
}

std::optional<float> PushHistory::UsualNorm(absl::FunctionRef<bool(const Producer&)> counts) const {
  std::vector<float> usual;
  for (const auto& [producer, entry] : entries_) {
    if (entry.norms.is_known() && counts(producer)) usual.push_back(entry.norms.usual());
  }
  if (usual.empty()) return std::nullopt;
  const auto median = usual.begin() + static_cast<ptrdiff_t>((usual.size() - 1) / 2);
  std::nth_element(usual.begin(), median, usual.end());
  return *median;
}

void PushHistory::ForEachNorm(
    absl::FunctionRef<void(const Producer&, const PushNorms&)> call) const {
  for (const auto& [producer, entry] : entries_) {
    if (entry.norms.pushes() > 0) call(producer, entry.norms);
  }
}

std::vector<Producer> PushHistory::Forgettable(
    absl::FunctionRef<bool(const Producer&)> is_gone) const {
  std::vector<Producer> found;
  for (const auto& [producer, entry] : entries_) {
    if (entry.last_use < uses_ && is_gone(producer)) found.push_back(producer);
  }
  return found;
}

void PushHistory::ForgetNorms() {
  for (auto& [producer, entry] : entries_) entry.norms = PushNorms();
}

void PushHistory::Describe(absl::FunctionRef<void(proto::ProducerRecord)> add) const {
  for (const auto& [producer, entry] : entries_) {
    proto::ProducerRecord record;
    record.set_kind(producer.kind == Producer::Kind::kGroup ? proto::PushId::GROUP
                                                            : proto::PushId::CLIENT);
    record.set_producer(producer.id);
    record.set_incarnation(entry.incarnation);
    record.set_last_use(entry.last_use);
    record.set_window_begin(entry.window.Floor());
    entry.window.ForEach([&record](uint64_t sequence, Version version) {
      record.add_sequences(sequence);
      record.add_versions(version == kDiscarded ? 0 : version.value());
    });
    if (entry.norms.pushes() > 0) *record.mutable_norms() = entry.norms.ToProto();
    add(std::move(record));
  }
}

absl::Status PushHistory::Restore(const proto::ProducerRecord& record) {
  const Producer producer{.kind = record.kind() == proto::PushId::GROUP ? Producer::Kind::kGroup
                                                                        : Producer::Kind::kClient,
                          .id = record.producer()};
  Entry entry{.incarnation = record.incarnation(), .last_use = record.last_use()};
  bool good = record.sequences_size() == record.versions_size() &&
              record.sequences_size() <= static_cast<int>(kDedupWindow) &&
              entries_.size() < 2 * kProducersPerShardMax && !Knows(producer);
  for (int i = 0; good && i < record.sequences_size(); ++i) {
    good = i == 0 ? record.sequences(i) > 0 : record.sequences(i) > record.sequences(i - 1);
    const uint64_t version = record.versions(i);
    if (good)
      entry.window.Record(record.sequences(i), version == 0 ? kDiscarded : Version(version));
  }
  if (!good || entry.window.Floor() != record.window_begin()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the content's record of producer ", producer.id,
                     " is no honest one; this is a bug, or servers of different versions"));
  }
  if (record.has_norms()) {
    COVEY_ASSIGN_OR_RETURN(entry.norms, PushNorms::FromProto(record.norms()));
  }
  uses_ = std::max(uses_, entry.last_use);
  entries_.emplace(producer, std::move(entry));
  return absl::OkStatus();
}

uint64_t PushHistory::Digest() const {
  uint64_t digest = MixBits(entries_.size());
  const auto take_in = [&digest](uint64_t value) { digest = MixBits(digest ^ value); };
  for (const auto& [producer, entry] : entries_) {
    take_in(producer.id * 2 + (producer.kind == Producer::Kind::kGroup));
    take_in(entry.incarnation);
    take_in(entry.last_use);
    entry.window.ForEach([&](uint64_t sequence, Version version) {
      take_in(sequence);
      take_in(version.value());
    });
    if (entry.norms.pushes() > 0) {
      const proto::PushNorms norms = entry.norms.ToProto();
      take_in(norms.usual_bits());
      take_in(norms.pushes());
      take_in(norms.beyond());
      take_in(norms.beyond_in_row());
    }
  }
  return digest;
}

}  // namespace covey::server
