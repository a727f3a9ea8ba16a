; run 1 groups of 4
; gives 0 3 6 9
declare i32 @__nvvm_warp_shfl_idx_i32(i32, i32, i32, i32)
declare i32 @__nvvm_lane_id()
declare i32 @__nvvm_thread_idx_x()

define void @keep(ptr %out) section ".nvvm.kernel" {
start:
  %thread = call i32 @__nvvm_thread_idx_x()
  %triple = mul i32 %thread, 3
  %lane = call i32 @__nvvm_lane_id()
  %kept = call i32 @__nvvm_warp_shfl_idx_i32(i32 -1, i32 %triple, i32 %lane, i32 31)
  %index = zext i32 %thread to i64
  %target = getelementptr inbounds i32, ptr %out, i64 %index
  store i32 %kept, ptr %target, align 4
  ret void
}
