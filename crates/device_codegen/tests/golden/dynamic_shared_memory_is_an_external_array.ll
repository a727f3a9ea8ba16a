define void @kernel(ptr %out, i64 %i) section ".nvvm.kernel" {
start:
  %base = call noundef ptr @__nvvm_dynamic_shared(i32 noundef 16)
  %place = getelementptr inbounds float, ptr %base, i64 %i
  %v = load float, ptr %place, align 4
  store float %v, ptr %out, align 4
  ret void
}

declare noundef ptr @__nvvm_dynamic_shared(i32 noundef) unnamed_addr
