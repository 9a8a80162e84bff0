#include "cli/help.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace penstock::cli {
namespace {

constexpr size_t kIndent = 2;
// The longest name, in columns, that has its description on the same line.
constexpr size_t kMaxNameColumns = 26;

struct Row {
  std::string name;
  std::string says;
};

std::string Heading(const Output& out, absl::string_view text) {
  return absl::StrCat("\n", out.Styled(Style::kBold, text), "\n");
}

std::string Table(const std::vector<Row>& rows, const Output& out) {
  size_t width = 0;
  for (const Row& row : rows) {
    if (row.name.size() <= kMaxNameColumns) {
      width = std::max(width, row.name.size());
    }
  }
  std::string text;
  const size_t begin = kIndent + width + 2;
  for (const Row& row : rows) {
    absl::StrAppend(&text, std::string(kIndent, ' '), row.name);
    if (row.name.size() > width) {
      absl::StrAppend(&text, "\n", std::string(begin, ' '));
    } else {
      text.append(begin - kIndent - row.name.size(), ' ');
    }
    absl::StrAppend(&text, Wrapped(row.says, begin, out.columns()), "\n");
  }
  return text;
}

std::string Commands(const CLI::App& app, const Output& out) {
  std::vector<Row> rows;
  for (const CLI::App* each : VisibleCommands(app)) {
    rows.push_back({each->get_name(), each->get_description()});
  }
  if (rows.empty()) return "";
  return absl::StrCat(Heading(out, "Commands"), Table(rows, out));
}

std::string Arguments(const CLI::App& app, const Output& out) {
  std::vector<Row> rows;
  for (const CLI::Option* each : VisibleOptions(app)) {
    if (!each->get_positional()) continue;
    rows.push_back({OptionText(*each), each->get_description()});
  }
  if (rows.empty()) return "";
  return absl::StrCat(Heading(out, "Arguments"), Table(rows, out));
}

std::string Options(const CLI::App& app, const Output& out) {
  std::vector<Row> rows;
  for (const CLI::Option* each : VisibleOptions(app)) {
    if (each->get_positional()) continue;
    rows.push_back({OptionText(*each), each->get_description()});
  }
  return absl::StrCat(Heading(out, "Options"), Table(rows, out));
}

std::string Examples(const Manual& manual, const Output& out) {
  std::string text = Heading(out, "Examples");
  for (const Example& example : manual.examples) {
    absl::StrAppend(
        &text, "  ", example.line, "\n      ",
        out.Styled(Style::kDim, Wrapped(example.says, 6, out.columns())), "\n");
  }
  return text;
}

std::string ExitCodes(const Manual& manual, const Output& out) {
  return absl::StrCat(
      Heading(out, "Exit codes"),
      Table({{"0", manual.on_ok}, {"1", manual.on_failed}, {"2", kUsageCode}},
            out));
}

std::string Paragraphs(const std::string& text, const Output& out) {
  std::string lines;
  for (absl::string_view paragraph : absl::StrSplit(text, "\n\n")) {
    absl::StrAppend(&lines, "\n", Wrapped(paragraph, 0, out.columns()), "\n");
  }
  return lines;
}

}  // namespace

std::string UsageOf(const Program& program, const CLI::App& app) {
  if (!VisibleCommands(app).empty()) return "COMMAND [OPTIONS]";
  std::string text = "[OPTIONS]";
  for (const CLI::Option* each : VisibleOptions(app)) {
    if (!each->get_positional()) continue;
    absl::StrAppend(&text, each->get_required() ? " " : " [", OptionText(*each),
                    each->get_required() ? "" : "]");
  }
  const Command* const command = program.CommandOf(&app);
  if (command == nullptr || command->manual().operands.empty()) return text;
  const Manual manual = command->manual();
  if (manual.only_operands) return manual.operands;
  return absl::StrCat(text, " [--] ", manual.operands);
}

std::string OptionText(const CLI::Option& option) {
  if (option.get_positional()) return option.get_type_name();
  std::vector<std::string> names;
  for (const std::string& each : option.get_snames()) {
    names.push_back(absl::StrCat("-", each));
  }
  for (const std::string& each : option.get_lnames()) {
    names.push_back(absl::StrCat("--", each));
  }
  std::string text;
  for (const std::string& each : names) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", each);
  }
  if (option.get_items_expected_max() > 0 && option.get_type_size_max() > 0) {
    absl::StrAppend(&text, "=", option.get_type_name());
  }
  return text;
}

std::string HelpOf(const Program& program, const CLI::App& app,
                   const Output& out) {
  const Command* const command = program.CommandOf(&app);
  const std::string summary =
      Wrapped(app.get_description(), FullName(app).size() + 2, out.columns());
  std::string text = absl::StrCat(out.Styled(Style::kBold, FullName(app)), ": ",
                                  summary, "\n\nUsage: ", FullName(app), " ",
                                  UsageOf(program, app), "\n");
  if (command != nullptr) {
    text += Paragraphs(command->manual().description, out);
  }
  text += Commands(app, out);
  text += Arguments(app, out);
  text += Options(app, out);
  if (command != nullptr) {
    text += Examples(command->manual(), out);
    text += ExitCodes(command->manual(), out);
  } else {
    absl::StrAppend(&text, "\n", FullName(app),
                    " COMMAND --help says more, with examples.\n");
  }
  return text;
}

}  // namespace penstock::cli
