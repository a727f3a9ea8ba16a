"""The drop-in under PyTorch and CuPy on a GPU: products, epilogues, a training step, CUDA graphs, times.

    python pytorch.py path/to/libgemm_blas.so [--steps 200] [--quick]

Each case runs in a process of its own, which has the library by LD_PRELOAD or has not, and answers in
JSON. The exit code is not 0 if a result is wrong, a call that should be multiplied was passed on, or
loss curves differ. CuPy is left out where it is not installed.
"""

import argparse
import ctypes
import json
import math
import os
import subprocess
import sys
import time

# Unit roundoffs. Products of 16 bits add up in f32 and round C once.
ROUNDOFF = {"float32": 2**-24, "float64": 2**-53, "bfloat16": 2**-8, "float16": 2**-11, "tf32": 2**-10}


def counts():
    """The calls that the library has multiplied and passed on, or None without it."""
    try:
        function = ctypes.CDLL(None).gemm_blas_calls
    except AttributeError:
        return None
    numbers = (ctypes.c_uint64 * 2)()
    at = ctypes.addressof(numbers)
    function(ctypes.c_void_p(at), ctypes.c_void_p(at + 8))
    return list(numbers)


def difference(before):
    after = counts()
    return None if after is None else [new - old for new, old in zip(after, before)]


class Reference:
    """A product in f64 on the CPU, where no library that is tested multiplies."""

    def __init__(self, torch, a, b):
        a, b = a.double().cpu(), b.double().cpu()
        self.product = (a @ b).cuda()
        self.k = a.shape[-1]
        # At least the sum of the terms' sizes, by the inequality of Cauchy and Schwarz.
        self.terms = (a.norm(dim=-1)[..., :, None] * b.norm(dim=-2)[..., None, :]).cuda()

    def share(self, torch, result, rounding, extra=None):
        """The greatest error as a share of what rounding explains: of sums of k terms, and of C."""
        name = str(result.dtype).split(".")[1]
        of_c = ROUNDOFF[name] if name in ("bfloat16", "float16") else 0.0
        sums = ROUNDOFF["float64" if name == "float64" else "float32"]
        # 4 for what is rounded more than once: splits, parts of sums, and alpha and beta.
        limit = self.terms * (4 * (self.k + 4) * sums + 2 * rounding) + 2 * of_c * self.product.abs()
        expected = self.product
        if extra is not None:
            expected = expected + extra.double()
            limit = limit + 4 * extra.double().abs() * ROUNDOFF[name]
        if not bool(torch.isfinite(result).all()):
            return math.inf
        return ((result.double() - expected).abs() / (limit + 1e-30)).max().item()


