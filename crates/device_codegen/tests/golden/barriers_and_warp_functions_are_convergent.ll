define void @kernel(ptr %out, i32 %a) section ".nvvm.kernel" {
start:
  call void @__nvvm_block_barrier()
  %count = call noundef i32 @__nvvm_block_barrier_count(i32 noundef %a)
  %moved = call noundef i32 @__nvvm_warp_shfl_down_i32(i32 noundef -1, i32 noundef %count, i32 noundef 16, i32 noundef 31)
  %all = call noundef i32 @__nvvm_warp_vote_all(i32 noundef -1, i32 noundef %moved)
  %mask = call noundef i32 @__nvvm_warp_ballot(i32 noundef -1, i32 noundef %all)
  call void @__nvvm_warp_sync(i32 noundef -1)
  %same = call noundef i32 @__nvvm_warp_match_any_b32(i32 noundef -1, i32 noundef %a)
  %wide = zext i32 %same to i64
  %alike = call noundef i32 @__nvvm_warp_match_all_b64(i32 noundef -1, i64 noundef %wide)
  store i32 %alike, ptr %out, align 4
  %active = call noundef i32 @__nvvm_active_mask()
  %sum = add i32 %mask, %active
  store i32 %sum, ptr %out, align 4
  ret void
}

declare void @__nvvm_block_barrier() unnamed_addr

declare noundef i32 @__nvvm_block_barrier_count(i32 noundef) unnamed_addr

declare noundef i32 @__nvvm_warp_shfl_down_i32(i32 noundef, i32 noundef, i32 noundef, i32 noundef) unnamed_addr

declare noundef i32 @__nvvm_warp_vote_all(i32 noundef, i32 noundef) unnamed_addr

declare noundef i32 @__nvvm_warp_ballot(i32 noundef, i32 noundef) unnamed_addr

declare void @__nvvm_warp_sync(i32 noundef) unnamed_addr

declare noundef i32 @__nvvm_active_mask() unnamed_addr

declare noundef i32 @__nvvm_warp_match_any_b32(i32 noundef, i32 noundef) unnamed_addr

declare noundef i32 @__nvvm_warp_match_all_b64(i32 noundef, i64 noundef) unnamed_addr
