#include "python/rpc/reports.h"

#include "transport/base/per_process.h"

namespace penstock::python {

Reports* Reports::Get() { return base::PerProcess<Reports>::Get(); }

}  // namespace penstock::python
