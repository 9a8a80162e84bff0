// Tests files of rules and of secrets: their content and their owners.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "ps/access/policy.h"
#include "ps/access/secrets.h"
#include "ps/access/send_secret.h"
#include "ps/access/trusted_file.h"

namespace penstock::ps {
namespace {

const std::string kOne(kMinSecretBytes, '1');
const std::string kTwo = "aZ09-._~+/=" + std::string(kMinSecretBytes, '2');

std::string PathOf(const std::string& name) {
  return absl::StrCat(testing::TempDir(), "/", name);
}

std::string Write(const std::string& name, const std::string& text,
                  mode_t mode) {
  std::string path = PathOf(name);
  unlink(path.c_str());
  std::ofstream(path) << text;
  EXPECT_EQ(chmod(path.c_str(), mode), 0);
  return path;
}

std::vector<std::string> Secrets(const std::string& text) {
  const auto secrets = ParseSecrets(text, "f");
  EXPECT_TRUE(secrets.ok()) << secrets.status();
  return secrets.ok() ? *secrets : std::vector<std::string>();
}

using Texts = std::vector<std::string>;

TEST(ParseSecrets, OneOrTwo) {
  EXPECT_EQ(Secrets(kOne), Texts{kOne});
  EXPECT_EQ(Secrets("# new\n" + kTwo + "\r\n\n# old\n " + kOne + "\n"),
            (Texts{kTwo, kOne}));
  const std::string longest(kMaxSecretBytes, 'x');
  EXPECT_EQ(Secrets(longest), Texts{longest});
}

TEST(ParseSecrets, AnythingElseIsRefusedAndNotShown) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "f: there is no secret"},
      {"\n#" + kOne, "f: there is no secret"},
      {kOne.substr(1), "f:1: the secret has 31 characters"},
      {std::string(kMaxSecretBytes + 1, '1'), "f:1: the secret has 513"},
      {kOne + " " + kTwo, "f:1: a secret is made of"},
      {kOne + '\0', "f:1: a secret is made of"},
      {kOne + "\n" + kOne, "f:2: the same"},
      {kOne + "\n" + kTwo + "\n" + kOne + "3", "f:3: a third"},
      {kOne + "\n11", "f:2: the secret has 2"},
  };
  for (const auto& [text, says] : cases) {
    const auto secrets = ParseSecrets(text, "f");
    ASSERT_FALSE(secrets.ok());
    EXPECT_EQ(secrets.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(absl::StartsWith(secrets.status().message(), says))
        << secrets.status();
    EXPECT_FALSE(absl::StrContains(secrets.status().message(), "111"));
  }
}

