#include "cli/doctor_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/text/units.h"
#include "nlohmann/json.hpp"

namespace penstock::cli {
namespace {

constexpr size_t kSubjectColumns = 14;
constexpr size_t kLevelColumns = 7;  // "problem"
// The column of the text: two blanks each before the level, after the level,
// and after the subject.
constexpr size_t kTextColumn = 2 + kLevelColumns + 2 + kSubjectColumns + 2;

Style StyleOf(Level level) {
  switch (level) {
    case Level::kOk:
      return Style::kGood;
    case Level::kNote:
      return Style::kWarning;
    case Level::kProblem:
      return Style::kBad;
  }
  return Style::kPlain;
}

// Pads without counting colour codes as columns.
std::string Padded(const Output& out, Style style, absl::string_view text,
                   size_t columns) {
  std::string padded = out.Styled(style, text);
  if (text.size() < columns) padded.append(columns - text.size(), ' ');
  return padded;
}

std::string Heading(const Output& out, absl::string_view text) {
  return absl::StrCat(out.Styled(Style::kBold, text), "\n");
}

std::string PathsText(const DoctorReport& report, const Output& out) {
  constexpr size_t kColumn = 14;
  std::string text = Heading(out, "What can carry a connection from here");
  for (const PathVerdict& each : report.paths) {
    absl::StrAppend(&text, "  ", Padded(out, Style::kPlain, each.fabric, 7),
                    Padded(out, each.usable ? Style::kGood : Style::kDim,
                           each.usable ? "yes" : "no", kColumn - 9),
                    Wrapped(each.text, kColumn, out.columns()), "\n");
  }
  return text;
}

std::string TargetText(const TargetReport& target, const Output& out) {
  constexpr size_t kColumn = 9;
  std::string text = absl::StrCat(
      "\n", Heading(out, absl::StrCat("What carries one to ", target.target)));
  const auto line = [&](const std::string& first, absl::string_view rest) {
    absl::StrAppend(&text, first, Wrapped(rest, kColumn, out.columns()), "\n");
  };
  const std::string blank(kColumn, ' ');
  if (target.path.empty()) {
    line("  " + Padded(out, Style::kBad, "none", kColumn - 2), target.detail);
    return text;
  }
  line("  " + Padded(out, Style::kGood, target.path, kColumn - 2),
       absl::StrCat(target.detail, target.detail.empty() ? "" : "; ",
                    "a call takes ", DurationText(target.round_trip),
                    " (median, of ", target.calls, ")"));
  if (!target.reason.empty()) {
    line(blank, absl::StrCat("not better because: ", target.reason));
  }
  return text;
}

std::string FindingText(const Finding& finding, const Output& out) {
  const std::string subject = finding.subject;
  std::string text = absl::StrCat(
      "  ",
      Padded(out, StyleOf(finding.level), LevelName(finding.level),
             kLevelColumns),
      "  ", Padded(out, Style::kPlain, subject, kSubjectColumns), "  ",
      Wrapped(finding.text, kTextColumn, out.columns()), "\n");
  if (finding.remedy.empty()) return text;
  absl::StrAppend(&text, std::string(kTextColumn, ' '), "-> ",
                  Wrapped(finding.remedy, kTextColumn + 3, out.columns()),
                  "\n");
  return text;
}

std::string FindingsText(const DoctorReport& report, const Output& out,
                         bool brief) {
  std::string text;
  std::string group;
  for (const Finding& each : report.findings) {
    if (brief && each.level == Level::kOk) continue;
    if (each.group != group) {
      absl::StrAppend(&text, "\n", Heading(out, each.group));
    }
    group = each.group;
    text += FindingText(each, out);
  }
  return text;
}

std::string CountText(int count, absl::string_view noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

}  // namespace

int DoctorReport::Count(Level level) const {
  return static_cast<int>(
      std::count_if(findings.begin(), findings.end(),
                    [&](const Finding& each) { return each.level == level; }));
}

int DoctorReport::Problems() const {
  const bool is_unreachable = target.has_value() && target->path.empty();
  return Count(Level::kProblem) + (is_unreachable ? 1 : 0);
}

std::string ReportText(const DoctorReport& report, const Output& out,
                       bool brief) {
  std::string text = PathsText(report, out);
  if (report.target.has_value()) text += TargetText(*report.target, out);
  text += FindingsText(report, out, brief);
  const int problems = report.Problems();
  absl::StrAppend(&text, "\n",
                  out.Styled(problems == 0 ? Style::kGood : Style::kBad,
                             CountText(problems, "problem")),
                  ", ", CountText(report.Count(Level::kNote), "note"), "\n");
  return text;
}

std::string ReportJson(const DoctorReport& report) {
  nlohmann::ordered_json json;
  json["problems"] = report.Problems();
  json["notes"] = report.Count(Level::kNote);
  json["paths"] = nlohmann::ordered_json::array();
  for (const PathVerdict& each : report.paths) {
    json["paths"].push_back({{"fabric", each.fabric},
                             {"usable", each.usable},
                             {"text", each.text}});
  }
  if (report.target.has_value()) {
    json["target"] = {{"target", report.target->target},
                      {"path", report.target->path},
                      {"detail", report.target->detail},
                      {"reason", report.target->reason},
                      {"calls", report.target->calls}};
    if (!report.target->path.empty()) {
      json["target"]["round_trip_us"] =
          absl::ToDoubleMicroseconds(report.target->round_trip);
    }
  }
  json["findings"] = nlohmann::ordered_json::array();
  for (const Finding& each : report.findings) {
    json["findings"].push_back({{"group", each.group},
                                {"subject", each.subject},
                                {"level", LevelName(each.level)},
                                {"text", each.text},
                                {"remedy", each.remedy}});
  }
  // Escapes a target's name. Texts of files and peers are already printable.
  return json.dump(-1, ' ', /*ensure_ascii=*/true,
                   nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace penstock::cli
