// Tests the rules file's syntax and the permissions that rules grant.

#include "ps/access/policy.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/ps/seeds.h"

namespace penstock::ps {
namespace {

using namespace std::string_literals;

constexpr Permission kEach[] = {Permission::kRead, Permission::kTrain,
                                Permission::kAdminister};

AccessPolicy PolicyOf(const std::string& text) {
  AccessPolicy policy;
  policy.path = "/etc/access";
  auto rules = ParseRules(text, policy.path);
  EXPECT_TRUE(rules.ok()) << rules.status();
  if (rules.ok()) policy.rules = *std::move(rules);
  return policy;
}

Caller Bearing(std::vector<Identity> names) {
  Caller caller;
  caller.has_certificate = true;
  caller.names = std::move(names);
  return caller;
}

Identity Uri(const std::string& name) { return {NameKind::kUri, name}; }
Identity Dns(const std::string& name) { return {NameKind::kDns, name}; }
Identity Cn(const std::string& name) { return {NameKind::kCommonName, name}; }

TEST(ParseRules, LinesOfEachKind) {
  const auto rules = ParseRules(
      "# trainers\n\n \t\ntrain uri:spiffe://org/*\r\n  read\t dns:a.b  \n"
      "#read any\nadminister cn:On call # of the team",
      "f");
  ASSERT_TRUE(rules.ok()) << rules.status();
  ASSERT_EQ(rules->size(), 3u);
  EXPECT_EQ((*rules)[0].permission, Permission::kTrain);
  EXPECT_EQ((*rules)[0].who.ToString(), "uri:spiffe://org/*");
  EXPECT_EQ((*rules)[0].line, 4u);
  EXPECT_EQ((*rules)[1].permission, Permission::kRead);
  EXPECT_EQ((*rules)[1].who.ToString(), "dns:a.b");
  EXPECT_EQ((*rules)[2].permission, Permission::kAdminister);
  // A comment begins only at the start of a line, because a name may contain
  // '#'.
  EXPECT_EQ((*rules)[2].who.ToString(), "cn:On call # of the team");
  EXPECT_EQ((*rules)[2].line, 7u);
}

TEST(ParseRules, AnythingElseIsRefusedWithItsLine) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "f: there is no rule"},
      {"\n# train any\n", "f: there is no rule"},
      {"read any\nwrite cn:a\n", "f:2: 'write' is none of read, train"},
      {"Train any", "f:1: 'Train' is none"},
      {"train", "f:1: '' is no identity"},
      {"train: cn:a", "f:1: 'train:' is none"},
      {"train spiffe://org/a", "f:1: 'spiffe://org/a' is no identity"},
      {"train cn:a\0"s, "f:1: 'cn:a\\x00' could match no name"},
      {"\0train cn:a"s, "f:1: '\\x00train' is none"},
      {"\xef\xbb\xbftrain cn:a", "f:1: '\\xef\\xbb\\xbftrain' is none"},
      {"{\"train\": [\"cn:a\"]}", "f:1: '{\"train\":' is none"},
      {"train cn:a\nread cn:b\n\nread cn:a", "f:4: cn:a is in line 1 as well"},
      {"train dns:A.b\nread dns:a.B", "f:2: dns:a.b is in line 1 as well"},
      {"train any\ntrain any", "f:2: any is in line 1 as well"},
  };
  for (const auto& [text, says] : cases) {
    const auto rules = ParseRules(text, "f");
    ASSERT_FALSE(rules.ok()) << text;
    EXPECT_EQ(rules.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(absl::StartsWith(rules.status().message(), says))
        << rules.status();
  }
}

TEST(ParseRules, AThousandAreTheMost) {
  std::string text;
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&text, "read cn:", i, "\n");
  EXPECT_TRUE(ParseRules(text, "f").ok());
  EXPECT_EQ(ParseRules(text + "read cn:last", "f").status().message(),
            "f:1001: more than 1000 rules");
}

