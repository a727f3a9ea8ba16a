; `==` on slices, `match` on a str, and the length of a C string. What is not called is not there.

define void @kernel(ptr %out, ptr %a, ptr %b, i64 %n) section ".nvvm.kernel" {
start:
  %order = call i32 @memcmp(ptr %a, ptr %b, i64 %n)
  store i32 %order, ptr %out, align 4
  %differ = call i32 @bcmp(ptr %a, ptr %b, i64 %n)
  store i32 %differ, ptr %out, align 4
  %length = call i64 @strlen(ptr %a)
  store i64 %length, ptr %out, align 8
  ret void
}

declare i32 @memcmp(ptr captures(none), ptr captures(none), i64) unnamed_addr

declare i32 @bcmp(ptr, ptr, i64)

declare i64 @strlen(ptr)

declare ptr @memchr(ptr, i32, i64)
