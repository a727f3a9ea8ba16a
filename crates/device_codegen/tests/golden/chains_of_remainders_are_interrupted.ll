; The older libNVVM takes twice as long with each remainder of a chain that an address is made of,
; or longer: half a minute for these if none of their results is hidden from it.
define void @kernel(ptr %out, i64 %a, i32 %b) section ".nvvm.kernel" {
start:
  %b.wide = zext i32 %b to i64
  %product.1 = mul i64 %a, %b.wide
  %r1 = urem i64 %product.1, 1000
  %product.2 = mul i64 %r1, %b.wide
  %r2 = urem i64 %product.2, 1000
  %product.3 = mul i64 %r2, %b.wide
  %r3 = urem i64 %product.3, 1000
  %product.4 = mul i64 %r3, %b.wide
  %r4 = urem i64 %product.4, 1000
  %product.5 = mul i64 %r4, %b.wide
  %r5 = urem i64 %product.5, 1000
  %product.6 = mul i64 %r5, %b.wide
  %r6 = urem i64 %product.6, 1000
  %product.7 = mul i64 %r6, %b.wide
  %r7 = urem i64 %product.7, 1000
  %product.8 = mul i64 %r7, %b.wide
  %r8 = urem i64 %product.8, 1000
  %product.9 = mul i64 %r8, %b.wide
  %r9 = urem i64 %product.9, 1000
  %product.10 = mul i64 %r9, %b.wide
  %r10 = urem i64 %product.10, 1000
  %product.11 = mul i64 %r10, %b.wide
  %r11 = urem i64 %product.11, 1000
  %product.12 = mul i64 %r11, %b.wide
  %r12 = urem i64 %product.12, 1000
  %product.13 = mul i64 %r12, %b.wide
  %r13 = urem i64 %product.13, 1000
  %product.14 = mul i64 %r13, %b.wide
  %r14 = urem i64 %product.14, 1000
  %product.15 = mul i64 %r14, %b.wide
  %r15 = urem i64 %product.15, 1000
  %product.16 = mul i64 %r15, %b.wide
  %r16 = urem i64 %product.16, 1000
  %product.17 = mul i64 %r16, %b.wide
  %r17 = urem i64 %product.17, 1000
  %product.18 = mul i64 %r17, %b.wide
  %r18 = urem i64 %product.18, 1000
  %product.19 = mul i64 %r18, %b.wide
  %r19 = urem i64 %product.19, 1000
  %product.20 = mul i64 %r19, %b.wide
  %r20 = urem i64 %product.20, 1000
  %place = getelementptr inbounds float, ptr %out, i64 %r20
  store float 1.000000e+00, ptr %place, align 4
  %next = add i64 %r20, 1
  %place.2 = getelementptr inbounds float, ptr %out, i64 %next
  store float 1.000000e+00, ptr %place.2, align 4
  ret void
}
