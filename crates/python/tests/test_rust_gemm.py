"""Tests of the module rust_gemm.

    python test_rust_gemm.py            # needs NumPy alone; PyTorch, CuPy and JAX where they are
    RUST_GEMM_DEVICE=sim python test_rust_gemm.py

What cannot run here is named with the reason. Elements are small integers, so that every sum is exact
in the type of sums, and a product equals the exact one, rounded once to the type of C. Without a GPU
the tests run twice: NumPy arrays on the CPU, and in a second process on the simulator, where arrays
that only say that they are on a GPU are multiplied, too.
"""

import contextlib
import ctypes
import math
import os
import subprocess
import sys
import traceback
import unittest

import numpy as np

import rust_gemm

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

ON_SIMULATOR = os.environ.get("RUST_GEMM_DEVICE") == "sim"
# The simulator takes a coroutine for each thread of a GPU.
SIZES = [(3, 5, 7), (33, 17, 40)] if ON_SIMULATOR else [(3, 5, 7), (1, 300, 65), (129, 200, 77), (0, 4, 3), (4, 3, 0)]
TYPES = ["float32", "float64", "float16", "int32", "int8"] + ["bfloat16"] * (ml_dtypes is not None)
skip = unittest.SkipTest


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name) if name == "bfloat16" else name)


def integers(shape, dtype, seed=1):
    numbers = np.random.default_rng(seed).integers(-4, 5, size=shape)
    return numbers.astype(dtype)


def exact(a, b, c="float64"):
    """The product in f64, which is exact here."""
    return (a.astype("float64") @ b.astype("float64")).astype(c)


def result_of(name):
    return dtype_of("int32" if name == "int8" else name)


def check(result, expected):
    assert result.shape == expected.shape, (result.shape, expected.shape)
    assert result.dtype == expected.dtype, (result.dtype, expected.dtype)
    wrong = np.argwhere(np.asarray(result != expected))
    assert not len(wrong), f"{len(wrong)} elements differ, first {tuple(wrong[0])}: {result[tuple(wrong[0])]}"


def raises(kind, text, *arguments, **keywords):
    try:
        rust_gemm.matmul(*arguments, **keywords)
    except kind as error:
        assert text in str(error), f"{text!r} is not in: {error}"
    else:
        raise AssertionError(f"no {kind.__name__} with {text!r}")


def activation(name, x):
    x = x.astype("float64")
    if name == "relu":
        return np.maximum(x, 0)
    if name == "gelu":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    if name == "silu":
        return x / (1 + np.exp(-x))
    return x


# NumPy


def test_numpy_multiplies_all_types_exactly():
    for name in TYPES:
        for m, n, k in SIZES:
            a, b = integers((m, k), dtype_of(name)), integers((k, n), dtype_of(name), 2)
            check(rust_gemm.matmul(a, b), exact(a, b, result_of(name)))


def test_numpy_takes_views_of_any_strides():
    for name in TYPES:
        base = integers((80, 90), dtype_of(name))
        views = [base[:30, :40], base.T[:30, :40], base[5:65:2, 3:83:2], base[29::-1, :40], base[:30, 39::-1]]
        for a in views:
            for b in [view[:, :30].T for view in views]:
                b = np.vstack([b, b])[:40]
                check(rust_gemm.matmul(a, b), exact(a, b, result_of(name)))
    row, column = base[:1, :40], base[:40, :1]
    check(rust_gemm.matmul(row, column), exact(row, column, result_of(name)))
    check(rust_gemm.matmul(column, row), exact(column, row, result_of(name)))


def test_numpy_takes_other_byte_orders_and_what_is_not_aligned():
    a, b = integers((4, 6), "float32"), integers((6, 5), "float32")
    check(rust_gemm.matmul(a.astype(">f4"), b), exact(a, b, "float32"))
    memory = np.zeros(4 * 6 * 4 + 1, "uint8")
    odd = memory[1:].view("float32").reshape(4, 6)
    odd[:] = a
    check(rust_gemm.matmul(odd, b), exact(a, b, "float32"))
    records = np.zeros((4, 6), [("tag", "int8"), ("number", "float32")])
    records["number"] = a
    check(rust_gemm.matmul(records["number"], b), exact(a, b, "float32"))


