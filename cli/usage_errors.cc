#include "cli/usage_errors.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/help.h"
#include "transport/base/flag_errors.h"
#include "transport/base/printable.h"

namespace penstock::cli {
namespace {

constexpr size_t kMaxTextBytes = 200;

bool IsOption(absl::string_view word) {
  return word.size() > 1 && word.front() == '-';
}

bool TakesValue(const CLI::Option& option) {
  return option.get_items_expected_max() > 0 && option.get_type_size_max() > 0;
}

// Returns the names that `word` may be a misspelling of: long options, and
// commands unless `word` begins like an option.
std::vector<std::string> Candidates(const CLI::App& app,
                                    absl::string_view word) {
  std::vector<std::string> names;
  if (!IsOption(word)) {
    for (const CLI::App* each : VisibleCommands(app)) {
      names.push_back(each->get_name());
    }
  }
  for (const CLI::Option* each : VisibleOptions(app)) {
    for (const std::string& name : each->get_lnames()) {
      names.push_back(absl::StrCat("--", name));
    }
  }
  return names;
}

// Returns the error for an option or an argument with an empty value.
std::string EmptyValue(const Program& program, const CLI::App& app,
                       const CLI::Option& option) {
  if (option.get_positional()) {
    return absl::StrCat(OptionText(option), " is empty: ", FullName(app), " ",
                        UsageOf(program, app));
  }
  const std::string name = option.get_name();
  return absl::StrCat(name, " needs a value: ", name, "=",
                      option.get_type_name());
}

// Returns the option of `app` whose name is the part of `word` before its final
// "=", or null if there is none.
const CLI::Option* WithoutValue(const CLI::App& app, absl::string_view word) {
  if (!absl::ConsumeSuffix(&word, "=") || !absl::StartsWith(word, "--")) {
    return nullptr;
  }
  return app.get_option_no_throw(std::string(word));
}

// Returns the option that CLI11's message names first, with or without dashes,
// or null if the message names none.
const CLI::Option* NamedIn(const CLI::App& app, const std::string& message,
                           bool with_dashes) {
  const CLI::Option* named = nullptr;
  std::tuple<size_t, size_t> best;  // the position, and the length of the rest
  for (const CLI::Option* each : VisibleOptions(app)) {
    std::string name = each->get_name();
    if (!with_dashes) name.erase(0, name.find_first_not_of('-'));
    const size_t at = message.find(name);
    if (at == std::string::npos) continue;
    const std::tuple<size_t, size_t> place(at, message.size() - name.size());
    if (named == nullptr || place < best) {
      named = each;
      best = place;
    }
  }
  return named;
}

// Returns the error for a value that is missing, repeated, or no number.
std::string WrongValue(const Program& program, const CLI::App& app,
                       const CLI::Option& option) {
  const std::string name = option.get_name();
  const std::vector<std::string>& values = option.results();
  if (!TakesValue(option)) return absl::StrCat(name, " takes no value");
  if (values.size() > 1) return absl::StrCat(name, " is given more than once");
  if (values.empty() || values.front().empty()) {
    return EmptyValue(program, app, option);
  }
  return absl::StrCat(name, ": \"",
                      base::Printable(values.front(), kMaxTextBytes),
                      "\" is no whole number");
}

}  // namespace

std::string UnknownWord(const CLI::App& app, absl::string_view text) {
  const std::string word = base::Printable(text, kMaxTextBytes);
  const bool has_commands = !VisibleCommands(app).empty();
  if (!IsOption(text) && !has_commands) {
    return absl::StrCat("\"", word, "\" is one argument too many");
  }
  const absl::string_view name = text.substr(0, text.find('='));
  const std::string nearest = base::Nearest(
      base::Printable(name, kMaxTextBytes), Candidates(app, text));
  return absl::StrCat(
      "there is no ", IsOption(text) ? "option " : "command ", "\"", word, "\"",
      nearest.empty()
          ? ""
          : absl::StrCat(": did you mean ", FullName(app), " ", nearest, "?"));
}

std::string UsageError(const Program& program, const CLI::App& app,
                       const CLI::ParseError& error) {
  using Code = CLI::ExitCodes;
  const auto code = static_cast<Code>(error.get_exit_code());
  if (code == Code::ExtrasError) {
    const std::vector<std::string> extra = app.remaining();
    return UnknownWord(app, extra.empty() ? "" : extra.front());
  }
  const CLI::Option* option = NamedIn(app, error.what(), /*with_dashes=*/true);
  if (option == nullptr) option = NamedIn(app, error.what(), false);
  if (option != nullptr && code == Code::RequiredError) {
    return absl::StrCat(OptionText(*option), " is missing: ", FullName(app),
                        " ", UsageOf(program, app));
  }
  if (option != nullptr &&
      (code == Code::ArgumentMismatch || code == Code::ConversionError)) {
    return WrongValue(program, app, *option);
  }
  return base::Printable(error.what(), kMaxTextBytes);
}

std::string EmptyValueError(const Program& program, const CLI::App& app,
                            const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") break;
    const CLI::Option* const option = WithoutValue(app, word);
    if (option == nullptr) continue;
    if (TakesValue(*option)) return EmptyValue(program, app, *option);
    return absl::StrCat(option->get_name(), " takes no value");
  }
  return "";
}

std::string EmptyValueError(const Program& program, const CLI::App& app) {
  for (const CLI::Option* each : app.get_options()) {
    if (!TakesValue(*each)) continue;
    for (const std::string& value : each->results()) {
      if (value.empty()) return EmptyValue(program, app, *each);
    }
  }
  return "";
}

}  // namespace penstock::cli
