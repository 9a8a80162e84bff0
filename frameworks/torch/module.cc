// The Python module, which makes backends for penstock.torch.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "frameworks/torch/backend.h"
#include "frameworks/torch/pool_allocator.h"
#include "frameworks/torch/torch_headers.h"

namespace penstock {
namespace pytorch {
namespace {

c10::intrusive_ptr<c10d::Backend> Create(
    const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
    std::chrono::milliseconds timeout, const std::string& group_name,
    const std::vector<uint64_t>& global_ranks, bool enable_reconfigure) {
  auto options =
      c10::make_intrusive<c10d::Backend::Options>("penstock", timeout);
#ifdef C10D_BACKEND_HAS_RECONFIGURE  // not in PyTorch 2.6
  options->group_name = group_name;
  options->global_ranks_in_group = global_ranks;
  options->enable_reconfigure = enable_reconfigure;
#endif
  return c10::make_intrusive<Backend>(store, rank, size, options);
}

std::string Describe(const c10::intrusive_ptr<c10d::Backend>& backend) {
  const auto* const ours = dynamic_cast<const Backend*>(backend.get());
  TORCH_CHECK(ours != nullptr,
              "penstock.torch.describe: the group's backend is ",
              backend->getBackendName());
  return ours->Describe();
}

}  // namespace
}  // namespace pytorch
}  // namespace penstock

PYBIND11_MODULE(_backend, module) {
  module.attr("built_for") = PENSTOCK_TORCH_RELEASE;
  module.def("create", &penstock::pytorch::Create, py::arg("store"),
             py::arg("rank"), py::arg("size"), py::arg("timeout"),
             py::arg("group_name"), py::arg("global_ranks"),
             py::arg("enable_reconfigure"),
             py::call_guard<py::gil_scoped_release>());
  module.def("describe", &penstock::pytorch::Describe, py::arg("backend"),
             py::call_guard<py::gil_scoped_release>());
  module.def("use_pool", &penstock::pytorch::PoolAllocator::Request,
             py::arg("nbytes"));
}
