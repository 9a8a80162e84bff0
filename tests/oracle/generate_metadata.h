// Draws the metadata and statuses of a program.

#ifndef PENSTOCK_TESTS_ORACLE_GENERATE_METADATA_H_
#define PENSTOCK_TESTS_ORACLE_GENERATE_METADATA_H_

#include "tests/oracle/program.h"
#include "tests/oracle/random.h"

namespace penstock::oracle {

grpc::Status AnyStatus(Random* random);

// Draws the metadata of both sides. If the metadata and the current status of a
// call may exceed a limit, moves the call to the rough channel, on which calls
// may be refused.
void DrawMetadata(Random* random, const Settings& settings, Plan* plan);

}  // namespace penstock::oracle

#endif  // PENSTOCK_TESTS_ORACLE_GENERATE_METADATA_H_