TEST(SecretDigests, ContainWhatTheyWereMadeOf) {
  const SecretDigests both({kOne, kTwo});
  EXPECT_TRUE(both.Contains(kOne));
  EXPECT_TRUE(both.Contains(kTwo));
  EXPECT_FALSE(both.Contains(""));
  EXPECT_FALSE(both.Contains(kOne + "1"));
  EXPECT_FALSE(both.Contains(kOne.substr(1)));
  // Flip each bit in turn: every bit of a secret must count.
  for (size_t bit = 0; bit < 8 * kOne.size(); ++bit) {
    std::string near = kOne;
    near[bit / 8] = static_cast<char>(near[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(both.Contains(near)) << bit;
  }
  EXPECT_TRUE(SecretDigests().empty());
  EXPECT_FALSE(SecretDigests().Contains(""));
}

TEST(CheckOwner, NobodyElseMayHaveWrittenItNorReadASecret) {
  constexpr uid_t kSelf = 1000;
  constexpr uid_t kOther = 1001;
  struct Case {
    uid_t owner;
    mode_t mode;
    uid_t self;
    bool open;    // true: the file is accepted for public content
    bool secret;  // true: the file is accepted for a secret
  };
  const Case cases[] = {
      {kSelf, 0600, kSelf, true, true},
      {kSelf, 0400, kSelf, true, true},
      {kSelf, 0644, kSelf, true, false},
      {kSelf, 0640, kSelf, true, false},
      {kSelf, 0604, kSelf, true, false},
      {kSelf, 0620, kSelf, false, false},
      {kSelf, 0602, kSelf, false, false},
      {kSelf, 0700, kSelf, true, true},
      {kSelf, 0601, kSelf, true, false},
      {0, 0440, kSelf, true, true},
      {0, 0640, kSelf, true, true},
      {0, 0444, kSelf, true, false},
      {0, 0660, kSelf, false, false},
      {0, 0640, 0, true, false},
      {0, 0600, 0, true, true},
      {kOther, 0600, kSelf, false, false},
      {kOther, 0444, kSelf, false, false},
      {kSelf, 0600, 0, false, false},
      {65534, 0444, kSelf, false, false},
  };
  for (const Case& each : cases) {
    EXPECT_EQ(
        CheckOwner("f", each.owner, each.mode, each.self, Secrecy::kOpen).ok(),
        each.open)
        << each.owner << " " << std::oct << each.mode;
    EXPECT_EQ(
        CheckOwner("f", each.owner, each.mode, each.self, Secrecy::kSecret)
            .ok(),
        each.secret)
        << each.owner << " " << std::oct << each.mode;
  }
}

TEST(ReadTrustedFile, ReadsWhatIsThere) {
  const std::string text = std::string(5000, 'x') + '\0' + "y";
  const std::string path = Write("whole", text, 0600);
  EXPECT_EQ(*ReadTrustedFile(path, text.size(), Secrecy::kSecret), text);
  EXPECT_EQ(
      ReadTrustedFile(path, text.size() - 1, Secrecy::kSecret).status().code(),
      absl::StatusCode::kResourceExhausted);
  const std::string link = PathOf("link");
  unlink(link.c_str());
  ASSERT_EQ(symlink(path.c_str(), link.c_str()), 0);
  EXPECT_EQ(*ReadTrustedFile(link, 1 << 20, Secrecy::kSecret), text);
  EXPECT_EQ(*ReadTrustedFile(Write("empty", "", 0600), 1, Secrecy::kOpen), "");
}

TEST(ReadTrustedFile, WhatIsNoFileIsRefusedAtOnce) {
  EXPECT_EQ(
      ReadTrustedFile(PathOf("absent"), 1, Secrecy::kOpen).status().code(),
      absl::StatusCode::kNotFound);
  const std::string pipe = PathOf("pipe");
  unlink(pipe.c_str());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path :
       {pipe, testing::TempDir(), std::string("/dev/zero")}) {
    const auto text = ReadTrustedFile(path, 1 << 20, Secrecy::kOpen);
    EXPECT_EQ(text.status().code(), absl::StatusCode::kFailedPrecondition)
        << path;
    EXPECT_TRUE(absl::StrContains(text.status().message(), path))
        << text.status();
  }
}

TEST(ReadTrustedFile, AFileOfAGigabyteIsNotRead) {
  const std::string path = Write("huge", "", 0600);
  ASSERT_EQ(truncate(path.c_str(), 1 << 30), 0);
  EXPECT_EQ(ReadTrustedFile(path, 1 << 20, Secrecy::kOpen).status().code(),
            absl::StatusCode::kResourceExhausted);
  unlink(path.c_str());
}

TEST(ReadTrustedFile, AnotherOwnersIsRefused) {
  const std::string path = Write("theirs", "x", 0600);
  if (chown(path.c_str(), 1001, 1001) != 0) {
    GTEST_SKIP() << "only root can give a file away";
  }
  EXPECT_EQ(ReadTrustedFile(path, 1, Secrecy::kOpen).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(ReadAccessPolicy, WhatIsGiven) {
  const std::string rules = Write("rules", "train any\n", 0644);
  const std::string secret = Write("secret", kOne, 0600);
  const auto both = ReadAccessPolicy({rules, secret}, true);
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->path, rules);
  EXPECT_EQ(both->rules.size(), 1u);
  EXPECT_TRUE(both->secrets.Contains(kOne));
  const auto none = ReadAccessPolicy({}, false);
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none->rules.empty());
  EXPECT_TRUE(none->secrets.empty());
  EXPECT_TRUE(ReadAccessPolicy({"", secret}, false).ok());
}

TEST(ReadAccessPolicy, WhatIsWrongNamesTheFile) {
  const std::string rules = Write("rules", "train any\n", 0644);
  const std::string secret = Write("secret", kOne, 0600);
  const std::string shown = Write("shown", kOne, 0644);
  const std::string flawed = Write("flawed", "\ntrian any\n", 0644);
  const std::string writable = Write("writable", "train any\n", 0666);
  struct Case {
    AccessFiles files;
    bool mutual_tls;
    absl::StatusCode code;
    std::string says;
  };
  const Case cases[] = {
      {{rules, ""}, false, absl::StatusCode::kInvalidArgument, rules + ": its"},
      {{flawed, ""}, true, absl::StatusCode::kInvalidArgument, flawed + ":2: "},
      {{writable, ""},
       true,
       absl::StatusCode::kFailedPrecondition,
       writable + ": others may write"},
      {{PathOf("absent"), ""}, true, absl::StatusCode::kNotFound, "absent"},
      {{rules, shown},
       true,
       absl::StatusCode::kFailedPrecondition,
       shown + ": others may read"},
      {{"", PathOf("absent")}, false, absl::StatusCode::kNotFound, "absent"},
  };
  for (const Case& each : cases) {
    const auto policy = ReadAccessPolicy(each.files, each.mutual_tls);
    EXPECT_EQ(policy.status().code(), each.code) << policy.status();
    EXPECT_TRUE(absl::StrContains(policy.status().message(), each.says))
        << policy.status();
  }
}

TEST(FollowSecret, AChangedFileIsReadAgainAndAWrongOneIsNot) {
  const std::string path = Write("followed", kOne, 0600);
  const auto once = FollowSecret(path, absl::InfiniteDuration());
  const auto followed = FollowSecret(path, absl::ZeroDuration());
  ASSERT_TRUE(followed.ok()) << followed.status();
  EXPECT_EQ((*followed)(), kOne);
  Write("followed", "short", 0600);
  EXPECT_EQ((*followed)(), kOne);
  Write("followed", kTwo + "\n" + kOne, 0600);
  EXPECT_EQ((*followed)(), kTwo);
  EXPECT_EQ((*once)(), kOne);
  Write("followed", "short", 0600);
  EXPECT_FALSE(FollowSecret(path).ok());
  EXPECT_EQ(*FollowSecret(""), nullptr);
}

}  // namespace
}  // namespace penstock::ps
