#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/runtime/actor.h"
#include "common/tensor/wire_format.h"
#include "worker/group/group_machine.h"
#include "worker/layout/model_layout.h"
#include "worker/update/part_update.h"
#include "worker/update/round_memory.h"
#include "worker/update/server_link.h"

namespace covey::worker {

// One tensor's way through a step or a pull. The memory is the machine's until `done`.
struct Work {
  size_t tensor = 0;
  // Mean over this member's samples; overwritten. Ignored by pulls and flushes.
  std::span<float> gradient;
  // Where the new values go.
  std::span<float> values;
  // Examples behind the gradient; may be 0, then the gradient counts for nothing. A step in which
  // no member has any counts as one example with gradient zero, because each shard must hear of
  // each step.
  uint64_t samples = 0;
  absl::Time deadline = absl::InfiniteFuture();
  // Called once, always. May run inside the call that starts the work.
  std::function<void(absl::Time, const absl::Status&, Outbox&)> done;
};

// One bucket's way through the steps, one after the other:
//
//   Submit of each ─▶ scaled by ─▶ reduce-scatter ─▶ update of own ─▶ all-gather ─▶ values of each
//   tensor            samples                       part (PartUpdate)                tensor: done
//   Pull of each ───────────────────────────────────▶ fetch own part ─┘
//
// A step begins when the last of the bucket's tensors is submitted. Gradients are summed in memory of
// the bucket, so that those of the program stay as they are until the step is over; a tensor alone is
// gathered where the program has it, fused ones, and those below, in memory of the bucket.
//
// With lag 1, a submission is done as soon as its step begins, with the values of the step before;
// the next one waits until this step is over. Flush gives the newest values.
//
// When a step may begin, and when a pull, MayBegin says: the group may be about to change its members.
// Adopt takes the bucket over into the new generation, with what the program has submitted meanwhile.
//
// Stepping aside: StepAside begins the next step in the program's stead, with a gradient of zero
// that counts no samples. A submission for that step, when it comes, is dropped, and is done with
// the newest values once they are there.
//
// When the group loses a member in the middle of a step, Interrupt leaves it where it is: what was
// said and pushed stays so, and everything ends. In the next generation Rejoin goes on from the step
// that the members agree on: values of a step that some member has finished are pulled; a step that
// nobody has finished is done again with the kept gradients. Of LOCAL tables one member that has
// finished the step tells all what is known of the round (round_memory.h), and no server is asked.
//
//   on its way ── Interrupt ──▶ ends ── all frames and answers are back, Rejoin ──▶ pull ──▶ again
//        └── its values are there: finished
//
// Memory: beside that of the program, the bucket's size for gradients, and as much for values, for
// residuals, for kept gradients with lag 1 and for kept residuals each, where needed. Actor-confined. Deterministic. Lives until its last callback.
class BucketFlow : public std::enable_shared_from_this<BucketFlow> {
 public:
  struct Config {
    Bucket bucket;
    // Stream numbers follow from it.
    uint32_t number = 0;
    // "'hidden/weight'", for errors.
    std::string name;
    WireFormat format = WireFormat::kFloat32;
    bool error_feedback = false;
    uint32_t lag = 0;
    std::unique_ptr<PartUpdate> update;
    // Of LOCAL tables.
    std::optional<RoundMemory> memory;
    // The first pull takes over what this rank knows of LOCAL rounds.
    std::optional<uint32_t> heir_of;
  };
  // What its owner decides and hears. The owner outlives it, or calls Retire first.
  struct Environment {
    // Whether a bucket may begin a step, or, with the step it has finished, a pull.
    std::function<bool(uint32_t number, Step step)> may_begin;
    // It has begun or finished a step. `seen_epoch`: as CollectiveResult, of the step finished.
    std::function<void(absl::Time, uint32_t number, uint64_t seen_epoch, Outbox&)> changed;
  };

  // Group and link outlive it. Steps and pulls that are over: it goes on from there.
  BucketFlow(GroupMachine& group, ServerLink& link, Config config, Environment environment,
             Step step, uint64_t pulls);

  // When the group went on without it, it counts for nothing.
  void Submit(absl::Time now, Step step, Work work, Outbox& outbox);
  void Pull(absl::Time now, Work work, Outbox& outbox);
  void Flush(absl::Time now, Work work, Outbox& outbox);
  // Precondition: idle().
  void StepAside(absl::Time now, absl::Time deadline, Outbox& outbox);

  // Begins what waited for may_begin.
  void Advance(absl::Time now, Outbox& outbox);
  // Ends what has not begun.
  void FailWaiting(absl::Time now, const absl::Status& status, Outbox& outbox);
  // The same bucket in a new generation of the group, which goes on after `step`. Submissions of the
  // next step stay so. Precondition: idle(), and nothing may begin yet.
  void Adopt(Bucket bucket, std::unique_ptr<PartUpdate> update, Step step);
  // Once, when all buckets have been adopted: all members pull, because some may be new; the
  // program's values stay as they are. Precondition: idle().
  void PullAnew(absl::Time now, absl::Time deadline, Outbox& outbox);

  // The group leaves this generation where it is: nothing under way can end well any more, unless its
  // values are there.
  void Interrupt();
  // How it goes on in the next generation.
  struct Rejoining {
    Bucket bucket;
    std::unique_ptr<PartUpdate> update;
    // The newest step that any member has finished.
    Step step;
    // The group's steps are those of another group now: the program was at `base`, which is `agreed`.
    bool moved = false;
    Step base;
    Step agreed;
    // All members pull first; `owed`: how many pulls others have begun that this program has yet to
    // ask for.
    bool pull = false;
    uint64_t owed = 0;
    // Of the pull; first all members take over what this rank knows of LOCAL rounds.
    std::optional<uint32_t> heir_of;
    absl::Time deadline;
  };
  // Once after Interrupt, with the same bucket.
  void Rejoin(absl::Time now, Rejoining rejoining, Outbox& outbox);
  // Ends what was interrupted, and what has not begun: there is no next generation.
  void GiveUp(absl::Time now, const absl::Status& status, Outbox& outbox);

