#include "tensor_service/client.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "grpcpp/create_channel.h"
#include "penstock/penstock.h"
#include "python/arguments.h"
#include "python/arrays.h"
#include "python/bindings.h"
#include "python/credentials.h"
#include "python/destinations.h"
#include "python/devices.h"
#include "python/errors.h"
#include "python/from_any.h"
#include "python/gil.h"
#include "python/grpc_at_forks.h"
#include "python/maker.h"
#include "python/paths.h"
#include "python/tensor_object.h"
#include "tensor_service/status.h"

namespace penstock::python {
namespace {

namespace py = pybind11;
using tensor::Bundle;
using tensor::TensorClient;

constexpr char kDoc[] =
    R"(A client of a TensorServer, or of any server of TensorExchange.

`target` is "host:port", or another name that gRPC can resolve. Each call takes
at most `timeout` seconds, including the connection; None disables the timeout.
Other threads run while a call waits. Ctrl-C cancels a call. Threads may share
a client. `credentials` are ChannelCredentials; None means no security.

Returned tensors share the memory of the received message. Over shm, this is
the server's memory: copy tensors that you keep for long.

`into` is a dict of your own memory, by name, that tensors are received into:
arrays, Tensors, or arrays on a GPU, with the type and shape of the received
tensors. Do not use this memory until the call has returned. If a tensor does
not fit, the call raises InvalidArgument, and the contents of the other memory
are undefined. A Tensor in the CPU's memory gets other memory if anybody else
uses its memory, as with numpy(writable=True): call its numpy() again.

With `keep_on_device`, tensors that the server has on a GPU of this machine
stay there, in the server's memory, if the transport supports that: copy them,
or drop them soon. Otherwise, tensors that are not in `into` are received in
the CPU's memory. See use_devices().

If the tensors of one put() or get() exceed `parts_above` bytes, they are sent
as a stream of parts of at most that size. Even one tensor may be split. The
call still stores or returns all tensors or none. get() then returns tensors in
memory of this process: in `into`, or in the CPU's memory.)";

std::string NameOf(py::handle name) {
  if (!py::isinstance<py::str>(name)) {
    throw py::type_error("the name of a tensor is a str");
  }
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(name.ptr(), &size);
  if (text == nullptr) throw py::error_already_set();
  return std::string(text, static_cast<size_t>(size));
}

// Returns each name once, because the result is a dict.
std::vector<std::string> NamesOf(const py::iterable& names) {
  if (py::isinstance<py::str>(names)) {
    throw py::type_error("names are a list: client.get([\"x\"])");
  }
  std::vector<std::string> all;
  absl::flat_hash_set<std::string> seen;
  for (py::handle name : names) {
    std::string text = NameOf(name);
    if (seen.insert(text).second) all.push_back(std::move(text));
  }
  return all;
}

Bundle BundleOf(const py::dict& tensors) {
  Bundle bundle;
  for (const auto& [name, value] : tensors) {
    bundle.tensors.push_back(
        {NameOf(name),
         ValueOf(FromAny(py::reinterpret_borrow<py::object>(value), false))});
  }
  return bundle;
}

py::dict DictOf(Bundle bundle) {
  py::dict tensors;
  for (tensor::NamedTensor& named : bundle.tensors) {
    tensors[py::str(named.name)] =
        std::make_unique<TensorObject>(std::move(named.tensor));
  }
  return tensors;
}

// Adds advice for the user to the message.
absl::Status WithRemedy(const absl::Status& status, const std::string& target) {
  const char* remedy = "";
  if (absl::IsDeadlineExceeded(status)) {
    remedy = "; check that a server listens there, or raise the timeout";
  } else if (absl::IsUnavailable(status)) {
    remedy = "; the server has gone or refuses us: check it, and call again";
  } else if (absl::IsNotFound(status)) {
    remedy = "; list() has the names of what is there";
  }
  return absl::Status(status.code(),
                      absl::StrCat(target, ": ", status.message(), remedy));
}

absl::StatusOr<absl::Duration> TimeoutOf(std::optional<double> seconds) {
  if (!seconds) return absl::InfiniteDuration();
  if (*seconds > 0) return absl::Seconds(*seconds);
  return absl::InvalidArgumentError(
      absl::StrCat("timeout ", *seconds, " is not positive; None is for ever"));
}

// A client of a tensor service, for Python. Guarded by the GIL, except for the
// calls themselves.
class Client {
 public:
  Client(std::string target, absl::Duration timeout,
         std::shared_ptr<grpc::ChannelCredentials> credentials,
         size_t parts_above)
      : target_(std::move(target)) {
    Unlocked unlocked;
    auto channel =
        grpc::CreateCustomChannel(target_, Credentials(std::move(credentials)),
                                  tensor::UnlimitedMessages());
    Remember(channel);
    client_ = std::make_shared<TensorClient>(channel, timeout, IsInterrupted,
                                             parts_above);
  }
  // Leaks the client in a forked child: gRPC might wait for threads that do not
  // exist there.
  ~Client() {
    if (maker_.IsParent()) {
      new std::shared_ptr<TensorClient>(std::move(client_));
    } else {
      Close();
    }
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void Close() {
    if (maker_.IsParent()) return;
    std::shared_ptr<TensorClient> client = std::move(client_);
    Unlocked unlocked;
    client.reset();
  }

  // Returns the result of `call`, or throws. Other threads run meanwhile, and
  // may close this client.
  template <typename Call>
  auto Run(const Call& call) {
    if (maker_.IsParent()) Throw(maker_.Refuse(target_));
    const std::shared_ptr<TensorClient> client = client_;
    if (client == nullptr) {
      Throw(absl::FailedPreconditionError(
          absl::StrCat(target_, ": the client is closed; make another one")));
    }
    auto result = [&] {
      Unlocked unlocked;
      return call(*client);
    }();
    RunPending();
    ThrowIfRaised();
    if (!result.ok()) Throw(WithRemedy(result.status(), target_));
    return *std::move(result);
  }

 private:
  const std::string target_;
  const Maker maker_;
  std::shared_ptr<TensorClient> client_;  // null once closed
};

std::unique_ptr<Client> Connect(const std::string& target,
                                std::optional<double> timeout,
                                const ChannelCredentials* credentials,
                                const py::object& parts_above) {
  CheckGrpc(target);
  return std::make_unique<Client>(
      target, ValueOf(TimeoutOf(timeout)),
      credentials == nullptr ? grpc::InsecureChannelCredentials()
                             : credentials->credentials,
      WholeOf(parts_above, "parts_above", UINT64_MAX));
}

size_t Put(Client& self, const py::dict& tensors) {
  const Bundle bundle = BundleOf(tensors);
  return self.Run([&](TensorClient& client) { return client.Put(bundle); });
}

tensor::DeviceTensors Kept(bool keep_on_device) {
  if (!keep_on_device) return tensor::DeviceTensors::kToHost;
  ValueOf(NeedDevices("tensors that are to stay on a device"));
  return tensor::DeviceTensors::kKeep;
}

py::dict Get(Client& self, const py::iterable& names, const py::object& into,
             bool keep_on_device) {
  const auto wanted = NamesOf(names);
  const tensor::DeviceTensors kept = Kept(keep_on_device);
  Destinations places(into);
  py::dict tensors = DictOf(self.Run([&](TensorClient& client) {
    return client.Get(wanted, places.get(), kept);
  }));
  places.Finish();
  return tensors;
}

py::dict Exchange(Client& self, const py::dict& tensors, const py::object& into,
                  bool keep_on_device) {
  const Bundle bundle = BundleOf(tensors);
  const tensor::DeviceTensors kept = Kept(keep_on_device);
  Destinations places(into);
  py::dict replaced = DictOf(self.Run([&](TensorClient& client) {
    return client.Exchange(bundle, places.get(), kept);
  }));
  places.Finish();
  return replaced;
}

size_t Delete(Client& self, const py::iterable& names) {
  const auto unwanted = NamesOf(names);
  return self.Run(
      [&](TensorClient& client) { return client.Delete(unwanted); });
}

py::list List(Client& self) {
  const py::object entry = py::module_::import("penstock._types").attr("Entry");
  py::list entries;
  for (const TensorClient::Entry& found :
       self.Run([](TensorClient& client) { return client.List(); })) {
    entries.append(entry(found.name, std::string(tensor::Name(found.dtype)),
                         TupleOf(found.shape)));
  }
  return entries;
}

}  // namespace

void BindClient(py::module_& module) {
  py::class_<Client>(module, "TensorClient", kDoc)
      .def(py::init(&Connect), py::arg("target"), py::arg("timeout") = 60.0,
           py::kw_only(), py::arg("credentials") = py::none(),
           py::arg("parts_above") = tensor::kPartsAbove)
      .def("put", &Put, py::arg("tensors"),
           "Stores tensors or arrays under their names, all or none. Returns "
           "how many bytes the server then holds.")
      .def("get", &Get, py::arg("names"), py::kw_only(),
           py::arg("into") = py::none(), py::arg("keep_on_device") = false,
           "Returns the named tensors. Raises NotFound if one is missing.")
      .def("exchange", &Exchange, py::arg("tensors"), py::kw_only(),
           py::arg("into") = py::none(), py::arg("keep_on_device") = false,
           "Stores tensors like put(), and returns the tensors that were "
           "replaced. At most 4 GiB are sent in each direction; for more, use "
           "get() and put().")
      .def("delete", &Delete, py::arg("names"),
           "Deletes the named tensors. Returns how many of them existed.")
      .def("list", &List,
           "Returns name, type and shape of each tensor, ordered by name.")
      .def("close", &Client::Close,
           "Closes the connection once running calls have ended.")
      .def("__enter__", [](const py::object& self) { return self; })
      .def("__exit__", [](Client& self, const py::args&) { self.Close(); });
}

}  // namespace penstock::python
