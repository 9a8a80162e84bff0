// Places where tracers such as bpftrace and perf can look in.

#ifndef PENSTOCK_TRANSPORT_BASE_PROBES_H_
#define PENSTOCK_TRANSPORT_BASE_PROBES_H_

// PENSTOCK_PROBE(name, first, second) is an instruction that does nothing, and
// a note in the program's file that says where it is, and where the arguments
// are: numbers, or texts that end with zero. docs/operations.md has the list.
#if defined(__has_include)
#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#define PENSTOCK_PROBE(name, first, second) \
  DTRACE_PROBE2(penstock, name, first, second)
#endif
#endif

#ifndef PENSTOCK_PROBE
#pragma message("no <sys/sdt.h> (systemtap-sdt-dev): built without probes")
#define PENSTOCK_PROBE(name, first, second) \
  do {                                      \
    (void)(first);                          \
    (void)(second);                         \
  } while (false)
#endif

#endif  // PENSTOCK_TRANSPORT_BASE_PROBES_H_
