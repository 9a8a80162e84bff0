#include "cli/program.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/help.h"
#include "cli/usage_errors.h"
#include "nlohmann/json.hpp"
#include "penstock/version.h"

namespace penstock::cli {
namespace {

constexpr char kHidden[] = "";  // CLI11's group that --help omits

void AddHelp(CLI::App* app) {
  app->set_help_flag("-h,--help", "show this help, and end");
}

// Returns the deepest command that was named.
CLI::App* Chosen(CLI::App* app) {
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
  }
  return app;
}

// Returns the subcommand with this name, or null.
const CLI::App* ChildOf(const CLI::App& app, const std::string& name) {
  const std::vector<const CLI::App*> named = app.get_subcommands(
      [&](const CLI::App* each) { return each->get_name() == name; });
  return named.empty() ? nullptr : named.front();
}

// The command at the beginning of a command line.
struct Beginning {
  const CLI::App* app;  // the deepest named command
  ptrdiff_t words;      // the number of words that name the command
};
Beginning BeginningOf(const CLI::App& root,
                      const std::vector<std::string>& words) {
  Beginning beginning{&root, 0};
  for (const std::string& word : words) {
    const CLI::App* const child = ChildOf(*beginning.app, word);
    if (child == nullptr) break;
    beginning = {child, beginning.words + 1};
  }
  return beginning;
}

// Rewrites "penstock help ping" to "penstock ping --help". Returns true if the
// words began with `help`.
bool ReplaceHelp(const CLI::App& root, std::vector<std::string>* words) {
  const auto named =
      std::find_if(words->begin(), words->end(),
                   [](const std::string& word) { return word != "help"; });
  if (named == words->begin()) return false;
  words->erase(words->begin(), named);
  // Inserts the words before the words of another program, if there are any.
  words->insert(words->begin() + BeginningOf(root, *words).words, "--help");
  return true;
}

bool Has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Returns true if `word` belongs to the command itself.
bool IsOwn(const Manual& manual, const std::string& word) {
  if (manual.only_operands) return word == "-h" || word == "--help";
  return word.size() > 1 && word.front() == '-' && word != "--";
}

// Returns true if the word after `word` is its value: "--fabrics shm".
bool TakesNextWord(const CLI::App& app, const std::string& word) {
  const CLI::Option* const option = app.get_option_no_throw(word);
  return option != nullptr && option->get_items_expected_max() > 0 &&
         option->get_type_size_max() > 0;
}

// Reports an error, as text, and as JSON if the program requested JSON.
void Report(const CLI::App& app, absl::string_view what,
            const Context& context) {
  Complain(FullName(app), what);
  if (!context.wants_json) return;
  const nlohmann::ordered_json json = {{"error", std::string(what)}};
  context.out->Write(
      absl::StrCat(json.dump(-1, ' ', /*ensure_ascii=*/true,
                             nlohmann::ordered_json::error_handler_t::replace),
                   "\n"));
}

int WrongUsage(const CLI::App& app, absl::string_view what,
               const Context& context) {
  Report(app, what, context);
  Complain(FullName(app), absl::StrCat("try: ", FullName(app), " --help"));
  return kUsage;
}

}  // namespace

std::string FullName(const CLI::App& app) {
  if (app.get_parent() == nullptr) return app.get_name();
  return absl::StrCat(FullName(*app.get_parent()), " ", app.get_name());
}

std::vector<const CLI::App*> VisibleCommands(const CLI::App& app) {
  return app.get_subcommands(
      [](const CLI::App* each) { return each->get_group() != kHidden; });
}

std::vector<const CLI::Option*> VisibleOptions(const CLI::App& app) {
  std::vector<const CLI::Option*> options;
  for (const CLI::Option* each : app.get_options()) {
    if (each->get_group() != kHidden) options.push_back(each);
  }
  return options;
}

void Complain(const std::string& name, absl::string_view message) {
  Output out(STDERR_FILENO);
  std::string text = absl::StrCat(name, ": ", message);
  // Does not wrap the text for a script, which gets a single line.
  if (out.is_terminal()) text = Wrapped(text, 0, out.columns());
  out.Write(text + "\n");
}

Program::Program(std::vector<std::unique_ptr<Command>> commands)
    : root_(kSummary, "penstock"), commands_(std::move(commands)) {
  AddHelp(&root_);
  root_.add_flag("--version", "show which release this is, and end");
  for (const std::unique_ptr<Command>& command : commands_) {
    CLI::App* const app = AppFor(command->manual());
    command->Declare(app);
    // Rejects what CLI11 would accept: "--json=0" and numbers.
    for (CLI::Option* each : app->get_options()) {
      if (each->get_items_expected_max() == 0) each->disable_flag_override();
    }
    by_app_[app] = command.get();
  }
}

