; needs fma
; run 1 groups of 1
; with 0x3f800001 0x3f800001 0xbf800002
; gives 0x3f800001 0x3f800001 0xbf800002 0 0x28800000 0x28800000 0xa8800000 0 0 0x3f800002 0
; a * b is 1 + 2^-22 + 2^-46, of which the rounded product loses the end, and a fused one keeps it.
declare float @__nv_fmul_rn(float, float)
declare float @__nv_fadd_rn(float, float)

define void @fused(ptr %out) section ".nvvm.kernel" {
start:
  %p1 = getelementptr inbounds float, ptr %out, i64 1
  %p2 = getelementptr inbounds float, ptr %out, i64 2
  %a = load float, ptr %out, align 4
  %b = load float, ptr %p1, align 4
  %c = load float, ptr %p2, align 4
  %product = fmul float %a, %b
  %sum = fadd float %product, %c
  %q0 = getelementptr inbounds float, ptr %out, i64 4
  store float %sum, ptr %q0, align 4
  ; The product is the right operand.
  %product.2 = fmul float %a, %b
  %sum.2 = fadd float %c, %product.2
  %q1 = getelementptr inbounds float, ptr %out, i64 5
  store float %sum.2, ptr %q1, align 4
  %minus = fneg float %c
  %product.3 = fmul float %a, %b
  %difference = fsub float %minus, %product.3
  %q2 = getelementptr inbounds float, ptr %out, i64 6
  store float %difference, ptr %q2, align 4
  ; What says how it rounds is not fused: neither a product nor a sum.
  %rounded = call float @__nv_fmul_rn(float %a, float %b)
  %sum.4 = fadd float %rounded, %c
  %q3 = getelementptr inbounds float, ptr %out, i64 7
  store float %sum.4, ptr %q3, align 4
  %product.5 = fmul float %a, %b
  %sum.5 = call float @__nv_fadd_rn(float %product.5, float %c)
  %q4 = getelementptr inbounds float, ptr %out, i64 8
  store float %sum.5, ptr %q4, align 4
  ; A product with another use is rounded for both.
  %product.6 = fmul float %a, %b
  %q5 = getelementptr inbounds float, ptr %out, i64 9
  store float %product.6, ptr %q5, align 4
  %sum.6 = fadd float %product.6, %c
  %q6 = getelementptr inbounds float, ptr %out, i64 10
  store float %sum.6, ptr %q6, align 4
  ret void
}