  // Its owner goes; what is under way ends by itself.
  void Retire() { environment_ = Environment(); }

  // Nothing is under way.
  bool idle() const { return !journey_ && !again_ && !rejoining_; }
  // The newest step that has begun here, and the newest that is over.
  Step step() const { return step_; }
  Step finished() const { return gathered() && in_step() ? step_ : finished_; }
  // A pull is under way, and its values are not there.
  bool pulling() const { return journey_ && !in_step() && !gathered(); }
  // The program is at `step` or beyond, and will not submit the step to begin next.
  bool IsBehind(Step step) const { return step_.Next() < step && !HasSubmitted(step_.Next()); }
  // The program has submitted all of `step`, which waits.
  bool HasSubmitted(Step step) const { return complete(submissions_) && submitted_ == step; }
  // Something waits that has not begun, or was interrupted.
  bool waiting() const {
    return !submissions_.empty() || !pull_requests_.empty() || !deliveries_.empty() || again_ ||
           quiet();
  }
  // The soonest deadline of what waits, for a group that forms or another step or pull to be over.
  absl::Time Due() const;
  const Bucket& bucket() const { return bucket_; }
  const std::string& name() const { return name_; }
  WireFormat format() const { return format_; }
  uint64_t pulls() const { return pulls_; }
  // It knows of LOCAL rounds what a member of the next generation may need.
  bool knows_rounds() const { return memory_ && !memory_->empty(); }
  // Up to this step.
  Step rounds_known() const { return memory_ ? memory_->learned() : Step(); }

 private:
  // A step or a pull on its way.
  struct Journey {
    std::span<float> gradient;  // empty: a pull
    std::span<float> values;
    uint64_t samples = 0;
    absl::Time deadline;
    bool in_own_memory = false;  // the values
    bool aside = false;          // the gradient is zero
    bool again = false;          // it was interrupted before
    bool gathered = false;       // the values are there
    bool interrupted = false;
    bool inherited = false;   // a pull of what the members know
    Step read;                // of a pull: what the values must hold
    std::vector<Work> works;  // done when it is over
    uint64_t seen_epoch = 0;  // of the gather
    int unfinished = 0;       // stages
    absl::Status status;
  };

  bool complete(const std::vector<Work>& works) const {
    return works.size() == bucket_.pieces.size();
  }
  bool MayBegin(Step step) const {
    return !environment_.may_begin || environment_.may_begin(number_, step);
  }
  void TellChange(absl::Time now, uint64_t seen_epoch, Outbox& outbox) {
    if (environment_.changed) environment_.changed(now, number_, seen_epoch, outbox);
  }
  void BeginStep(absl::Time now, Outbox& outbox);
  // `works` of the whole bucket, or none: then nobody gets the values but the other members.
  // `read`: what the values must hold.
  void BeginPull(absl::Time now, std::vector<Work> works, absl::Time deadline, Step read,
                 Outbox& outbox);
  bool in_step() const { return journey_ && !journey_->gradient.empty(); }
  bool gathered() const { return journey_ && journey_->gathered; }
  // Interrupted, and nobody refers to its memory any more.
  bool quiet() const { return journey_ && journey_->interrupted && journey_->unfinished == 0; }
  void Resume(absl::Time now, Outbox& outbox);
  void BeginAgain(absl::Time now, Outbox& outbox);
  void UseOwnMemory(Journey& journey);
  void Pack(const std::vector<Work>& works);
  void Deliver(absl::Time now, std::vector<Work> works, Outbox& outbox);

  void StartReduce(absl::Time now, Outbox& outbox);
  void StartGather(absl::Time now, const CollectiveId& id, Outbox& outbox);
  void StartInheriting(absl::Time now, uint32_t root, Outbox& outbox);
  void Remember(const CollectiveResult& gathered);
  void Exchange(absl::Time now, const CollectiveResult& sum, Outbox& outbox);
  void Settle(absl::Time now, const absl::Status& status, Outbox& outbox);

  GroupMachine& group_;
  ServerLink& link_;
  Environment environment_;
  Bucket bucket_;
  const uint32_t number_;
  const std::string name_;
  const WireFormat format_;
  const uint32_t lag_;
  std::unique_ptr<PartUpdate> update_;
  std::optional<RoundMemory> memory_;
  std::optional<uint32_t> heir_of_;  // for the next pull

  Step step_;
  Step finished_;
  uint64_t pulls_ = 0;
  CollectiveId gather_;  // of the journey under way
  std::optional<Journey> journey_;
  std::optional<Journey> again_;        // an interrupted step, to be done again when idle
  std::optional<Rejoining> rejoining_;  // waits for the interrupted journey to be quiet
  bool stopped_ = false;                // from Interrupt to Rejoin
  uint64_t owed_pulls_ = 0;
  Step submitted_;                 // what `submissions_` are for
  std::vector<Work> submissions_;  // of the next step, or, after stepping aside, of a later one
  std::vector<Work> pull_requests_;
  std::vector<Work> deliveries_;  // done with the newest values when idle
  std::vector<float> gradient_;
  std::vector<float> values_;
  std::vector<float> residual_;
  // As they were when the step began.
  std::vector<float> kept_gradient_;  // with lag 1
  std::vector<float> kept_residual_;
};

}  // namespace covey::worker
