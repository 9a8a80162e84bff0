// Explains CLI11's errors.

#ifndef PENSTOCK_TRANSPORT_BASE_PARSE_ERROR_TEXT_H_
#define PENSTOCK_TRANSPORT_BASE_PARSE_ERROR_TEXT_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "transport/base/flag_errors.h"

namespace penstock {
namespace base {

// Returns the error of a command line that `app` refuses. Suggests a flag in
// place of an unknown one. In a header, because only some programs with
// transport/base have CLI11.
inline std::string ParseErrorText(const CLI::App& app,
                                  const CLI::ParseError& error) {
  const std::vector<std::string> extra = app.remaining();
  const auto code = static_cast<CLI::ExitCodes>(error.get_exit_code());
  if (code != CLI::ExitCodes::ExtrasError || extra.empty()) return error.what();
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    known.push_back(option->get_name());
  }
  return UnknownFlag(extra.front(), known);
}

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_PARSE_ERROR_TEXT_H_
