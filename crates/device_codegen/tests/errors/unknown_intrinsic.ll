define void @kernel(ptr %out, i32 %a) section ".nvvm.kernel" {
start:
  %r = call double @llvm.canonicalize.f64(double 1.000000e+00)
  store double %r, ptr %out, align 8
  ret void
}
declare double @llvm.canonicalize.f64(double)
