"""Matrix products on NVIDIA GPUs, by kernels written in Rust."""

from __future__ import annotations

import sys
from typing import Any, Literal, TypeVar

from ._native import __version__, device
from . import _native

__all__ = ["matmul", "device", "__version__"]

# An array of NumPy, PyTorch, CuPy or JAX, or any with DLPack on a GPU.
Array = TypeVar("Array")

# The types of a and b, and those of out: the first is that of a new one.
_TYPES = {
    "float32": ("float32",),
    "float64": ("float64",),
    "bfloat16": ("bfloat16", "float32"),
    "float16": ("float16", "float32"),
    "int32": ("int32",),
    "int8": ("int32",),
}


def matmul(
    a: Array,
    b: Array,
    out: Array | None = None,
    epilogue: Literal["relu", "gelu", "silu"] | None = None,
    math: Literal["ieee", "split", "tf32"] = "ieee",
    bias: Any | None = None,
) -> Array:
    """The matrix product of a and b, or the products of batches of matrices.

    Arrays of a GPU are multiplied where they are, on the caller's current stream, and the call returns
    before the product is done. NumPy arrays are multiplied by the first GPU, or by the CPU if there is
    none: device() says which.

    a is m x k and b is k x n, of float32, float64, bfloat16, float16, int32 or int8. With a third
    dimension before these they are batches. Transposes and parts of matrices are not copied.

    out is written and returned if it is given. It has the type of a, but int32 for int8, and may be
    float32 for 16 bits without an epilogue. bias has a float32 for each column of the product, which is added before the
    epilogue ("gelu" is the one with tanh); both are for float32, bfloat16 and float16. math is how
    float32 is multiplied without them: "ieee"; "split", on tensor cores with the error of float32; or
    "tf32".
    """
    for name, array in ("a", a), ("b", b), ("out", out), ("bias", bias):
        if array is not None and not hasattr(array, "__dlpack__"):
            kind = type(array).__name__
            raise TypeError(f"{name} is of type {kind}, and no array. Pass numpy.asarray({name}), or an array of a GPU.")
    shape, kind = _checked(a, b, out, epilogue, bias)
    multiply = _on_host if _is_of("numpy", "ndarray", a) else _on_gpu
    product: Array = multiply(a, b, out, shape, kind, epilogue, math, bias)
    return product


def _type_of(array: Any) -> str:
    return getattr(array.dtype, "name", None) or str(array.dtype).removeprefix("torch.")


def _checked(a: Any, b: Any, out: Any, epilogue: Any, bias: Any) -> tuple[tuple[int, ...], str]:
    """The shape and the type of a new product."""
    a_shape, b_shape, (a_type, b_type) = tuple(a.shape), tuple(b.shape), map(_type_of, (a, b))
    for name, shape in ("a", a_shape), ("b", b_shape):
        if len(shape) not in (2, 3):
            raise ValueError(f"{name} has {len(shape)} dimension(s). A matrix has 2, and a batch of matrices has 3.")
    if a_shape[-1] != b_shape[-2]:
        raise ValueError(
            f"a is {a_shape}, and b is {b_shape}: a has {a_shape[-1]} columns, and b has {b_shape[-2]} rows, which must "
            "be as many."
        )
    batch = a_shape[:-2] or b_shape[:-2]
    batch = b_shape[:-2] or batch if batch == (1,) else batch
    if any(one not in ((), (1,), batch) for one in (a_shape[:-2], b_shape[:-2])):
        raise ValueError(
            f"a is a batch of {a_shape[0]} matrices, and b of {b_shape[0]}. They must be as many, or one a single matrix."
        )
    shape = (*batch, a_shape[-2], b_shape[-1])
    if a_type not in _TYPES:
        raise TypeError(f"a is of {a_type}. Convert it to one of these: {', '.join(_TYPES)}.")
    if b_type != a_type:
        raise ValueError(f"a is of {a_type}, and b of {b_type}. Convert one of them.")
    if out is not None and tuple(out.shape) != shape:
        raise ValueError(f"out is {tuple(out.shape)}, and the product is {shape}.")
    if out is not None and _type_of(out) not in _TYPES[a_type]:
        raise ValueError(f"out is of {_type_of(out)}, and the product of {' or '.join(_TYPES[a_type])}.")
    if epilogue not in (None, "relu", "gelu", "silu"):
        raise ValueError(f'epilogue is {epilogue!r}. It is "relu", "gelu", "silu" or None.')
    if (epilogue or bias is not None) and a_type not in ("float32", "bfloat16", "float16"):
        raise ValueError(f"A product of {a_type} has no epilogue and no bias. Apply them to the result.")
    if (epilogue or bias is not None) and out is not None and _type_of(out) != a_type:
        raise ValueError(f"With an epilogue or a bias, out is of {a_type}, too, and not of {_type_of(out)}.")
    if bias is not None and (tuple(bias.shape), _type_of(bias)) != (shape[-1:], "float32"):
        raise ValueError(
            f"bias is {tuple(bias.shape)} of {_type_of(bias)}. It must have a float32 for each column of the product: "
            f"{shape[-1:]}."
        )
    return shape, _TYPES[a_type][0]


