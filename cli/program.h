// The command line of `penstock`: finds the command, and reports its errors.

#ifndef PENSTOCK_CLI_PROGRAM_H_
#define PENSTOCK_CLI_PROGRAM_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"

namespace penstock::cli {

// The tree of commands. What describes it (--help, man, completion) walks this
// tree, and so cannot miss an option.
class Program {
 public:
  explicit Program(std::vector<std::unique_ptr<Command>> commands);

  // Runs one command line and returns the exit code.
  int Run(int argc, char** argv, const Context& context);

  const CLI::App& root() const { return root_; }
  // Returns what `app` does; null for one that only has others below it.
  const Command* CommandOf(const CLI::App* app) const;

 private:
  CLI::App* AppFor(const Manual& manual);
  // Cuts off the end of `words` that is another program's command line.
  std::vector<std::string> CutOperands(std::vector<std::string>* words) const;
  // Returns what CLI11 would not see to be wrong with `words`, or "".
  std::string WrongWords(const std::vector<std::string>& words,
                         bool is_help) const;
  int Parse(std::vector<std::string> words, const Context& context);
  int RunCommand(CLI::App* app, const Context& context);

  CLI::App root_;
  std::vector<std::unique_ptr<Command>> commands_;
  std::map<const CLI::App*, Command*> by_app_;
};

// "penstock doctor".
std::string FullName(const CLI::App& app);

// The subcommands and options of `app` that people are to know of, in order.
std::vector<const CLI::App*> VisibleCommands(const CLI::App& app);
std::vector<const CLI::Option*> VisibleOptions(const CLI::App& app);

// Writes "penstock doctor: MESSAGE" to standard error, in lines that fit a
// terminal.
void Complain(const std::string& name, absl::string_view message);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_PROGRAM_H_
