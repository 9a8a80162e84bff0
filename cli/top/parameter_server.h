// Formats the parameter server part of `penstock top`.

#ifndef PENSTOCK_CLI_TOP_PARAMETER_SERVER_H_
#define PENSTOCK_CLI_TOP_PARAMETER_SERVER_H_

#include <string>

#include "cli/text/output.h"
#include "cli/top/rates.h"
#include "cli/top/sample.h"
#include "nlohmann/json.hpp"

namespace penstock::cli {

// Returns the activity of the process's parameter server, and its tables, the
// largest first. Empty if there is no parameter server.
std::string ParameterServerText(const Rates& rates, const Sample& after,
                                const Output& out);

// Returns the facts of ParameterServerText(), with all tables, as JSON. Returns
// null if there is no parameter server.
nlohmann::ordered_json ParameterServerJson(const Rates& rates,
                                           const Sample& after);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_TOP_PARAMETER_SERVER_H_
