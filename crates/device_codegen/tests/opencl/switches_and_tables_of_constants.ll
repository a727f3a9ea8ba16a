; run 1 groups of 4
; gives 7 11 130 13
@_ZN4test6PRIMES17h0123456789abcdefE = internal constant <{ [16 x i8] }> <{ [16 x i8] c"\07\00\00\00\0B\00\00\00\82\00\00\00\11\00\00\00" }>, align 4

declare i32 @__nvvm_thread_idx_x()

define void @table(ptr %out) section ".nvvm.kernel" {
start:
  %thread = call i32 @__nvvm_thread_idx_x()
  %index = zext i32 %thread to i64
  switch i32 %thread, label %other [
    i32 3, label %last
    i32 9, label %never
  ]
last:
  br label %end
never:
  br label %end
other:
  %place = getelementptr inbounds i32, ptr @_ZN4test6PRIMES17h0123456789abcdefE, i64 %index
  %read = load i32, ptr %place, align 4
  br label %end
end:
  %value = phi i32 [ 13, %last ], [ 99, %never ], [ %read, %other ]
  %target = getelementptr inbounds i32, ptr %out, i64 %index
  store i32 %value, ptr %target, align 4
  ret void
}
