// Tests the names of a certificate that count, and pattern matching. The oracle
// of the random patterns is std::regex.

#include "ps/access/identity.h"

#include <iostream>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/ps/seeds.h"

namespace penstock::ps {
namespace {

using namespace std::string_literals;

std::vector<std::string> Counting(const std::vector<Identity>& names) {
  std::vector<std::string> texts;
  for (const Identity& name : NamesThatCount(names)) {
    texts.push_back(ToString(name));
  }
  return texts;
}

using Texts = std::vector<std::string>;

Identity Uri(const std::string& name) { return {NameKind::kUri, name}; }
Identity Dns(const std::string& name) { return {NameKind::kDns, name}; }
Identity Cn(const std::string& name) { return {NameKind::kCommonName, name}; }

TEST(NamesThatCount, EachKindAsItIsButDnsInLowerCase) {
  EXPECT_EQ(Counting({Uri("spiffe://Org/A"), Dns("Host.Example")}),
            (Texts{"uri:spiffe://Org/A", "dns:host.example"}));
  EXPECT_EQ(Counting({Cn("On Call")}), (Texts{"cn:On Call"}));
}

TEST(NamesThatCount, CommonNameOnlyIfThereIsNoOther) {
  EXPECT_EQ(Counting({Cn("chief"), Dns("a.example")}),
            (Texts{"dns:a.example"}));
  EXPECT_EQ(Counting({Cn("chief"), Uri("urn:a")}), (Texts{"uri:urn:a"}));
  // Expects that the common name does not count if there is a DNS name, even if
  // the DNS name itself does not count.
  EXPECT_EQ(Counting({Cn("chief"), Dns("*.example")}), Texts{});
  EXPECT_EQ(Counting({Dns(""), Cn("chief")}), Texts{});
}

TEST(NamesThatCount, NoneThatCouldPassForAnother) {
  EXPECT_EQ(Counting({Dns("chief.example\0.evil.example"s)}), Texts{});
  EXPECT_EQ(Counting({Uri("spiffe://org/chief\0"s)}), Texts{});
  EXPECT_EQ(Counting({Uri("spiffe://org/chief\n")}), Texts{});
  EXPECT_EQ(Counting({Dns("chief.example ")}), Texts{});
  EXPECT_EQ(Counting({Cn("ch\xc3\xa9ri")}), Texts{});
  EXPECT_EQ(Counting({Cn("*")}), Texts{});
  EXPECT_EQ(Counting({Cn("train*")}), Texts{});
  EXPECT_EQ(Counting({Dns("*.serving.example")}), Texts{});
  EXPECT_EQ(Counting({Dns("")}), Texts{});
  EXPECT_EQ(Counting({Cn("")}), Texts{});
  EXPECT_EQ(Counting({Uri(std::string(kMaxNameBytes + 1, 'a'))}), Texts{});
  EXPECT_EQ(Counting({Uri(std::string(kMaxNameBytes, 'a'))}).size(), 1u);
}

TEST(NamesThatCount, SpiffeIdOnlyIfItIsTheOnlyUri) {
  EXPECT_EQ(Counting({Uri("spiffe://org/a"), Dns("b.example")}).size(), 2u);
  EXPECT_EQ(Counting({Uri("spiffe://org/a"), Uri("spiffe://org/b")}), Texts{});
  EXPECT_EQ(Counting({Uri("SPIFFE://org/a"), Uri("urn:b")}),
            (Texts{"uri:urn:b"}));
}

TEST(Pattern, TextsThatAreNone) {
  for (const std::string& text :
       {""s, "spiffe://org/a"s, "*"s, "uri"s, "uri:"s, "dns:"s, "cn:"s,
        "URI:a"s, "ip:10.0.0.1"s, "Any"s, "any of them"s, "uri:a b"s,
        "dns:a b"s, "dns:m\xc3\xbcller"s, "cn:a\0b"s, "cn:a\tb"s, "uri:a/**"s,
        "dns:**"s, absl::StrCat("uri:", std::string(kMaxNameBytes + 1, 'a'))}) {
    const auto pattern = Pattern::Parse(text);
    ASSERT_FALSE(pattern.ok()) << text;
    EXPECT_EQ(pattern.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_LT(pattern.status().message().size(), 600u);
  }
}

TEST(Pattern, TextIsThatOfParse) {
  for (const std::string& text :
       {"any"s, "uri:spiffe://Org/*"s, "dns:*.example"s, "cn:On *"s}) {
    EXPECT_EQ(Pattern::Parse(text)->ToString(), text);
  }
  EXPECT_EQ(Pattern::Parse("dns:A.Example")->ToString(), "dns:a.example");
}

struct Match {
  const char* pattern;
  Identity name;
  bool matches;
};

TEST(Pattern, Matches) {
  const Match cases[] = {
      {"any", Cn("x"), true},
      {"uri:spiffe://org/a", Uri("spiffe://org/a"), true},
      {"uri:spiffe://org/a", Uri("spiffe://org/A"), false},
      {"uri:spiffe://org/a", Uri("spiffe://org/ab"), false},
      {"uri:spiffe://org/a", Uri("spiffe://org/"), false},
      // Cases in which a pattern must match only names of its kind.
      {"uri:spiffe://org/a", Cn("spiffe://org/a"), false},
      {"uri:spiffe://org/a", Dns("spiffe://org/a"), false},
      {"cn:a.example", Dns("a.example"), false},
      {"dns:a.example", Cn("a.example"), false},
      // Cases in which a '*' must match one character or more, within one
      // segment.
      {"uri:spiffe://org/*", Uri("spiffe://org/a"), true},
      {"uri:spiffe://org/*", Uri("spiffe://org/"), false},
      {"uri:spiffe://org/*", Uri("spiffe://org/a/b"), false},
      {"uri:spiffe://org/*/trainer", Uri("spiffe://org/a/trainer"), true},
      {"uri:spiffe://org/*/trainer", Uri("spiffe://org/a/b/trainer"), false},
      {"uri:spiffe://org/t-*-x", Uri("spiffe://org/t-1-x-2-x"), true},
      {"uri:spiffe://*/a", Uri("spiffe://evil/org/a"), false},
      {"dns:*.example", Dns("a.example"), true},
      {"dns:*.example", Dns("a.b.example"), false},
      {"dns:*.example", Dns(".example"), false},
      {"dns:*.example", Dns("example"), false},
      {"dns:*.example", Dns("a.example.evil"), false},
      {"dns:a*", Dns("a"), false},
      {"cn:*", Cn("a/b.c d"), true},
      {"cn:On *", Cn("On call"), true},
      // Characters that are special in other pattern languages are literal.
      {"uri:a?c", Uri("abc"), false},
      {"uri:[ab]", Uri("a"), false},
      {"uri:a\\*", Uri("a*"), false},
      {"cn:a.c", Cn("abc"), false},
  };
  for (const Match& each : cases) {
    EXPECT_EQ(Pattern::Parse(each.pattern)->Matches(each.name), each.matches)
        << each.pattern << " " << ToString(each.name);
  }
}

// Returns random text over a small alphabet, so that matches are frequent.
std::string RandomText(const std::string& alphabet, std::mt19937_64* random) {
  std::string text;
  const size_t length = 1 + (*random)() % 12;
  for (size_t i = 0; i < length; ++i) {
    text.push_back(alphabet[(*random)() % alphabet.size()]);
  }
  return text;
}

std::regex RegexOf(const std::string& glob, const char* segment) {
  std::string text;
  for (const char c : glob) {
    text += c == '*' ? std::string(segment)
                     : absl::StrCat("[", std::string(1, c), "]");
  }
  return std::regex(text);
}

TEST(Pattern, RandomOnesMatchAsRegularExpressions) {
  struct Kind {
    NameKind kind;
    const char* prefix;
    const char* alphabet;
    const char* segment;
  };
  const Kind kinds[] = {{NameKind::kUri, "uri:", "ab/.", "[^/]+"},
                        {NameKind::kDns, "dns:", "ab/.", "[^.]+"},
                        {NameKind::kCommonName, "cn:", "ab/.", ".+"}};
  size_t matched = 0;
  for (uint64_t seed = ChosenSeeds().first(); ChosenSeeds().Wants(seed);
       ++seed) {
    std::mt19937_64 random(seed);
    const Kind& kind = kinds[random() % 3];
    std::string glob;
    do {
      glob = RandomText(absl::StrCat(kind.alphabet, "**"), &random);
    } while (absl::StrContains(glob, "**"));
    const auto pattern = Pattern::Parse(kind.prefix + glob);
    ASSERT_TRUE(pattern.ok()) << pattern.status();
    const std::regex oracle = RegexOf(glob, kind.segment);
    for (int i = 0; i < 20; ++i) {
      const std::string name = RandomText(kind.alphabet, &random);
      const bool matches = std::regex_match(name, oracle);
      matched += matches;
      ASSERT_EQ(pattern->Matches({kind.kind, name}), matches)
          << kind.prefix << glob << " " << name << "; " << RepeatWith(seed);
    }
  }
  std::cout << matched << " matches\n";
  EXPECT_TRUE(ChosenSeeds().ran() < 1000 || matched > 0);
  ChosenSeeds().Print();
}

}  // namespace
}  // namespace penstock::ps

int main(int argc, char** argv) {
  return penstock::ps::RunWithSeeds(argc, argv, 3000);
}
