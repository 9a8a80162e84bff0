// A parameter server, as `penstock top` shows it.

#ifndef PENSTOCK_CLI_TOP_PARAMETER_SERVER_H_
#define PENSTOCK_CLI_TOP_PARAMETER_SERVER_H_

#include <string>

#include "cli/text/output.h"
#include "cli/top/rates.h"
#include "cli/top/sample.h"
#include "nlohmann/json.hpp"

namespace penstock::cli {

// Returns what the process's parameter server does, and its tables, those with
// the most bytes first. Empty if it has none.
std::string ParameterServerText(const Rates& rates, const Sample& after,
                                const Output& out);

// The same, of all tables; null if there is none.
nlohmann::ordered_json ParameterServerJson(const Rates& rates,
                                           const Sample& after);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_TOP_PARAMETER_SERVER_H_