def products(options):
    """Products of all types, transposes, batches, slices, with beta, against f64."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    rounding = ROUNDOFF["tf32"] if os.environ.get("GEMM_BLAS_MATH") == "tf32" else 0.0
    torch.manual_seed(1)
    generator = torch.Generator(device="cuda").manual_seed(1)
    rows = []

    def random(*shape, dtype):
        return torch.randn(*shape, device="cuda", dtype=torch.float32, generator=generator).to(dtype)

    def compare(name, run, reference, extra=None):
        before = counts()
        result = run()
        torch.cuda.synchronize()
        calls = difference(before) if before else None
        of_inputs = rounding if result.dtype == torch.float32 else 0.0
        share = reference.share(torch, result, of_inputs, extra)
        rows.append({"name": name, "share": share, "calls": calls, "ok": share <= 1.0})

    def stored(matrix, letter):
        """The same matrix, row-major or column-major."""
        return matrix if letter == "N" else matrix.mT.contiguous().mT

    sizes = [(512, 384, 256), (257, 129, 131), (1024, 1000, 1001), (8, 2048, 4096), (1, 1000, 500)]
    if not options.quick:
        sizes += [(2048, 2048, 2048), (4097, 1023, 511), (3000, 16, 2000)]
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        label = str(dtype).split(".")[1]
        for m, n, k in sizes:
            a, b, c = (random(*shape, dtype=dtype) for shape in ((m, k), (k, n), (m, n)))
            reference, name = Reference(torch, a, b), f"{label} {m}x{n}x{k}"
            for layout in ("NN", "NT", "TN", "TT"):
                left, right = stored(a, layout[0]), stored(b, layout[1])
                compare(f"{name} {layout}", lambda: left @ right, reference)
            compare(f"{name} addmm", lambda: torch.addmm(c, a, b), reference, c)
            into = c.clone()
            compare(f"{name} addmm_", lambda: into.addmm_(a, b), reference, c)
            bias, weight = random(n, dtype=dtype), b.T.contiguous()
            run = lambda: torch.nn.functional.linear(a, weight, bias)
            compare(f"{name} linear", run, reference, bias.expand(m, n))
        # Slices: leading dimensions, and starts that are not aligned.
        wide_a, wide_b = random(700, 900, dtype=dtype), random(900, 700, dtype=dtype)
        a, b = wide_a[3:515, 5:389], wide_b[1:385, 7:519]
        compare(f"{label} slices", lambda: a @ b, Reference(torch, a, b))
        for shape in ((6, 300, 260, 280), (3, 128, 128, 64)):
            batch, m, n, k = shape
            a, b, c = (random(batch, *two, dtype=dtype) for two in ((m, k), (k, n), (m, n)))
            reference, name = Reference(torch, a, b), f"{label} of batch {shape}"
            for layout in ("NN", "NT", "TN", "TT"):
                left, right = stored(a, layout[0]), stored(b, layout[1])
                compare(f"{name} {layout}", lambda: torch.bmm(left, right), reference)
            compare(f"{name} baddbmm", lambda: torch.baddbmm(c, a, b), reference, c)
        # One matrix for all products.
        one = random(280, 260, dtype=dtype).expand(4, 280, 260)
        a = random(4, 300, 280, dtype=dtype)
        compare(f"{label} bmm of one B", lambda: torch.bmm(a, one), Reference(torch, a, one))
    # Streams: no product may begin before what was enqueued before it on its own stream.
    side = torch.cuda.Stream()
    a, b = random(1024, 1024, dtype=torch.float32), random(1024, 1024, dtype=torch.float32)
    torch.cuda.synchronize()

    def on_side():
        with torch.cuda.stream(side):
            late = torch.zeros_like(a)
            torch.cuda._sleep(20_000_000)
            late.copy_(a)
            result = late @ b
        side.synchronize()
        return result

    compare("float32 on a side stream", on_side, Reference(torch, a, b))
    worst = max(rows, key=lambda row: row["share"] if math.isfinite(row["share"]) else math.inf)
    return {
        "ok": all(row["ok"] for row in rows),
        "cases": len(rows),
        "worst": f"{worst['name']}: {worst['share']:.3g} of its bound",
        "wrong": [row for row in rows if not row["ok"]][:20],
        "calls": counts(),
    }


def epilogues(options):
    """Linear layers with a bias, and with an activation in the same call, against f64.

    PyTorch calls cublasLt with BIAS, RELU_BIAS and GELU_BIAS. The bias has the type of the matrices.
    """
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    generator = torch.Generator(device="cuda").manual_seed(2)
    takes_all = counts() is not None and os.environ.get("GEMM_BLAS_TAKE") == "all"
    # What cublasLt's own gelu may be off by is not documented.
    of_gelu = 2**-20 if takes_all else 2**-9
    linear = torch.nn.functional.linear
    gelu = lambda x: torch.nn.functional.gelu(x, approximate="tanh")
    cases = (
        ("linear", lambda a, w, bias: linear(a, w, bias), lambda x: x, 0.0),
        ("relu", lambda a, w, bias: torch._addmm_activation(bias, a, w.T), torch.relu, 0.0),
        ("gelu", lambda a, w, bias: torch._addmm_activation(bias, a, w.T, use_gelu=True), gelu, of_gelu),
    )
    sizes = [(512, 384, 256), (257, 129, 131), (1024, 1000, 1001), (8, 2048, 4096)]
    if not options.quick:
        sizes += [(4096, 4096, 1024), (4097, 1023, 511)]
    wrong, tried, worst = [], 0, 0.0
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        label = str(dtype).split(".")[1]
        of_c = 0.0 if dtype == torch.float32 else ROUNDOFF[label]
        for m, n, k in sizes:
            shapes = ((m, k), (n, k), (n,))
            a, w, bias = (torch.randn(*shape, device="cuda", generator=generator).to(dtype) for shape in shapes)
            a = a / 8
            reference = Reference(torch, a, w.T)
            sums = reference.product + bias.double()
            magnitude = reference.terms + bias.double().abs()
            for name, run, activation, of_function in cases:
                before = counts()
                result = run(a, w, bias)
                torch.cuda.synchronize()
                expected = activation(sums)
                limit = 1.13 * magnitude * 4 * (k + 4) * ROUNDOFF["float32"] + 2 * of_c * expected.abs()
                limit = limit + of_function * (1 + sums.abs())
                if not takes_all:
                    # At odd sizes PyTorch adds the bias to a product that is rounded already.
                    limit = limit + 2 * of_c * reference.product.abs()
                share = ((result.double() - expected).abs() / (limit + 1e-30)).max().item()
                share = share if bool(torch.isfinite(result).all()) else math.inf
                worst, tried = max(worst, share), tried + 1
                calls = difference(before) if before else None
                if not share <= 1.0 or (takes_all and calls != [1, 0]):
                    wrong.append({"name": f"{label} {m}x{n}x{k} {name}", "share": share, "calls": calls})
    return {
        "ok": not wrong, "cases": tried, "worst": f"{worst:.3g} of its bound", "wrong": wrong[:20],
        "calls": counts(),
    }


def cupy_products(options):
    """Products by CuPy against f64."""
    import cupy
    import numpy

    random = numpy.random.default_rng(1)
    wrong, cases = [], 0
    for dtype in (numpy.float32, numpy.float64):
        roundoff = ROUNDOFF[numpy.dtype(dtype).name]
        for m, n, k in ((512, 384, 256), (2048, 2048, 1024), (257, 129, 131), (16, 2048, 4096)):
            a, b = (random.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n)))
            for left, right in ((a, b), (numpy.asfortranarray(a), b), (a, numpy.asfortranarray(b))):
                result = cupy.asnumpy(cupy.asarray(left) @ cupy.asarray(right))
                reference = a.astype(numpy.float64) @ b.astype(numpy.float64)
                limit = (numpy.abs(a).astype(numpy.float64) @ numpy.abs(b).astype(numpy.float64)) * (
                    4 * (k + 4) * roundoff
                )
                cases += 1
                if not (numpy.abs(result - reference) <= limit).all():
                    wrong.append(f"{numpy.dtype(dtype).name} {m}x{n}x{k}")
    return {"ok": not wrong, "cases": cases, "wrong": wrong, "calls": counts()}


def model(torch, vocabulary, width, depth, heads, context):
    """A small transformer of linear layers and products alone, so that each is a call of cuBLAS."""

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = torch.nn.ModuleList([torch.nn.LayerNorm(width) for _ in range(2)])
            self.qkv = torch.nn.Linear(width, 3 * width)
            self.out = torch.nn.Linear(width, width)
            self.up = torch.nn.Linear(width, 4 * width)
            self.down = torch.nn.Linear(4 * width, width)

        def forward(self, x):
            batch, length, _ = x.shape
            split = lambda t: t.view(batch, length, heads, width // heads).transpose(1, 2)
            q, k, v = map(split, self.qkv(self.norms[0](x)).chunk(3, dim=-1))
            scores = q @ k.transpose(-2, -1) / math.sqrt(width // heads)
            mask = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
            weights = scores.masked_fill(mask, float("-inf")).softmax(dim=-1)
            mixed = (weights @ v).transpose(1, 2).reshape(batch, length, width)
            x = x + self.out(mixed)
            return x + self.down(torch.nn.functional.gelu(self.up(self.norms[1](x))))

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = torch.nn.Embedding(vocabulary, width)
            self.places = torch.nn.Embedding(context, width)
            self.blocks = torch.nn.ModuleList([Block() for _ in range(depth)])
            self.norm = torch.nn.LayerNorm(width)
            self.head = torch.nn.Linear(width, vocabulary, bias=False)

        def forward(self, tokens):
            x = self.tokens(tokens) + self.places.weight[: tokens.shape[1]]
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    return Model()


def training(options):
    """Losses and the time of a step; options.dtype is float32 or bfloat16."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(3)
    vocabulary, context = 4096, 512
    width, depth, heads, batch = (512, 2, 8, 8) if options.quick else (1024, 6, 16, 16)
    dtype = getattr(torch, options.dtype)
    net = model(torch, vocabulary, width, depth, heads, context).to("cuda", dtype)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    # Each token is a function of the two before it, so there is something to learn. The tokens are
    # made on the CPU, where no library changes them.
    generator = torch.Generator().manual_seed(5)
    table = torch.randint(vocabulary, (64, 64), generator=generator)

    def data():
        tokens = torch.randint(vocabulary, (batch, context + 1), generator=generator)
        for place in range(2, context + 1):
            follows = table[tokens[:, place - 2] % 64, tokens[:, place - 1] % 64]
            tokens[:, place] = follows
        return tokens.to("cuda")

    pool = [data() for _ in range(8)]
    losses, times, before = [], [], counts()
    for step in range(options.steps):
        tokens = pool[step % len(pool)]
        torch.cuda.synchronize()
        began = time.perf_counter()
        logits = net(tokens[:, :-1])
        loss = torch.nn.functional.cross_entropy(
            logits.float().view(-1, vocabulary), tokens[:, 1:].reshape(-1)
        )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
        losses.append(loss.item())
    steady = sorted(times[min(20, len(times) // 2):])
    return {
        "ok": all(map(math.isfinite, losses)) and losses[-1] < losses[0],
        "losses": losses,
        "milliseconds": 1e3 * steady[len(steady) // 2],
        "calls": difference(before) if before else None,
    }


def graphs(options):
    """A captured product, replayed with new inputs, is the product that runs at once."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    wrong, rows = [], []
    for m, n, k in ((2048, 2048, 2048), (2048, 1024, 512), (4096, 16, 4096), (300, 200, 100)):
        stream = torch.cuda.Stream()
        a = torch.randn(m, k, device="cuda")
        b = torch.randn(k, n, device="cuda")
        c = torch.empty(m, n, device="cuda")
        stream.wait_stream(torch.cuda.current_stream())
        # The kernels are loaded, on the stream that is captured.
        with torch.cuda.stream(stream):
            for _ in range(3):
                torch.mm(a, b, out=c)
        torch.cuda.synchronize()
        before = counts()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            torch.mm(a, b, out=c)
            torch.mm(a, b, out=c)
        rows.append({"shape": [m, n, k], "calls": difference(before) if before else None})
        for seed in range(3):
            torch.manual_seed(seed)
            a.copy_(torch.randn(m, k, device="cuda"))
            b.copy_(torch.randn(k, n, device="cuda"))
            c.fill_(float("nan"))
            graph.replay()
            torch.cuda.synchronize()
            if not Reference(torch, a, b).share(torch, c, 0.0) <= 1.0:
                wrong.append([m, n, k, seed])
    return {"ok": not wrong, "wrong": wrong, "captured": rows, "calls": counts()}


CASES = {
    "products": products,
    "epilogues": epilogues,
    "cupy": cupy_products,
    "training": training,
    "graphs": graphs,
}


def run(options, case, settings, dtype="float32"):
    """Runs a case in a process with these settings; None is one without the library."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GEMM_BLAS")}
    environment.pop("LD_PRELOAD", None)
    if settings is not None:
        environment.update(settings, LD_PRELOAD=os.path.abspath(options.library))
    command = [sys.executable, os.path.abspath(__file__), options.library, "--case", case]
    command += ["--dtype", dtype, "--steps", str(options.steps)] + ["--quick"] * options.quick
    try:
        ended = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, timeout=options.timeout
        )
    except subprocess.TimeoutExpired:
        return {"ok": False, "error": f"took more than {options.timeout} s"}
    lines = [line for line in ended.stdout.splitlines() if line.startswith("RESULT ")]
    if ended.returncode != 0 or not lines:
        return {"ok": False, "error": f"exit code {ended.returncode}: {ended.stdout[-2000:]}"}
    return json.loads(lines[-1][len("RESULT "):])


def farthest(one, other):
    """How far two loss curves are apart, relative to the loss: the mean of 10 steps."""
    smooth = lambda curve: [sum(curve[i:i + 10]) / len(curve[i:i + 10]) for i in range(0, len(curve), 10)]
    return max(abs(x - y) / abs(y) for x, y in zip(smooth(one), smooth(other)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--quick", action="store_true", help="smaller shapes and model")
    parser.add_argument("--timeout", type=int, default=500, help="seconds of a case")
    parser.add_argument("--only", default="", help="cases, with commas between")
    parser.add_argument("--out", help="a file for all results in JSON")
    options = parser.parse_args()
    if options.case:
        print("RESULT " + json.dumps(CASES[options.case](options)), flush=True)
        return 0
    if not os.path.isfile(options.library):
        parser.error(f"there is no {options.library}")
    wanted = lambda case: not options.only or case in options.only.split(",")
    everything, table, failures = {}, [], []

    def row(name, result, note="", must_multiply=False):
        everything[name] = result
        calls = result.get("calls")
        captured = [one["calls"] for one in result.get("captured", [])]
        is_missing = not (calls and calls[0] > 0) or any(one != [2, 0] for one in captured)
        if must_multiply and result.get("ok") and is_missing:
            result = {**result, "ok": False, "error": f"passed on: {calls}, in captures {captured}"}
        if not result.get("ok"):
            failures.append(f"{name}: {result.get('error') or json.dumps(result.get('wrong'))}")
        multiplied, passed_on = calls if calls else ("-", "-")
        ms = result.get("milliseconds")
        time_of = f"{ms:.2f}" if ms else ""
        table.append([name, "ok" if result.get("ok") else "WRONG", multiplied, passed_on, time_of, note])
        print(f"  {name}: {table[-1][1]} {note}", flush=True)

    all_of = {"GEMM_BLAS_TAKE": "all"}
    if wanted("products"):
        result = run(options, "products", None)
        row("products, cuBLAS", result, result.get("worst", ""))
        for name, settings in (
            ("ieee", {}),
            ("ieee, all", all_of),
            ("ieee, all, each checked", {**all_of, "GEMM_BLAS_CHECK": "1"}),
            ("split", {"GEMM_BLAS_MATH": "split"}),
            ("split, all", {**all_of, "GEMM_BLAS_MATH": "split"}),
            ("split, all, each checked", {**all_of, "GEMM_BLAS_MATH": "split", "GEMM_BLAS_CHECK": "1"}),
            ("tf32, all", {**all_of, "GEMM_BLAS_MATH": "tf32"}),
        ):
            result = run(options, "products", settings)
            row(f"products, {name}", result, result.get("worst", ""), must_multiply="all" in name)
    if wanted("epilogues"):
        result = run(options, "epilogues", None)
        row("epilogues, cuBLAS", result, result.get("worst", ""))
        for name, settings in (
            ("all", all_of),
            ("all, each checked", {**all_of, "GEMM_BLAS_CHECK": "1"}),
            ("split, all", {**all_of, "GEMM_BLAS_MATH": "split"}),
        ):
            result = run(options, "epilogues", settings)
            row(f"epilogues, {name}", result, result.get("worst", ""), must_multiply=True)
    if wanted("cupy"):
        try:
            import cupy  # noqa: F401

            # A CuPy that looks cuBLAS's functions up in its handle passes by the library.
            row("CuPy, ieee, all", run(options, "cupy", all_of))
        except ImportError:
            print("  CuPy: not installed")
    if wanted("graphs"):
        row("graphs, cuBLAS", run(options, "graphs", None))
        row("graphs, ieee, all", run(options, "graphs", all_of))
        captures = {**all_of, "GEMM_BLAS_CAPTURE": "all"}
        row("graphs, ieee, all, with workspace", run(options, "graphs", captures), must_multiply=True)
        split = {**captures, "GEMM_BLAS_MATH": "split"}
        row("graphs, split, all, with workspace", run(options, "graphs", split), must_multiply=True)
    if wanted("training"):
        for dtype in ("float32", "bfloat16"):
            without = run(options, "training", None, dtype)
            row(f"training, {dtype}, cuBLAS", without)
            # What the order of sums alone does to the curve: the same, with other kernels.
            for math_of in ("ieee", "split") if dtype == "float32" else ("ieee",):
                for take in ("faster", "all"):
                    settings = {"GEMM_BLAS_MATH": math_of, "GEMM_BLAS_TAKE": take}
                    result = run(options, "training", settings, dtype)
                    note = ""
                    if result.get("ok") and without.get("ok"):
                        apart = farthest(result["losses"], without["losses"])
                        speed = without["milliseconds"] / result["milliseconds"]
                        note = f"losses within {apart:.1e}, {speed:.2f} times as fast as cuBLAS"
                        if apart > (0.02 if dtype == "float32" else 0.05):
                            result = {**result, "ok": False, "error": f"losses are {apart:.2g} apart"}
                    must = dtype == "float32" or take == "all"
                    row(f"training, {dtype}, {math_of}, {take}", result, note, must_multiply=must)
    head = ["case", "", "multiplied", "passed on", "ms a step", ""]
    widths = [max(len(str(line[i])) for line in [head] + table) for i in range(6)]
    print()
    for line in [head] + table:
        print("  ".join(str(text).ljust(width) for text, width in zip(line, widths)).rstrip())
    if options.out:
        with open(options.out, "w") as file:
            json.dump(everything, file)
    for failure in failures:
        print(f"FAILED {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