def _is_of(module: str, name: str, array: Any) -> bool:
    """Whether it is an array of this class. A module that is not imported has made none."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(array, kind)


def _on_gpu(
    a: Any, b: Any, out: Any, shape: tuple[int, ...], kind: str, epilogue: Any, math: Any, bias: Any
) -> Any:
    (place, ordinal), stream, waits, ready = a.__dlpack_device__(), 0, False, ()
    # CUDA's memory, and managed memory.
    if place not in (2, 13):
        raise TypeError("a is not on an NVIDIA GPU. Move it there, or pass arrays of NumPy, which the host has.")
    for name, array in ("b", b), ("out", out), ("bias", bias):
        if array is not None and tuple(array.__dlpack_device__()) != (place, ordinal):
            raise ValueError(f"a is on GPU {ordinal}, and {name} is not. Move one of them: all must be on one device.")
    if _is_of("torch", "Tensor", a):
        import torch

        # Tensors are ready on the current stream, as for PyTorch's own functions.
        stream, ready = torch.cuda.current_stream(ordinal).cuda_stream, torch.Tensor
        out = torch.empty(shape, dtype=getattr(torch, kind), device=a.device) if out is None else out
    elif _is_of("cupy", "ndarray", a):
        import cupy

        stream = cupy.cuda.get_current_stream(ordinal).ptr
        with a.device:
            out = cupy.empty(shape, kind) if out is None else out
    elif _is_of("jax", "Array", a):
        import jax

        if out is not None:
            raise TypeError("out is an array of JAX, which must not be written. Leave it out: the product is returned.")
        # JAX has no current stream, so nothing there would wait for the product.
        waits, out = True, jax.numpy.zeros(shape, kind, device=a.device)
    else:
        stream = (getattr(a, "__cuda_array_interface__", None) or {}).get("stream") or 0
        if out is None:
            raise TypeError(f"This cannot make an array of type {type(a).__name__}. Pass one as out.")
    # To DLPack the default stream is 1, and -1 that an array is ready.
    of_a, of_b, of_out, of_bias = (
        None if array is None else array.__dlpack__(stream=-1 if isinstance(array, ready) else stream or 1)
        for array in (a, b, out, bias)
    )
    _native.multiply(of_a, of_b, of_out, of_bias, epilogue, math, stream, waits)
    return out


def _on_host(
    a: Any, b: Any, out: Any, shape: tuple[int, ...], kind: str, epilogue: Any, math: Any, bias: Any
) -> Any:
    import numpy as np

    for name, array in ("b", b), ("out", out), ("bias", bias):
        if array is not None and not isinstance(array, np.ndarray):
            raise ValueError(f"a is an array of NumPy, and {name} is not. Pass all on one device.")
    if out is not None and not out.flags.writeable:
        raise ValueError("out is read-only. Pass another array, or none.")
    a, b, bias = (array if array is None or _is_in_place(array) else _copied(array) for array in (a, b, bias))
    c = out
    if out is None or not (out.flags.c_contiguous and _is_in_place(out)):
        is_like_a = kind == a.dtype.name and (out is None or kind == out.dtype.name)
        c = np.empty(shape, a.dtype if is_like_a else kind if out is None else out.dtype.newbyteorder("="))
    if out is not None and any(np.may_share_memory(out, array) for array in (a, b)):
        raise ValueError("out shares memory with a or b. Pass another out, or none.")
    if not _native.multiply(a, b, c, bias, epilogue, math, None, True):
        # Sums of 16 bits are float32, and C is rounded once.
        sums_type = {"float64": "float64", "int32": "int32", "int8": "int32"}.get(a.dtype.name, "float32")
        sums = np.empty(shape, sums_type)
        _native.multiply_on_cpu(np.ascontiguousarray(a, sums_type), np.ascontiguousarray(b, sums_type), sums)
        c[...] = _activated(sums if bias is None else sums + bias, epilogue)
    if out is not None and c is not out:
        out[...] = c
    return c if out is None else out


def _is_in_place(array: Any) -> bool:
    return array.dtype.isnative and array.flags.aligned and (array.ndim == 1 or _native.has_layout(array))


def _copied(array: Any) -> Any:
    return array.astype(array.dtype.newbyteorder("="), order="C", copy=True)


def _activated(x: Any, epilogue: str | None) -> Any:
    import numpy as np

    if epilogue == "relu":
        return np.maximum(x, 0)
    if epilogue == "gelu":
        return x / 2 * (1 + np.tanh(np.float32(0.7978845608) * (x + np.float32(0.044715) * x * x * x)))
    if epilogue == "silu":
        with np.errstate(over="ignore"):
            return x / (1 + np.exp(-x))
    return x
