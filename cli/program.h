// The command line of `penstock`: finds the command, and reports errors.

#ifndef PENSTOCK_CLI_PROGRAM_H_
#define PENSTOCK_CLI_PROGRAM_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"

namespace penstock::cli {

// The tree of commands. Help, man page and completion are generated from this
// tree, so they cannot miss an option.
class Program {
 public:
  explicit Program(std::vector<std::unique_ptr<Command>> commands);

  // Runs one command line and returns the exit code.
  int Run(int argc, char** argv, const Context& context);

  const CLI::App& root() const { return root_; }
  // Returns the command of `app`, or null if `app` only has subcommands.
  const Command* CommandOf(const CLI::App* app) const;

 private:
  CLI::App* AppFor(const Manual& manual);
  // Removes another program's command line from the end of `words`.
  std::vector<std::string> CutOperands(std::vector<std::string>* words) const;
  // Returns an error in `words` that CLI11 would not detect, or "".
  std::string WrongWords(const std::vector<std::string>& words,
                         bool is_help) const;
  int Parse(std::vector<std::string> words, const Context& context);
  int RunCommand(CLI::App* app, const Context& context);

  CLI::App root_;
  std::vector<std::unique_ptr<Command>> commands_;
  std::map<const CLI::App*, Command*> by_app_;
};

// Returns "penstock doctor".
std::string FullName(const CLI::App& app);

// Return the visible subcommands and options of `app`, in order.
std::vector<const CLI::App*> VisibleCommands(const CLI::App& app);
std::vector<const CLI::Option*> VisibleOptions(const CLI::App& app);

// Writes "penstock doctor: MESSAGE" to standard error, wrapped to the terminal.
void Complain(const std::string& name, absl::string_view message);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_PROGRAM_H_
