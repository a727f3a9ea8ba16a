; run 1 groups of 1
; with 4 5
; gives 4 5 4 9
@_ZN4test4TILE17h0123456789abcdefE = internal global [8 x i8] undef, section ".nvvm.addrspace.3", align 4

define internal i32 @_ZN4test3sum17h0123456789abcdefE(ptr %from, i32 %count) noinline {
start:
  %is.one = icmp eq i32 %count, 1
  %first = load i32, ptr %from, align 4
  br i1 %is.one, label %one, label %two
one:
  ret i32 %first
two:
  %second.place = getelementptr inbounds i32, ptr %from, i64 1
  %second = load i32, ptr %second.place, align 4
  %sum = add i32 %first, %second
  ret i32 %sum
}

define void @sums(ptr %out) section ".nvvm.kernel" {
start:
  %first = load i32, ptr %out, align 4
  store i32 %first, ptr @_ZN4test4TILE17h0123456789abcdefE, align 4
  %a = call i32 @_ZN4test3sum17h0123456789abcdefE(ptr @_ZN4test4TILE17h0123456789abcdefE, i32 1)
  %b = call i32 @_ZN4test3sum17h0123456789abcdefE(ptr %out, i32 2)
  %third = getelementptr inbounds i32, ptr %out, i64 2
  store i32 %a, ptr %third, align 4
  %fourth = getelementptr inbounds i32, ptr %out, i64 3
  store i32 %b, ptr %fourth, align 4
  ret void
}
