// Prepares the project's own programs for a careless environment.

#ifndef PENSTOCK_TRANSPORT_BASE_PROGRAM_START_H_
#define PENSTOCK_TRANSPORT_BASE_PROGRAM_START_H_

namespace penstock {
namespace base {

// Opens missing standard descriptors. Otherwise a socket would get their
// number, and output would go to the peer. Writing to the opened descriptors
// fails, as it should.
//
// If the address space is limited (ulimit -v), abort() also prints the limit
// and the remedy. gRPC and malloc abort without a reason if they get no memory.
//
// Call this function first in main(), before there are threads. A library must
// not call this function: the choice is the program's. `name` begins the
// printed line.
void PrepareProgram(const char* name);

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_PROGRAM_START_H_
