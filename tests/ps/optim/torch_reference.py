"""Computes PyTorch's results for a value and its gradients."""

import numpy
import torch

DTYPES = {"f32": torch.float32, "f64": torch.float64}


def optimizer_of(config, parameters):
    common = {"lr": config["learning_rate"],
              "weight_decay": config.get("weight_decay", 0)}
    betas = (config.get("beta1", 0.9), config.get("beta2", 0.999))
    epsilon = {"eps": config.get("epsilon", 1e-8)}
    optim = torch.optim
    return {
        "sgd": lambda: optim.SGD(parameters, **common),
        "momentum": lambda: optim.SGD(
            parameters, momentum=config.get("momentum", 0.9), **common),
        "nesterov": lambda: optim.SGD(
            parameters, momentum=config.get("momentum", 0.9), nesterov=True,
            **common),
        "adagrad": lambda: optim.Adagrad(
            parameters, initial_accumulator_value=config.get(
                "initial_accumulator", 0), **common, **epsilon),
        "rmsprop": lambda: optim.RMSprop(
            parameters, alpha=config.get("decay", 0.99), **common, **epsilon),
        "adam": lambda: optim.Adam(parameters, betas=betas, **common,
                                   **epsilon),
        "adamw": lambda: optim.AdamW(parameters, betas=betas, **common,
                                     **epsilon),
    }[config["rule"]]()


def schedule_of(config, optimizer):
    schedules = torch.optim.lr_scheduler
    if config.get("kind") == "step":
        return schedules.StepLR(optimizer, config["every"], config["factor"])
    if config.get("kind") == "cosine":
        return schedules.CosineAnnealingLR(optimizer, config["every"],
                                           config["final_rate"])
    return schedules.LambdaLR(optimizer, lambda step: 1)


def train(dtype, config, value, gradients):
    """Returns the value after each step."""
    own = DTYPES[dtype]
    parameter = torch.nn.Parameter(torch.tensor(value, dtype=own))
    optimizer = optimizer_of(config, [parameter])
    schedule = schedule_of(config, optimizer)
    values = []
    for gradient in gradients:
        parameter.grad = torch.tensor(gradient, dtype=own)
        if config.get("clip_value"):
            torch.nn.utils.clip_grad_value_([parameter], config["clip_value"])
        optimizer.step()
        schedule.step()
        values.append(parameter.detach().numpy().copy())
    return numpy.array(values)
