// Draws a program's metadata and statuses.

#ifndef PENSTOCK_TESTS_ORACLE_GENERATE_METADATA_H_
#define PENSTOCK_TESTS_ORACLE_GENERATE_METADATA_H_

#include "tests/oracle/program.h"
#include "tests/oracle/random.h"

namespace penstock::oracle {

grpc::Status AnyStatus(Random* random);

// Draws the metadata of both sides. Puts a call whose metadata may exceed a
// limit, with the status that it has by now, on the rough channel.
void DrawMetadata(Random* random, const Settings& settings, Plan* plan);

}  // namespace penstock::oracle

#endif  // PENSTOCK_TESTS_ORACLE_GENERATE_METADATA_H_
