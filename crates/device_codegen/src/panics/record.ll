; Writes which panic a thread has come to, and what it knows of it, to memory of the host, and
; stops the grid. The memory, at an address that the host has set before the launch, is 64 bytes:
;
;      0   the number of the panic, plus 1; written last
;      4   the block's index x, y, z
;     16   the thread's index x, y, z
;     32   three numbers of 64 bits
;
; Only the first thread that comes here writes. All others end without a trap, which would stop the
; grid before the first has written. Without an address a panic is only a trap.

@__nvvm_panic_record = global i64 0, align 8

@__nvvm_panic_claimed = internal global i32 0, align 4

define internal void @__nvvm_panic(i32 %number, i64 %first, i64 %second, i64 %third) cold noinline noreturn nounwind {
start:
  %address = load i64, ptr @__nvvm_panic_record, align 8
  %is.absent = icmp eq i64 %address, 0
  br i1 %is.absent, label %end, label %claim

claim:
  %before = atomicrmw xchg ptr @__nvvm_panic_claimed, i32 1 monotonic, align 4
  %is.first = icmp eq i32 %before, 0
  br i1 %is.first, label %write, label %leave

write:
  %record = inttoptr i64 %address to ptr
  %block.x = call i32 @__nvvm_block_idx_x()
  %block.x.place = getelementptr i8, ptr %record, i64 4
  store volatile i32 %block.x, ptr %block.x.place, align 4
  %block.y = call i32 @__nvvm_block_idx_y()
  %block.y.place = getelementptr i8, ptr %record, i64 8
  store volatile i32 %block.y, ptr %block.y.place, align 4
  %block.z = call i32 @__nvvm_block_idx_z()
  %block.z.place = getelementptr i8, ptr %record, i64 12
  store volatile i32 %block.z, ptr %block.z.place, align 4
  %thread.x = call i32 @__nvvm_thread_idx_x()
  %thread.x.place = getelementptr i8, ptr %record, i64 16
  store volatile i32 %thread.x, ptr %thread.x.place, align 4
  %thread.y = call i32 @__nvvm_thread_idx_y()
  %thread.y.place = getelementptr i8, ptr %record, i64 20
  store volatile i32 %thread.y, ptr %thread.y.place, align 4
  %thread.z = call i32 @__nvvm_thread_idx_z()
  %thread.z.place = getelementptr i8, ptr %record, i64 24
  store volatile i32 %thread.z, ptr %thread.z.place, align 4
  %first.place = getelementptr i8, ptr %record, i64 32
  store volatile i64 %first, ptr %first.place, align 8
  %second.place = getelementptr i8, ptr %record, i64 40
  store volatile i64 %second, ptr %second.place, align 8
  %third.place = getelementptr i8, ptr %record, i64 48
  store volatile i64 %third, ptr %third.place, align 8
  call void @__nvvm_system_fence()
  %valid = add i32 %number, 1
  store volatile i32 %valid, ptr %record, align 4
  call void @__nvvm_system_fence()
  br label %end

leave:
  call void @__nvvm_exit()
  unreachable

end:
  call void @__nvvm_trap()
  unreachable
}

declare i32 @__nvvm_block_idx_x()

declare i32 @__nvvm_block_idx_y()

declare i32 @__nvvm_block_idx_z()

declare i32 @__nvvm_thread_idx_x()

declare i32 @__nvvm_thread_idx_y()

declare i32 @__nvvm_thread_idx_z()

declare void @__nvvm_system_fence()

declare void @__nvvm_exit()

declare void @__nvvm_trap()
