; run 1 groups of 1
; with 1 2 3 4 5 6 7 8
; gives 1 2 3 4 5 6 7 8 1 2 3 4 0 6
@_ZN4test4TILE17h0123456789abcdefE = internal global [64 x i8] undef, section ".nvvm.addrspace.3", align 16

declare i32 @__nvvm_shared_address(ptr)
declare void @__nvvm_block_barrier()

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
  %place.0 = getelementptr inbounds i32, ptr @_ZN4test4TILE17h0123456789abcdefE, i64 0
  %value.0 = load i32, ptr %place.0, align 4
  %target.0 = getelementptr inbounds i32, ptr %out, i64 8
  store i32 %value.0, ptr %target.0, align 4
  %place.1 = getelementptr inbounds i32, ptr @_ZN4test4TILE17h0123456789abcdefE, i64 1
  %value.1 = load i32, ptr %place.1, align 4
  %target.1 = getelementptr inbounds i32, ptr %out, i64 9
  store i32 %value.1, ptr %target.1, align 4
  %place.2 = getelementptr inbounds i32, ptr @_ZN4test4TILE17h0123456789abcdefE, i64 2
  %value.2 = load i32, ptr %place.2, align 4
  %target.2 = getelementptr inbounds i32, ptr %out, i64 10
  store i32 %value.2, ptr %target.2, align 4
  %place.3 = getelementptr inbounds i32, ptr @_ZN4test4TILE17h0123456789abcdefE, i64 3
  %value.3 = load i32, ptr %place.3, align 4
  %target.3 = getelementptr inbounds i32, ptr %out, i64 11
  store i32 %value.3, ptr %target.3, align 4
  %place.4 = getelementptr inbounds i32, ptr @_ZN4test4TILE17h0123456789abcdefE, i64 4
  %value.4 = load i32, ptr %place.4, align 4
  %target.4 = getelementptr inbounds i32, ptr %out, i64 12
  store i32 %value.4, ptr %target.4, align 4
  %place.5 = getelementptr inbounds i32, ptr @_ZN4test4TILE17h0123456789abcdefE, i64 5
  %value.5 = load i32, ptr %place.5, align 4
  %target.5 = getelementptr inbounds i32, ptr %out, i64 13
  store i32 %value.5, ptr %target.5, align 4
  ret void
}
