define void @kernel(ptr %out, <4 x float> %v) section ".nvvm.kernel" {
start:
  %r = call <8 x i16> @llvm.x86.vcvtps2ph.128(<4 x float> %v, i32 3)
  store <8 x i16> %r, ptr %out, align 16
  ret void
}
declare <8 x i16> @llvm.x86.vcvtps2ph.128(<4 x float>, i32)
