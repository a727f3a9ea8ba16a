define void @kernel(ptr %p, float %x) section ".nvvm.kernel" {
start:
  %v = load <4 x float>, ptr %p, align 16
  %one = insertelement <4 x float> poison, float %x, i64 0
  %all = shufflevector <4 x float> %one, <4 x float> poison, <4 x i32> zeroinitializer
  %sum = fadd <4 x float> %v, %all
  %more = fadd <4 x float> %sum, splat (float 1.000000e+00)
  %first = extractelement <4 x float> %more, i64 0
  store <4 x float> %more, ptr %p, align 16
  store float %first, ptr %p, align 4
  ret void
}
