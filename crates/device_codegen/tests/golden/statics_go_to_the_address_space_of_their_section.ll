; Shared memory is undefined at first; constant memory keeps its value.

@TILE = internal global [1024 x i8] undef, section ".nvvm.addrspace.3", align 16
@WEIGHTS = internal constant [2 x float] [float 1.500000e+00, float 0x3FB99999A0000000], section ".nvvm.addrspace.4", align 4

define void @kernel(ptr %out, i64 %i) section ".nvvm.kernel" {
start:
  %weight = getelementptr inbounds float, ptr @WEIGHTS, i64 %i
  %w = load float, ptr %weight, align 4
  %place = getelementptr inbounds float, ptr @TILE, i64 %i
  store float %w, ptr %place, align 4
  store float %w, ptr getelementptr inbounds nuw (i8, ptr @TILE, i64 512), align 4
  %v = load float, ptr @TILE, align 16
  store float %v, ptr %out, align 4
  ret void
}
