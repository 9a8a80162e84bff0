// The interface of a subcommand of `penstock`.

#ifndef PENSTOCK_CLI_COMMAND_H_
#define PENSTOCK_CLI_COMMAND_H_

#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "cli/doctor/host.h"
#include "cli/text/output.h"

namespace penstock::cli {

// The exit codes of all commands.
constexpr int kOk = 0;
constexpr int kFailed = 1;  // a problem was found, or the command failed
constexpr int kUsage = 2;   // the command line is invalid

struct Example {
  std::string line;  // "penstock doctor ps0:50051"
  std::string says;  // the purpose of the line
};

// The user documentation of a command, for --help and the man page.
struct Manual {
  std::string name;     // "doctor", or "ps status" for a subcommand of ps
  std::string summary;  // one line without a full stop
  // Paragraphs, separated by empty lines.
  std::string description;
  std::vector<Example> examples;
  // The meanings of exit codes 0 and 1. Exit code 2 is an invalid command line.
  std::string on_ok;
  std::string on_failed;
  bool is_hidden = false;  // omitted from --help, the man page and completion
  // For a command with subcommands: one line about the group.
  std::string group_summary = "";
  // The name that help texts give to a second command line, that of another
  // program, at the end of this one. Empty if there is none. The second command
  // line begins at the first word that is not an option, or after "--". These
  // words become Context::operands, and are not parsed.
  std::string operands = "";
  // True if the second command line begins with the first word in any case,
  // except if this word is --help.
  bool only_operands = false;
};

class Program;

// The input of a command, from main().
struct Context {
  Output* out;
  // The environment as it was before `penstock` added to it.
  const Environment& environment;
  // The tree of all commands. Program sets this and the following members.
  const Program* program = nullptr;
  // The words of the second command line; see Manual::operands.
  std::vector<std::string> operands = {};
  // True if the command line has --json, and the command supports it. Program
  // then also writes an error of Run() as a JSON object to `out`.
  bool wants_json = false;
};

// One subcommand. To add one, write a class and name it in commands.cc.
class Command {
 public:
  virtual ~Command() = default;
  virtual Manual manual() const = 0;
  // Adds the options to `app`, into members of this object. Give every option a
  // description; CLI11's own checks are fine.
  virtual void Declare(CLI::App* app) = 0;
  // Checks the parsed options for errors that CLI11 cannot find. Any error
  // means a wrong command line.
  virtual absl::Status Check() { return absl::OkStatus(); }
  // Runs the command. Returns an exit code after writing the answer, or an
  // error whose message the caller prints. Never throws or exits.
  virtual absl::StatusOr<int> Run(const Context& context) = 0;
};

// Returns all commands, in the order in which --help lists them.
std::vector<std::unique_ptr<Command>> AllCommands();

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_COMMAND_H_