// Tests that changed lines of a rules file are parsed or refused. Some changed
// lines are still valid.
TEST(ParseRules, RandomBytesAreRulesOrRefused) {
  size_t taken = 0;
  for (uint64_t seed = ChosenSeeds().first(); ChosenSeeds().Wants(seed);
       ++seed) {
    std::mt19937_64 random(seed);
    std::string text = "train uri:a/*\nread any\n# b\nadminister cn:On call\n";
    for (uint64_t i = random() % 4; i > 0; --i) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    const auto rules = ParseRules(text, "f");
    taken += rules.ok();
    if (!rules.ok()) {
      EXPECT_EQ(rules.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_TRUE(absl::StartsWith(rules.status().message(), "f:"))
          << rules.status() << "; " << RepeatWith(seed);
      EXPECT_EQ(rules.status().message().find('\n'), absl::string_view::npos);
      continue;
    }
    for (const Rule& rule : *rules) {
      const std::string who = rule.who.ToString();
      ASSERT_EQ(Pattern::Parse(who)->ToString(), who) << RepeatWith(seed);
      EXPECT_GE(rule.line, 1u);
      EXPECT_LE(rule.line, 5u);
    }
  }
  EXPECT_TRUE(ChosenSeeds().ran() < 1000 || taken > 0);
}

TEST(Decide, APolicyWithoutRulesAndSecretsDemandsNothing) {
  for (Permission each : kEach) {
    EXPECT_TRUE(Decide({}, {}, each).ok());
    EXPECT_TRUE(Decide({}, Bearing({}), each).ok());
  }
}

TEST(Decide, EachPermissionImpliesThoseBelow) {
  const AccessPolicy policy =
      PolicyOf("read cn:r\ntrain cn:t\nadminister cn:a\n");
  const std::pair<const char*, int> cases[] = {
      {"r", 1}, {"t", 2}, {"a", 3}, {"x", 0}};
  for (const auto& [name, allowed] : cases) {
    for (int i = 0; i < 3; ++i) {
      const absl::Status may = Decide(policy, Bearing({Cn(name)}), kEach[i]);
      EXPECT_EQ(may.code(), i < allowed ? absl::StatusCode::kOk
                                        : absl::StatusCode::kPermissionDenied)
          << name << " " << ToString(kEach[i]) << " " << may;
    }
  }
}

TEST(Decide, RefusalsSayWhoWhatAndHow) {
  const AccessPolicy policy =
      PolicyOf("read dns:*.serving.example\n\nread any\n");
  EXPECT_EQ(
      Decide(policy, Bearing({Dns("a.serving.example")}), Permission::kTrain)
          .message(),
      "train: refused to dns:a.serving.example, which may only read by "
      "line 1 of /etc/access; this line in that file would permit it: "
      "'train dns:a.serving.example'");
  EXPECT_EQ(Decide(PolicyOf("train cn:t"),
                   Bearing({Uri("spiffe://org/a"), Cn("t")}), Permission::kRead)
                .message(),
            "read: refused to uri:spiffe://org/a, which no line of /etc/access "
            "permits anything; this line in that file would permit it: "
            "'read uri:spiffe://org/a'");
  EXPECT_EQ(
      Decide(policy, Bearing({Cn("*\n")}), Permission::kAdminister).message(),
      "administer: refused to a certificate without a name that counts "
      "(cn:*\\x0a), which may only read by line 3 of /etc/access; have a "
      "certificate made with one URI or DNS name as subject alternative name");
}

TEST(Decide, TheLineThatARefusalNamesPermits) {
  const std::string rules = "read any\n";
  const Caller caller = Bearing({Cn("On call"), Cn("other")});
  const std::string said(
      Decide(PolicyOf(rules), caller, Permission::kTrain).message());
  const size_t begin = said.find(": '") + 3;
  const std::string line = said.substr(begin, said.rfind('\'') - begin);
  EXPECT_TRUE(Decide(PolicyOf(rules + line), caller, Permission::kTrain).ok())
      << line;
}

TEST(Decide, NamesWithoutACertificateAreNoNames) {
  Caller caller = Bearing({Cn("t")});
  caller.has_certificate = false;
  for (const char* rules : {"administer any", "administer cn:t"}) {
    EXPECT_EQ(Decide(PolicyOf(rules), caller, Permission::kRead).code(),
              absl::StatusCode::kUnauthenticated);
  }
}

TEST(Decide, AnyIsEveryCertificate) {
  EXPECT_TRUE(
      Decide(PolicyOf("train any"), Bearing({}), Permission::kTrain).ok());
}

TEST(Decide, ACertificateWithTooManyNamesIsRefused) {
  const AccessPolicy policy = PolicyOf("train any");
  std::vector<Identity> names(kMaxNames, Dns("a.example"));
  EXPECT_TRUE(Decide(policy, Bearing(names), Permission::kTrain).ok());
  names.push_back(Dns("b.example"));
  const absl::Status may = Decide(policy, Bearing(names), Permission::kTrain);
  EXPECT_EQ(may.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(absl::StrContains(may.message(), "65 names")) << may;
}

TEST(Decide, RefusalsAreShort) {
  const std::vector<Identity> names(kMaxNames,
                                    Uri(std::string(kMaxNameBytes, '\n')));
  const absl::Status may =
      Decide(PolicyOf("train cn:a"), Bearing(names), Permission::kTrain);
  EXPECT_LT(may.message().size(), 1500u);
  EXPECT_EQ(may.message().find('\n'), absl::string_view::npos);
}

const std::string kSecret(kMinSecretBytes, 's');
const std::string kOther(kMinSecretBytes, 'o');

TEST(Decide, ASecretHasToBeThereOnceAndRight) {
  AccessPolicy policy;
  policy.secrets = SecretDigests({kOther, kSecret});
  const std::string right = "Bearer " + kSecret;
  const std::string lower = "bearer " + kOther;
  const std::string longer = right + "s";
  const std::string shorter = right.substr(0, right.size() - 1);
  const std::string huge = "Bearer " + std::string(1 << 20, 's');
  const std::string spaced = "Bearer  " + kSecret;
  const std::string basic = "Basic " + kSecret;
  const std::string ended = right + "\0"s;
  const std::pair<std::vector<absl::string_view>, const char*> cases[] = {
      {{right}, nullptr},
      {{lower}, nullptr},
      {{}, "has none"},
      {{right, right}, "has several"},
      {{right, lower}, "has several"},
      {{kSecret}, "another authorization"},
      {{basic}, "another authorization"},
      {{""}, "another authorization"},
      {{"Bearer"}, "another authorization"},
      {{"Bearer "}, "none of the server's"},
      {{longer}, "none of the server's"},
      {{shorter}, "none of the server's"},
      {{spaced}, "none of the server's"},
      {{ended}, "none of the server's"},
      {{huge}, "none of the server's"},
  };
  for (const auto& [authorization, says] : cases) {
    Caller caller;
    caller.authorization = authorization;
    const absl::Status may = Decide(policy, caller, Permission::kRead);
    if (says == nullptr) {
      EXPECT_TRUE(may.ok()) << may;
      continue;
    }
    EXPECT_EQ(may.code(), absl::StatusCode::kUnauthenticated) << may;
    EXPECT_TRUE(absl::StrContains(may.message(), says)) << may;
    EXPECT_FALSE(absl::StrContains(may.message(), "sss")) << may;
    EXPECT_LT(may.message().size(), 300u);
  }
}

TEST(Decide, SecretAndRulesMustBothBeMet) {
  AccessPolicy policy = PolicyOf("train cn:t");
  policy.secrets = SecretDigests({kSecret});
  const std::string right = "Bearer " + kSecret;
  Caller caller = Bearing({Cn("x")});
  const absl::Status without = Decide(policy, caller, Permission::kTrain);
  EXPECT_EQ(without.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_FALSE(absl::StrContains(without.message(), "/etc/access"));
  caller.authorization = {right};
  EXPECT_EQ(Decide(policy, caller, Permission::kTrain).code(),
            absl::StatusCode::kPermissionDenied);
  caller.names = {Cn("t")};
  EXPECT_TRUE(Decide(policy, caller, Permission::kTrain).ok());
}

// Tests rules without '*' against a map of names.
TEST(Decide, RandomRulesGiveTheMostOfAnyName) {
  for (uint64_t seed = ChosenSeeds().first(); ChosenSeeds().Wants(seed);
       ++seed) {
    std::mt19937_64 random(seed);
    std::map<std::string, int> given;  // name: 1 + permission
    std::string text;
    for (int name = 0; name < 8; ++name) {
      const int level = static_cast<int>(random() % 4);
      if (level == 0) continue;
      given[absl::StrCat(name)] = level;
      absl::StrAppend(&text, ToString(kEach[level - 1]), " cn:", name, "\n");
    }
    if (text.empty()) continue;
    std::vector<Identity> names;
    int most = 0;
    for (uint64_t i = random() % 4; i > 0; --i) {
      names.push_back(Cn(absl::StrCat(random() % 8)));
      most = std::max(most, given[names.back().name]);
    }
    const AccessPolicy policy = PolicyOf(text);
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(Decide(policy, Bearing(names), kEach[i]).ok(), i < most)
          << text << RepeatWith(seed);
    }
  }
  ChosenSeeds().Print();
}

}  // namespace
}  // namespace penstock::ps

int main(int argc, char** argv) {
  return penstock::ps::RunWithSeeds(argc, argv, 1000);
}
