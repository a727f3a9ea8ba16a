define void @kernel(ptr %out, ptr %pointer) section ".nvvm.kernel" {
start:
  %is = call noundef i32 @__nvvm_is_shared(ptr noundef %pointer)
  %to = call noundef ptr @__nvvm_to_shared(ptr noundef %pointer)
  %from = call noundef ptr @__nvvm_from_shared(ptr noundef %to)
  store i32 %is, ptr %from, align 4
  %cycles = call noundef i64 @__nvvm_clock()
  store i64 %cycles, ptr %out, align 8
  %bytes = call noundef i32 @__nvvm_dynamic_smem_size()
  store i32 %bytes, ptr %out, align 4
  call void @__nvvm_breakpoint()
  ret void
}

declare noundef i32 @__nvvm_is_shared(ptr noundef) unnamed_addr

declare noundef ptr @__nvvm_to_shared(ptr noundef) unnamed_addr

declare noundef ptr @__nvvm_from_shared(ptr noundef) unnamed_addr

declare noundef i64 @__nvvm_clock() unnamed_addr

declare noundef i32 @__nvvm_dynamic_smem_size() unnamed_addr

declare void @__nvvm_breakpoint() unnamed_addr