CLI::App* Program::AppFor(const Manual& manual) {
  CLI::App* app = &root_;
  for (absl::string_view word : absl::StrSplit(manual.name, ' ')) {
    const std::string name(word);
    const std::vector<CLI::App*> known = app->get_subcommands(
        [&](const CLI::App* each) { return each->get_name() == name; });
    if (known.empty()) {
      app = app->add_subcommand(name, manual.group_summary);
      AddHelp(app);
    } else {
      app = known.front();
    }
  }
  app->description(manual.summary);
  if (manual.is_hidden) app->group(kHidden);
  return app;
}

const Command* Program::CommandOf(const CLI::App* app) const {
  const auto found = by_app_.find(app);
  return found == by_app_.end() ? nullptr : found->second;
}

int Program::Run(int argc, char** argv, const Context& context) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const bool is_help = ReplaceHelp(root_, &words);
  Context complete = context;
  complete.program = this;
  complete.operands = CutOperands(&words);
  const CLI::App* const app = BeginningOf(root_, words).app;
  complete.wants_json =
      Has(words, "--json") && app->get_option_no_throw("--json") != nullptr;
  const std::string wrong = WrongWords(words, is_help);
  const int code = wrong.empty() ? Parse(std::move(words), complete)
                                 : WrongUsage(*app, wrong, complete);
  const absl::Status& written = context.out->status();
  if (written.ok()) return code;
  if (!absl::IsCancelled(written)) {
    Complain("penstock", written.message());
  }
  return kFailed;
}

std::string Program::WrongWords(const std::vector<std::string>& words,
                                bool is_help) const {
  const Beginning beginning = BeginningOf(root_, words);
  const CLI::App& app = *beginning.app;
  const bool wants_help = Has(words, "--help") || Has(words, "-h");
  // Shows the help of the chosen command. CLI11 would show the help of the
  // words that it recognises, and ignore the rest.
  if (is_help || (wants_help && !VisibleCommands(app).empty())) {
    const auto next = std::find_if(
        words.begin() + beginning.words, words.end(),
        [](const std::string& word) { return word.empty() || word[0] != '-'; });
    if (next != words.end()) return UnknownWord(app, *next);
  }
  return EmptyValueError(*this, app, words);
}

std::vector<std::string> Program::CutOperands(
    std::vector<std::string>* words) const {
  const Beginning beginning = BeginningOf(root_, *words);
  const CLI::App* const app = beginning.app;
  auto first = words->begin() + beginning.words;
  const Command* const command = CommandOf(app);
  if (command == nullptr) return {};
  const Manual manual = command->manual();
  if (manual.operands.empty()) return {};
  while (first != words->end() && IsOwn(manual, *first)) {
    const bool has_value = TakesNextWord(*app, *first++);
    if (has_value && first != words->end()) ++first;
  }
  const bool is_marked = first != words->end() && *first == "--";
  std::vector<std::string> operands(first + (is_marked ? 1 : 0), words->end());
  words->erase(first, words->end());
  return operands;
}

int Program::Parse(std::vector<std::string> words, const Context& context) {
  std::reverse(words.begin(), words.end());  // CLI11 expects the reverse order
  try {
    root_.parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    context.out->Write(HelpOf(*this, *Chosen(&root_), *context.out));
    return kOk;
  } catch (const CLI::ParseError& error) {
    const CLI::App& app = *Chosen(&root_);
    return WrongUsage(app, UsageError(*this, app, error), context);
  }
  if (root_.count("--version") > 0) {
    context.out->Write("penstock " PENSTOCK_VERSION ", for gRPC 1.51.1\n");
    return kOk;
  }
  return RunCommand(Chosen(&root_), context);
}

int Program::RunCommand(CLI::App* app, const Context& context) {
  const auto found = by_app_.find(app);
  if (found == by_app_.end()) {
    if (app->get_parent() != nullptr) {
      return WrongUsage(*app, "which command?", context);
    }
    context.out->Write(HelpOf(*this, *app, *context.out));
    return kUsage;
  }
  Command* const command = found->second;
  const std::string empty = EmptyValueError(*this, *app);
  if (!empty.empty()) return WrongUsage(*app, empty, context);
  const absl::Status usage = command->Check();
  if (!usage.ok()) return WrongUsage(*app, usage.message(), context);
  const absl::StatusOr<int> code = command->Run(context);
  if (code.ok()) return *code;
  Report(*app, code.status().message(), context);
  return kFailed;
}

}  // namespace penstock::cli