def test_numpy_writes_out_where_it_is():
    a, b = integers((9, 6), "float16"), integers((6, 5), "float16")
    for c in ["float16", "float32"]:
        whole = np.full((20, 30), np.nan, c)
        for out in [np.empty((9, 5), c), np.empty((5, 9), c).T, whole[1:19:2, 2:22:4]]:
            assert rust_gemm.matmul(a, b, out) is out
            check(out, exact(a, b, c))
        assert np.isnan(whole).sum() == 20 * 30 - 9 * 5


def test_numpy_multiplies_batches():
    for name in ["float32", "int8"]:
        a, b = integers((4, 7, 6), dtype_of(name)), integers((4, 6, 5), dtype_of(name), 2)
        for left, right in [
            (a, b), (a[0], b), (a, b[0]), (a[:1], b), (a, b[:1]), (a[::2], b[1::2]), (a[::-1], b),
            (np.broadcast_to(a[0], a.shape), b), (a, np.swapaxes(np.swapaxes(b, 1, 2).copy(), 1, 2)),
            (a.transpose(1, 0, 2).copy().transpose(1, 0, 2), b), (a[:0], b[:0]),
        ]:
            expected = exact(left, right, result_of(name))
            check(rust_gemm.matmul(left, right), expected.reshape((-1, 7, 5)))


def test_numpy_has_epilogues():
    a, b = integers((33, 20), "float32") / 8, integers((20, 17), "float32", 2) / 8
    bias = integers(17, "float32", 3) / 4
    for name in ["float32", "float16"] + ["bfloat16"] * (ml_dtypes is not None):
        left, right = a.astype(dtype_of(name)), b.astype(dtype_of(name))
        for epilogue in [None, "relu", "gelu", "silu"]:
            for one in [None, bias]:
                c = rust_gemm.matmul(left, right, epilogue=epilogue, bias=one)
                assert c.dtype == left.dtype
                expected = activation(epilogue, exact(left, right) + (0 if one is None else one))
                eps = {"float32": 2e-6, "float16": 2e-3, "bfloat16": 8e-3}[name]
                error = np.abs(c.astype("float64") - expected) / (1 + np.abs(expected))
                assert error.max() < eps, (name, epilogue, error.max())


def test_numpy_multiplies_from_several_threads():
    from concurrent.futures import ThreadPoolExecutor

    def multiply(seed):
        a, b = integers((20, 30), "float32", seed), integers((30, 10), "float32", seed + 1)
        check(rust_gemm.matmul(a, b), exact(a, b, "float32"))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(multiply, range(20)))


def test_errors_say_what_and_what_to_do():
    a, b = integers((4, 6), "float32"), integers((6, 5), "float32")
    raises(ValueError, "a is (4, 6), and b is (4, 6): a has 6 columns, and b has 4 rows", a, a)
    raises(ValueError, "a has 1 dimension", a[0], b)
    raises(ValueError, "a is a batch of 2 matrices, and b of 3", np.stack([a] * 2), np.stack([b] * 3))
    raises(ValueError, "a is of float32, and b of float64", a, b.astype("float64"))
    raises(ValueError, "out is (4, 6), and the product is (4, 5)", a, b, np.empty((4, 6), "float32"))
    raises(ValueError, "out is of float64, and the product of float32", a, b, np.empty((4, 5), "float64"))
    raises(TypeError, "a is of complex64", a.astype("complex64"), b)
    raises(TypeError, "a is of int64", a.astype("int64"), b)
    raises(TypeError, "a is of type list, and no array. Pass numpy.asarray(a)", [[1.0]], b)
    raises(ValueError, "epilogue is 'tanh'", a, b, epilogue="tanh")
    raises(ValueError, "math is \"fast\"", a, b, math="fast")
    raises(ValueError, "bias is (4,) of float32", a, b, bias=np.zeros(4, "float32"))
    raises(ValueError, "bias is (5,) of float64", a, b, bias=np.zeros(5))
    raises(ValueError, "no epilogue and no bias", a.astype("int32"), b.astype("int32"), epilogue="relu")
    square = integers((5, 5), "float32")
    raises(ValueError, "out shares memory with a or b", square, square.copy(), square)
    square.flags.writeable = False
    raises(ValueError, "out is read-only", square, square, square)
    check(rust_gemm.matmul(square, square), exact(square, square, "float32"))


