define void @kernel(ptr %out) section ".nvvm.kernel" {
start:
  %thread = call noundef i32 @__nvvm_thread_idx_x()
  %block = call noundef i32 @__nvvm_block_idx_y()
  %lane = call noundef i32 @__nvvm_lane_id()
  call void @__nvvm_block_fence()
  call void @__nvvm_device_fence()
  call void @__nvvm_system_fence()
  call void @__nvvm_nanosleep(i32 noundef 20)
  %sum = add i32 %thread, %block
  %all = add i32 %sum, %lane
  store i32 %all, ptr %out, align 4
  ret void
}

declare noundef i32 @__nvvm_thread_idx_x() unnamed_addr

declare noundef i32 @__nvvm_block_idx_y() unnamed_addr

declare noundef i32 @__nvvm_lane_id() unnamed_addr

declare void @__nvvm_block_fence() unnamed_addr

declare void @__nvvm_device_fence() unnamed_addr

declare void @__nvvm_system_fence() unnamed_addr

declare void @__nvvm_nanosleep(i32 noundef) unnamed_addr
