// Describes errors of a command line for users. CLI11's own messages are for
// programmers.

#ifndef PENSTOCK_CLI_USAGE_ERRORS_H_
#define PENSTOCK_CLI_USAGE_ERRORS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "cli/program.h"

namespace penstock::cli {

// Returns the reason why the words of a command line are wrong. `app` is the
// deepest command that they name.
std::string UsageError(const Program& program, const CLI::App& app,
                       const CLI::ParseError& error);

// Returns the message for an unknown command or option `word` of `app`, with a
// suggestion.
std::string UnknownWord(const CLI::App& app, absl::string_view word);

// Returns the error for a word "--name=", or "" if there is none. A script with
// an unset variable produces such a word. Call before CLI11 parses `words`,
// because CLI11 would use the next word as the value.
std::string EmptyValueError(const Program& program, const CLI::App& app,
                            const std::vector<std::string>& words);
// Returns the error for an empty value that is a separate word, as in "--name
// ''". Call it after `app` has parsed the words.
std::string EmptyValueError(const Program& program, const CLI::App& app);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_USAGE_ERRORS_H_
