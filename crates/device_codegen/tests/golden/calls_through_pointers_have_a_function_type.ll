; Function pointers, a table of them, and a direct call.

@TABLE = internal constant <{ ptr, ptr }> <{ ptr @twice, ptr @half }>, align 8

define internal noundef float @twice(float noundef %x) unnamed_addr {
start:
  %r = fmul float %x, 2.000000e+00
  ret float %r
}

define internal noundef float @half(float noundef %x) unnamed_addr {
start:
  %r = fmul float %x, 5.000000e-01
  ret float %r
}

define void @kernel(ptr %out, i64 %i, i1 %c) section ".nvvm.kernel" {
start:
  %place = getelementptr inbounds nuw ptr, ptr @TABLE, i64 %i
  %f = load ptr, ptr %place, align 8, !nonnull !0
  %x = call noundef float %f(float noundef 3.000000e+00)
  %g = select i1 %c, ptr @twice, ptr @half
  %y = call noundef float %g(float noundef %x)
  %z = call noundef float @twice(float noundef %y)
  store float %z, ptr %out, align 4
  ret void
}

!0 = !{}
