// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/wordnet/wordnet_files.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::wordnet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr SynsetKey kNoun = uint64_t{1} << 32;
constexpr SynsetKey kVerb = uint64_t{2} << 32;
constexpr SynsetKey kAdjective = uint64_t{3} << 32;

class WordNetFilesTest : public ::testing::Test {
 protected:
  WordNetFilesTest() : directory_(::testing::TempDir() + "/wordnet") {
    std::filesystem::create_directories(directory_);
    // A noun with two words, three pointers and a gloss; a verb, whose frames follow its pointers.
    Write("noun", {"  1 This software and database is being provided",
                   "00001740 03 n 02 entity 0 thing 1 003 ~ 00001930 n 0000 @ 00001930 n 0000 + "
                   "00000100 v 0101 | that which | is",
                   "00001930 03 n 01 physical_entity 0 001 ~ 00001740 n 0000 | an entity"});
    Write("verb", {"00000100 29 v 01 be 0 001 + 00001740 n 0101 02 + 02 00 + 08 00 | exist"});
    Write("adj", {"00000005 00 s 01 able 0 002 & 00000005 a 0000 = 00001740 n 0000 | can"});
    Write("adv", {});
  }

  void Write(const std::string& part, const std::vector<std::string>& lines) const {
    std::ofstream file(directory_ + "/data." + part);
    for (const std::string& line : lines) file << line << "\n";
  }

  // Reading must fail with `code`, and say where, what and the remedy.
  void ExpectError(absl::StatusCode code, const std::string& where, const std::string& problem) {
    const absl::Status status = ReadWordNet(directory_).status();
    EXPECT_EQ(status.code(), code) << status;
    const std::string message(status.message());
    EXPECT_THAT(message, HasSubstr(where));
    EXPECT_THAT(message, HasSubstr(problem));
    EXPECT_THAT(message, HasSubstr("apt-get install --reinstall wordnet-base"));
    EXPECT_THAT(message, HasSubstr("--data-dir"));
  }
  void ExpectRefused(const std::string& line, const std::string& problem) {
    Write("adv", {"  license", line});
    ExpectError(absl::StatusCode::kDataLoss, "data.adv: line 2: ", problem);
  }

  const std::string directory_;
};

using F = Fact<SynsetKey>;
constexpr uint32_t kHypernym = 1, kAttribute = 6, kDerivation = 7, kSimilar = 15;

TEST_F(WordNetFilesTest, KeepsOneDirectionOfEachPointer) {
  const absl::StatusOr<WordNet> net = ReadWordNet(directory_);
  ASSERT_TRUE(net.ok()) << net.status();
  EXPECT_THAT(net->synsets, ElementsAre(kNoun + 1740, kNoun + 1930, kVerb + 100, kAdjective + 5));
  EXPECT_EQ(net->pointers, 7u);
  EXPECT_THAT(net->facts, ElementsAre(F{kNoun + 1740, kHypernym, kNoun + 1930},
                                      F{kNoun + 1740, kDerivation, kVerb + 100},
                                      F{kVerb + 100, kDerivation, kNoun + 1740},
                                      F{kAdjective + 5, kAttribute, kNoun + 1740},
                                      F{kAdjective + 5, kSimilar, kAdjective + 5}));
}

TEST_F(WordNetFilesTest, KeepsAFactOnce) {
  Write("verb", {"00000100 29 v 01 be 0 002 + 00001740 n 0101 + 00001740 n 0102 | exist"});
  EXPECT_EQ(ReadWordNet(directory_)->facts.size(), 5u);
  EXPECT_EQ(ReadWordNet(directory_)->pointers, 8u);
}

TEST_F(WordNetFilesTest, SaysWhichFileIsMissing) {
  std::filesystem::remove(directory_ + "/data.verb");
  ExpectError(absl::StatusCode::kNotFound, "data.verb", "No such file");
}

TEST_F(WordNetFilesTest, RefusesMalformedLines) {
  ExpectRefused("", "it has 0 fields");
  ExpectRefused("00000001 02 r", "it has 3 fields");
  ExpectRefused("offset 02 r 01 well 0 000 | x", "'offset' and 'r' are no offset");
  ExpectRefused("00000001 02 q 01 well 0 000 | x", "'00000001' and 'q' are no offset");
  ExpectRefused("00000001 02 r zz well 0 000 | x", "'zz' is no number of words");
  ExpectRefused("00000001 02 r ffffffffffffffffff well 0 000", "is no number of words");
  ExpectRefused("00000001 02 r 02 well 0 000 | x", "field 9");
  ExpectRefused("00000001 02 r 01 well 0 002 ! 00000001 r 0101 | x", "it ends before its pointers");
  ExpectRefused("00000001 02 r 01 well 0 001 ! 0000x001 r 0101 | x",
                "pointer 1 leads to '0000x001'");
  ExpectRefused("00000001 02 r 01 well 0 001 ? 00000001 r 0101 | x", "'?' is no symbol");
}

TEST_F(WordNetFilesTest, RefusesPointersThatLeadNowhere) {
  Write("adv", {"00000001 02 r 01 well 0 001 ! 00000002 r 0101 | x"});
  ExpectError(absl::StatusCode::kDataLoss, directory_,
              "synset 1 points as antonym to 2, where no synset is");
}

TEST_F(WordNetFilesTest, SaysThatItIsAnotherVersion) {
  const absl::Status status = CheckCounts(*ReadWordNet(directory_));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("4 synsets, 7 pointers and 5 facts"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("wordnet-base"));
}

}  // namespace
}  // namespace covey::wordnet
