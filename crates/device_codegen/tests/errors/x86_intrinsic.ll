define void @kernel(ptr %out) section ".nvvm.kernel" {
start:
  %r = call <4 x float> @llvm.x86.sse.rcp.ss(<4 x float> zeroinitializer)
  store <4 x float> %r, ptr %out, align 16
  ret void
}
declare <4 x float> @llvm.x86.sse.rcp.ss(<4 x float>)
