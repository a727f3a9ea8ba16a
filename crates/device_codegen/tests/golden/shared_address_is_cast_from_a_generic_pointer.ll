; Instructions of shared memory alone, such as `cp.async`, take a 32-bit address.

@TILE = internal global <{ [64 x i8] }> undef, section ".nvvm.addrspace.3", align 16

define void @kernel(ptr %p, i64 %i) section ".nvvm.kernel" {
start:
  %place = getelementptr inbounds float, ptr @TILE, i64 %i
  %address = call noundef i32 @__nvvm_shared_address(ptr noundef %place)
  call void asm sideeffect inteldialect "st.shared.u64 [${0:e}], ${1};", "r,r,~{memory}"(i32 %address, ptr %p)
  ret void
}

declare noundef i32 @__nvvm_shared_address(ptr noundef) unnamed_addr
