// penstock completion: prints scripts that complete command lines in shells.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cli/help.h"
#include "cli/program.h"
#include "cli/script_commands.h"

namespace penstock::cli {
namespace {

bool TakesValue(const CLI::Option& option) {
  return option.get_items_expected_max() > 0 && option.get_type_size_max() > 0;
}

bool TakesFile(const CLI::Option& option) {
  return option.get_type_name() == "FILE";
}

// Returns the words that may follow `app`. A word that ends in "=", such as
// "--count=", needs a value.
std::vector<std::string> WordsOf(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::App* each : VisibleCommands(app)) {
    words.push_back(each->get_name());
  }
  for (const CLI::Option* option : VisibleOptions(app)) {
    for (const std::string& name : option->get_lnames()) {
      words.push_back(absl::StrCat("--", name, TakesValue(*option) ? "=" : ""));
    }
  }
  return words;
}

// Returns "doctor) words='...' ;;" for `app` and all of its subcommands.
std::string Cases(const CLI::App& app, const std::string& path) {
  std::string text = absl::StrCat("    '", path, "') words='",
                                  absl::StrJoin(WordsOf(app), " "), "' ;;\n");
  for (const CLI::App* each : VisibleCommands(app)) {
    text += Cases(
        *each, absl::StrCat(path, path.empty() ? "" : " ", each->get_name()));
  }
  return text;
}

// The beginning of bash's script. The script finds the command by the words
// before the cursor, without options. Bash treats "=" as a separate word.
constexpr char kBashBegin[] = R"(_penstock() {
  local path='' word words='' cur=${COMP_WORDS[COMP_CWORD]}
  local -i i
  COMPREPLY=()
  [[ $cur == '=' || ${COMP_WORDS[COMP_CWORD-1]} == '=' ]] && {
    [[ $cur == '=' ]] && cur=''
    COMPREPLY=($(compgen -f -- "$cur"))
    return
  }
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    [[ " $_penstock_commands " == *" ${path:+$path/}$word "* ]] &&
      path=${path:+$path/}$word
  done
  case "${path//\// }" in
)";
constexpr char kBashEnd[] = R"(  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
  [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace 2>/dev/null
  return 0
}
complete -F _penstock penstock
)";

void AddPaths(const CLI::App& app, const std::string& path,
              std::vector<std::string>* paths) {
  for (const CLI::App* each : VisibleCommands(app)) {
    paths->push_back(
        absl::StrCat(path, path.empty() ? "" : "/", each->get_name()));
    AddPaths(*each, paths->back(), paths);
  }
}

std::string Bash(const CLI::App& root) {
  std::vector<std::string> paths;
  AddPaths(root, "", &paths);
  return absl::StrCat("_penstock_commands='", absl::StrJoin(paths, " "), "'\n",
                      kBashBegin, Cases(root, ""), kBashEnd);
}

// Returns the script for zsh, which runs bash's script through its
// compatibility layer.
std::string Zsh(const CLI::App& root) {
  return absl::StrCat(
      "#compdef penstock\nautoload -U +X bashcompinit && bashcompinit\n",
      Bash(root));
}

// Returns the text in fish's single quotes.
std::string FishQuoted(absl::string_view text) {
  return absl::StrCat(
      "'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

void AddFish(const CLI::App& app, const std::string& condition,
             std::string* text) {
  const std::string begin =
      absl::StrCat("complete -c penstock -n ", FishQuoted(condition));
  for (const CLI::Option* option : VisibleOptions(app)) {
    for (const std::string& name : option->get_lnames()) {
      absl::StrAppend(text, begin, " -l ", name,
                      !TakesValue(*option) ? ""
                      : TakesFile(*option) ? " -r -F"
                                           : " -x",
                      " -d ", FishQuoted(option->get_description()), "\n");
    }
  }
  std::vector<std::string> names;
  for (const CLI::App* each : VisibleCommands(app)) {
    names.push_back(each->get_name());
  }
  if (names.empty()) return;
  const std::string none =
      absl::StrCat(condition, "; and not __fish_seen_subcommand_from ",
                   absl::StrJoin(names, " "));
  for (const CLI::App* each : VisibleCommands(app)) {
    absl::StrAppend(text, "complete -c penstock -f -n ", FishQuoted(none),
                    " -a ", each->get_name(), " -d ",
                    FishQuoted(each->get_description()), "\n");
    AddFish(*each,
            absl::StrCat(condition, "; and __fish_seen_subcommand_from ",
                         each->get_name()),
            text);
  }
}

std::string Fish(const CLI::App& root) {
  std::string text = "complete -c penstock -f\n";
  AddFish(root, "true", &text);
  return text;
}

class Completion final : public Command {
 public:
  Manual manual() const override {
    return {"completion",
            "prints a script that completes command lines in a shell",
            "Prints a script for bash, zsh or fish.",
            {{"penstock completion bash > "
              "/usr/share/bash-completion/completions/penstock",
              "for all users"},
             {"source <(penstock completion bash)", "in this shell only"}},
            "the script was printed",
            "the script could not be written",
            /*is_hidden=*/true};
  }
  void Declare(CLI::App* app) override {
    app->add_option("shell", shell_, "bash, zsh or fish")
        ->type_name("SHELL")
        ->required();
  }
  absl::Status Check() override {
    if (shell_ == "bash" || shell_ == "zsh" || shell_ == "fish") {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError("for which shell? bash, zsh or fish");
  }
  absl::StatusOr<int> Run(const Context& context) override {
    const CLI::App& root = context.program->root();
    context.out->Write(shell_ == "bash"  ? Bash(root)
                       : shell_ == "zsh" ? Zsh(root)
                                         : Fish(root));
    return kOk;
  }

 private:
  std::string shell_;
};

}  // namespace

std::unique_ptr<Command> MakeCompletion() {
  return std::make_unique<Completion>();
}

}  // namespace penstock::cli