# Arrays of a GPU that is simulated: they are NumPy's, but say that they are on GPU 0.


class Simulated:
    def __init__(self, array, ordinal=0, is_bfloat16=False, interface=None):
        self.array, self.ordinal, self.is_bfloat16, self.streams = array, ordinal, is_bfloat16, []
        if interface is not None:
            self.__cuda_array_interface__ = interface

    @property
    def shape(self):
        return self.array.shape

    @property
    def dtype(self):
        return "bfloat16" if self.is_bfloat16 else self.array.dtype

    def __dlpack_device__(self):
        return (2, self.ordinal)

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        capsule = self.array.__dlpack__()
        pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
        pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        tensor = pointer_of(capsule, b"dltensor")
        ctypes.c_int32.from_address(tensor + 8).value = 2
        if self.is_bfloat16:
            ctypes.c_uint8.from_address(tensor + 20).value = 4
        return capsule


def simulated():
    if not ON_SIMULATOR:
        raise skip("RUST_GEMM_DEVICE is not sim")


def test_dlpack_is_multiplied_in_place_on_the_stream_of_its_array():
    simulated()
    a, b = integers((9, 6), "float32"), integers((6, 5), "float32")
    for interface, stream in [(None, 1), ({"stream": None}, 1), ({"stream": 1}, 1), ({"stream": 77}, 77)]:
        out = np.full((9, 5), np.nan, "float32")
        arrays = [Simulated(array, interface=interface) for array in (a, b, out)]
        assert rust_gemm.matmul(*arrays) is arrays[2]
        check(out, exact(a, b, "float32"))
        assert [array.streams for array in arrays] == [[stream]] * 3


def test_dlpack_takes_rows_or_columns_without_gaps():
    simulated()
    base = integers((40, 50), "float16")
    a, b = base[:9, :20], base.T[:20, :7]
    for shape in [(9, 7), (7, 9)]:
        out = np.zeros((12, 12), "float32")
        view = out[: shape[0], : shape[1]] if shape == (9, 7) else out[: shape[0], : shape[1]].T
        rust_gemm.matmul(Simulated(a), Simulated(b), Simulated(view))
        check(view, exact(a, b, "float32"))
        assert (out != 0).sum() == (view != 0).sum()
    many = integers((4, 20, 7), "float16")
    column_major = np.zeros((4, 7, 9), "float16").transpose(0, 2, 1)
    rust_gemm.matmul(Simulated(a), Simulated(many), Simulated(column_major))
    check(column_major, exact(a, many, "float16"))
    raises(ValueError, "a has the strides [50, 2]", Simulated(base[:9, :40:2]), Simulated(b), Simulated(view))
    raises(ValueError, "out is column-major. With a bias", Simulated(a), Simulated(b),
           Simulated(np.zeros((7, 9), "float16").T), bias=Simulated(np.zeros(7, "float32")))


def test_dlpack_has_bfloat16_and_epilogues():
    simulated()
    bits = lambda array: (array.astype("float32").view("uint32") >> 16).astype("uint16")
    a, b, bias = integers((9, 16), "float32"), integers((16, 8), "float32"), integers(8, "float32")
    out = np.zeros((9, 8), "uint16")
    on_gpu = [Simulated(array, is_bfloat16=True) for array in (bits(a), bits(b), out)]
    rust_gemm.matmul(*on_gpu, "relu", bias=Simulated(bias))
    # Integers up to 256 are exact in bfloat16.
    check((out.astype("uint32") << 16).view("float32"), np.maximum(exact(a, b) + bias, 0).astype("float32"))
    raises(ValueError, "With an epilogue or a bias, out is of bfloat16", on_gpu[0], on_gpu[1],
           Simulated(np.zeros((9, 8), "float32")), "relu")


