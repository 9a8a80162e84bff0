// Tests that the table of settings, docs/settings.md and the fields of Options
// agree.

#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "transport/settings/description.h"

namespace penstock {
namespace {

using ::testing::ElementsAreArray;
using Cells = std::vector<std::string>;

std::string TextOf(const char* path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string Document() { return TextOf("docs/settings.md"); }

// Removes the marks around words in errors and documents.
std::string Plain(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"`", ""}, {"\"", ""}});
}

// Returns the rows of the document that begin with a variable.
std::vector<Cells> DocumentedRows() {
  std::vector<Cells> rows;
  const std::string document = Document();
  for (absl::string_view line : absl::StrSplit(document, '\n')) {
    if (!absl::StartsWith(line, "| `PENSTOCK_")) continue;
    Cells cells = absl::StrSplit(Plain(line), '|', absl::SkipEmpty());
    for (std::string& cell : cells) absl::StripAsciiWhitespace(&cell);
    rows.push_back(cells);
  }
  return rows;
}

std::string DefaultOf(const Description& setting) {
  if (setting.default_value.empty()) return setting.default_note;
  if (setting.default_note.empty()) return setting.default_value;
  return absl::StrCat(setting.default_value, ", ", setting.default_note);
}

Cells RowOf(const Description& setting) {
  return {setting.variable, setting.field.empty() ? "none" : setting.field,
          Plain(setting.values), DefaultOf(setting), setting.effect};
}

std::set<std::string> Matches(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end;
       ++it) {
    found.insert((*it)[1]);
  }
  return found;
}

TEST(SettingsDocument, EverySettingHasItsRowAndNoOtherHasOne) {
  std::vector<Cells> wanted;
  for (const Description& each : DescribeSettings()) {
    wanted.push_back(RowOf(each));
  }
  EXPECT_THAT(DocumentedRows(), ElementsAreArray(wanted));
}

TEST(SettingsDocument, EverySettingHasItsParagraphAndNoParagraphIsLeftOver) {
  std::set<std::string> wanted;
  for (const Description& each : DescribeSettings()) wanted.insert(each.topic);
  EXPECT_EQ(Matches(Document(), R"(\n\n\*\*([^*]+)\.\*\*)"), wanted);
}

// Tests that the comment of each field begins with the variable.
TEST(SettingsDocument, EveryFieldOfOptionsIsASettingAndNamesItsVariable) {
  const std::string header = TextOf("penstock/options.h");
  std::set<std::string> fields;
  for (const Description& each : DescribeSettings()) {
    if (each.field.empty()) continue;
    fields.insert(each.field);
    const std::regex declaration(absl::StrCat(
        "  // ", each.variable, "[:.].*\n(?:  //.*\n)*  absl::optional<.+> ",
        each.field, ";"));
    EXPECT_TRUE(std::regex_search(header, declaration)) << each.variable;
  }
  EXPECT_EQ(Matches(header, R"(absl::optional<[^;]+>\s(\w+);)"), fields);
}

}  // namespace
}  // namespace penstock
