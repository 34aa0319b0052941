// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/synthetic/options.h"

#include <functional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "worker/examples/choices.h"

namespace covey::synthetic {
namespace {

using examples::InRange;

using Fields = std::vector<absl::string_view>;

// A list separated by commas, of items that `parse` reads from fields separated by colons; empty =
// none.
template <typename Item>
void AddList(ConfigFile& options, absl::string_view name, std::vector<Item>* list,
             std::function<absl::StatusOr<Item>(const Fields&)> parse,
             std::function<std::string(const Item&)> print, absl::string_view help) {
  options.Add(
      name,
      [list, parse](absl::string_view text) -> absl::Status {
        list->clear();
        for (const absl::string_view item : absl::StrSplit(text, ',', absl::SkipEmpty())) {
          COVEY_ASSIGN_OR_RETURN(Item parsed, parse(absl::StrSplit(item, ':')));
          list->push_back(std::move(parsed));
        }
        return absl::OkStatus();
      },
      [list, print] {
        return absl::StrJoin(*list, ",", [&](std::string* out, const Item& item) {
          absl::StrAppend(out, print(item));
        });
      },
      help);
}

absl::StatusOr<Options::Slow> ParseSlow(const Fields& fields) {
  Options::Slow slow;
  if (fields.size() < 2 || fields.size() > 3 || !absl::SimpleAtoi(fields[0], &slow.rank) ||
      !absl::SimpleAtod(fields[1], &slow.factor) || !(slow.factor > 0 && slow.factor <= 1000) ||
      (fields.size() == 3 && !absl::SimpleAtoi(fields[2], &slow.first_step))) {
    return absl::InvalidArgumentError(
        "not accepted; write RANK:FACTOR or RANK:FACTOR:STEP, as in 3:5");
  }
  return slow;
}

absl::StatusOr<Options::Hang> ParseHang(const Fields& fields) {
  Options::Hang hang;
  double seconds = 0;
  if (fields.size() != 3 || !absl::SimpleAtoi(fields[0], &hang.rank) ||
      !absl::SimpleAtoi(fields[1], &hang.step) || !absl::SimpleAtod(fields[2], &seconds) ||
      !(seconds >= 0 && seconds <= 3600)) {
    return absl::InvalidArgumentError("not accepted; write RANK:STEP:SECONDS, as in 3:100:2.5");
  }
  hang.duration = absl::Seconds(seconds);
  return hang;
}

std::string PrintSlow(const Options::Slow& slow) {
  const std::string text = absl::StrCat(slow.rank, ":", slow.factor);
  return slow.first_step == 1 ? text : absl::StrCat(text, ":", slow.first_step);
}

std::string PrintHang(const Options::Hang& hang) {
  return absl::StrCat(hang.rank, ":", hang.step, ":", absl::ToDoubleSeconds(hang.duration));
}

}  // namespace

absl::Status Options::Validate() const {
  COVEY_RETURN_IF_ERROR(InRange("--tensors", tensors, 1, 1000));
  COVEY_RETURN_IF_ERROR(InRange("--tensor-kib", tensor_kib, 1, 262144));
  COVEY_RETURN_IF_ERROR(InRange("--steps", steps, 1, 1e9));
  COVEY_RETURN_IF_ERROR(InRange("--group-batch", group_batch, 1, 1e6));
  COVEY_RETURN_IF_ERROR(InRange("--milliseconds-per-sample", milliseconds_per_sample, 0, 60000));
  COVEY_RETURN_IF_ERROR(
      InRange("--input-milliseconds-per-sample", input_milliseconds_per_sample, 0, 60000));
  COVEY_RETURN_IF_ERROR(InRange("--step-noise", step_noise, 0, 2));
  COVEY_RETURN_IF_ERROR(InRange("--learning-rate", learning_rate, 1e-6, 1));
  COVEY_RETURN_IF_ERROR(InRange("--lag", lag, 0, 1));
  COVEY_RETURN_IF_ERROR(InRange("--bucket-kib", bucket_kib, 0, 1 << 20));
  return InRange("--spread", spread, 0, 1000);
}

void Options::AddTo(ConfigFile& options) {
  options.Add("tensors", &tensors, "tensors of the model");
  options.Add("tensor-kib", &tensor_kib, "size of each tensor, KiB");
  options.Add("steps", &steps, "steps of each group");
  options.Add("group-batch", &group_batch, "examples per step of a whole group");
  options.Add("milliseconds-per-sample", &milliseconds_per_sample,
              "time per example; a wait, not a computation");
  options.Add("input-milliseconds-per-sample", &input_milliseconds_per_sample,
              "time to read an example; a wait before the computation");
  options.Add("step-noise", &step_noise, "standard deviation of the logarithm of a step's time");
  AddList<Slow>(options, "slow", &slow, ParseSlow, PrintSlow,
                "workers that take FACTOR times as long: RANK:FACTOR[:FIRST_STEP],...");
  AddList<Hang>(options, "hang", &hangs, ParseHang, PrintHang,
                "workers that hang once: RANK:STEP:SECONDS,...");
  examples::AddContract(options, &contract);
  examples::AddWireFormat(options, &wire);
  examples::AddValueFormat(options, &value_wire);
  options.Add("update-on-members", &update_on_members,
              "members run the optimizer instead of servers; for one group under bsp");
  options.Add("lag", &lag, "steps by which the values lag: 0 or 1");
  options.Add("bucket-kib", &bucket_kib,
              "KiB of the buckets in which small tensors travel; 0 = each tensor travels alone");
  options.Add("autotune", &autotune,
              "try settings of the group's messages while training, and stay with the fastest");
  options.Add("learning-rate", &learning_rate, "rate of gradient descent; 1 converges in one step");
  options.Add("adam", &adam,
              "Adam instead of gradient descent; it keeps two more numbers per value");
  options.Add("spread", &spread, "distance between the workers' optima");
  options.Add("seed", &seed, "seed of the noise");
  options.Add("step-trace", &step_trace, "append one line per worker and step to this file");
}

}  // namespace covey::synthetic