def test_dlpack_errors_name_the_devices():
    simulated()
    a = integers((5, 5), "float32")
    raises(ValueError, "a is on GPU 0, and b is not", Simulated(a), a, Simulated(a.copy()))
    raises(ValueError, "a is on GPU 0, and out is not", Simulated(a), Simulated(a), Simulated(a.copy(), 1))
    raises(TypeError, "make an array of type Simulated. Pass one as out", Simulated(a), Simulated(a))
    raises(ValueError, "out shares memory with a or b", Simulated(a), Simulated(a.copy()), Simulated(a))


def test_dlpack_of_a_library_makes_new_arrays_on_its_current_stream():
    """The libraries are pretended, too: what is asked of them is what their documentation has."""
    simulated()
    from types import SimpleNamespace as Space

    def empty(shape, dtype, device=None):
        new = Simulated(np.full(shape, np.nan, dtype))
        new.device = device
        return new

    stream = lambda ordinal: Space(cuda_stream=7, ptr=8)
    libraries = {
        "torch": Space(Tensor=Simulated, cuda=Space(current_stream=stream), empty=empty, float32="float32"),
        "cupy": Space(ndarray=Simulated, cuda=Space(get_current_stream=stream), empty=empty),
        "jax": Space(Array=Simulated, numpy=Space(zeros=empty)),
    }
    a, b = integers((9, 6), "float32"), integers((6, 5), "float32")
    for (name, library), number in zip(libraries.items(), [-1, 8, 1]):
        left, right = Simulated(a), Simulated(b)
        left.device = right.device = contextlib.nullcontext()
        before, sys.modules[name] = sys.modules.get(name), library
        try:
            c = rust_gemm.matmul(left, right)
        finally:
            del sys.modules[name]
            if before is not None:
                sys.modules[name] = before
        check(c.array, exact(a, b, "float32"))
        assert [array.streams for array in (left, right, c)] == [[number]] * 3
        assert c.device is (None if name == "cupy" else left.device)


# PyTorch


def torch_here(device):
    try:
        import torch
    except ImportError:
        raise skip("there is no PyTorch")
    if device == "cuda" and not torch.cuda.is_available():
        raise skip("PyTorch has no GPU")
    return torch


def torch_types(torch):
    # The kernel of int8 is Hopper's.
    has_int8 = not torch.cuda.is_available() or torch.cuda.get_device_capability() == (9, 0)
    return [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int32] + [torch.int8] * has_int8


def torch_integers(torch, shape, dtype, device, seed=1):
    return torch.from_numpy(integers(shape, "float32", seed)).to(device).to(dtype)


def torch_check(torch, c, a, b, dtype=None):
    dtype = dtype or (torch.int32 if a.dtype == torch.int8 else a.dtype)
    expected = (a.double().cpu() @ b.double().cpu()).to(dtype)
    assert (c.dtype, c.device, c.shape) == (dtype, a.device, expected.shape), (c.dtype, c.device, c.shape)
    assert torch.equal(c.cpu(), expected), (a.dtype, a.shape, a.stride(), b.shape, b.stride())


