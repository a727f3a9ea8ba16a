; run 1 groups of 2
; with 5 7
; gives 6 8
define void @adds(ptr noalias noundef readonly align 8 dereferenceable(16) %block) section ".nvvm.kernel" {
start:
  call void @__nvvm_by_value(ptr noundef %block, i64 noundef 16, i64 noundef 8)
  %at = getelementptr inbounds nuw i8, ptr %block, i64 8
  %out = load ptr, ptr %at, align 8
  %thread = call i32 @__nvvm_thread_idx_x()
  %index = zext i32 %thread to i64
  %own = getelementptr inbounds i32, ptr %out, i64 %index
  %old = load i32, ptr %own, align 4
  %new = add i32 %old, 1
  store i32 %new, ptr %own, align 4
  ret void
}

declare void @__nvvm_by_value(ptr noundef, i64 noundef, i64 noundef) unnamed_addr
declare i32 @__nvvm_thread_idx_x() unnamed_addr
