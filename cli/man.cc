// penstock man: prints the man page as roff.

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cli/help.h"
#include "cli/program.h"
#include "cli/script_commands.h"

namespace penstock::cli {
namespace {

// Escapes text for roff. A line must not begin with a request's mark, and
// hyphens must stay hyphens.
std::string Escaped(absl::string_view text) {
  std::string escaped =
      absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
  if (!escaped.empty() && (escaped[0] == '.' || escaped[0] == '\'')) {
    escaped.insert(0, "\\&");
  }
  return escaped;
}

std::string Item(absl::string_view name, absl::string_view says) {
  return absl::StrCat(".TP\n.B ", Escaped(name), "\n", Escaped(says), "\n");
}

std::string Section(const Program& program, const CLI::App& app) {
  std::string text = absl::StrCat(".SS \"", Escaped(FullName(app)), " ",
                                  Escaped(UsageOf(program, app)), "\"\n");
  absl::StrAppend(&text, Escaped(app.get_description()), ".\n");
  const Command* const command = program.CommandOf(&app);
  if (command == nullptr) return text;
  const Manual manual = command->manual();
  for (absl::string_view paragraph :
       absl::StrSplit(manual.description, "\n\n")) {
    absl::StrAppend(&text, ".PP\n", Escaped(paragraph), "\n");
  }
  for (const CLI::Option* option : VisibleOptions(app)) {
    text += Item(OptionText(*option), option->get_description());
  }
  text += ".PP\nExamples:\n";
  for (const Example& example : manual.examples) {
    text += Item(example.line, example.says);
  }
  absl::StrAppend(&text, ".PP\nExit status: 0 if ", Escaped(manual.on_ok),
                  ", 1 if ", Escaped(manual.on_failed), ", 2 if ", kUsageCode,
                  ".\n");
  return text;
}

std::string Sections(const Program& program, const CLI::App& app) {
  std::string text;
  for (const CLI::App* each : VisibleCommands(app)) {
    text += Section(program, *each);
    text += Sections(program, *each);
  }
  return text;
}

std::string Page(const Program& program) {
  const CLI::App& root = program.root();
  std::string text = absl::StrCat(
      ".TH PENSTOCK 1 \"\" \"Penstock\" \"User Commands\"\n.SH NAME\n"
      "penstock \\- ",
      Escaped(kSummary), "\n.SH SYNOPSIS\n.B penstock\n",
      Escaped(UsageOf(program, root)), "\n.SH OPTIONS\n");
  for (const CLI::Option* option : VisibleOptions(root)) {
    text += Item(OptionText(*option), option->get_description());
  }
  absl::StrAppend(&text, ".SH COMMANDS\n", Sections(program, root),
                  ".SH ENVIRONMENT\n");
  text += Item("NO_COLOR", "if set, terminals get no colours");
  text += Item("PENSTOCK_*",
               "the settings of Penstock, which hold for this program, too; "
               "penstock doctor shows them");
  text += Item("PENSTOCK_METRICS, PENSTOCK_TRACE, PENSTOCK_RECORD",
               "ping and doctor leave these to the server, whose environment a "
               "probe may share");
  return text;
}

class Man final : public Command {
 public:
  Manual manual() const override {
    return {"man",
            "prints the man page",
            "Prints the man page as roff, for packages.",
            {{"penstock man | man -l -", "shows the page"}},
            "the page was printed",
            "the page could not be written",
            /*is_hidden=*/true};
  }
  void Declare(CLI::App*) override {}
  absl::StatusOr<int> Run(const Context& context) override {
    context.out->Write(Page(*context.program));
    return kOk;
  }
};

}  // namespace

std::unique_ptr<Command> MakeMan() { return std::make_unique<Man>(); }

}  // namespace penstock::cli