def test_torch_on_a_gpu_multiplies_all_types_exactly():
    torch, device = torch_here("cuda"), "cuda"
    number = lambda *shape, dtype, seed=1: torch_integers(torch, shape, dtype, device, seed)
    sizes = [(64, 64, 64), (33, 17, 129), (1, 512, 256), (300, 8, 65), (0, 4, 3), (4, 3, 0)]
    for dtype in torch_types(torch):
        for m, n, k in sizes + [(512, 384, 250)]:
            a, b = number(m, k, dtype=dtype), number(k, n, dtype=dtype, seed=2)
            torch_check(torch, rust_gemm.matmul(a, b), a, b)
            at, bt = number(k, m, dtype=dtype).t(), number(n, k, dtype=dtype, seed=2).t()
            torch_check(torch, rust_gemm.matmul(at, b), at, b)
            torch_check(torch, rust_gemm.matmul(a, bt), a, bt)
            torch_check(torch, rust_gemm.matmul(at, bt), at, bt)
        a, b = number(90, 120, dtype=dtype)[3:70, 5:101], number(120, 90, dtype=dtype)[:96, 7:60]
        torch_check(torch, rust_gemm.matmul(a, b), a, b)
        a, b = number(5, 40, 24, dtype=dtype), number(5, 24, 48, dtype=dtype)
        torch_check(torch, rust_gemm.matmul(a, b), a, b)
        torch_check(torch, rust_gemm.matmul(a, b[0]), a, b[0])
        torch_check(torch, rust_gemm.matmul(a, b.expand(5, 24, 48)), a, b)
        heads = number(40, 5, 24, dtype=dtype).transpose(0, 1)
        torch_check(torch, rust_gemm.matmul(heads, b), heads, b)
    for dtype in [torch.bfloat16, torch.float16]:
        a, b = number(64, 80, dtype=dtype), number(80, 72, dtype=dtype)
        out = torch.empty(64, 72, device=device)
        assert rust_gemm.matmul(a, b, out) is out
        torch_check(torch, out, a, b, torch.float32)


def test_torch_on_the_host_is_told_to_move():
    torch = torch_here("cpu")
    a = torch.ones(3, 3)
    raises(TypeError, "a is not on an NVIDIA GPU", a, a)
    check(rust_gemm.matmul(a.numpy(), a.numpy()), np.full((3, 3), 3, "float32"))


def test_torch_out_may_be_column_major_or_a_part():
    torch = torch_here("cuda")
    for dtype in [torch.float32, torch.bfloat16]:
        a, b = (torch_integers(torch, (128, 128), dtype, "cuda", seed) for seed in (1, 2))
        out = torch.zeros(128, 128, dtype=dtype, device="cuda").t()
        torch_check(torch, rust_gemm.matmul(a, b, out), a, b)
        whole = torch.full((256, 300), float("nan"), dtype=dtype, device="cuda")
        torch_check(torch, rust_gemm.matmul(a, b, whole[64:192, 100:228]), a, b)
        assert whole.isnan().sum() == 256 * 300 - 128 * 128


def test_torch_epilogues():
    torch = torch_here("cuda")
    functions = {None: lambda x: x, "relu": torch.relu, "silu": torch.nn.functional.silu,
                 "gelu": lambda x: torch.nn.functional.gelu(x, approximate="tanh")}
    for dtype, bound in [(torch.float32, 4e-6), (torch.bfloat16, 8e-3), (torch.float16, 2e-3)]:
        for shape_b, transpose in [((96, 136), False), ((136, 96), True)]:
            a = torch.randn(200, 96, device="cuda").to(dtype)
            b = torch.randn(*shape_b, device="cuda").to(dtype)
            b = b.t() if transpose else b
            bias = torch.randn(136, device="cuda")
            for name, function in functions.items():
                for one in [None, bias]:
                    c = rust_gemm.matmul(a, b, epilogue=name, bias=one)
                    expected = function(a.double() @ b.double() + (0 if one is None else one))
                    scale = 1 + expected.abs() + (a.double().abs() @ b.double().abs()) / 8
                    error = ((c.double() - expected).abs() / scale).max().item()
                    assert error < bound, (dtype, name, transpose, error)


def test_torch_runs_on_the_current_stream():
    torch = torch_here("cuda")
    a, b = (torch_integers(torch, (512, 512), torch.float32, "cuda", seed) for seed in (1, 2))
    late, out = torch.empty_like(a), torch.empty_like(a)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        # The first call on a stream allocates.
        rust_gemm.matmul(a, b, out)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        late.fill_(float("nan"))
        # 0.1 s or more, after which A is written: on another stream the product would come before.
        torch.cuda._sleep(200_000_000)
        late.copy_(a)
        c = rust_gemm.matmul(late, b, out)
        is_running = not stream.query()
        total = c.double().sum()
    stream.synchronize()
    assert is_running, "the call has waited for the stream"
    torch_check(torch, c, a, b)
    assert total.item() == c.double().sum().item()


