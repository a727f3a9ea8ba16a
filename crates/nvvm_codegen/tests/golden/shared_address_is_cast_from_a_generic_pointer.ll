; What `cp.async` writes to is a 32-bit address of shared memory.

@TILE = internal global <{ [64 x i8] }> undef, section ".nvvm.addrspace.3", align 16

define void @kernel(ptr %p, i64 %i) section ".nvvm.kernel" {
start:
  %place = getelementptr inbounds float, ptr @TILE, i64 %i
  %address = call noundef i32 @__nvvm_shared_address(ptr noundef %place)
  call void asm sideeffect inteldialect "cp.async.ca.shared.global [${0:e}], [${1}], 4;", "r,r,~{memory}"(i32 %address, ptr %p)
  ret void
}

declare noundef i32 @__nvvm_shared_address(ptr noundef) unnamed_addr
