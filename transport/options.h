// What users may choose about a channel or a server. Re-exported by penstock.h.

#ifndef PENSTOCK_TRANSPORT_OPTIONS_H_
#define PENSTOCK_TRANSPORT_OPTIONS_H_

// Options lie below transport/grpc, which reads them too.
#include "transport/settings/options.h"

#endif  // PENSTOCK_TRANSPORT_OPTIONS_H_
