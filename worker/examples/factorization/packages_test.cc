// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/examples/factorization/package_index.h"
#include "worker/examples/factorization/package_samples.h"

namespace covey::factorization {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::StatusOr<std::vector<Package>> Read(const std::string& content) {
  const std::string path = ::testing::TempDir() + "/Packages";
  std::ofstream(path) << content;
  absl::StatusOr<examples::LineReader> lines = examples::LineReader::OpenFile(path);
  return ReadPackages(*lines);
}

TEST(PackageIndexTest, ReadsFields) {
  const absl::StatusOr<std::vector<Package>> packages = Read(
      "Package: gcc-12\n"
      "Source: gcc-12-source (12.2)\n"
      "Maintainer: Debian GCC <gcc@debian.org>\n"
      "Depends: cpp-12 (= 12), libc6:any (>= 2), a | b (>= 1), libc6\n"
      "Pre-Depends:  dpkg\n"
      "Description: GNU C compiler\n"
      " Long: text\n"
      "Tag: role::program, devel::compiler,\n"
      " works-with::software:source\n"
      "Section: devel\n"
      "\n\n"
      "Package: plain\n");
  ASSERT_TRUE(packages.ok()) << packages.status();
  ASSERT_EQ(packages->size(), 2u);
  const Package& first = packages->front();
  EXPECT_EQ(first.name, "gcc-12");
  EXPECT_EQ(first.source, "gcc-12-source");
  EXPECT_EQ(first.section, "devel");
  EXPECT_EQ(first.maintainer, "Debian GCC <gcc@debian.org>");
  EXPECT_EQ(first.description, "GNU C compiler");
  EXPECT_THAT(first.depends, ElementsAre("a", "cpp-12", "dpkg", "libc6"));
  EXPECT_THAT(first.tags,
              ElementsAre("role::program", "devel::compiler", "works-with::software:source"));
  EXPECT_EQ(packages->back().source, "plain");
  EXPECT_THAT(packages->back().depends, IsEmpty());
}

TEST(PackageIndexTest, TheFirstOfOneNameCounts) {
  const auto packages = Read("Package: a\nSection: one\n\nPackage: a\nSection: two\n");
  ASSERT_EQ(packages->size(), 1u);
  EXPECT_EQ(packages->front().section, "one");
}

TEST(PackageIndexTest, RefusesMalformedLines) {
  const auto error = [](const std::string& content) {
    const absl::Status status = Read(content).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(error("Package: a\nwhat is this\n"), HasSubstr("line 2: no field"));
  EXPECT_THAT(error("Package: a\n\n goes on\n"), HasSubstr("line 3: a field goes on"));
  EXPECT_THAT(error("Section: x\n\nPackage: a\n"), HasSubstr("line 2: the paragraph before"));
}

// Packages p0, p1, ...: each depends on lib(i mod 7), and some on each other of the same source.
std::vector<Package> Index(size_t count) {
  std::vector<Package> packages;
  for (size_t i = 0; i < 7; ++i) {
    packages.push_back({.name = absl::StrCat("lib", i),
                        .source = absl::StrCat("libsource", i),
                        .section = "libs",
                        .maintainer = "L",
                        .description = "library number",
                        .depends = {},
                        .tags = {"role::shared-lib"}});
  }
  for (size_t i = 0; i < count; ++i) {
    packages.push_back({.name = absl::StrCat("p", i),
                        .source = absl::StrCat("source", i / 2),
                        .section = "misc",
                        .maintainer = "M",
                        .description = "A program, C++ of kind",
                        .depends = {absl::StrCat("lib", i % 7), absl::StrCat("p", i ^ 1)},
                        .tags = {i % 3 == 0 ? "role::program" : "role::data"}});
  }
  return packages;
}

// The target of a sample, by the key of the target itself; absent targets fail the test.
std::string TargetOf(const Samples& samples, size_t sample, const std::vector<Package>& packages) {
  const auto keys = samples.features(sample).keys;
  for (const Package& package : packages) {
    const uint64_t key = TextKey(absl::StrCat("target/itself/", package.name));
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) return package.name;
  }
  ADD_FAILURE() << "a sample without a target";
  return "";
}

std::string SourceOf(const Samples& samples, size_t sample, const std::vector<Package>& packages) {
  const auto keys = samples.features(sample).keys;
  for (const Package& package : packages) {
    const uint64_t key = TextKey(absl::StrCat("package/source/", package.source));
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) return package.source;
  }
  return "";
}

