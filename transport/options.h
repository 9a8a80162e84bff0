// Settings of a channel or a server. penstock.h includes this.

#ifndef PENSTOCK_TRANSPORT_OPTIONS_H_
#define PENSTOCK_TRANSPORT_OPTIONS_H_

// The struct lives in transport/settings, because transport/grpc uses it too
// and must not include the public headers.
#include "transport/settings/options.h"

#endif  // PENSTOCK_TRANSPORT_OPTIONS_H_
