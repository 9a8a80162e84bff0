// Static probes for tracers such as bpftrace and perf.

#ifndef PENSTOCK_TRANSPORT_BASE_PROBES_H_
#define PENSTOCK_TRANSPORT_BASE_PROBES_H_

// PENSTOCK_PROBE(name, first, second) emits a no-op instruction. A note in the
// ELF file tells tracers the probe's address and where to find its arguments.
// An argument is a number or a zero-terminated text. docs/operations.md lists
// the probes.
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