TEST(PackageSamplesTest, ADependencyComesWithTwoOthersThatAreNone) {
  const std::vector<Package> packages = Index(400);
  const absl::StatusOr<DataSet> set = DependencySamples(packages, HeldOut::kTest, 1);
  ASSERT_TRUE(set.ok()) << set.status();
  std::map<std::string, int> targets;
  for (const Samples* samples : {&set->training, &set->test}) {
    ASSERT_GT(samples->size(), 30u);
    ASSERT_EQ(samples->size() % 3, 0u);
    for (size_t i = 0; i < samples->size(); ++i) {
      EXPECT_EQ(samples->label(i), i % 3 == 0 ? 1 : 0);
      const std::string target = TargetOf(*samples, i, packages);
      ++targets[target];
      if (i % 3 != 0) {
        EXPECT_NE(target, TargetOf(*samples, i - i % 3, packages));
      }
    }
  }
  EXPECT_EQ(targets.size(), 7u);  // p's depend on each other, but their source is one
}

TEST(PackageSamplesTest, ASourceIsOnOneSide) {
  const std::vector<Package> packages = Index(400);
  std::map<std::string, std::set<int>> sides;
  const DataSet test = *DependencySamples(packages, HeldOut::kTest, 1);
  const DataSet validation = *DependencySamples(packages, HeldOut::kValidation, 1);
  const std::vector<const Samples*> parts = {&test.training, &test.test, &validation.test};
  size_t samples = 0;
  for (size_t part = 0; part < parts.size(); ++part) {
    samples += parts[part]->size();
    for (size_t i = 0; i < parts[part]->size(); ++i) {
      sides[SourceOf(*parts[part], i, packages)].insert(static_cast<int>(part));
    }
  }
  EXPECT_EQ(samples, 3 * 400u);
  EXPECT_EQ(sides.size(), 200u);
  for (const auto& [source, found] : sides) EXPECT_EQ(found.size(), 1u) << source;
  EXPECT_EQ(validation.training.size(), test.training.size());
}

TEST(PackageSamplesTest, FeaturesAreWordsAndPartsOfTheName) {
  const DataSet set = *DependencySamples(Index(400), HeldOut::kTest, 1);
  const auto keys = set.training.features(0).keys;
  const auto has = [&keys](const std::string& feature) {
    return std::count(keys.begin(), keys.end(), TextKey(feature)) == 1;
  };
  for (const std::string feature :
       {"package/word/program", "package/word/of", "package/word/kind", "package/section/misc",
        "package/maintainer/M", "target/word/library", "target/section/libs"}) {
    EXPECT_TRUE(has(feature)) << feature;
  }
  EXPECT_FALSE(has("package/word/a"));  // a single letter
  EXPECT_TRUE(has("package/word/c++"));
}

TEST(PackageSamplesTest, IsAFunctionOfTheSeed) {
  const std::vector<Package> packages = Index(100);
  const auto keys = [&packages](uint64_t seed) {
    const DataSet set = *DependencySamples(packages, HeldOut::kTest, seed);
    return std::vector<uint64_t>(set.training.keys().begin(), set.training.keys().end());
  };
  EXPECT_EQ(keys(1), keys(1));
  EXPECT_NE(keys(1), keys(2));
}

TEST(PackageSamplesTest, APackageThatDependsOnAllHasNoOthers) {
  std::vector<Package> packages = Index(2);
  const DataSet set = *DependencySamples(std::span(packages).first(8), HeldOut::kTest, 1);
  EXPECT_LE(set.training.size() + set.test.size(), 1u);
}

TEST(PackageSamplesTest, LabelsPrograms) {
  const absl::StatusOr<DataSet> set = RoleSamples(Index(400), HeldOut::kTest);
  ASSERT_TRUE(set.ok()) << set.status();
  size_t programs = 0;
  for (size_t i = 0; i < set->training.size(); ++i) programs += set->training.label(i) > 0 ? 1 : 0;
  EXPECT_GT(programs, set->training.size() / 4);
  EXPECT_LT(programs, set->training.size() / 2);
  const auto keys = set->training.features(set->training.size() - 1).keys;
  EXPECT_EQ(std::count(keys.begin(), keys.end(), TextKey("package/section/misc")), 1);
}

TEST(PackageSamplesTest, SaysThatThereAreNone) {
  for (const absl::Status& status : {DependencySamples({}, HeldOut::kTest, 1).status(),
                                     RoleSamples({}, HeldOut::kTest).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("apt-get update"));
  }
}

TEST(SamplesTest, TextsHaveKeys) {
  std::set<uint64_t> keys;
  for (const std::string& text : {std::string(""), std::string("a"), std::string("b"),
                                  std::string("ab"), std::string("a\0", 2), std::string("12345678"),
                                  std::string("123456781"), std::string("112345678")}) {
    keys.insert(TextKey(text));
  }
  EXPECT_EQ(keys.size(), 8u);
}

}  // namespace
}  // namespace covey::factorization
