; libNVVM puts slots that are in use at the same time in one place, where it knows lifetimes.

define void @kernel(ptr %out, i64 %i) section ".nvvm.kernel" {
start:
  %slot = alloca [16 x i8], align 4
  call void @llvm.lifetime.start.p0(ptr nonnull %slot)
  %place = getelementptr inbounds nuw float, ptr %slot, i64 %i
  store float 1.000000e+00, ptr %place, align 4
  %v = load float, ptr %slot, align 4
  store float %v, ptr %out, align 4
  call void @llvm.lifetime.end.p0(ptr nonnull %slot)
  ret void
}

declare void @llvm.lifetime.start.p0(ptr captures(none))

declare void @llvm.lifetime.end.p0(ptr captures(none))
