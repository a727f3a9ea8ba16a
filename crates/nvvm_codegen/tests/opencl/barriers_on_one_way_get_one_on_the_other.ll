; run 1 groups of 8
; with 5 2
; gives 5 2 0 0 6 8 10 12
; As `if (groups == 0) { sum = 7 } else { barrier; if (thread >= 4) return; sum = .. } out[..] = sum`.
@_ZN4test4TILE17h0123456789abcdefE = internal global [32 x i8] undef, section ".nvvm.addrspace.3", align 4

declare i32 @__nvvm_thread_idx_x()
declare void @__nvvm_block_barrier()

define void @add_groups(ptr %out) section ".nvvm.kernel" {
start:
  %thread = call i32 @__nvvm_thread_idx_x()
  %groups.place = getelementptr inbounds i32, ptr %out, i64 1
  %groups = load i32, ptr %groups.place, align 4
  %index = zext i32 %thread to i64
  %mine = getelementptr inbounds i32, ptr @_ZN4test4TILE17h0123456789abcdefE, i64 %index
  %number = add i32 %thread, 1
  store i32 %number, ptr %mine, align 4
  %is.none = icmp eq i32 %groups, 0
  br i1 %is.none, label %write, label %add
add:
  call void @__nvvm_block_barrier()
  %is.other = icmp ugt i32 %thread, 3
  br i1 %is.other, label %end, label %first
first:
  %far = getelementptr inbounds i32, ptr %mine, i64 4
  %one = load i32, ptr %mine, align 4
  %two = load i32, ptr %far, align 4
  %both = add i32 %one, %two
  br label %write
write:
  %sum = phi i32 [ 7, %start ], [ %both, %first ]
  %slot = and i32 %thread, 3
  %slot.wide = zext i32 %slot to i64
  %slots = getelementptr inbounds i32, ptr %out, i64 4
  %target = getelementptr inbounds i32, ptr %slots, i64 %slot.wide
  store i32 %sum, ptr %target, align 4
  br label %end
end:
  ret void
}