def test_torch_graphs_replay_it_with_new_inputs():
    torch = torch_here("cuda")
    for dtype, shape in [(torch.float32, (16, 1760, 1760)), (torch.bfloat16, (512, 512, 512)), (torch.float32, (300, 300, 300))]:
        m, n, k = shape
        a, b = torch_integers(torch, (m, k), dtype, "cuda"), torch_integers(torch, (k, n), dtype, "cuda", 2)
        out = torch.empty(m, n, dtype=dtype, device="cuda")
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            rust_gemm.matmul(a, b, out)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            rust_gemm.matmul(a, b, out)
        for seed in [5, 6]:
            a.copy_(torch_integers(torch, (m, k), dtype, "cuda", seed))
            out.fill_(float("nan"))
            graph.replay()
            torch.cuda.synchronize()
            torch_check(torch, out, a, b)


def test_torch_graphs_on_a_new_stream():
    torch = torch_here("cuda")
    a, b = (torch_integers(torch, (256, 256), torch.float32, "cuda", seed) for seed in (1, 2))
    rust_gemm.matmul(a, b)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = rust_gemm.matmul(a, b)
    out.zero_()
    graph.replay()
    torch.cuda.synchronize()
    torch_check(torch, out, a, b)


def test_torch_math_says_how_float32_is_rounded():
    torch = torch_here("cuda")
    a, b = torch.randn(1024, 1024, device="cuda"), torch.randn(1024, 1024, device="cuda")
    expected = a.double() @ b.double()
    error = lambda c: ((c.double() - expected).norm() / expected.norm()).item()
    errors = {math: error(rust_gemm.matmul(a, b, math=math)) for math in ["ieee", "split", "tf32"]}
    print(f"    relative errors at 1024: {errors}")
    assert errors["ieee"] < 2e-6 and errors["split"] < 2e-6 and errors["tf32"] < 2e-3, errors


def test_torch_errors():
    torch = torch_here("cuda")
    a = torch.randn(64, 64, device="cuda")
    raises(ValueError, "a.contiguous() in PyTorch", a[:, ::2], a[:32])
    raises(ValueError, "a is on GPU 0, and b is not", a, a.cpu())
    raises(ValueError, "out shares memory with a or b", a, a.clone(), a)
    raises(Exception, "grad", a.clone().requires_grad_(), a)
    raises(TypeError, "complex64", a.to(torch.complex64), a)


def test_torch_memory_stays_where_it_is():
    torch = torch_here("cuda")
    a, b = torch.randn(2048, 2048, device="cuda"), torch.randn(2048, 2048, device="cuda")
    rust_gemm.matmul(a, b)
    torch.cuda.synchronize()
    free = torch.cuda.mem_get_info()[0]
    out = torch.empty_like(a)
    allocated = torch.cuda.memory_allocated()
    for _ in range(200):
        rust_gemm.matmul(a, b, out)
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == allocated
    assert abs(torch.cuda.mem_get_info()[0] - free) < 64 << 20


def test_torch_times():
    torch = torch_here("cuda")
    cases = [(torch.float32, "ieee"), (torch.float32, "split"), (torch.bfloat16, "ieee")]
    for dtype, math in cases:
        a, b = (torch.randn(4096, 4096, device="cuda").to(dtype) for _ in range(2))
        out = torch.empty_like(a)
        times = {}
        for name, call in [("rust_gemm", lambda: rust_gemm.matmul(a, b, out, math=math)),
                           ("torch", lambda: torch.matmul(a, b, out=out))] * 2:
            for _ in range(3):
                call()
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(20):
                call()
            end.record()
            end.synchronize()
            times[name] = min(times.get(name, float("inf")), begin.elapsed_time(end) / 20)
        print(f"    4096 cubed, {dtype}, {math}: {times['rust_gemm']:.3f} ms, torch {times['torch']:.3f} ms")



def test_torch_call_costs_the_host_little():
    torch = torch_here("cuda")
    import time

    a, b = torch.randn(64, 64, device="cuda"), torch.randn(64, 64, device="cuda")
    out = torch.empty_like(a)
    for name, call in [("rust_gemm", lambda: rust_gemm.matmul(a, b, out)), ("torch", lambda: torch.matmul(a, b, out=out))]:
        for _ in range(100):
            call()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(500):
            call()
        seconds = time.perf_counter() - begin
        torch.cuda.synchronize()
        print(f"    {name}: {seconds / 500 * 1e6:.1f} us a call")


