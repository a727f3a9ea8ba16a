from typing import Any

__version__: str

# A capsule of DLPack, or an array of NumPy.
_Array = Any

def device() -> str: ...
def has_layout(array: _Array) -> bool: ...
def multiply(
    a: _Array,
    b: _Array,
    out: _Array,
    bias: _Array | None,
    epilogue: str | None,
    math: str,
    stream: int | None,
    waits: bool,
) -> bool: ...
def multiply_on_cpu(a: _Array, b: _Array, out: _Array) -> None: ...
