; contraction forbidden
; run 1 groups of 1
; with 0x3f800001 0x3f800001 0xbf800002 0x7fc00000
; gives 0x3f800001 0x3f800001 0xbf800002 0x7fc00000 0 0x28800000 0x3dcccccd 1 0 1 0x7f800000
; a * a is 1 + 2^-22 + 2^-46, of which the rounded product loses the end, and a fused one keeps it.
declare float @llvm.fma.f32(float, float, float)

define void @floats(ptr %out) section ".nvvm.kernel" {
start:
  %p1 = getelementptr inbounds float, ptr %out, i64 1
  %p2 = getelementptr inbounds float, ptr %out, i64 2
  %p3 = getelementptr inbounds float, ptr %out, i64 3
  %a = load float, ptr %out, align 4
  %b = load float, ptr %p1, align 4
  %c = load float, ptr %p2, align 4
  %nan = load float, ptr %p3, align 4
  %product = fmul float %a, %b
  %sum = fadd float %product, %c
  %q0 = getelementptr inbounds float, ptr %out, i64 4
  store float %sum, ptr %q0, align 4
  %fused = call float @llvm.fma.f32(float %a, float %b, float %c)
  %q1 = getelementptr inbounds float, ptr %out, i64 5
  store float %fused, ptr %q1, align 4
  %q2 = getelementptr inbounds float, ptr %out, i64 6
  store float 0x3FB99999A0000000, ptr %q2, align 4
  %unordered = fcmp ult float %nan, %a
  %truth = zext i1 %unordered to i32
  %q3 = getelementptr inbounds i32, ptr %out, i64 7
  store i32 %truth, ptr %q3, align 4
  %ordered = fcmp olt float %nan, %a
  %truth.2 = zext i1 %ordered to i32
  %q4 = getelementptr inbounds i32, ptr %out, i64 8
  store i32 %truth.2, ptr %q4, align 4
  %differs = fcmp une float %nan, %nan
  %truth.3 = zext i1 %differs to i32
  %q5 = getelementptr inbounds i32, ptr %out, i64 9
  store i32 %truth.3, ptr %q5, align 4
  %q6 = getelementptr inbounds float, ptr %out, i64 10
  store float 0x7FF0000000000000, ptr %q6, align 4
  ret void
}