# CuPy


def cupy_here():
    try:
        import cupy

        cupy.cuda.runtime.getDeviceCount()
    except Exception as error:
        raise skip(f"there is no CuPy with a GPU ({type(error).__name__})")
    return cupy


def test_cupy_multiplies_on_its_current_stream():
    cupy = cupy_here()
    for name in ["float32", "float64", "float16", "int32"]:
        a, b = integers((120, 70), name), integers((70, 90), name, 2)
        on_a, on_b = cupy.asarray(a), cupy.asarray(b)
        c = rust_gemm.matmul(on_a, on_b)
        assert isinstance(c, cupy.ndarray)
        check(cupy.asnumpy(c), exact(a, b, name))
        check(cupy.asnumpy(rust_gemm.matmul(on_b.T, on_a.T)), exact(b.T, a.T, name))
        with cupy.cuda.Stream(non_blocking=True) as stream:
            late = cupy.zeros_like(on_a)
            for _ in range(200):
                late += 1
            late[:] = on_a
            c = rust_gemm.matmul(late, on_b)
        stream.synchronize()
        check(cupy.asnumpy(c), exact(a, b, name))
    raises(ValueError, "cupy.ascontiguousarray(a)", on_a[:, ::2], on_b[:35])


# JAX


def test_jax():
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        raise skip("there is no JAX")
    device = jax.devices()[0]
    if device.platform not in ("gpu", "cuda"):
        raises(TypeError, "a is not on an NVIDIA GPU", jnp.ones((3, 3)), jnp.ones((3, 3)))
        raise skip("JAX has no GPU")
    for name in ["float32", "bfloat16", "float16", "int32", "int8"]:
        a, b = integers((12, 7), "float32"), integers((7, 9), "float32", 2)
        if name == "int8" and device.compute_capability != "9.0":
            continue
        left, right = jnp.asarray(a).astype(name), jnp.asarray(b).astype(name)
        c = rust_gemm.matmul(left, right)
        assert isinstance(c, jax.Array) and c.dtype == ("int32" if name == "int8" else name), c.dtype
        check(np.asarray(c).astype("float64"), exact(a, b))
        raises(TypeError, "out is an array of JAX, which must not be written", left, right, c)


def main():
    print(f"rust_gemm {rust_gemm.__version__}, Python {sys.version.split()[0]}, NumPy {np.__version__}")
    print(f"NumPy arrays are multiplied by: {rust_gemm.device()}")
    passed, failed, skipped = 0, [], {}
    wanted = sys.argv[1:]
    for name, test in list(globals().items()):
        if not name.startswith("test_") or wanted and not any(part in name for part in wanted):
            continue
        try:
            test()
        except skip as why:
            skipped.setdefault(str(why), []).append(name)
        except Exception:
            failed.append(name)
            print(f"FAILED {name}")
            traceback.print_exc(file=sys.stdout)
        else:
            passed += 1
            print(f"ok     {name}", flush=True)
    for why, names in skipped.items():
        print(f"not tried, because {why}: {', '.join(names)}")
    if ml_dtypes is None:
        print("not tried, because there is no ml_dtypes: bfloat16 in NumPy")
    print(f"{passed} passed, {len(failed)} failed, {sum(map(len, skipped.values()))} skipped", flush=True)
    if "RUST_GEMM_DEVICE" not in os.environ:
        others = ["sim"] if rust_gemm.device().startswith("CPU") else ["cpu", "sim"]
        for device in others:
            print(f"\nRUST_GEMM_DEVICE={device}", flush=True)
            names = wanted or ["numpy", "dlpack", "errors_say"]
            environment = {**os.environ, "RUST_GEMM_DEVICE": device}
            done = subprocess.run([sys.executable, __file__, *names], env=environment)
            failed += [device] * (done.returncode != 0)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
