; run 2 groups of 4
; gives 3 2 1 0 13 12 11 10
; Each work-item writes its own number, and reads that of the one across.
@_ZN4test4TILE17h0123456789abcdefE = internal global [16 x i8] undef, section ".nvvm.addrspace.3", align 16

declare i32 @__nvvm_thread_idx_x()
declare i32 @__nvvm_block_idx_x()
declare i32 @__nvvm_block_dim_x()
declare void @__nvvm_block_barrier()

define void @reverse(ptr noalias %out) section ".nvvm.kernel" {
start:
  %thread = call i32 @__nvvm_thread_idx_x()
  %block = call i32 @__nvvm_block_idx_x()
  %size = call i32 @__nvvm_block_dim_x()
  %ten = mul i32 %block, 10
  %number = add i32 %ten, %thread
  %thread.wide = zext i32 %thread to i64
  %mine = getelementptr inbounds i32, ptr @_ZN4test4TILE17h0123456789abcdefE, i64 %thread.wide
  store i32 %number, ptr %mine, align 4
  call void @__nvvm_block_barrier()
  %last = sub i32 %size, 1
  %other = sub i32 %last, %thread
  %other.wide = zext i32 %other to i64
  %place = getelementptr inbounds i32, ptr @_ZN4test4TILE17h0123456789abcdefE, i64 %other.wide
  %value = load i32, ptr %place, align 4
  %first = mul i32 %block, %size
  %index = add i32 %first, %thread
  %index.wide = zext i32 %index to i64
  %target = getelementptr inbounds i32, ptr %out, i64 %index.wide
  store i32 %value, ptr %target, align 4
  ret void
}
