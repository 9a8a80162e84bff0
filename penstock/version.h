// The version of the release that a program is compiled against.

#ifndef PENSTOCK_VERSION_H_
#define PENSTOCK_VERSION_H_

#define PENSTOCK_VERSION "0.1.0"

#endif  // PENSTOCK_VERSION_H_
