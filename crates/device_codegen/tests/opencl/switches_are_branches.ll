; run 1 groups of 4
; gives 7 8 9 13

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
  %read = add i32 %thread, 7
  br label %end
end:
  %value = phi i32 [ 13, %last ], [ 99, %never ], [ %read, %other ]
  %target = getelementptr inbounds i32, ptr %out, i64 %index
  store i32 %value, ptr %target, align 4
  ret void
}
