define void @kernel(ptr %x, i64 %a, i64 %b, i32 %c, i8 %d, i128 %e) section ".nvvm.kernel" {
start:
  %q = udiv i64 %a, %b
  %r = urem i64 %q, 10
  store i64 %r, ptr %x, align 8
  %s = sdiv i32 7, %c
  store i32 %s, ptr %x, align 4
  %t = srem i8 7, %d
  store i8 %t, ptr %x, align 1
  %w = zext i64 %a to i128
  %u = udiv i128 %w, %e
  store i128 %u, ptr %x, align 16
  ret void
}
