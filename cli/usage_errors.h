// What is wrong with a command line, for people: CLI11's words are for those
// who write programs.

#ifndef PENSTOCK_CLI_USAGE_ERRORS_H_
#define PENSTOCK_CLI_USAGE_ERRORS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "cli/program.h"

namespace penstock::cli {

// Says why `app`, the deepest command that was named, cannot take its words.
std::string UsageError(const Program& program, const CLI::App& app,
                       const CLI::ParseError& error);

// Says that `app` has no command or option `word`, and which is meant perhaps.
std::string UnknownWord(const CLI::App& app, absl::string_view word);

// Returns what is wrong with "--name=", of which a script has not set the
// value;
// "" if no word is of that form. To be asked before CLI11 parses `words`: it
// takes the next one for the value.
std::string EmptyValueError(const Program& program, const CLI::App& app,
                            const std::vector<std::string>& words);
// The same of a value that is a word of its own, after `app` has parsed them.
std::string EmptyValueError(const Program& program, const CLI::App& app);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_USAGE_ERRORS_H_
