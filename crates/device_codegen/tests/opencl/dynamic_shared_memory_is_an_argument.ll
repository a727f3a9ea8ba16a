; run 1 groups of 4
; gives 1 2 3 0
declare i32 @__nvvm_thread_idx_x()
declare void @__nvvm_block_barrier()
declare ptr @__nvvm_dynamic_shared(i32)

define void @rotate_left(ptr %out) section ".nvvm.kernel" {
start:
  %shared = call ptr @__nvvm_dynamic_shared(i32 16)
  %thread = call i32 @__nvvm_thread_idx_x()
  %index = zext i32 %thread to i64
  %mine = getelementptr inbounds i32, ptr %shared, i64 %index
  store i32 %thread, ptr %mine, align 4
  call void @__nvvm_block_barrier()
  %next = add i32 %thread, 1
  %wrapped = and i32 %next, 3
  %wide = zext i32 %wrapped to i64
  %theirs = getelementptr inbounds i32, ptr %shared, i64 %wide
  %value = load i32, ptr %theirs, align 4
  %target = getelementptr inbounds i32, ptr %out, i64 %index
  store i32 %value, ptr %target, align 4
  ret void
}
