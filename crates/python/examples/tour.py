# Run it as a program, or cell by cell: editors and Jupytext read `# %%` as the start of one.

# %% [markdown]
# # A product in NumPy
# `device` says where arrays of NumPy are multiplied, and why.

# %%
import numpy as np

import rust_gemm

print(rust_gemm.device())
a = np.random.default_rng(1).standard_normal((500, 300), dtype="float32")
b = np.random.default_rng(2).standard_normal((300, 400), dtype="float32")
c = rust_gemm.matmul(a, b)
print("largest difference to NumPy:", np.abs(c - a @ b).max())

# %% [markdown]
# Transposes and slices are read where they are; `out` may be a part of an array. (On a GPU, other layouts may add in
# another order.)

# %%
whole = np.zeros((500, 1000), "float32")
rust_gemm.matmul(a, b, out=whole[:, 100:500])
print("the same:", np.array_equal(whole[:, 100:500], c), np.allclose(rust_gemm.matmul(b.T, a.T), c.T, atol=1e-3))

# %% [markdown]
# # A layer of a network
# The bias and the activation are computed in the kernel that multiplies, before C is rounded.

# %%
bias = np.linspace(-1, 1, 400, dtype="float32")
layer = rust_gemm.matmul(a, b, epilogue="gelu", bias=bias)
x = a.astype("float64") @ b + bias
print("largest error:", np.abs(layer - x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))).max())

# %% [markdown]
# # int8 with sums of int32, and batches

# %%
weights = np.random.default_rng(3).integers(-128, 128, (8, 64, 96), dtype="int8")
tokens = np.random.default_rng(4).integers(-128, 128, (8, 32, 64), dtype="int8")
sums = rust_gemm.matmul(tokens, weights)
print(sums.shape, sums.dtype, "exact:", np.array_equal(sums, tokens.astype("int32") @ weights.astype("int32")))

# %% [markdown]
# # PyTorch on a GPU
# Nothing is copied, and the call returns before the product is done, as PyTorch's own do.

# %%
try:
    import torch
except ImportError:
    torch = None
if torch is None or not torch.cuda.is_available():
    raise SystemExit("There is no PyTorch with a GPU here: the other cells are left out.")
a, b = (torch.randn(4096, 4096, device="cuda") for _ in range(2))
exact = a.double() @ b.double()
for math in ["ieee", "split", "tf32"]:
    c = rust_gemm.matmul(a, b, math=math)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(10):
        rust_gemm.matmul(a, b, c, math=math)
    end.record()
    end.synchronize()
    error = ((c - exact).norm() / exact.norm()).item()
    print(f"{math}: {begin.elapsed_time(end) / 10:.2f} ms, relative error {error:.1e}")

# %% [markdown]
# A CUDA graph captures it after one call with the same shapes.

# %%
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    c = rust_gemm.matmul(a, b)
a.copy_(torch.randn_like(a))
graph.replay()
print("after a replay with another A:", torch.allclose(c, a @ b, atol=1e-2))
