@_ZN4test5COUNT17h0123456789abcdefE = internal global i32 0, align 4
define void @refused(ptr %out) section ".nvvm.kernel" {
start:
  %count = load i32, ptr @_ZN4test5COUNT17h0123456789abcdefE, align 4
  store i32 %count, ptr %out, align 4
  ret void
}
