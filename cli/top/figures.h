// Formats numbers in few characters.

#ifndef PENSTOCK_CLI_TOP_FIGURES_H_
#define PENSTOCK_CLI_TOP_FIGURES_H_

#include <string>

namespace penstock::cli {

// Returns "12.3k", with as many digits as fit into a column.
std::string Count(double value);
// Returns "1.5 MiB".
std::string Bytes(double value);
// Returns "98%", or "-" if `all` is zero.
std::string Percent(double part, double all);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_TOP_FIGURES_H_
