// tensors: stores a tensor in a server, and fetches it. Client and server are
// in one process here, but may be in two.

#include <iostream>
#include <string>

#include "grpcpp/grpcpp.h"
#include "penstock/penstock.h"
#include "tensor_service/client.h"
#include "tensor_service/service.h"
#include "tensor_service/status.h"

namespace tensor = penstock::tensor;

int main() {
  tensor::TensorStore store(/*budget_bytes=*/1 << 30);
  auto service = tensor::MakeTensorService(&store);
  grpc::ServerBuilder builder;
  penstock::Enable(&builder);
  tensor::AllowUnlimitedMessages(&builder);
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(service.get());
  auto server = builder.BuildAndStart();

  auto channel = grpc::CreateCustomChannel(
      "127.0.0.1:" + std::to_string(port),
      penstock::Credentials(grpc::InsecureChannelCredentials()),
      tensor::UnlimitedMessages());
  tensor::TensorClient client(channel);
  auto x = tensor::Tensor::Of<float>({2, 3}, {0, 1, 2, 3, 4, 5});
  auto stored = client.Put({{{"x", *x}}});
  auto got = client.Get({"x"});
  if (!stored.ok() || !got.ok()) {
    std::cerr << "tensors: " << stored.status() << "; " << got.status() << "\n";
    return 1;
  }
  std::cout << got->Find("x")->ToString();
  for (float value : *got->Find("x")->flat<float>()) std::cout << " " << value;
  std::cout << "\nover " << penstock::DescribePaths(*channel).front() << "\n";
}
