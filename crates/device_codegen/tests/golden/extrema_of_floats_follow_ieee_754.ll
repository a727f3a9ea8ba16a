; maximumnum prefers numbers, minimum prefers NaN.

define void @kernel(ptr %out, float %a, float %b) section ".nvvm.kernel" {
start:
  %number = call float @llvm.maximumnum.f32(float %a, float %b)
  store float %number, ptr %out, align 4
  %ordered = call float @llvm.minimum.f32(float %a, float %b)
  store float %ordered, ptr %out, align 4
  %kept = call float @llvm.minnum.f32(float %a, float %b)
  store float %kept, ptr %out, align 4
  ret void
}

declare float @llvm.maximumnum.f32(float, float)

declare float @llvm.minimum.f32(float, float)

declare float @llvm.minnum.f32(float, float)
