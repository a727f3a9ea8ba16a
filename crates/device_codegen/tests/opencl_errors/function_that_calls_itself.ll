define internal i32 @_ZN4test4fold17h0123456789abcdefE(i32 %n) noinline {
start:
  %last = icmp eq i32 %n, 0
  br i1 %last, label %end, label %more
more:
  %less = sub i32 %n, 1
  %rest = call i32 @_ZN4test4fold17h0123456789abcdefE(i32 %less)
  ret i32 %rest
end:
  ret i32 0
}
define void @refused(ptr %out) section ".nvvm.kernel" {
start:
  %n = load i32, ptr %out, align 4
  %value = call i32 @_ZN4test4fold17h0123456789abcdefE(i32 %n)
  store i32 %value, ptr %out, align 4
  ret void
}
