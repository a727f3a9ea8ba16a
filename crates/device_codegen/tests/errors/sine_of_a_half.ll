define void @kernel(ptr %out, half %a) section ".nvvm.kernel" {
start:
  %r = call half @llvm.sin.f16(half %a)
  store half %r, ptr %out, align 2
  ret void
}
declare half @llvm.sin.f16(half)
