; LLVM 7 has no `fneg`.

define void @kernel(ptr %out, float %a) section ".nvvm.kernel" {
start:
  %r = fneg float %a
  store float %r, ptr %out, align 4
  ret void
}
