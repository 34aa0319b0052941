// SPDX-License-Identifier: Apache-2.0
#include "common/faults/fault_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"

namespace covey {
namespace {

std::string ErrorOf(const std::string& text) {
  const auto plan = ParseFaultPlan(text, "faults.yaml");
  return plan.ok() ? "OK" : std::string(plan.status().message());
}

Fault DrawFault(Random& random) {
  const auto kinds = AllFaultKinds();
  const auto duration = [&random] {
    return absl::Nanoseconds(1 + random.Below(uint64_t{1} << 45));
  };
  Fault fault{.at = duration(),
              .kind = kinds[random.Below(kinds.size())],
              .target = absl::StrCat("server-", random.Below(9)),
              .other = absl::StrCat("worker_", random.Below(9)),
              .by = duration(),
              .chance = random.Uniform() + 1e-9,
              .factor = 1 + 1e6 * random.Uniform(),
              .bits_per_second = 1 + random.Next() / 2,
              .loop = 1 + random.Below(9)};
  if (random.Chance(0.8)) fault.duration = duration();
  return fault;
}

// Removes the arguments that the kind does not use, as the messages of Validate say.
Fault Fit(Fault fault) {
  for (absl::Status status = Validate(fault); !status.ok(); status = Validate(fault)) {
    const std::string text(status.message());
    const auto says = [&text](const char* part) { return text.find(part) != std::string::npos; };
    if (says("no `for`")) fault.duration = absl::InfiniteDuration();
    if (says("no args.other")) fault.other.clear();
    if (says("no args.by")) fault.by = absl::ZeroDuration();
    if (says("no args.chance")) fault.chance = 0;
    if (says("no args.factor")) fault.factor = 0;
    if (says("no args.bits_per_second")) fault.bits_per_second = 0;
    if (says("no args.loop")) fault.loop = 0;
    if (!says("no `for`") && !says("takes no")) {
      ADD_FAILURE() << text;
      return fault;
    }
  }
  return fault;
}

TEST(FaultFileTest, ReadsEachField) {
  const auto plan = ParseFaultPlan(
      "# The whole story.\n"
      "- at: 2.5s\n"
      "  for: 300ms\n"
      "  kind: one-way-partition\n"
      "  target: server-0\n"
      "  args: {other: worker-1}\n"
      "- {kind: loss, target: \"*\", args: {chance: 0.05}}\n",
      "faults.yaml");
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(2u, plan->size());
  EXPECT_EQ((Fault{.at = absl::Milliseconds(2500),
                   .duration = absl::Milliseconds(300),
                   .kind = FaultKind::kOneWayPartition,
                   .target = "server-0",
                   .other = "worker-1"}),
            plan->at(0));
  EXPECT_EQ(2, plan->at(0).line);
  EXPECT_EQ((Fault{.kind = FaultKind::kLoss, .target = "*", .chance = 0.05}), plan->at(1));
  EXPECT_EQ(7, plan->at(1).line);
}

TEST(FaultFileTest, PrintsWhatReadsBackTheSame) {
  Random random(7);
  FaultPlan plan;
  for (int i = 0; i < 500; ++i) plan.push_back(Fit(DrawFault(random)));
  plan.push_back({.kind = FaultKind::kRate, .target = "*", .bits_per_second = 1'000'000});
  const std::string text = PrintFaultPlan(plan);
  const auto again = ParseFaultPlan(text, "faults.yaml");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(plan, *again);
  EXPECT_EQ(text, PrintFaultPlan(*again));
}

TEST(FaultFileTest, PrintsForPeople) {
  EXPECT_EQ("{at: 1m30s, for: 300ms, kind: delay, target: server-0, args: {other: a, by: 2ms}}",
            PrintFault({.at = absl::Seconds(90),
                        .duration = absl::Milliseconds(300),
                        .kind = FaultKind::kDelay,
                        .target = "server-0",
                        .other = "a",
                        .by = absl::Milliseconds(2)}));
}

TEST(FaultFileTest, NothingIsAnEmptyPlan) {
  EXPECT_EQ("OK", ErrorOf(""));
  EXPECT_EQ("OK", ErrorOf("# nothing\n"));
  EXPECT_EQ("OK", ErrorOf("[]"));
}

TEST(FaultFileTest, SaysWhereAndWhatIsWrong) {
  EXPECT_EQ("faults.yaml:2: unknown kind \"kil\"; did you mean \"kill\"?",
            ErrorOf("\n- {kind: kil, target: server-0}\n"));
  EXPECT_EQ("faults.yaml:3: unknown key \"traget\"; did you mean \"target\"?",
            ErrorOf("- at: 1s\n  kind: kill\n  traget: server-0\n"));
  EXPECT_EQ("faults.yaml:1: unknown key \"chanse\"; did you mean \"chance\"?",
            ErrorOf("- {kind: loss, target: a, args: {chanse: 1}}"));
  EXPECT_EQ("faults.yaml:1: needs a kind", ErrorOf("- {target: a}"));
  EXPECT_EQ("faults.yaml:1: needs a target", ErrorOf("- {kind: kill}"));
  EXPECT_EQ("faults.yaml:1: \"at\" is given twice", ErrorOf("- {at: 1s, at: 2s, kind: kill}"));
  EXPECT_EQ("faults.yaml:1: at is \"soon\", not a time like \"2.5s\" or \"300ms\"",
            ErrorOf("- {at: soon, kind: kill, target: a}"));
  EXPECT_EQ("faults.yaml:1: at is \"-1s\", not a time like \"2.5s\" or \"300ms\"",
            ErrorOf("- {at: -1s, kind: kill, target: a}"));
  EXPECT_EQ("faults.yaml:1: not a list of faults; begin each with \"- \"", ErrorOf("kind: kill"));
  EXPECT_EQ("faults.yaml:1: args: expected `{name: value}`",
            ErrorOf("- {kind: loss, target: a, args: 7}"));
  EXPECT_EQ("faults.yaml:1: \"target\" takes one value", ErrorOf("- {kind: kill, target: [a]}"));
  EXPECT_EQ(0u, ErrorOf("- {kind: kill").find("faults.yaml:")) << ErrorOf("- {kind: kill");
}

TEST(FaultFileTest, RefusesWhatItsKindCannotDo) {
  EXPECT_EQ("faults.yaml:1: partition: needs args.other, the other node",
            ErrorOf("- {kind: partition, target: a}"));
  EXPECT_EQ("faults.yaml:1: kill: takes no args.other",
            ErrorOf("- {kind: kill, target: a, args: {other: b}}"));
  EXPECT_EQ("faults.yaml:1: partition: target and args.other are both a",
            ErrorOf("- {kind: partition, target: a, args: {other: a}}"));
  EXPECT_EQ("faults.yaml:1: restart: happens once and takes no `for`",
            ErrorOf("- {kind: restart, for: 1s, target: a}"));
  EXPECT_EQ("faults.yaml:1: stop: `for` has to be above 0s",
            ErrorOf("- {kind: stop, for: 0s, target: a}"));
  EXPECT_EQ("faults.yaml:1: loss: needs args.chance, above 0 and at most 1",
            ErrorOf("- {kind: loss, target: a}"));
  EXPECT_EQ("faults.yaml:1: loss: args.chance has to be above 0 and at most 1",
            ErrorOf("- {kind: loss, target: a, args: {chance: 1.5}}"));
  EXPECT_EQ("faults.yaml:1: loss: takes no args.by",
            ErrorOf("- {kind: loss, target: a, args: {chance: 1, by: 1s}}"));
  EXPECT_EQ("faults.yaml:1: slow: args.factor has to be a number above 1",
            ErrorOf("- {kind: slow, target: a, args: {factor: nan}}"));
  EXPECT_EQ("faults.yaml:1: kill: target is \"*\", not the name of a node as in \"server-0\"",
            ErrorOf("- {kind: kill, target: \"*\"}"));
  EXPECT_EQ("faults.yaml:1: kill: target is \"a b\", not the name of a node as in \"server-0\"",
            ErrorOf("- {kind: kill, target: a b}"));
}

TEST(FaultFileTest, NamesNodesThatDoNotExist) {
  const auto plan = ParseFaultPlan(
      "- {kind: delay, target: \"*\", args: {by: 1s}}\n"
      "- {kind: partition, target: server-0, args: {other: worker-8}}\n",
      "faults.yaml");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(ValidateNames(*plan, {"server-0", "worker-8"}).ok());
  EXPECT_EQ("line 2: partition: there is no node \"worker-8\"; did you mean \"worker-0\"?",
            ValidateNames(*plan, {"server-0", "worker-0"}).message());
}

TEST(FaultFileTest, ReadsOneFault) {
  const auto fault = ParseFault("{kind: stop, target: server-0, for: 2s}");
  ASSERT_TRUE(fault.ok()) << fault.status();
  EXPECT_EQ(absl::Seconds(2), fault->duration);
  EXPECT_EQ("unknown kind \"stopp\"; did you mean \"stop\"?",
            ParseFault("{kind: stopp, target: a}").status().message());
  EXPECT_FALSE(ParseFault("").ok());
  EXPECT_FALSE(ParseFault("- {kind: stop, target: a}").ok());
}

TEST(FaultFileTest, ReadsFiles) {
  const std::string path = absl::StrCat(testing::TempDir(), "/faults.yaml");
  std::ofstream(path) << "- {kind: kill, target: a}\n- {kind: kil, target: a}\n";
  EXPECT_EQ(absl::StrCat(path, ":2: unknown kind \"kil\"; did you mean \"kill\"?"),
            LoadFaultPlan(path).status().message());
  EXPECT_EQ("cannot read the faults of /no/such.yaml; check the file's name",
            LoadFaultPlan("/no/such.yaml").status().message());
}

TEST(FaultFileTest, AnyBytesAreReadOrRefused) {
  Random random(11);
  const std::string honest = PrintFaultPlan({Fit(DrawFault(random)), Fit(DrawFault(random))});
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = honest;
    for (uint64_t n = 1 + random.Below(4); n > 0; --n) {
      text[random.Below(text.size())] = static_cast<char>(random.Below(256));
    }
    const auto plan = ParseFaultPlan(text, "x");
    refused += plan.ok() ? 0 : 1;
    if (plan.ok()) {
      for (const Fault& fault : *plan) EXPECT_TRUE(Validate(fault).ok());
    }
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace covey
