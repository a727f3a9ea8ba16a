; A crate may call these by name. Without a call of its own, `memcmp` is not there.

define void @kernel(ptr %out, ptr %a, i64 %n) section ".nvvm.kernel" {
start:
  %p = call ptr @memcpy(ptr %out, ptr %a, i64 %n)
  %q = call ptr @memmove(ptr %p, ptr %a, i64 %n)
  %r = call ptr @memset(ptr %q, i32 7, i64 %n)
  store i8 1, ptr %r, align 1
  ret void
}

declare ptr @memcpy(ptr, ptr, i64)

declare ptr @memmove(ptr, ptr, i64)

declare ptr @memset(ptr, i32, i64)
