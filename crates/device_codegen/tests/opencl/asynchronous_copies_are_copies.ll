; run 1 groups of 1
; with 1 2 3 4 5 6 7 8
; gives 1 2 3 4 5 6 7 8 1 2 3 4 0 6
@_ZN4test4TILE17h0123456789abcdefE = internal global [64 x i8] undef, section ".nvvm.addrspace.3", align 16

declare i32 @__nvvm_shared_address(ptr)
declare void @__nvvm_block_barrier()
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define void @copy(ptr %out) section ".nvvm.kernel" {
start:
  %address = call i32 @__nvvm_shared_address(ptr @_ZN4test4TILE17h0123456789abcdefE)
  call void asm sideeffect inteldialect "cp.async.cg.shared.global [${0:k}], [${1:q}], 16;", "r,r,~{memory}"(i32 %address, ptr %out)
  %fifth = getelementptr inbounds i32, ptr @_ZN4test4TILE17h0123456789abcdefE, i64 4
  %address.5 = call i32 @__nvvm_shared_address(ptr %fifth)
  %from.5 = getelementptr inbounds i32, ptr %out, i64 4
  call void asm sideeffect inteldialect "cp.async.ca.shared.global [${0:k}], [${1:q}], 4, ${2:k};", "r,r,r,~{memory}"(i32 %address.5, ptr %from.5, i32 0)
  %sixth = getelementptr inbounds i32, ptr @_ZN4test4TILE17h0123456789abcdefE, i64 5
  %address.6 = call i32 @__nvvm_shared_address(ptr %sixth)
  %from.6 = getelementptr inbounds i32, ptr %out, i64 5
  %one = load i32, ptr %out, align 4
  %bytes = shl i32 %one, 2
  call void asm sideeffect inteldialect "cp.async.ca.shared.global [${0:k}], [${1:q}], 4, ${2:k};", "r,r,r,~{memory}"(i32 %address.6, ptr %from.6, i32 %bytes)
  call void asm sideeffect inteldialect "cp.async.commit_group;", "~{memory}"()
  call void asm sideeffect inteldialect "cp.async.wait_group 0;", "~{memory}"()
  call void @__nvvm_block_barrier()
  %target = getelementptr inbounds i32, ptr %out, i64 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 4 %target, ptr align 4 @_ZN4test4TILE17h0123456789abcdefE, i64 24, i1 false)
  ret void
}
