"""Steps of gradient descent with JAX on a GPU, one compiled function: "loss X", the same each run.

    jax_steps.py STEPS

Exits 77 without JAX or without a GPU for it.
"""
import os
import sys

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("XLA_FLAGS", "--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0")
try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    print(f"no JAX: {error}")
    sys.exit(77)

WIDTH = 512


@jax.jit
def step(weights, data):
    def loss(weights):
        return jnp.mean((jnp.tanh(data @ weights) - data) ** 2)

    value, slope = jax.value_and_grad(loss)(weights)
    return weights - 0.1 * slope, value


def main():
    if jax.default_backend() != "gpu":
        print("no GPU for JAX")
        sys.exit(77)
    weights = jax.random.normal(jax.random.PRNGKey(0), (WIDTH, WIDTH))
    data = jax.random.normal(jax.random.PRNGKey(1), (WIDTH, WIDTH))
    value = None
    for _ in range(int(sys.argv[1])):
        weights, value = step(weights, data)
    print(f"loss {float(value):.9g}")


if __name__ == "__main__":
    main()
