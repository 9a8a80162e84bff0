// Figures in few characters.

#ifndef PENSTOCK_CLI_TOP_FIGURES_H_
#define PENSTOCK_CLI_TOP_FIGURES_H_

#include <string>

namespace penstock::cli {

// "12.3k", as many digits as a column has room for.
std::string Count(double value);
// "1.5 MiB".
std::string Bytes(double value);
// "98%"; "-" of nothing.
std::string Percent(double part, double all);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_TOP_FIGURES_H_
